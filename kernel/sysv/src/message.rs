//! Which message of a queue a receiver gets: msgrcv's type and flags.

/// What a receiver wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Type 0: the first message.
    Any,
    /// A positive type: the first of that type.
    Type(i64),
    /// MSG_EXCEPT: the first of another type.
    Except(i64),
    /// A negative type: the first of the lowest type up to this.
    UpTo(i64),
    /// MSG_COPY: a copy of the message at this place.
    At(i64),
}

impl Wanted {
    /// From the call's type and flags.
    pub const fn new(kind: i64, except: bool, copy: bool) -> Self {
        match kind {
            place if copy => Self::At(place),
            0 => Self::Any,
            ..0 => Self::UpTo(kind.saturating_neg()),
            _ if except => Self::Except(kind),
            _ => Self::Type(kind),
        }
    }

    /// Whether a message of type `kind`, which comes while nothing else fits, is given to this receiver.
    pub const fn takes(self, kind: i64) -> bool {
        match self {
            Self::Any | Self::At(_) => true,
            Self::Type(wanted) => kind == wanted,
            Self::Except(unwanted) => kind != unwanted,
            Self::UpTo(most) => kind <= most,
        }
    }

    /// The place of the message that it gets, of those whose types are given in order.
    pub fn choose(self, kinds: impl Iterator<Item = i64>) -> Option<usize> {
        let mut kinds = kinds.enumerate();
        match self {
            Self::At(place) => {
                let place = usize::try_from(place).ok()?;
                kinds.nth(place).map(|(at, _)| at)
            }
            Self::UpTo(_) => {
                let mut best: Option<(usize, i64)> = None;
                for (at, kind) in kinds {
                    if self.takes(kind) && best.is_none_or(|(_, lowest)| kind < lowest) {
                        best = Some((at, kind));
                        if kind <= 1 {
                            // No type is lower.
                            break;
                        }
                    }
                }
                best.map(|(at, _)| at)
            }
            _ => kinds.find(|&(_, kind)| self.takes(kind)).map(|(at, _)| at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: [i64; 6] = [5, 3, 9, 3, 2, 2];

    fn chosen(kind: i64, except: bool, copy: bool) -> Option<usize> {
        Wanted::new(kind, except, copy).choose(QUEUE.into_iter())
    }

    #[test]
    fn by_type() {
        assert_eq!(chosen(0, false, false), Some(0));
        assert_eq!(chosen(3, false, false), Some(1));
        assert_eq!(chosen(4, false, false), None);
        assert_eq!(chosen(5, true, false), Some(1));
        assert_eq!(chosen(0, true, false), Some(0));
    }

    #[test]
    fn the_first_of_the_lowest() {
        assert_eq!(chosen(-9, false, false), Some(4));
        assert_eq!(chosen(-3, true, false), Some(4));
        assert_eq!(chosen(-1, false, false), None);
        assert_eq!(chosen(i64::MIN, false, false), Some(4));
        assert_eq!(Wanted::new(-5, false, false).choose([3, 1, 1].into_iter()), Some(1));
    }

    #[test]
    fn by_place() {
        assert_eq!(chosen(2, false, true), Some(2));
        assert_eq!(chosen(6, false, true), None);
        assert_eq!(chosen(-1, false, true), None);
    }

    #[test]
    fn what_comes_later() {
        assert!(Wanted::UpTo(3).takes(3) && !Wanted::UpTo(3).takes(4));
        assert!(Wanted::Except(3).takes(4) && !Wanted::Except(3).takes(3));
        assert!(Wanted::Type(3).takes(3) && !Wanted::Type(3).takes(2));
        assert!(Wanted::Any.takes(i64::MAX));
    }
}
