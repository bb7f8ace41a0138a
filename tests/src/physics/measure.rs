//! Measurements on series of numbers.

/// A series that holds one frequency obeys `u(n+1) + u(n-1) = 2 cos(w dt) u(n)`, for any phase and direction. The
/// least-squares solution of that over several series of the same frequency.
pub fn frequency(series: &[Vec<f64>], dt: f64) -> f64 {
    let (mut top, mut bottom) = (0.0, 0.0);
    for u in series {
        for w in u.windows(3) {
            top += w[1] * (w[0] + w[2]);
            bottom += w[1] * w[1];
        }
    }
    (0.5 * top / bottom).acos() / dt
}

/// The least-squares a, b of `u(n+1) = a u(n) + b u(n-1)`.
pub fn recurrence(u: &[f64]) -> (f64, f64) {
    let (mut s11, mut s12, mut s22, mut r1, mut r2) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for w in u.windows(3) {
        s11 += w[1] * w[1];
        s12 += w[1] * w[0];
        s22 += w[0] * w[0];
        r1 += w[2] * w[1];
        r2 += w[2] * w[0];
    }
    let det = s11 * s22 - s12 * s12;
    ((r1 * s22 - r2 * s12) / det, (r2 * s11 - r1 * s12) / det)
}

/// The frequencies in `0 .. highest` at which the spectrum of a series has a peak above `floor` times its highest one.
/// They are refined by a parabola through the logarithms of three values. The window is the one of four terms of F. J.
/// Harris, Proc. IEEE 66 (1978) 51-83, whose side lobes lie 92 dB below a peak and which separates frequencies that
/// differ by 8 over the length of the series.
pub fn peaks(u: &[f64], dt: f64, highest: f64, floor: f64) -> Vec<f64> {
    let n = u.len();
    let length = n as f64 * dt;
    let step = 0.25 / length;
    let window = |i: usize| {
        let phase = std::f64::consts::TAU * (i as f64 + 0.5) / n as f64;
        let terms = [0.35875, -0.48829, 0.14128, -0.01168];
        let term = |(j, c): (usize, f64)| c * (j as f64 * phase).cos();
        terms.into_iter().enumerate().map(term).sum::<f64>()
    };
    let windowed: Vec<f64> = u.iter().enumerate().map(|(i, u)| u * window(i)).collect();
    let power = |f: f64| {
        // Goertzel's recurrence.
        let w = 2.0 * (std::f64::consts::TAU * f * dt).cos();
        let (mut s1, mut s2) = (0.0, 0.0);
        for x in &windowed {
            (s1, s2) = (x + w * s1 - s2, s1);
        }
        s1 * s1 + s2 * s2 - w * s1 * s2
    };
    let count = (highest / step) as usize;
    let spectrum: Vec<f64> = (0..=count).map(|i| power(i as f64 * step)).collect();
    let top = spectrum.iter().copied().fold(0.0, f64::max);
    let mut found = Vec::new();
    for i in 1..count {
        let [a, b, c] = [spectrum[i - 1], spectrum[i], spectrum[i + 1]];
        if b > a && b >= c && b > floor * floor * top {
            let [a, b, c] = [a, b, c].map(|p: f64| p.ln());
            let shift = 0.5 * (a - c) / (a - 2.0 * b + c);
            found.push((i as f64 + shift) * step);
        }
    }
    found
}

/// The order at which an error falls from `coarse` at `n` cells to `fine` at `m` cells.
pub fn order(coarse: f64, fine: f64, n: i64, m: i64) -> f64 {
    (coarse / fine).ln() / (m as f64 / n as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_frequency_is_found() {
        let u: Vec<f64> = (0..50).map(|n| (0.3 * f64::from(n) + 1.0).cos()).collect();
        assert!((frequency(&[u], 0.1) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_known_decay_is_found() {
        let u: Vec<f64> = (0..50)
            .map(|n| 0.9f64.powi(n) * (0.3 * f64::from(n)).cos())
            .collect();
        let (a, b) = recurrence(&u);
        assert!((a - 1.8 * 0.3f64.cos()).abs() < 1e-12);
        assert!((b + 0.81).abs() < 1e-12);
    }

    #[test]
    fn two_known_peaks_are_found() {
        let u: Vec<f64> = (0..2000)
            .map(|n| (0.2 * f64::from(n)).cos() + 0.3 * (0.25 * f64::from(n)).sin())
            .collect();
        let found = peaks(&u, 1.0, 0.1, 0.05);
        let expected = [0.2, 0.25].map(|w| w / std::f64::consts::TAU);
        assert_eq!(found.len(), 2);
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() < 1e-6, "{f} {e}");
        }
    }
}
