; Credit: no sum overflows, none passes 256 bits or goes back, and in whatever order sources are credited, the sum is the same.
;
; code: kernel/random/src/credit.rs
;| const CONDEMNED: u64 = 1 << 32;
;| CONDEMNED => CONDEMNED,
;| old => (old + u64::from(bits.0)).min(u64::from(EntropyBits::READY.0)),
;| EntropyBits(u32::try_from(count).unwrap_or(0))
;| pub const EARLY: Self = Self(128);
;| pub const READY: Self = Self(256);
;| Self(self.0.saturating_add(other.0))
(set-logic QF_BV)
(define-fun ready () (_ BitVec 64) (_ bv256 64))
(define-fun sum ((old (_ BitVec 64)) (bits (_ BitVec 32))) (_ BitVec 64)
  (let ((all (bvadd old ((_ zero_extend 32) bits)))) (ite (bvult all ready) all ready)))
(define-fun state ((bits (_ BitVec 64))) (_ BitVec 2)
  (ite (bvuge bits ready) #b10 (ite (bvuge bits (_ bv128 64)) #b01 #b00)))
(define-fun condemned () (_ BitVec 64) #x0000000100000000)
(define-fun add ((old (_ BitVec 64)) (bits (_ BitVec 32))) (_ BitVec 64)
  (ite (= old condemned) condemned (sum old bits)))
(declare-const old (_ BitVec 64))
(declare-const a (_ BitVec 32))
(declare-const b (_ BitVec 32))
(assert (bvule old ready))
(set-info :status sat)
(check-sat)

(push)
(assert (or (bvult (bvadd old ((_ zero_extend 32) a)) old) (bvugt (sum old a) ready) (bvult (sum old a) old)))
(set-info :status unsat)
(check-sat)
(pop)

; A state never goes back.
(push)
(assert (bvult (state (sum old a)) (state old)))
(set-info :status unsat)
(check-sat)
(pop)

; Two credits, in either order, are one of their sum.
(push)
(assert (or (not (= (sum (sum old a) b) (sum (sum old b) a)))
            (not (= (sum (sum old a) b)
                    (let ((all (bvadd old (bvadd ((_ zero_extend 32) a) ((_ zero_extend 32) b)))))
                      (ite (bvult all ready) all ready))))))
(set-info :status unsat)
(check-sat)
(pop)

; Ready is reached by 256 bits and by no fewer, however they are cut.
(push)
(assert (= (sum (sum (_ bv0 64) a) b) ready))
(assert (bvult (bvadd ((_ zero_extend 32) a) ((_ zero_extend 32) b)) ready))
(set-info :status unsat)
(check-sat)
(pop)

; What boot sums before it credits stays below 2^32, and never falls short of a source.
(push)
(define-fun saturated () (_ BitVec 32)
  (ite (bvult (bvadd a b) a) #xffffffff (bvadd a b)))
(assert (or (bvult saturated a) (bvult saturated b)))
(set-info :status unsat)
(check-sat)
(pop)

; A service that is condemned stays so and is worth nothing, and no credit condemns one.
(push)
(define-fun bits ((count (_ BitVec 64))) (_ BitVec 64)
  (ite (bvule count #x00000000ffffffff) count (_ bv0 64)))
(assert (or (not (= (add condemned a) condemned)) (not (= (bits condemned) (_ bv0 64)))
            (= (add old a) condemned) (not (= (add old a) (sum old a)))))
(set-info :status unsat)
(check-sat)
(pop)
