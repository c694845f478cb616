//! [`Packet`]: what a filter of packets looks at, and how it is read: by offsets from where its data begin, or from one of the headers
//! before them.
//!
//! Owns nothing. Never reads out of bounds: every offset is looked up.

/// Where offsets from the network header begin, and those from the link layer's (`SKF_NET_OFF`, `SKF_LL_OFF`).
const NETWORK: i32 = -0x10_0000;
const LINK: i32 = -0x20_0000;

/// The most bytes that Linux has in one piece, beyond which it does not look for attributes.
const ONE_PIECE: usize = 16 * 1024;

/// How many attributes one run of a filter looks at in all: Linux has no bound, but whoever runs it may hold a lock. Sixteen walks over
/// as many as a packet can have.
pub(crate) const MOST_ATTRIBUTES: u32 = 16 * (ONE_PIECE as u32) / ATTRIBUTE;

/// Bytes of an attribute's header, and the bits of its type that are not flags.
const ATTRIBUTE: u32 = 4;
const TYPE: u16 = 0x3fff;

/// One packet: bytes in two parts, headers that were made for the filter and what is carried behind them.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    pub head: &'a [u8],
    pub body: &'a [u8],
    /// Where the data begin, which is in the head or at its end.
    pub data: usize,
    /// Where the network header begins.
    pub network: usize,
    /// The head begins with a link layer header.
    pub has_link: bool,
    pub facts: Facts,
}

/// The device that a packet came through.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    pub index: u32,
    /// `ARPHRD_*`.
    pub kind: u32,
}

/// What is told of a packet beside its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// `ETH_P_*`.
    pub protocol: u16,
    pub device: Option<Device>,
    pub mark: u32,
    pub hash: u32,
    /// Where what the transport header carries begins, from the data on.
    pub payload: u32,
    pub cpu: u32,
    /// Draws a random number.
    pub random: fn() -> u32,
}

/// How much is loaded at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Word,
    Half,
    Byte,
}

impl Size {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Word => 4,
            Self::Half => 2,
            Self::Byte => 1,
        }
    }
}

impl Packet<'_> {
    /// Bytes from the data on.
    #[expect(clippy::len_without_is_empty, reason = "as BPF_LEN: a filter has no use for it")]
    pub fn len(&self) -> u32 {
        let before = self.head.len().saturating_sub(self.data);
        u32::try_from(before.saturating_add(self.body.len())).unwrap_or(u32::MAX)
    }

    /// What is loaded from an offset; `None` if that is not all there, which ends a filter with 0.
    pub(crate) fn load(&self, offset: i32, size: Size) -> Option<u32> {
        let after = |base: usize, by: i32| base.checked_add(usize::try_from(by).ok()?);
        let at = match offset {
            0.. => after(self.data, offset)?,
            NETWORK.. => after(self.network, offset.wrapping_sub(NETWORK))?,
            LINK.. if self.has_link => after(0, offset.wrapping_sub(LINK))?,
            _ => return None,
        };
        self.read(at, size)
    }

    /// Big-endian, from a place in the head or the body or in both.
    fn read(&self, at: usize, size: Size) -> Option<u32> {
        let mut value = 0u32;
        for place in at..at.checked_add(size.bytes())? {
            let byte = match place.checked_sub(self.head.len()) {
                None => self.head.get(place)?,
                Some(place) => self.body.get(place)?,
            };
            value = value << 8 | u32::from(*byte);
        }
        Some(value)
    }

    /// Two bytes of the data in the machine's own order.
    fn half_at(&self, at: u32) -> Option<u16> {
        let value = self.load(i32::try_from(at).ok()?, Size::Half)?;
        Some(u16::try_from(value).ok()?.swap_bytes())
    }

    /// The attribute of this type among those from `at` on, which end at `end`: where it is, or 0. `None` once `left` more have been
    /// looked at.
    fn find_attribute(&self, mut at: u32, end: u32, kind: u32, left: &mut u32) -> Option<u32> {
        // Each round comes nearer to the end.
        while let Some(len) = self.attribute_at(at, end) {
            *left = left.checked_sub(1)?;
            let own = at.checked_add(2).and_then(|at| self.half_at(at)).unwrap_or(0) & TYPE;
            if u32::from(own) == kind {
                return Some(at);
            }
            let Some(next) = len.checked_next_multiple_of(4).and_then(|len| at.checked_add(len))
            else {
                return Some(0);
            };
            at = next;
        }
        Some(0)
    }

    /// The length of the attribute there, if it is one and ends before `end`.
    fn attribute_at(&self, at: u32, end: u32) -> Option<u32> {
        let left = end.checked_sub(at)?;
        if left < ATTRIBUTE {
            return None;
        }
        let len = u32::from(self.half_at(at)?);
        (len >= ATTRIBUTE && len <= left).then_some(len)
    }

    /// `SKF_AD_NLATTR`, or `SKF_AD_NLATTR_NEST` for those inside the one at `at`. `None`, which ends a filter with 0, once `left` more
    /// have been looked at.
    pub(crate) fn attribute(
        &self,
        at: u32,
        kind: u32,
        nested: bool,
        left: &mut u32,
    ) -> Option<u32> {
        let len = self.len();
        let last = len.checked_sub(ATTRIBUTE);
        if self.body.len() > ONE_PIECE || last.is_none_or(|last| at > last) {
            return Some(0);
        }
        match (nested, self.attribute_at(at, len)) {
            (false, _) => self.find_attribute(at, len, kind, left),
            (true, None) => Some(0),
            (true, Some(own)) => {
                let (from, end) = (at.saturating_add(ATTRIBUTE), at.saturating_add(own));
                self.find_attribute(from, end, kind, left)
            }
        }
    }
}
