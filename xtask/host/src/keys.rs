//! What the user types: which of it is for this program, and which for the guest.

/// Ctrl-A, then x: leaves QEMU, as in QEMU's own terminal.
const ESCAPE: u8 = 0x01;

/// Finds Ctrl-A x among the keys; Ctrl-A Ctrl-A types one Ctrl-A.
#[derive(Default)]
pub struct Escapes {
    pending: bool,
}

impl Escapes {
    /// The bytes for the guest, and whether the user leaves.
    pub fn filter(&mut self, typed: &[u8]) -> (Vec<u8>, bool) {
        let mut bytes = Vec::with_capacity(typed.len());
        for &byte in typed {
            match (self.pending, byte) {
                (false, ESCAPE) => self.pending = true,
                (false, _) => bytes.push(byte),
                (true, b'x' | b'X') => return (bytes, true),
                (true, _) => {
                    self.pending = false;
                    if byte != ESCAPE {
                        bytes.push(ESCAPE);
                    }
                    bytes.push(byte);
                }
            }
        }
        (bytes, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ctrl_a_x_leaves() {
        let mut escapes = Escapes::default();
        assert_eq!(escapes.filter(b"ls\r\x03"), (b"ls\r\x03".to_vec(), false));
        assert_eq!(escapes.filter(b"\x01"), (vec![], false));
        assert_eq!(escapes.filter(b"b"), (b"\x01b".to_vec(), false));
        assert_eq!(escapes.filter(b"\x01\x01"), (b"\x01".to_vec(), false));
        assert_eq!(escapes.filter(b"a\x01xb"), (b"a".to_vec(), true));
    }
}
