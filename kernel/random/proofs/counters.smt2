; What counts for ever: generations skip the two numbers that mean something else and never stand still, the tests of health
; do not overflow, and a drain of the interrupt pool is worth at most what it passes on.
;
; code: kernel/random/src/crng/base.rs
;| match self.0.wrapping_add(1) {
;| 0 | u64::MAX => Self(1),
; code: kernel/random/src/health.rs
;| self.run = if self.observed > 0 && sample == self.last { self.run + 1 } else { 1 };
;| if self.run >= self.cutoffs.repetition {
;| self.window_matches += u32::from(sample == self.window_first);
;| self.in_window = (self.in_window + 1) % WINDOW;
;| pub const WINDOW: u32 = 512;
; code: kernel/random/src/fast_pool.rs
;| Counter::Usable => (self.counted / INTERRUPTS_PER_BIT).min(MAX_CREDIT),
;| const MAX_CREDIT: u32 = 128;
;| pub const INTERRUPTS_PER_BIT: u32 = 64;
(set-logic QF_BV)
(define-fun none () (_ BitVec 64) #x0000000000000000)
(define-fun vacant () (_ BitVec 64) #xffffffffffffffff)
(define-fun next ((n (_ BitVec 64))) (_ BitVec 64)
  (let ((more (bvadd n (_ bv1 64)))) (ite (or (= more none) (= more vacant)) (_ bv1 64) more)))
(declare-const n (_ BitVec 64))
(declare-const m (_ BitVec 64))
(push)
(assert (or (= (next n) none) (= (next n) vacant)))
(set-info :status unsat)
(check-sat)
(pop)
; A published generation is followed by another one, and no two of them by the same.
(push)
(assert (not (or (= n none) (= n vacant) (= m none) (= m vacant))))
(set-info :status sat)
(check-sat)
(assert (or (= (next n) n) (and (not (= n m)) (= (next n) (next m)))))
(set-info :status unsat)
(check-sat)
(pop)

; Health: a run is below its cutoff before each sample, and matches are fewer than the samples of the window.
(declare-const run (_ BitVec 32))
(declare-const cutoff (_ BitVec 32))
(declare-const in_window (_ BitVec 32))
(declare-const matches (_ BitVec 32))
(push)
(assert (bvult run cutoff))
(assert (and (bvult in_window (_ bv512 32)) (bvule matches in_window)))
(set-info :status sat)
(check-sat)
(define-fun matched () (_ BitVec 32) (bvadd matches (_ bv1 32)))
(define-fun then () (_ BitVec 32) (bvurem (bvadd in_window (_ bv1 32)) (_ bv512 32)))
(assert (not (and (bvugt (bvadd run (_ bv1 32)) run) (bvugt matched matches) (bvule matched (_ bv512 32))
                  (or (= then (_ bv0 32)) (bvule matched then)))))
(set-info :status unsat)
(check-sat)
(pop)

; Interrupts: at most 128 bits, and 64 interrupts for each.
(declare-const counted (_ BitVec 32))
(push)
(define-fun bits () (_ BitVec 32) (bvudiv counted (_ bv64 32)))
(define-fun credit () (_ BitVec 32) (ite (bvult bits (_ bv128 32)) bits (_ bv128 32)))
(assert (not (and (bvule credit (_ bv128 32)) (bvule (bvmul credit (_ bv64 32)) counted))))
(set-info :status unsat)
(check-sat)
(pop)
