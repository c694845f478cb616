; Places in batches: whatever is asked for, no index leaves the batch, and no word of it is passed over twice.
;
; code: kernel/random/src/crng.rs
;| let end = self.used.saturating_add(out.len());
;| match batch.get_mut(self.used..end) {
;| let wanting = cpu.used.saturating_add(words) > GROUP_WORDS;
;| let ready = batch.get_mut(cpu.used..)?.first_chunk_mut::<N>()?;
;| cpu.used += N;
;| let count = ready.len().min(out.len());
;| self.used += count;
;| if self.used >= GROUP_WORDS {
;| self.used = KEY_LEN / WORD;
; code: kernel/random/src/vdso.rs
;| let start = if (KEY_LEN..GROUP_LEN).contains(&used) { used } else { GROUP_LEN };
;| let count = ready.len().min(out.len());
;| self.used = (start + count) as u32;
;| let (whole, rest) = later.split_at_mut(later.len() / GROUP_LEN * GROUP_LEN);
;| blocks.fill(&key, before.len() as u32, &mut self.group);
; code: kernel/vdso/src/getrandom.rs
;| const MOST: usize = 0x7fff_f000;
;| let len = if len > MOST { MOST } else { len };
(set-logic QF_BV)
(define-fun words () (_ BitVec 64) (_ bv64 64))
(define-fun group () (_ BitVec 64) (_ bv512 64))
(define-fun least ((a (_ BitVec 64)) (b (_ BitVec 64))) (_ BitVec 64) (ite (bvult a b) a b))
(define-fun saturated ((a (_ BitVec 64)) (b (_ BitVec 64))) (_ BitVec 64)
  (ite (bvult (bvadd a b) a) #xffffffffffffffff (bvadd a b)))
(declare-const used (_ BitVec 64))
(declare-const asked (_ BitVec 64))

; A CPU's batch: the first four words became the key.
(push)
(assert (and (bvuge used (_ bv4 64)) (bvule used words)))
(set-info :status sat)
(check-sat)
; A slice is there exactly if it fits, and then the place after it is within the batch.
(push)
(define-fun end () (_ BitVec 64) (saturated used asked))
(assert (bvule end words))
(assert (not (and (= end (bvadd used asked)) (bvuge end used) (bvule asked (bvsub words used)))))
(set-info :status unsat)
(check-sat)
(pop)
; A batch is topped up exactly if what is wanted is not ready.
(push)
(assert (not (= (bvugt (saturated used asked) words) (bvugt asked (bvsub words used)))))
(set-info :status unsat)
(check-sat)
(pop)
; After a refill at the end there is always something to take, so that a long draw ends.
(push)
(define-fun at () (_ BitVec 64) (ite (bvuge used words) (_ bv4 64) used))
(define-fun count () (_ BitVec 64) (least (bvsub words at) asked))
(assert (bvugt asked (_ bv0 64)))
(assert (not (and (bvugt count (_ bv0 64)) (bvule count asked) (bvule (bvadd at count) words))))
(set-info :status unsat)
(check-sat)
(pop)
(pop)

; A state of the vDSO, which the kernel may take away at any moment: whatever number stands in it.
(push)
(declare-const stored (_ BitVec 32))
(define-fun place () (_ BitVec 64) ((_ zero_extend 32) stored))
(define-fun start () (_ BitVec 64)
  (ite (and (bvuge place (_ bv32 64)) (bvult place group)) place group))
(define-fun count () (_ BitVec 64) (least (bvsub group start) asked))
(define-fun later () (_ BitVec 64) (bvsub asked count))
(define-fun whole () (_ BitVec 64) (bvmul (bvudiv later group) group))
(define-fun before () (_ BitVec 64) (bvudiv whole (_ bv64 64)))
; The image cuts the length, as the system call does.
(assert (bvule asked #x000000007ffff000))
(set-info :status sat)
(check-sat)
(push)
(assert (not (and (bvuge start (_ bv32 64)) (bvule (bvadd start count) group) (bvule whole later)
                  (bvult (bvsub later whole) group))))
(set-info :status unsat)
(check-sat)
(pop)
; The counter does not wrap: the cut to 32 bits loses nothing, and eight more blocks fit.
(push)
(assert (not (bvule (bvadd before (_ bv8 64)) #x00000000ffffffff)))
(set-info :status unsat)
(check-sat)
(pop)
(pop)
