//! A message as it is laid into a buffer.

use crate::mm::fallible::TryVec;
use abi::Result;
use abi::net::NlMsgHdr;
use alloc::vec::Vec;
use zerocopy::IntoBytes;

/// Size of a message's header.
pub(super) const HEADER: usize = size_of::<NlMsgHdr>();
/// `NLM_F_MULTI`: one of several messages, the last of which is `NLMSG_DONE`.
pub(super) const MULTI: u16 = 2;

/// Adds a message to a buffer, padded.
pub(super) fn put_message(out: &mut Vec<u8>, header: NlMsgHdr, body: &[u8]) -> Result<()> {
    let len = (HEADER + body.len()) as u32;
    out.try_extend_from_slice(NlMsgHdr { len, ..header }.as_bytes())?;
    out.try_extend_from_slice(body)?;
    out.try_resize(out.len().next_multiple_of(4), 0)
}
