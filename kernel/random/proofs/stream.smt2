; How a long request is split into runs of one key: nothing overflows, no counter of a key comes twice, the block that the
; next key is made of is never handed out, and the runs end exactly where the request does. For every length of 64 bits.
;
; code: kernel/random/src/crng.rs
;| let mut start = 0;
;| while start < count {
;| let len = (count - start).min(STREAM_REKEY_BLOCKS as usize);
;| if self.next_block + len as u32 > STREAM_REKEY_BLOCKS {
;| let counter = self.next_block;
;| self.next_block += len as u32;
;| start += len;
;| self.next_block = 0;
;| pub const STREAM_REKEY: usize = 32 * 1024;
;| const STREAM_REKEY_BLOCKS: u32 = (STREAM_REKEY / BLOCK_LEN) as u32;
(set-logic QF_BV)
(define-fun limit () (_ BitVec 64) (bvudiv (bvmul (_ bv32 64) (_ bv1024 64)) (_ bv64 64)))
(define-fun limit32 () (_ BitVec 32) ((_ extract 31 0) limit))
(declare-const count (_ BitVec 64))
(declare-const start (_ BitVec 64))
(declare-const next_block (_ BitVec 32))
(define-fun left () (_ BitVec 64) (bvsub count start))
(define-fun len () (_ BitVec 64) (ite (bvult left limit) left limit))
(define-fun len32 () (_ BitVec 32) ((_ extract 31 0) len))
(define-fun sum () (_ BitVec 32) (bvadd next_block len32))
(define-fun rekeys () Bool (bvugt sum limit32))
(define-fun counter () (_ BitVec 32) (ite rekeys (_ bv0 32) next_block))
(define-fun after () (_ BitVec 32) (bvadd counter len32))

; The loop's condition, and what holds before each turn: all counters of this key so far lie below `next_block`.
(assert (bvult start count))
(assert (bvule next_block limit32))
(set-info :status sat)
(check-sat)

; A run is not empty, and the cut to 32 bits loses nothing.
(push)
(assert (not (and (bvugt len (_ bv0 64)) (= ((_ zero_extend 32) len32) len) (bvule len limit))))
(set-info :status unsat)
(check-sat)
(pop)

; The sums do not overflow.
(push)
(assert (or (bvult sum next_block) (bvult after counter) (bvult (bvadd start len) start)))
(set-info :status unsat)
(check-sat)
(pop)

; The run's counters begin where the key's last run ended, or a new key begins at 0, and stay below the limit: what held
; before the turn holds after it.
(push)
(assert (not (and (bvule after limit32) (or (= counter next_block) (and rekeys (= counter (_ bv0 32)))))))
(set-info :status unsat)
(check-sat)
(pop)

; A run before this one under the same key, wherever it began: this run shares no counter with it, and if a new key is
; needed, the block `next_block` that it is made of was not handed out.
(push)
(declare-const earlier (_ BitVec 32))
(declare-const earlier_len (_ BitVec 32))
(declare-const used (_ BitVec 32))
(assert (bvule earlier_len limit32))
(assert (bvule earlier limit32))
(assert (bvule (bvadd earlier earlier_len) next_block))
(assert (and (bvuge used earlier) (bvult used (bvadd earlier earlier_len))))
(assert (or (and rekeys (= used next_block))
            (and (not rekeys) (bvuge used counter) (bvult used after))))
(set-info :status unsat)
(check-sat)
(pop)

; Each turn comes nearer to the end, and none goes beyond it.
(push)
(assert (not (and (bvugt (bvadd start len) start) (bvule (bvadd start len) count))))
(set-info :status unsat)
(check-sat)
(pop)
