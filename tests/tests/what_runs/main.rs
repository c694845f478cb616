//! What README says runs on Alea, and what it says does not: the rows of `docs/runs.toml` that need nothing but BusyBox. `cargo
//! xtask runs --debian` tries the others.

use alea_tests::in_turn;

#[test]
fn what_readme_says_is_so() {
    assert_eq!(in_turn(xtask_suites::runs::check).unwrap(), 0, "rows of docs/runs.toml are wrong");
}
