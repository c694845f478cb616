//! A message as it is laid into a buffer.

use crate::mm::fallible::{TrySlice, TryVec};
use abi::net::NlMsgHdr;
use abi::{Errno, Result};
use alloc::vec::Vec;
use zerocopy::IntoBytes;

/// Size of a message's header.
pub(super) const HEADER: usize = size_of::<NlMsgHdr>();
/// `NLM_F_MULTI`: one of several messages, the last of which is `NLMSG_DONE`.
pub(super) const MULTI: u16 = 2;
/// `NLM_F_CAPPED`: the request is not repeated in its acknowledgement.
const CAPPED: u16 = 0x100;
const TYPE_ERROR: u16 = 2;

/// Adds a message to a buffer, padded.
pub(super) fn put_message(out: &mut Vec<u8>, header: NlMsgHdr, body: &[u8]) -> Result<()> {
    let len = (HEADER + body.len()) as u32;
    out.try_extend_from_slice(NlMsgHdr { len, ..header }.as_bytes())?;
    out.try_extend_from_slice(body)?;
    out.try_resize(out.len().next_multiple_of(4), 0)
}

/// What acknowledges a request, or says why it failed; the request goes back with an error.
pub(super) fn error_message(
    header: &NlMsgHdr,
    body: &[u8],
    error: Option<Errno>,
    port: u32,
) -> Result<Vec<u8>> {
    let code = error.map_or(0, |error| -error.number());
    let mut answer = code.to_ne_bytes().try_owned()?;
    answer.try_extend_from_slice(header.as_bytes())?;
    if error.is_some() {
        answer.try_extend_from_slice(body)?;
        answer.try_resize(answer.len().next_multiple_of(4), 0)?;
    }
    let mut out = Vec::new();
    let flags = if error.is_none() { CAPPED } else { 0 };
    let reply =
        NlMsgHdr { kind: TYPE_ERROR, flags, pid: port, seq: header.seq, ..NlMsgHdr::default() };
    put_message(&mut out, reply, &answer)?;
    Ok(out)
}

/// A message that waits to be read.
pub(super) struct Queued {
    pub bytes: Vec<u8>,
    /// What it counts for the socket: what it was before a filter cut it, whose memory it still has.
    pub cost: usize,
}
