; Jitter: the counts of samples do not overflow, and for each bit that is credited 64 samples have varied.
;
; code: kernel/random/src/jitter.rs
;| pub const SAMPLES_PER_BIT: u32 = 64;
;| pub const PATIENCE: u32 = 8;
;| let needed = wanted.0.saturating_mul(SAMPLES_PER_BIT);
;| let limit = needed.saturating_mul(PATIENCE).saturating_add(crate::health::STARTUP);
;| while counted < needed {
;| if samples == limit {
;| samples += 1;
;| counted += 1;
;| Ok(JitterReport { samples, regular: samples - counted, credit: wanted })
; code: kernel/random/src/health.rs
;| pub const STARTUP: u32 = 1024;
(set-logic QF_BV)
(define-fun most () (_ BitVec 64) #x00000000ffffffff)
(define-fun cut ((n (_ BitVec 64))) (_ BitVec 64) (ite (bvult n most) n most))
(declare-const wanted (_ BitVec 32))
(declare-const samples (_ BitVec 32))
(declare-const counted (_ BitVec 32))
(declare-const varied Bool)
(define-fun wanted64 () (_ BitVec 64) ((_ zero_extend 32) wanted))
(define-fun needed () (_ BitVec 64) (cut (bvmul wanted64 (_ bv64 64))))
(define-fun limit () (_ BitVec 64) (cut (bvadd (cut (bvmul needed (_ bv8 64))) (_ bv1024 64))))
(define-fun samples64 () (_ BitVec 64) ((_ zero_extend 32) samples))
(define-fun counted64 () (_ BitVec 64) ((_ zero_extend 32) counted))

; What holds before each turn.
(assert (bvule samples64 limit))
(assert (bvule counted samples))
(assert (bvule counted64 needed))
(set-info :status sat)
(check-sat)

; A turn keeps it, and nothing overflows.
(push)
(assert (bvult counted64 needed))
(assert (not (= samples64 limit)))
(define-fun more () (_ BitVec 32) (bvadd samples (_ bv1 32)))
(define-fun counts () (_ BitVec 32) (ite varied (bvadd counted (_ bv1 32)) counted))
(assert (not (and (bvugt more samples) (bvuge counts counted) (bvule counts more)
                  (bvule ((_ zero_extend 32) more) limit) (bvule ((_ zero_extend 32) counts) needed))))
(set-info :status unsat)
(check-sat)
(pop)

; At the end 64 samples have varied for each bit of credit. More than 2^26 bits cannot be counted, and nobody wants them.
(push)
(assert (bvult wanted64 (_ bv67108864 64)))
(assert (not (bvult counted64 needed)))
(assert (or (bvult counted64 (bvmul wanted64 (_ bv64 64))) (bvult samples counted)))
(set-info :status unsat)
(check-sat)
(pop)

; 256 bits take 16,384 samples that varied, and are given up after 132,096.
(push)
(assert (= wanted (_ bv256 32)))
(assert (not (and (= needed (_ bv16384 64)) (= limit (_ bv132096 64)))))
(set-info :status unsat)
(check-sat)
(pop)
