//! The tally beside a map.
#![cfg(not(alea_loom))]

use alea_sigq::{Refused, Tally};
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    #[test]
    fn tally_is_a_map(ops in prop::collection::vec((any::<bool>(), 0..5u32, 0..6u64), 1..200)) {
        let mut tally = Tally::new();
        let mut model = BTreeMap::<u32, u64>::new();
        for (more, uid, most) in ops {
            let have = model.get(&uid).copied().unwrap_or(0);
            if more {
                let charged = tally.charge(uid, most);
                prop_assert_eq!(charged, if have < most { Ok(()) } else { Err(Refused::Limit) });
                if charged.is_ok() {
                    model.insert(uid, have + 1);
                }
            } else if have > 0 {
                tally.release(uid);
                model.insert(uid, have - 1);
            }
            for uid in 0..5 {
                prop_assert_eq!(tally.count(uid), model.get(&uid).copied().unwrap_or(0));
            }
        }
    }
}

#[test]
fn no_limit_is_no_limit() {
    let mut tally = Tally::new();
    for _ in 0..1000 {
        assert_eq!(tally.charge(7, u64::MAX), Ok(()));
    }
    assert_eq!(tally.count(7), 1000);
    assert_eq!(tally.charge(8, 0), Err(Refused::Limit));
}
