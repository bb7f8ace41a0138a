//! Stripes of towers for several devices.
//!
//! The borders between stripes lie across the middle axis and zigzag along faces of towers, so that nothing crosses
//! them within a launch. Towers are cut into groups of columns; in a group, a border keeps to one index along the first
//! face or along the second one, in turns, and neighbouring borders do so in opposite turns. So a stripe becomes wider
//! in one group, for which it needs the towers of both neighbours in that group, and narrower in the next one, for
//! which it needs no neighbour. A *launch* is such a pair of groups:
//!
//! ```text
//! columns    stripe 0  | stripe 1 |  stripe 2
//! group 0              /          \            launches 0 of stripes 0 and 2 begin, one of stripe 1 ends
//! group 1              \          /            launch 1 of stripe 1 begins
//! group 2              /          \            launches 2 of stripes 0 and 2 begin
//! ```
//!
//! Launches are numbered by the first of their groups: the numbers of even stripes are even, the numbers of odd stripes
//! odd. Neighbours run in turns, and every launch depends only on launches with lower numbers.

use super::group::PerFace;
use super::towers::Towers;

/// Borders of stripes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zigzag {
    /// Columns of a group; even.
    columns: i64,
    /// The first column of group 0; even.
    phase: i64,
    /// The middle axis falls along the first face, and grows along the second one.
    falls: bool,
    /// By how much the index along the first face exceeds that along the second one where each border begins a group in
    /// which it keeps to an index along the first face; even and ascending. Faces change places where the axis falls.
    borders: Vec<i64>,
}

/// The launch of a tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeLaunch {
    pub stripe: usize,
    pub launch: i64,
}

impl StripeLaunch {
    /// Whether a launch runs after another one, or is the same.
    pub fn follows(self, before: StripeLaunch) -> bool {
        self == before || before.launch < self.launch
    }
}

/// Tiles over which the way along the middle axis is measured.
const FAR: i64 = 1 << 12;

impl Zigzag {
    /// Borders near `borders` along the middle axis, ascending, in groups of `columns` columns. The last group of a
    /// time block that ends with column `last` is whole, or lacks one: in a smaller one, the few towers would wait for
    /// each other. `None` where tiles do not advance along the axis, or stripes would be narrower than a border is
    /// wide.
    pub fn new(towers: &Towers, columns: i64, last: i64, borders: &[i64]) -> Option<Zigzag> {
        let columns = Zigzag::even(columns);
        let y = |tile: PerFace<i64>| Some(towers.locate(tile)?.origin.y as f64);
        let [here, there] = [y([0, 0])?, y([FAR, -FAR])?];
        // Cells per difference of indices.
        let each = (there - here) / (2 * FAR) as f64;
        if each == 0.0 {
            return None;
        }
        let falls = each < 0.0;
        let border = |at: &i64| {
            let middle = (*at as f64 - here) / each.abs();
            2 * ((middle + columns as f64 / 2.0) / 2.0).round() as i64
        };
        let borders: Vec<i64> = borders.iter().map(border).collect();
        let apart = borders.windows(2).all(|pair| pair[1] - pair[0] > columns);
        apart.then_some(Zigzag {
            columns,
            phase: ((last + 2).div_euclid(2) * 2).rem_euclid(columns),
            falls,
            borders,
        })
    }

    /// The columns of a group where this number is wanted: an even number.
    pub fn even(columns: i64) -> i64 {
        (columns.max(1) + 1) / 2 * 2
    }

    /// Columns of a group.
    pub fn columns(&self) -> i64 {
        self.columns
    }

    pub fn stripes(&self) -> usize {
        self.borders.len() + 1
    }

    /// The group of a column: of tiles with this sum of indices.
    pub fn group(&self, column: i64) -> i64 {
        (column - self.phase).div_euclid(self.columns)
    }

    /// The launch of a tile.
    pub fn of(&self, [first, second]: PerFace<i64>) -> StripeLaunch {
        let group = self.group(first + second);
        // Shifted by whole columns along the outer axis, which leaves borders where they are.
        let [first, second] = [first, second].map(|index| index - self.phase / 2);
        let [up, down] = match self.falls {
            true => [second, first],
            false => [first, second],
        };
        let begin = group * self.columns;
        let above = |(stripe, border): (i64, &i64)| match (group + stripe) % 2 == 0 {
            // The stripe above it becomes wider.
            true => up >= (border + begin) / 2,
            false => down < (begin - border + self.columns) / 2,
        };
        let stripe = (1..).zip(&self.borders).filter(|b| above(*b)).count();
        let narrows = (group + stripe as i64).rem_euclid(2);
        StripeLaunch {
            stripe,
            launch: group - narrows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tile depends on its own launch or on launches with lower numbers, of its own stripe or a neighbouring one.
    /// Stripes keep to their borders.
    #[test]
    fn launches_depend_on_lower_numbers() {
        let cases = [
            (2, 0, vec![0]),
            (4, 2, vec![-6, 10]),
            (6, 4, vec![2, 10, 30]),
        ];
        for (columns, phase, borders) in cases {
            for falls in [false, true] {
                let zigzag = Zigzag {
                    columns,
                    phase,
                    falls,
                    borders: borders.clone(),
                };
                let mut crossed = 0;
                for i in -60..60 {
                    for j in -60..60 {
                        let own = zigzag.of([i, j]);
                        assert_eq!((own.launch - own.stripe as i64).rem_euclid(2), 0);
                        for before in [[i - 1, j], [i, j - 1], [i - 1, j - 1]] {
                            let before = zigzag.of(before);
                            assert!(own.follows(before), "{own:?} {before:?}");
                            assert!(own.stripe.abs_diff(before.stripe) < 2);
                            crossed += usize::from(own.stripe != before.stripe);
                        }
                        let along = if falls { j - i } else { i - j };
                        let below = borders.iter().filter(|b| along >= **b).count();
                        let above = borders.iter().filter(|b| along >= **b - columns).count();
                        assert!((below..=above).contains(&own.stripe));
                    }
                }
                assert!(crossed > 100);
            }
        }
    }
}
