//! How much of the entropy that goes into a conditioner comes out of it: SP 800-90B, 3.1.5.

/// A conditioner and what goes into it. Lengths and entropy in bits.
#[derive(Clone, Copy, Debug)]
pub struct Conditioner {
    /// The length of the input.
    pub n_in: f64,
    /// The length of the output.
    pub n_out: f64,
    /// The narrowest place on the way.
    pub narrowest: f64,
    /// Min-entropy of the input.
    pub h_in: f64,
}

impl Conditioner {
    /// `Output_Entropy` of 3.1.5.1.2, for a conditioner that behaves as a random function.
    pub fn output_entropy(&self) -> f64 {
        let Self { n_in, n_out, narrowest, h_in } = *self;
        let n = n_out.min(narrowest);
        // Logarithms to base 2 of each term: the terms themselves have thousands of bits.
        let p_high = -h_in;
        let p_low = (-p_high.exp2()).ln_1p() / ln2() - n_in - (-(-n_in).exp2()).ln_1p() / ln2();
        let evenly = n_in - n + p_low;
        let psi = sum(evenly, p_high);
        let deviation = 0.5 * (1.0 + n.log2() + (n_in - n) + ln2().log2()) + p_low;
        let omega = sum(evenly, deviation);
        -psi.max(omega)
    }

    /// What 3.1.5.2 lets a conditioner have that is not on NIST's list: `measured` bits for each bit of output were
    /// found by the estimators of section 6.
    pub fn output_entropy_unlisted(&self, measured: f64) -> f64 {
        self.output_entropy().min(0.999 * self.n_out).min(measured * self.n_out)
    }
}

fn ln2() -> f64 {
    std::f64::consts::LN_2
}

/// The logarithm to base 2 of the sum of two numbers that are given by theirs.
fn sum(a: f64, b: f64) -> f64 {
    let (most, least) = (a.max(b), a.min(b));
    most + (least - most).exp2().ln_1p() / ln2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditioner(n_in: f64, n_out: f64, narrowest: f64, h_in: f64) -> Conditioner {
        Conditioner { n_in, n_out, narrowest, h_in }
    }

    /// The standard's formula, computed with 6,000 decimal digits (Python, `decimal`).
    #[test]
    fn the_formula_gives_the_standards_numbers() {
        for (given, expected) in [
            (conditioner(2048.0, 256.0, 256.0, 300.0), 255.999_999_999_999_91),
            (conditioner(2048.0, 256.0, 256.0, 256.0), 255.0),
            (conditioner(2048.0, 256.0, 256.0, 10.5), 10.5),
            (conditioner(512.0, 256.0, 256.0, 255.0), 254.415_037_499_278_84),
            (conditioner(256.0, 256.0, 256.0, 128.0), 128.0),
            (conditioner(300.0, 256.0, 256.0, 290.0), 255.999_993_520_203_45),
            (conditioner(8.0, 4.0, 4.0, 7.5), 3.334_494_099_717_703_3),
            (conditioner(8.0, 8.0, 8.0, 8.0), 5.885_560_194_208_201),
        ] {
            let found = given.output_entropy();
            assert!((found - expected).abs() < 1e-9, "{given:?}: {found}, not {expected}");
        }
    }

    #[test]
    fn a_conditioner_that_is_not_listed_never_has_full_entropy() {
        let rich = conditioner(100_000.0, 256.0, 256.0, 2000.0);
        assert!((rich.output_entropy_unlisted(1.0) - 255.744).abs() < 1e-9);
        assert!((rich.output_entropy_unlisted(0.9) - 230.4).abs() < 1e-9);
        let poor = conditioner(100_000.0, 256.0, 256.0, 40.0);
        assert!((poor.output_entropy_unlisted(1.0) - 40.0).abs() < 1e-9);
    }

    #[test]
    fn a_narrow_place_counts_as_a_short_output() {
        let narrow = conditioner(2048.0, 256.0, 128.0, 2000.0).output_entropy();
        assert!((narrow - 128.0).abs() < 1e-6, "{narrow}");
    }
}
