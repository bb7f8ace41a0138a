//! Schedules whose sizes are still open: the schedules that a user writes, and the ones that the compiler tries by
//! itself.

use super::face::Face;
use super::frame::Frame;
use super::tiling::{Boxes, Cut, Level, Pyramid, Schedule, Tiling};
use crate::cone::{Form, Rational};
use crate::lattice::{Axis, PerAxis};
use crate::scheme::Scheme;

/// A family of schedules.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    Layerwise,
    Tiled(TiledTemplate),
    /// The compiler chooses the family, too.
    Auto,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TiledTemplate {
    pub title: Title,
    pub sizes: Vec<Size>,
    /// Index into the sizes: steps per time block. Boxes have none.
    pub height: Option<usize>,
    pub parts: Parts,
}

/// How messages and reports call the members of a family.
#[derive(Clone, Debug, PartialEq)]
pub enum Title {
    /// `torre`, or the name of a schedule block; the sizes follow in parentheses.
    Name(String),
    /// Levels as they are written out, with the chosen sizes in the gaps, and the text behind the last gap.
    Levels { gaps: Vec<Gap>, behind: String },
}

/// A size that a text leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// The text between the gap before and this one.
    pub before: String,
    /// A word that the text leaves out together with the size.
    pub word: &'static str,
    /// Index into the sizes.
    pub size: usize,
}

/// The parts into which a family cuts the grid.
#[derive(Clone, Debug, PartialEq)]
pub enum Parts {
    /// Tiles between faces; outermost level first.
    Tiles(Vec<Vec<OpenCut>>),
    /// Overlapped tiles with a base of these sizes, by index; `None`: the whole axis. So is a size of 0.
    Pyramids(PerAxis<Option<usize>>),
    /// Boxes in each stage; outermost level first, sizes as for pyramids.
    Boxes(Vec<PerAxis<Option<usize>>>),
}

/// A number to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// As the user writes it: `D`, `TH`, ...
    pub name: String,
    /// Its possible values; one value if it is given. Not empty.
    pub values: Vec<Rational>,
    /// Whether they are the user's; otherwise a device may have values of its own.
    pub is_given: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OpenCut {
    pub form: Form,
    /// `None`: the smallest legal one.
    pub slope: Option<Rational>,
    /// The pitch is the product of `factor` and these sizes, in cells.
    pub factor: Rational,
    pub sizes: Vec<usize>,
}

impl TiledTemplate {
    /// The schedule with the given value for each size. A size 0 means an axis that is not cut.
    pub fn close(&self, values: &[Rational], frame: &Frame) -> Schedule {
        let steps = self.height.map_or(1, |i| values[i].floor());
        let height = u64::try_from(steps).unwrap_or(0);
        let cells = |sizes: &PerAxis<Option<usize>>| {
            sizes.map(|size| size.map(|i| values[i].floor()).filter(|&n| n > 0))
        };
        match &self.parts {
            Parts::Tiles(levels) => Schedule::Tiled(Tiling {
                height,
                levels: close_cuts(levels, values, frame),
            }),
            Parts::Pyramids(base) => Schedule::Pyramids(Pyramid {
                height,
                base: cells(base),
            }),
            Parts::Boxes(levels) => Schedule::Boxes(Boxes {
                levels: levels.iter().map(cells).collect(),
            }),
        }
    }

    /// The distinct schedules of the family, in the order of their sizes, with names for people.
    pub fn members(&self, frame: &Frame) -> Vec<(String, Schedule)> {
        let mut members: Vec<(String, Schedule)> = Vec::new();
        for values in self.combinations() {
            let schedule = self.close(&values, frame);
            if members.iter().any(|(_, known)| *known == schedule) {
                continue;
            }
            let name = self.called(|index| Some(values[index]));
            members.push((name, schedule));
        }
        members
    }

    /// The name of the family with the sizes that are given, the first one of several.
    pub fn given(&self) -> String {
        self.called(|index| {
            let size = &self.sizes[index];
            size.values.first().filter(|_| size.is_given).copied()
        })
    }

    /// The name with some of the sizes, by index.
    fn called(&self, value: impl Fn(usize) -> Option<Rational>) -> String {
        match &self.title {
            Title::Name(name) => {
                let sizes = self.sizes.iter().enumerate();
                let known = sizes.filter_map(|(n, size)| Some((&size.name, value(n)?)));
                let known: Vec<String> = known.map(|(name, v)| format!("{name} = {v}")).collect();
                match known.is_empty() {
                    true => name.clone(),
                    false => format!("{name}({})", known.join(", ")),
                }
            }
            Title::Levels { gaps, behind } => {
                let filled = |gap: &Gap| match value(gap.size) {
                    Some(value) => format!("{}{}{value}", gap.before, gap.word),
                    None => gap.before.clone(),
                };
                gaps.iter().map(filled).chain([behind.clone()]).collect()
            }
        }
    }

    /// All combinations of values, the last size fastest.
    pub fn combinations(&self) -> Vec<Vec<Rational>> {
        let mut all: Vec<Vec<Rational>> = vec![Vec::new()];
        for size in &self.sizes {
            all = all
                .into_iter()
                .flat_map(|head| {
                    size.values.iter().map(move |v| {
                        let mut row = head.clone();
                        row.push(*v);
                        row
                    })
                })
                .collect();
        }
        all
    }
}

/// Cuts whose pitch comes out as 0 are left out.
fn close_cuts(levels: &[Vec<OpenCut>], values: &[Rational], frame: &Frame) -> Vec<Level> {
    let close_cut = |cut: &OpenCut| {
        let pitch = cut
            .sizes
            .iter()
            .fold(cut.factor, |pitch, size| pitch * values[*size]);
        let face = match cut.slope {
            Some(slope) => Face {
                form: cut.form,
                slope,
            },
            None => frame.fitting(cut.form),
        };
        (!pitch.is_zero()).then_some(Cut { face, pitch })
    };
    let mut closed: Vec<Level> = Vec::new();
    for cuts in levels {
        let outer: Vec<Cut> = closed.iter().flat_map(|l| l.cuts.clone()).collect();
        let level = Level {
            // A cut that is there already adds nothing.
            cuts: cuts
                .iter()
                .filter_map(close_cut)
                .filter(|cut| !outer.contains(cut))
                .collect(),
        };
        if !level.cuts.is_empty() {
            closed.push(level);
        }
    }
    closed
}

impl Size {
    /// A size that may be any of these whole numbers.
    pub fn of(name: &str, values: &[i64]) -> Size {
        Size {
            name: name.to_string(),
            values: values.iter().map(|v| Rational::whole(*v)).collect(),
            is_given: false,
        }
    }
}

fn cut(form: [i32; 3], sizes: &[usize]) -> OpenCut {
    OpenCut {
        form: PerAxis(form),
        slope: None,
        factor: Rational::ONE,
        sizes: sizes.to_vec(),
    }
}

/// The families that `auto` tries for a scheme, besides layerwise.
pub fn families(scheme: &Scheme) -> Vec<TiledTemplate> {
    let heights: &[i64] = &[4, 8, 16, 32];
    match scheme.grid.dimensions() {
        3 => vec![torre(
            Size::of("W", &[6, 8, 12, 16, 20, 24, 32, 40]),
            Size::of("G", &[1, 2, 3, 4]),
            Size::of("TH", heights),
            // Blocks along the inner axis cost more at their ends than they save; they are there for users who try
            // them.
            Size::of("Z", &[0]),
        )],
        2 => vec![
            diamond(
                Size::of("P", &[8, 16, 32, 64]),
                Size::of("TH", heights),
                Size::of("Z", &[0, 256, 512, 1024, 2048]),
            ),
            skewed(
                Size::of("P", &[4, 8, 16, 32]),
                Size::of("TH", heights),
                Size::of("Z", &[0, 256, 512, 1024, 2048]),
            ),
        ],
        _ => vec![line(
            Size::of("P", &[1024, 2048, 4096, 8192, 16384]),
            Size::of("TH", &[8, 16, 32, 64, 128, 256]),
        )],
    }
}

/// DiamondTorre in two levels (V. Levchenko, A. Perepelkina): towers with faces `x + y` and `x - y` of pitch W cells,
/// in macro towers of G times that, which one thread runs; along the inner axis blocks of Z cells, skewed (0: whole
/// lines).
pub fn torre(w: Size, g: Size, th: Size, z: Size) -> TiledTemplate {
    TiledTemplate {
        title: Title::Name("torre".to_owned()),
        sizes: vec![w, g, th, z],
        height: Some(2),
        parts: Parts::Tiles(vec![
            vec![
                cut([1, 1, 0], &[0, 1]),
                cut([1, -1, 0], &[0, 1]),
                cut([0, 0, 1], &[3]),
            ],
            vec![cut([1, 1, 0], &[0]), cut([1, -1, 0], &[0])],
        ]),
    }
}

/// The faces of towers.
const TOWER: [[i32; 3]; 2] = [[1, 1, 0], [1, -1, 0]];

/// The pitch of towers of size D = 1, in cells: twice the steepest slope of their faces.
pub fn tower_unit(frame: &Frame) -> Rational {
    let [first, second] = TOWER.map(|form| frame.fitting(PerAxis(form)).slope);
    first.max(second) * Rational::whole(2)
}

/// DiamondTorre in one level: towers of some size, in units of `unit` cells.
pub fn towers(size: Size, unit: Rational, th: Size) -> TiledTemplate {
    let open = |form| OpenCut {
        form: PerAxis(form),
        slope: None,
        factor: unit,
        sizes: vec![0],
    };
    TiledTemplate {
        title: Title::Name("torre".to_owned()),
        sizes: vec![size, th],
        height: Some(1),
        parts: Parts::Tiles(vec![TOWER.map(open).to_vec()]),
    }
}

/// Diamonds in x-t of pitch P cells, with skewed blocks of Z cells along the inner axis (0: whole lines).
pub fn diamond(p: Size, th: Size, z: Size) -> TiledTemplate {
    TiledTemplate {
        title: Title::Name("diamond".to_owned()),
        sizes: vec![p, th, z],
        height: Some(1),
        parts: Parts::Tiles(vec![vec![
            cut([1, 0, 0], &[0]),
            cut([-1, 0, 0], &[0]),
            cut([0, 0, 1], &[2]),
        ]]),
    }
}

/// Parallelograms in x-t of pitch P cells, with skewed blocks of Z cells along the inner axis (0: whole lines).
pub fn skewed(p: Size, th: Size, z: Size) -> TiledTemplate {
    TiledTemplate {
        title: Title::Name("skewed".to_owned()),
        sizes: vec![p, th, z],
        height: Some(1),
        parts: Parts::Tiles(vec![vec![cut([0, 0, 1], &[2]), cut([1, 0, 0], &[0])]]),
    }
}

/// Diamonds along the only axis of a 1-D scheme, of pitch P cells.
pub fn line(p: Size, th: Size) -> TiledTemplate {
    TiledTemplate {
        title: Title::Name("diamond".to_owned()),
        sizes: vec![p, th],
        height: Some(1),
        parts: Parts::Tiles(vec![vec![cut([0, 0, 1], &[0]), cut([0, 0, -1], &[0])]]),
    }
}

/// Overlapped tiles with a base of B cells along all axes but the last, where it has Z cells (0: whole lines), or of B
/// cells along the only axis.
pub fn pyramid(scheme: &Scheme, b: Size, th: Size, z: Size) -> TiledTemplate {
    TiledTemplate {
        title: Title::Name("pyramid".to_owned()),
        sizes: [b, th].into_iter().chain(lines(scheme, z)).collect(),
        height: Some(1),
        parts: Parts::Pyramids(block(scheme)),
    }
}

/// Boxes of B cells along all axes but the last, where they have Z cells (0: whole lines), or of B cells along the only
/// axis.
pub fn boxes(scheme: &Scheme, b: Size, z: Size) -> TiledTemplate {
    let sizes = block(scheme).map(|size| size.map(|i| i.min(1)));
    TiledTemplate {
        title: Title::Name("box".to_owned()),
        sizes: [b].into_iter().chain(lines(scheme, z)).collect(),
        height: None,
        parts: Parts::Boxes(vec![sizes]),
    }
}

/// The size along the last axis, if there is another one.
fn lines(scheme: &Scheme, z: Size) -> Option<Size> {
    (scheme.grid.dimensions() > 1).then_some(z)
}

/// The first size along all axes but the last, the third one along the last; the first along the only one.
fn block(scheme: &Scheme) -> PerAxis<Option<usize>> {
    let grid = &scheme.grid;
    PerAxis::from_fn(|axis| match axis {
        Axis::INNER if grid.dimensions() > 1 => Some(2),
        _ => grid.axes[axis].is_some().then_some(0),
    })
}

impl Template {
    /// The schedule if nothing is open.
    pub fn fixed(&self, frame: &Frame) -> Option<Schedule> {
        match self {
            Template::Layerwise => Some(Schedule::Layerwise),
            Template::Auto => None,
            Template::Tiled(t) => {
                let values: Option<Vec<Rational>> = t
                    .sizes
                    .iter()
                    .map(|s| match s.values.as_slice() {
                        [one] => Some(*one),
                        _ => None,
                    })
                    .collect();
                Some(t.close(&values?, frame))
            }
        }
    }
}
