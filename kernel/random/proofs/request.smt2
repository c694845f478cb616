; A request: no length makes anything overflow, what is reported was asked for, and is never taken for an errno.
;
; code: kernel/random/src/request.rs
;| pub const MAX_LEN: usize = 0x7fff_f000;
;| pub const PIECE: usize = 4096;
;| let len = len.min(MAX_LEN);
;| while done < len {
;| let piece = (len - done).min(PIECE);
;| let moved = transfer(done, piece).min(piece);
;| done += moved;
;| if moved < piece {
(set-logic QF_BV)
(define-fun most () (_ BitVec 64) #x000000007ffff000)
(define-fun page () (_ BitVec 64) (_ bv4096 64))
(define-fun least ((a (_ BitVec 64)) (b (_ BitVec 64))) (_ BitVec 64) (ite (bvult a b) a b))
(declare-const asked (_ BitVec 64))
(declare-const done (_ BitVec 64))
; Whatever a transfer says.
(declare-const says (_ BitVec 64))
(define-fun len () (_ BitVec 64) (least asked most))
(define-fun piece () (_ BitVec 64) (least (bvsub len done) page))
(define-fun moved () (_ BitVec 64) (least says piece))
(define-fun after () (_ BitVec 64) (bvadd done moved))

; The loop's condition, and what holds before each turn: only whole pieces were moved.
(assert (bvult done len))
(assert (= (bvurem done page) (_ bv0 64)))
(set-info :status sat)
(check-sat)

; A piece is not empty, and nothing overflows or goes beyond what was asked for.
(push)
(assert (not (and (bvugt piece (_ bv0 64)) (bvuge after done) (bvule after asked) (bvule after len))))
(set-info :status unsat)
(check-sat)
(pop)

; The request ends, or the next turn begins at a whole piece.
(push)
(assert (= moved piece))
(assert (bvult after len))
(assert (not (and (bvugt after done) (= (bvurem after page) (_ bv0 64)))))
(set-info :status unsat)
(check-sat)
(pop)

; What is reported is no negative number of 32 bits.
(push)
(assert (or (not (= ((_ sign_extend 32) ((_ extract 31 0) after)) after)) (bvslt after (_ bv0 64))))
(set-info :status unsat)
(check-sat)
(pop)

; The longest request is whole pieces, which makes the enumeration at a small size as good as one at this.
(push)
(assert (not (= (bvurem most page) (_ bv0 64))))
(set-info :status unsat)
(check-sat)
(pop)
