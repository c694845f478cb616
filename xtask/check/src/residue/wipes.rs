//! `cargo xtask residue --wipes`: each wipe is left out in turn, and something must be found then.

mod host;
mod list;
mod tree;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Result, bail};

use self::list::Wipe;
use super::reading::{Boot, Reading, read};
use xtask_host::tally::Tally;

/// Machines at once.
const JOBS: usize = 2;

/// Compares the list with the sources, and leaves out each wipe, or those whose place or line contains `only`.
/// With all wipes in place the same kernel has to leave nothing.
pub fn check(tally: &mut Tally, only: Option<&str>) -> Result<()> {
    let wipes = list::load()?;
    host::check(tally, &wipes, only)?;
    let wanted = |wipe: &Wipe| only.is_none_or(|only| wipe.name().contains(only));
    if !wipes.iter().any(|wipe| !wipe.reading.is_empty() && wanted(wipe)) {
        return Ok(());
    }
    let kernel = tree::build(&wipes)?;
    let shown = wipes.iter().enumerate().filter(|(_, wipe)| !wipe.reading.is_empty());
    let mut queue: VecDeque<Option<(u32, &Wipe)>> = VecDeque::from([None]);
    queue.extend(shown.filter(|(_, w)| wanted(w)).map(|(number, w)| Some((number as u32, w))));
    let (queue, tally) = (Mutex::new(queue), Mutex::new(tally));
    let job = || -> Result<()> {
        loop {
            let next = queue.lock().ok().and_then(|mut queue| queue.pop_front());
            let Some(left_out) = next else { return Ok(()) };
            let reading = reading(&kernel, left_out)?;
            if let Ok(mut tally) = tally.lock() {
                tally.count(report(left_out.map(|(_, wipe)| wipe), &reading));
            }
        }
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..JOBS).map(|_| scope.spawn(job)).collect();
        jobs.into_iter().try_for_each(|job| job.join().unwrap_or_else(|_| bail!("a job panicked")))
    })
}

fn reading(kernel: &Path, left_out: Option<(u32, &Wipe)>) -> Result<Reading> {
    let switch = left_out.map(|(number, _)| number);
    let interfaces = left_out.map_or(&[][..], |(_, wipe)| &wipe.reading);
    let cpu = left_out.and_then(|(_, wipe)| wipe.cpu.as_deref());
    read(&Boot { kernel, cpus: 1, interfaces, cpu, switch }, 1)
}

/// Says what was found; whether that is as it should be.
fn report(left_out: Option<&Wipe>, reading: &Reading) -> bool {
    match (left_out, reading.findings.first()) {
        (None, None) => {
            println!("ok      nothing is left out, and nothing found: {} stops", reading.stops)
        }
        (None, Some(finding)) => println!("FAILED  nothing is left out, and yet: {finding}"),
        (Some(wipe), Some(finding)) => {
            println!("ok      without {}\n        {finding}", wipe.name())
        }
        (Some(wipe), None) => {
            println!("FAILED  nothing is found without {}: {} stops", wipe.name(), reading.stops);
        }
    }
    left_out.is_some() != reading.findings.is_empty()
}
