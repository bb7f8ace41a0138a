//! Pictures of cones and tiles, as SVG.
//!
//! All coordinates are in cells and stages; drawings come from [`Cones`], [`crate::cone::past`] and faces, never from a
//! formula of its own.

mod footprint;
mod scene;
mod section;
mod shape;
mod solid;

pub use footprint::{Footprint, footprint};
pub use section::{Section, section};
pub use solid::{Solid, Subject, solid};

use crate::cone::{Cones, Rational};
use crate::lattice::{HalfIndex, PerAxis};
use crate::schedule::face::Face;
use crate::scheme::{ComponentId, Scheme};

/// A face of a tiling and the distance of its planes, in cells; positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub face: Face,
    pub pitch: Rational,
    /// Per stage of a step, by how much the face is ahead of its slope, in cells. Empty: nowhere.
    pub leads: Vec<Rational>,
}

impl Cut {
    /// The value of the face at a place, in pitches: tile n covers n to n + 1.
    fn at(&self, place: PerAxis<f64>, time: f64) -> f64 {
        let along: f64 = place
            .iter()
            .map(|(a, p)| f64::from(self.face.form[a]) * p)
            .sum();
        let lead = self.lead(time.floor() as i64).as_f64();
        (along - self.face.slope.as_f64() * time - lead) / self.pitch.as_f64()
    }

    fn lead(&self, time: i64) -> Rational {
        match self.leads.len() as i64 {
            0 => Rational::ZERO,
            stages => self.leads[time.rem_euclid(stages) as usize],
        }
    }

    /// The number of the tile that holds an event.
    fn tile(&self, position: PerAxis<HalfIndex>, time: i64) -> Option<i64> {
        let value = self.face.value(position, time) - self.lead(time);
        value.checked_div(self.pitch).map(Rational::floor)
    }

    /// The face moves by the same amount in every stage.
    fn is_even(&self) -> bool {
        self.leads.iter().all(|l| l.is_zero())
    }
}

/// Overlapped tiles along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Cells of a base.
    pub base: i64,
    /// Per stage of a time block, cells that are computed beyond it, below and above.
    pub stages: Vec<[i64; 2]>,
}

impl Overlap {
    /// The time block of a stage.
    fn time_block(&self, time: i64) -> i64 {
        time.div_euclid(self.stages.len().max(1) as i64)
    }

    /// Whether the tile with cell 0, in the time block of stage `apex`, computes a value at a place, in half cells.
    fn holds(&self, place: i64, time: i64, apex: i64) -> bool {
        let row = time.rem_euclid(self.stages.len().max(1) as i64);
        let [below, above] = self.stages.get(row as usize).copied().unwrap_or([0; 2]);
        let index = place.div_euclid(2);
        let inside = -below <= index && index < self.base + above;
        inside && self.time_block(time) == self.time_block(apex)
    }
}

/// A group of components of a stage with one mark, for the legend of a picture.
struct Group {
    stage: u32,
    components: Vec<ComponentId>,
}

/// The components of each stage, grouped by equal `key`.
fn groups<K: PartialEq>(scheme: &Scheme, key: impl Fn(ComponentId) -> K) -> Vec<Group> {
    let mut out: Vec<Group> = Vec::new();
    for stage in scheme.stage_ids() {
        for update in &scheme.stages[stage.index()].updates {
            let same = |g: &&mut Group| {
                g.stage == stage.0 && g.components.iter().all(|&c| key(c) == key(update.target))
            };
            match out.iter_mut().find(same) {
                Some(group) => group.components.push(update.target),
                None => out.push(Group {
                    stage: stage.0,
                    components: vec![update.target],
                }),
            }
        }
    }
    out
}

fn names(scheme: &Scheme, components: &[ComponentId]) -> String {
    let names: Vec<&str> = components
        .iter()
        .map(|&c| scheme.component(c).name.as_str())
        .collect();
    names.join(", ")
}

/// How the legend names a column of tiles by its place in the order.
fn columns_in_words(nth: usize) -> String {
    match nth {
        0 => "the column that runs first; its towers are independent of each other".to_string(),
        1 => "the next column".to_string(),
        n => format!("column {}", n + 1),
    }
}

/// More tiles than this in a row are not drawn: they would be too small to see.
const MOST_TILES: i64 = 64;

/// The numbers of the tiles that a range of values, in pitches, meets.
fn tiles(values: impl Iterator<Item = f64>) -> std::ops::RangeInclusive<i64> {
    let (lo, hi) = values.fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(v), hi.max(v)));
    let (first, last) = (lo.floor() as i64, (hi.ceil() as i64).saturating_sub(1));
    first..=last.min(first.saturating_add(MOST_TILES))
}
