//! How sure a mean of a few measurements is.

/// The 97.5 % point of Student's distribution with `freedom` degrees of freedom (at least one).
#[must_use]
pub fn student(freedom: usize) -> f64 {
    const POINTS: [f64; 12] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
    ];
    POINTS
        .get(freedom.saturating_sub(1))
        .copied()
        // Within 0.5 % from 13 on.
        .unwrap_or(1.96 + 2.4 / freedom as f64 + 3.0 / (freedom * freedom) as f64)
}

/// Mean, and half of its 95 % interval by Student's distribution: `None` of no values; of one there is no interval.
#[must_use]
pub fn interval(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let count = values.len();
    if count == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|it| (it - mean).powi(2)).sum();
    let half = || student(count - 1) * (squares / (count - 1) as f64 / count as f64).sqrt();
    Some((mean, (count > 1).then(half)))
}

#[cfg(test)]
mod tests {
    use super::{interval, student};

    #[test]
    fn an_interval_is_students() {
        assert_eq!(interval(&[]), None);
        assert_eq!(interval(&[3.0]), Some((3.0, None)));
        let (mean, half) = interval(&[1.0, 3.0]).expect("two values");
        assert_eq!(mean, 2.0);
        assert!(half.is_some_and(|it| (it - 12.706).abs() < 1e-9));
        assert!((student(13) - 2.160).abs() < 0.01 && (student(1000) - 1.962).abs() < 0.01);
    }
}
