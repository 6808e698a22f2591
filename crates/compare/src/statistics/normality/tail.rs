//! How often a normal run would be as unusual as this one.
//!
//! The score of a run is that of its most unusual trace in its most unusual family, judged from all
//! other runs. With R normal runs the count alone, `(1 + at least as unusual) / (R + 1)`, is exact (runs
//! are exchangeable if there is no fault) and needs twenty of them to get below 0.05. Where no normal run
//! is as unusual as this one, the tail beyond them is that of Student's prediction for the next
//! observation of `ln(1 + score)`: their mean and variance, with a prior of [`PRIOR`] observations of
//! standard deviation [`SPREAD`], so that two normal runs that happen to agree do not promise that all
//! will.

/// Weight of the prior, in observations.
const PRIOR: usize = 3;
/// Its standard deviation.
const SPREAD: f64 = 0.35;

/// The p-value of a score beside those of normal runs. 1 without one.
pub(crate) fn p_value(normals: &[f64], score: f64) -> f64 {
    let count = normals.len();
    let as_large = normals.iter().filter(|normal| **normal >= score).count();
    let counted = (1 + as_large) as f64 / (1 + count) as f64;
    if as_large > 0 || count < 2 {
        return counted;
    }
    let runs = count as f64;
    let mean = normals.iter().map(|it| it.ln_1p()).sum::<f64>() / runs;
    let squares: f64 = normals.iter().map(|it| (it.ln_1p() - mean).powi(2)).sum();
    let degrees = count - 1 + PRIOR;
    let variance = (squares + PRIOR as f64 * SPREAD * SPREAD) / degrees as f64;
    let t = (score.ln_1p() - mean) / (variance * (1.0 + 1.0 / runs)).sqrt();
    counted.min(student(t, degrees))
}

/// P(T > t) of Student's distribution with so many degrees of freedom (at least 1), `t >= 0`: the finite
/// series of Abramowitz and Stegun 26.7.3 and 26.7.4.
fn student(t: f64, degrees: usize) -> f64 {
    let angle = (t / (degrees as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = degrees % 2 == 1;
    let (mut term, mut sum) = if odd { (cos, 0.0) } else { (1.0, 0.0) };
    let first = if odd { 3 } else { 2 };
    let mut power = first;
    while power <= degrees {
        sum += term;
        term *= cos * cos * (power - 1) as f64 / power as f64;
        power += 2;
    }
    let within = if odd {
        (angle + sin * sum) * std::f64::consts::FRAC_2_PI
    } else {
        sin * sum
    };
    ((1.0 - within) / 2.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_of_the_tables() {
        // One-sided 5 % and 1 %.
        let table = [
            (1, 6.314, 31.821),
            (2, 2.920, 6.965),
            (3, 2.353, 4.541),
            (4, 2.132, 3.747),
            (5, 2.015, 3.365),
            (10, 1.812, 2.764),
            (30, 1.697, 2.457),
        ];
        for (degrees, five, one) in table {
            assert!((student(five, degrees) - 0.05).abs() < 1e-4, "{degrees}");
            assert!((student(one, degrees) - 0.01).abs() < 1e-4, "{degrees}");
            assert!((student(0.0, degrees) - 0.5).abs() < 1e-12);
        }
    }

    #[test]
    fn as_unusual_as_a_normal_run_is_counted() {
        assert_eq!(p_value(&[0.0, 1.0, 2.0], 1.0), 3.0 / 4.0);
        assert_eq!(p_value(&[0.0; 4], 0.0), 1.0);
        assert_eq!(p_value(&[], 5.0), 1.0);
    }

    #[test]
    fn further_out_is_rarer_and_noise_widens() {
        let quiet = [0.0, 0.0, 0.0];
        assert!(p_value(&quiet, 5.0) < 0.02);
        assert!(p_value(&quiet, 50.0) < p_value(&quiet, 5.0));
        assert!(p_value(&[1.0, 4.0, 3.0], 5.0) > 0.1);
        // Twenty normal runs need no tail.
        assert!(p_value(&[3.0; 20], 3.1) < 0.05);
    }
}
