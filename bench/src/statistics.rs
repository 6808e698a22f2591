//! Ratios of pairs, and how sure they are.

use lockstep_testkit::statistics::interval;

/// A ratio with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Geometric mean of the pairs' ratios.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs.
    pub pairs: usize,
}

impl Ratio {
    /// Of pairs' ratios: Student's interval of the logarithms' mean. `None` without any; one pair has
    /// no interval.
    pub fn of(ratios: &[f64]) -> Option<Self> {
        let logs: Vec<f64> = ratios
            .iter()
            .filter(|ratio| ratio.is_finite() && **ratio > 0.0)
            .map(|ratio| ratio.ln())
            .collect();
        let (mean, half) = interval(&logs)?;
        let half = half.unwrap_or(f64::NAN);
        Some(Self {
            mean: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
            pairs: logs.len(),
        })
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.low.is_nan() {
            write!(f, "{:.3} (one pair)", self.mean)
        } else {
            write!(f, "{:.3} [{:.3}, {:.3}]", self.mean, self.low, self.high)
        }
    }
}

/// Geometric mean.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::{Ratio, geometric_mean};

    #[test]
    fn the_interval_is_students() {
        let ratio = Ratio::of(&[1.0, 1.1, 1.21]).expect("three pairs");
        assert!((ratio.mean - 1.1).abs() < 1e-12);
        // ln 1.1 / sqrt 3 x 4.303
        assert!((ratio.high / ratio.mean - (0.0953_f64 * 0.57735 * 4.303).exp()).abs() < 1e-3);
        assert!(Ratio::of(&[]).is_none());
        assert!(Ratio::of(&[2.0]).is_some_and(|one| one.low.is_nan()));
        assert!((geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
    }
}
