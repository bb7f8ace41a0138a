//! A case that was measured, or is to be predicted, without names.

use std::fmt;
use torre_compiler::cone::{Form, Rational};
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::problem::Problem;
use torre_compiler::schedule::{Level, Schedule, Tiling};
use torre_compiler::scheme::{Body, Scheme};

/// Sources that act on a larger share of the cells than this take time.
const MANY: f64 = 0.01;

/// Schemes whose kernels do the same amount of work: precision, axes, stages, taps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family(String);

impl Family {
    /// The family of a scheme, with the work that its problem adds to every step.
    pub fn of(scheme: &Scheme, problem: &Problem) -> Self {
        let updates = || scheme.stages.iter().flat_map(|stage| &stage.updates);
        let sum = |of: &dyn Fn(&Body) -> usize| -> usize {
            updates().map(|update| of(&update.body)).sum()
        };
        let mut text = format!(
            "{}, {} axes, {} stages, {} updates, {} operations, {} reads, {} coefficients, {} states",
            scheme.precision,
            scheme.grid.dimensions(),
            scheme.stages.len(),
            updates().count(),
            sum(&|body| body.arithmetic()),
            sum(&|body| body.reads().count()),
            sum(&|body| body.coefs().count()),
            scheme.states.len(),
        );
        let cells = scheme.grid.cell_count();
        let volumes = problem.sources.iter().map(|s| s.region.volume() as f64);
        if volumes.sum::<f64>() > MANY * cells {
            text += ", volume sources";
        }
        if !problem.incidents.is_empty() {
            text += ", total fields";
        }
        Self(text)
    }

    /// A family by its text, as a file has it.
    pub(super) fn named(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A way of executing whose errors of prediction are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Layerwise,
    Boxes,
    Pyramids,
    /// Tiles that are cut across two axes at once.
    Towers,
    /// Other tiles.
    Tiles,
    /// Towers with several time blocks in flight.
    InFlight,
    Window,
    Slabs,
    Stripes,
}

impl Kind {
    const ALL: [(Kind, &'static str); 9] = [
        (Kind::Layerwise, "layerwise"),
        (Kind::Boxes, "boxes"),
        (Kind::Pyramids, "pyramids"),
        (Kind::Towers, "towers"),
        (Kind::Tiles, "tiles"),
        (Kind::InFlight, "in flight"),
        (Kind::Window, "window"),
        (Kind::Slabs, "slabs"),
        (Kind::Stripes, "stripes"),
    ];

    /// The kind of a schedule where all values are in memory, one time block at a time.
    pub fn of(schedule: &Schedule) -> Self {
        match schedule {
            Schedule::Layerwise => Kind::Layerwise,
            Schedule::Boxes(_) => Kind::Boxes,
            Schedule::Pyramids(_) => Kind::Pyramids,
            Schedule::Tiled(tiling) => match tiling.levels.first() {
                Some(level) if level.cuts.iter().any(|cut| is_diagonal(cut.face.form)) => {
                    Kind::Towers
                }
                _ => Kind::Tiles,
            },
        }
    }

    /// A kind by its name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, other)| *other == name);
        found.map(|(kind, _)| *kind)
    }
}

/// Whether a face leans across two axes.
fn is_diagonal(form: Form) -> bool {
    form.0.iter().filter(|&&factor| factor != 0).count() > 1
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(kind, _)| kind == self);
        f.write_str(found.map_or("", |(_, name)| name))
    }
}

/// A case that was measured, or is to be predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub family: Family,
    pub kind: Kind,
    /// Steps of a time block, and cells of tiles along three directions; 0: not cut.
    pub sizes: [f64; 4],
    /// The grid has about 2 to this power cells.
    pub class: u32,
}

/// Stands for the size of an axis that is not cut.
const WHOLE: f64 = 12.0;

/// The distance of the sizes of two schedules, in logarithms to base 2.
pub(super) fn distance(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    let logarithm = |size: f64| match size > 0.0 {
        true => size.log2(),
        false => WHOLE,
    };
    let sizes = a.iter().zip(b);
    let squares = sizes.map(|(a, b)| (logarithm(*a) - logarithm(*b)).powi(2));
    squares.sum::<f64>().sqrt()
}

impl Case {
    /// Whether the schedules of two cases differ by so much that a model may be wrong about one of them alone: in kind,
    /// or in sizes by a factor of 2 altogether.
    pub(super) fn is_far_from(&self, other: &Self) -> bool {
        self.kind != other.kind || distance(&self.sizes, &other.sizes) >= 1.0
    }
}

/// The part that all cases of a calculation have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    pub family: Family,
    pub class: u32,
}

impl Subject {
    /// The subject of a scheme and its problem.
    pub fn of(scheme: &Scheme, problem: &Problem) -> Self {
        let cells = scheme.grid.cell_count();
        Self {
            family: Family::of(scheme, problem),
            class: cells.max(1.0).log2().round() as u32,
        }
    }

    /// The case of a schedule that is executed in a way of this kind.
    pub fn case(&self, kind: Kind, schedule: &Schedule) -> Case {
        Case {
            family: self.family.clone(),
            kind,
            sizes: sizes(schedule),
            class: self.class,
        }
    }
}

/// Steps of a time block; cells of outermost tiles, of innermost tiles, and along the last axis. Of pyramids: cells
/// of a base along each axis.
fn sizes(schedule: &Schedule) -> [f64; 4] {
    let cells = |n: Option<i64>| n.unwrap_or(0) as f64;
    match schedule {
        Schedule::Layerwise => [0.0; 4],
        Schedule::Boxes(boxes) => {
            let [outer, inner] = [boxes.levels.first(), boxes.levels.last()]
                .map(|level| level.copied().unwrap_or(PerAxis::splat(None)));
            let [first, last] = [outer, inner].map(|level| {
                let widest = [level[Axis::OUTER], level[Axis::MIDDLE]];
                cells(widest.into_iter().flatten().max())
            });
            [0.0, first, last, cells(inner[Axis::INNER])]
        }
        Schedule::Pyramids(pyramid) => {
            let [x, y, z] = pyramid.base.0.map(cells);
            [pyramid.height as f64, x, y, z]
        }
        Schedule::Tiled(tiling) => tiling_sizes(tiling),
    }
}

fn tiling_sizes(tiling: &Tiling) -> [f64; 4] {
    let pitch = |pitch: Option<Rational>| pitch.map_or(0.0, |pitch| pitch.as_f64());
    let is_inner = |form: Form| form[Axis::INNER] != 0;
    let across = |level: &Level| {
        let mut cuts = level.cuts.iter().filter(|cut| !is_inner(cut.face.form));
        cuts.next().map(|cut| cut.pitch)
    };
    let mut widths = tiling.levels.iter().filter_map(across);
    let outer = widths.next();
    let inner = widths.next_back().or(outer);
    let cuts = tiling.levels.iter().flat_map(|level| &level.cuts);
    let mut along = cuts.filter(|cut| is_inner(cut.face.form));
    let along = along.next_back().map(|cut| cut.pitch);
    [
        tiling.height as f64,
        pitch(outer),
        pitch(inner),
        pitch(along),
    ]
}
