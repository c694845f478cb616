//! Interrupt vectors and who handles them.

/// An interrupt arrived; interrupts are off.
pub(super) fn dispatch(vector: u8) {
    log::warn!("unexpected interrupt vector {vector:#x}");
}
