//! Who may use an object: the nine permission bits, as Linux's `ipcperms` reads them.

/// How the caller stands to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It is the owner or the creator.
    Owner,
    /// It is in the group of the owner or of the creator.
    Group,
    Other,
}

/// Whether an object with `mode` refuses `wanted` to such a caller. `wanted` holds permission bits in any of the three
/// digits: what any digit asks for is asked for.
pub const fn refuses(mode: u32, wanted: u32, relation: Relation) -> bool {
    let wanted = wanted >> 6 | wanted >> 3 | wanted;
    let granted = match relation {
        Relation::Owner => mode >> 6,
        Relation::Group => mode >> 3,
        Relation::Other => mode,
    };
    wanted & !granted & 7 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_relation_has_its_digit() {
        for (relation, digit) in [(Relation::Owner, 6), (Relation::Group, 3), (Relation::Other, 0)]
        {
            for bits in 0..8 {
                let mode = bits << digit;
                for wanted in 0..8 {
                    assert_eq!(refuses(mode, wanted, relation), wanted & !bits != 0);
                }
            }
        }
    }

    #[test]
    fn what_any_digit_asks_for_is_asked_for() {
        assert!(!refuses(0o600, 0o600, Relation::Owner));
        assert!(refuses(0o400, 0o002, Relation::Owner));
        assert!(refuses(0o644, 0o600, Relation::Other));
        assert!(!refuses(0o644, 0o444, Relation::Other));
        assert!(!refuses(0o000, 0, Relation::Other));
    }
}
