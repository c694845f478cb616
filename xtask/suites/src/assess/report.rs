//! What an assessment found, as text: for `report.md` beside the data, and for people.

use std::fmt::Write;

use alea_random::credit::EntropyBits;
use alea_random::health;
use alea_random::jitter::SAMPLES_PER_BIT;

use super::collect::End;
use super::conditioning::Conditioner;
use super::estimates::{Estimates, WIDTH};
use super::keep::Notes;
use super::permutation::{PERMUTATIONS, Verdict};
use super::restart::Sanity;
use super::{OF_A_START, SAMPLES, STARTS};

/// What the kernel credits for a sample that counts, in bits.
const CREDITED: f64 = 1.0 / SAMPLES_PER_BIT as f64;

/// What the kernel's health tests take a sample to have, in bits: `Cutoffs::EIGHTH_BIT`. The standard's H_submitter.
pub const CLAIM: f64 = 1.0 / 8.0;

/// Counted samples behind a key of 256 bits, and those before the first may count.
const COUNTED_FOR_A_KEY: f64 = (EntropyBits::READY.0 * SAMPLES_PER_BIT) as f64;
const STARTUP: f64 = health::STARTUP as f64;

/// All that the tests and estimators said of one machine.
pub struct Found {
    pub consecutive: Estimates,
    /// H_submitter: what is claimed for a sample, in bits.
    pub claim: f64,
    pub rows: Option<Estimates>,
    pub columns: Option<Estimates>,
    pub sanity: Option<Sanity>,
    /// The sanity check against what the estimators found, as if nothing had been claimed.
    pub sanity_without_claim: Option<Sanity>,
    pub permutations: Verdict,
    /// The least estimate of a bit of BLAKE2s's output, of samples and of numbers that count.
    pub conditioned: Option<(f64, f64)>,
}

impl Found {
    /// H_I, the initial entropy estimate of 3.1.3: no more than is claimed.
    pub fn initial(&self) -> f64 {
        self.consecutive.initial().min(self.claim)
    }

    /// The min-entropy of a raw sample, in bits: the least of the initial estimate, the rows' and the columns'.
    pub fn entropy(&self) -> f64 {
        let restarts = [&self.rows, &self.columns].into_iter().flatten().map(Estimates::of_samples);
        restarts.fold(self.initial(), f64::min)
    }

    /// Whether the restart tests of 3.1.4 were passed: the sanity check, and that neither rows nor columns have less than half
    /// of what the consecutive samples promise. Nothing, where there were too few starts.
    pub fn restarts_passed(&self) -> Option<bool> {
        let half = self.initial() / 2.0;
        let (rows, columns) =
            (self.rows.as_ref()?.of_samples(), self.columns.as_ref()?.of_samples());
        Some(self.sanity.as_ref()?.passed() && rows.min(columns) >= half)
    }

    /// Entropy of the samples behind 256 credited bits, and what BLAKE2s leaves of it.
    fn conditioning(&self, counted: f64) -> Option<(f64, f64)> {
        let raw = STARTUP + COUNTED_FOR_A_KEY / counted;
        let h_in = raw * self.entropy();
        let blake2s = Conditioner { n_in: raw * WIDTH, n_out: 256.0, narrowest: 256.0, h_in };
        Some((h_in, blake2s.output_entropy_unlisted(self.conditioned?.0)))
    }
}

/// How the credit compares with what was found.
pub fn is_enough(notes: &Notes, found: Option<&Found>) -> bool {
    match (&notes.end, found) {
        (End::Refused(_), _) | (_, None) => true,
        (End::Credited { .. }, Some(found)) => {
            credited_per_raw(notes).is_some_and(|credited| credited < found.entropy())
                && found.restarts_passed() != Some(false)
        }
    }
}

/// The share of the samples after start-up that counted.
fn counted(notes: &Notes) -> Option<f64> {
    let End::Credited { taken, regular } = notes.end else { return None };
    let after = f64::from(taken) - STARTUP;
    (after > 0.0).then(|| f64::from(taken - regular) / after)
}

fn credited_per_raw(notes: &Notes) -> Option<f64> {
    Some(counted(notes)? * CREDITED)
}

/// The report; `hashes` are the names of the files with the samples and their SHA-256.
pub fn text(notes: &Notes, hashes: &[(String, String)], found: Option<&Found>) -> String {
    let about = &notes.circumstances;
    let mut text = format!(
        "- machine: {}\n- taken by `cargo xtask {}` on {} at commit {}; the host's load was {}\n",
        about.machine, about.command, about.day, about.commit, about.load
    );
    for (name, hash) in hashes {
        // A string takes all that is written to it.
        let _ = writeln!(text, "- SHA-256 of {name}: `{hash}`");
    }
    let _ = writeln!(
        text,
        "- consecutive samples: {}; {} of more than eight bits",
        notes.end, notes.wider
    );
    let _ = writeln!(
        text,
        "- starts: {}, of which the health tests refused {}",
        notes.restarts, notes.refused
    );
    match found {
        None => text.push_str("\nNothing is credited, and too little came to assess it.\n"),
        Some(found) => {
            estimators(&mut text, found);
            verdicts(&mut text, notes, found);
        }
    }
    text
}

fn estimators(text: &mut String, found: &Found) {
    text.push_str("\n| estimator | consecutive, a sample | consecutive, a bit | rows | columns |\n|---|--:|--:|--:|--:|\n");
    let whole = &found.consecutive;
    let mut names: Vec<&String> = whole.literal.keys().chain(whole.bitstring.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let cell = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    for name in names {
        let of = |matrix: &Option<Estimates>| matrix.as_ref()?.literal.get(name).copied();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            name.replace('_', " "),
            cell(whole.literal.get(name).copied()),
            cell(whole.bitstring.get(name).copied()),
            cell(of(&found.rows)),
            cell(of(&found.columns)),
        );
    }
    let least = |matrix: &Option<Estimates>| cell(matrix.as_ref().map(Estimates::of_samples));
    let _ = writeln!(
        text,
        "| **least** | {:.4} | {:.4} | {} | {} |",
        whole.of_samples(),
        whole.of_bits(),
        least(&found.rows),
        least(&found.columns)
    );
}

fn row(text: &mut String, what: &str, verdict: &str) {
    // A string takes all that is written to it.
    let _ = writeln!(text, "| {what} | {verdict} |");
}

fn verdicts(text: &mut String, notes: &Notes, found: &Found) {
    text.push_str("\n| what | verdict |\n|---|---|\n");
    independence(text, found);
    restarts(text, notes, found);
    row(text, "**entropy of a raw sample**", &format!("{:.4} bits", found.entropy()));
    let (Some(counted), Some(credited)) = (counted(notes), credited_per_raw(notes)) else { return };
    let share = found.entropy() / credited;
    let verdict = format!(
        "{credited:.5} bits (1/64 for each of the {:.1} % that counted): 1/{share:.0} of what was found",
        100.0 * counted
    );
    row(text, "credited for a raw sample", &verdict);
    let Some((h_in, h_out)) = found.conditioning(counted) else { return };
    let (measured, control) = found.conditioned.unwrap_or_default();
    let verdict = format!(
        "in: {h_in:.0} bits behind 256 credited ones; {measured:.4} for a bit of output ({control:.4} for a bit of BLAKE2s of 0, 1, 2 ...); \
         out: {h_out:.1} of 256"
    );
    row(text, "conditioning by BLAKE2s (not listed)", &verdict);
}

fn independence(text: &mut String, found: &Found) {
    let whole = &found.consecutive;
    let few = if whole.samples < SAMPLES as usize { "; too few for the standard" } else { "" };
    row(text, "samples", &format!("{}, {} values{few}", whole.samples, whole.distinct));
    let passed = |passed: Option<bool>| if passed == Some(true) { "passed" } else { "failed" };
    row(text, "independent: chi-square tests", passed(whole.chi_square));
    row(text, "independent: longest repeated substring", passed(whole.lrs_test));
    let tests = &found.permutations;
    let verdict = match tests.failed {
        Some(name) => format!("failed by \"{name}\" after {} permutations", tests.permutations),
        None => format!("{} of 18 statistics passed among {PERMUTATIONS}", tests.passed),
    };
    row(text, "independent: permutation tests", &verdict);
    let verdict = format!(
        "{:.4} = min({:.4}, {:.4}, {:.4})",
        found.initial(),
        whole.of_samples(),
        WIDTH * whole.of_bits(),
        found.claim
    );
    row(text, "H_I = min(H_original, 8 x H_bitstring, H_submitter)", &verdict);
}

fn restarts(text: &mut String, notes: &Notes, found: &Found) {
    for (what, sanity) in [
        ("restart sanity check", &found.sanity),
        ("the same without H_submitter", &found.sanity_without_claim),
    ] {
        let Some(sanity) = sanity else { continue };
        let ((r, most_r), (c, most_c)) = (sanity.in_rows, sanity.in_columns);
        let verdict = if sanity.passed() { "passed" } else { "FAILED" };
        let verdict = format!(
            "{verdict}: {r} equal values in a row ({most_r} may be), {c} in a column ({most_c})"
        );
        row(text, what, &verdict);
    }
    let starts = notes.restarts - notes.refused;
    let few = format!("; {starts} starts of {OF_A_START}, too few for the standard");
    let few = if starts < STARTS { few.as_str() } else { "" };
    let verdict = match found.restarts_passed() {
        None => "not made: no starts".to_owned(),
        Some(true) => format!("passed{few}"),
        Some(false) => format!("FAILED{few}"),
    };
    row(text, "restart tests", &verdict);
}

#[cfg(test)]
mod tests {
    use super::super::keep::Circumstances;
    use super::*;

    fn estimates(literal: f64, bit: f64) -> Estimates {
        let found = |value: f64| [("lz78y".to_owned(), value)].into();
        Estimates {
            samples: 1_000_000,
            distinct: 4,
            literal: found(literal),
            bitstring: found(bit),
            chi_square: Some(false),
            lrs_test: Some(false),
        }
    }

    fn found(initial: f64, rows: f64, columns: f64) -> Found {
        let sanity = || Some(Sanity { in_rows: (1, 2), in_columns: (1, 2) });
        Found {
            consecutive: estimates(initial, 1.0),
            claim: 8.0,
            rows: Some(estimates(rows, 1.0)),
            columns: Some(estimates(columns, 1.0)),
            sanity: sanity(),
            sanity_without_claim: sanity(),
            permutations: Verdict { failed: None, passed: 18, permutations: 10_000 },
            conditioned: Some((0.9, 0.9)),
        }
    }

    fn notes(taken: u32, regular: u32) -> Notes {
        let circumstances = Circumstances {
            machine: "a test".to_owned(),
            command: "assess".to_owned(),
            day: "2026-11-22".to_owned(),
            commit: "0123456789ab".to_owned(),
            load: "0.5".to_owned(),
        };
        let end = End::Credited { taken, regular };
        Notes { circumstances, wider: 0, end, restarts: 1000, refused: 0 }
    }

    #[test]
    fn the_entropy_is_the_least_and_half_of_the_promise_is_too_little() {
        let good = found(1.0, 0.8, 0.7);
        assert_eq!((good.entropy(), good.restarts_passed()), (0.7, Some(true)));
        assert_eq!(found(1.0, 0.49, 0.7).restarts_passed(), Some(false));
        assert_eq!(found(1.0, 0.7, 0.49).restarts_passed(), Some(false));
        let repeats = Sanity { in_rows: (1, 2), in_columns: (3, 2) };
        assert_eq!(Found { sanity: Some(repeats), ..good }.restarts_passed(), Some(false));
    }

    #[test]
    fn no_more_than_is_claimed_is_found() {
        let modest = Found { claim: 0.5, ..found(1.0, 0.3, 0.7) };
        assert_eq!((modest.initial(), modest.entropy()), (0.5, 0.3));
        assert_eq!(modest.restarts_passed(), Some(true), "0.3 is more than half of the claim");
        assert_eq!(Found { claim: 0.1, ..modest }.entropy(), 0.1);
        assert_eq!(CLAIM, 0.125, "Cutoffs::EIGHTH_BIT");
    }

    #[test]
    fn the_credit_has_to_stay_below_the_entropy() {
        // Half of the samples after start-up count: 1/128 bit for each.
        let half = notes(1024 + 2000, 1024 + 1000);
        assert!((credited_per_raw(&half).unwrap() - 1.0 / 128.0).abs() < 1e-12);
        assert!(is_enough(&half, Some(&found(0.0079, 0.0079, 0.0079))));
        assert!(!is_enough(&half, Some(&found(0.0079, 0.0079, 0.0077))));
        assert!(!is_enough(&half, Some(&found(1.0, 0.4, 1.0))), "the restart tests failed");
        let refused = Notes { end: End::Refused("a cycle".to_owned()), ..half };
        assert!(is_enough(&refused, None), "what is refused is not credited");
    }

    #[test]
    fn what_goes_into_the_conditioner_is_what_256_bits_are_credited_for() {
        // 1024 and 2 x 16,384 samples of half a bit: more than a hash can hold.
        let (h_in, h_out) = found(0.5, 0.5, 0.5).conditioning(0.5).unwrap();
        assert!((h_in - 16_896.0).abs() < 1e-6 && (h_out - 230.4).abs() < 1e-6, "{h_in} {h_out}");
        // So little that all of it comes through.
        let (h_in, h_out) = found(0.001, 0.001, 0.001).conditioning(0.5).unwrap();
        assert!((h_in - 33.792).abs() < 1e-6 && (h_out - 33.792).abs() < 1e-3, "{h_in} {h_out}");
    }
}
