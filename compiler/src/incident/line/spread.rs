//! The drive of a plane wave on its line.

use crate::lattice::PerAxis;

/// How a drive is spread over points of the line, so that waves along m alone are driven.
///
/// A cell is M points long, M being the largest of the |m_a|. The cells of a single point have the distance |m| on
/// their front, as a grating does, which sends waves shorter than |m| cells into other directions, too: beside the
/// wave number kappa the line has kappa + 2 pi n / M. The factor sin(M kappa / 2) / (M sin(kappa / 2)) of M equal
/// neighbours is 0 for these. Its fourth power is taken, and [`Spread::BOOST`] makes up for its second order in kappa,
/// so that long waves keep their height. With M = 1 this is one point.
pub(super) struct Spread {
    /// An odd number of parts, of the sum 1, around the position.
    parts: Vec<f64>,
}

impl Spread {
    const POWER: usize = 4;
    /// Of (1 - 1/M^2): the part that neighbours in a distance of M lose and the middle gains.
    const BOOST: f64 = Self::POWER as f64 / 24.0;

    pub fn new(direction: PerAxis<i64>) -> Spread {
        let most = direction
            .iter()
            .map(|(_, m)| m.unsigned_abs() as usize)
            .max();
        let cell = most.unwrap_or(1).max(1);
        let mut parts = vec![1.0];
        for _ in 0..Self::POWER {
            // The sum of M neighbours, as that of the M before with a new one in and an old one out.
            let mut sum = 0.0;
            let sums = (0..parts.len() + cell - 1).map(|n| {
                sum += parts.get(n).unwrap_or(&0.0);
                sum -= n.checked_sub(cell).map_or(0.0, |old| parts[old]);
                sum / cell as f64
            });
            parts = sums.collect();
        }
        let boost = Self::BOOST * (1.0 - 1.0 / (cell as f64).powi(2));
        if boost > 0.0 {
            let mut boosted = vec![0.0; parts.len() + 2 * cell];
            for (n, part) in parts.iter().enumerate() {
                boosted[n] -= boost * part;
                boosted[n + cell] += (1.0 + 2.0 * boost) * part;
                boosted[n + 2 * cell] -= boost * part;
            }
            parts = boosted;
        }
        Spread { parts }
    }

    /// Points on either side of the position.
    pub fn reach(&self) -> usize {
        self.parts.len() / 2
    }

    /// The points, as indices, and their parts, for a position between points.
    pub fn at(&self, position: f64) -> Vec<(usize, f64)> {
        let below = position.floor();
        let first = below as usize - self.reach();
        let mut parts = vec![0.0; self.parts.len() + 1];
        for (n, part) in self.parts.iter().enumerate() {
            parts[n] += part * (below + 1.0 - position);
            parts[n + 1] += part * (position - below);
        }
        parts
            .into_iter()
            .enumerate()
            .map(|(n, part)| (first + n, part))
            .collect()
    }
}
