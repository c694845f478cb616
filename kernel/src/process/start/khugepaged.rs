//! The thread that puts memory into large pages: it sleeps while they are not wanted.

use crate::mm::{collapse, huge};
use crate::time::monotonic;

/// The body of the thread.
pub fn run() {
    let mut cursor = collapse::Cursor::default();
    loop {
        huge::CHANGED.wait(|| (huge::wanted() != huge::Wanted::Never).then_some(()));
        sleep();
        collapse::scan(&mut cursor);
    }
}

/// Sleeps as long as the settings say, also those that are made meanwhile.
fn sleep() {
    let began = monotonic();
    loop {
        let pause = collapse::pause_ns();
        let until = began.0.saturating_add(pause);
        let changed = || (collapse::pause_ns() != pause).then_some(());
        if huge::CHANGED.wait_deadline(Some(until), changed).is_err() {
            return;
        }
    }
}
