//! Which picture shows a scheme and its tiles best: the value, the axis, how far back, and which faces.

use crate::args::{self, ViewArg};
use crate::failure::Failure;
use torre_compiler::cone::{Cones, Dependence, Rational, axis_form};
use torre_compiler::draw::{
    Cut, Footprint, Overlap, Section, Solid, Subject, footprint, section, solid,
};
use torre_compiler::lattice::{Axis, HalfIndex, PerAxis};
use torre_compiler::schedule::face::Face;
use torre_compiler::schedule::{Boxes, Frame, Schedule, Tiling};
use torre_compiler::scheme::{ComponentId, Scheme};
use torre_compiler::tile::PyramidProgram;
use torre_runtime::plan::Planner;
use torre_runtime::simulation::SetupError;

/// Values of a past that are drawn at the most: more are slow to find, and too fine to see.
const MOST_VALUES: f64 = 1e5;
/// Steps that a section and a cone look back, at the most.
const SECTION_STEPS: u32 = 7;
const CONE_STEPS: u32 = 3;
/// Stages of a tile that is drawn as a whole, at the most.
const MOST_WHOLE: i64 = 12;
/// Stages of a tower, and panels of a footprint, at the most.
const MOST_STAGES: i64 = 8;
const MOST_PANELS: i64 = 6;

/// The picture that the options ask for.
pub fn draw(
    args: &args::Cone,
    planner: &Planner<'_>,
    schedule: Option<&Schedule>,
    wrong: Option<Dependence>,
) -> Result<String, Failure> {
    let Planner { scheme, cones, .. } = planner;
    let tiling = match schedule {
        Some(Schedule::Tiled(tiling)) => Some(tiling),
        _ => None,
    };
    let picture = Picture {
        scheme,
        cones,
        cuts: tiling
            .map(|tiling| faces(&planner.frame, tiling))
            .unwrap_or_default(),
        height: tiling.map_or(i64::MAX, |t| {
            i64::try_from(t.height)
                .unwrap_or(i64::MAX)
                .saturating_mul(i64::from(cones.stages.max(1)))
        }),
        upright: match schedule {
            Some(Schedule::Pyramids(pyramid)) => {
                let program = PyramidProgram::new(scheme, pyramid).map_err(SetupError::from)?;
                Some(Upright::Pyramids(Box::new(program)))
            }
            Some(Schedule::Boxes(boxes)) => Some(Upright::Boxes(boxes.clone())),
            _ => None,
        },
        wrong,
    };
    if picture.upright.is_some() && args.view != ViewArg::Section {
        return Err(Failure::usage(
            "pyramids and boxes are shown by `--view section`",
        ));
    }
    if args.axis.is_some() && args.view != ViewArg::Section {
        return Err(Failure::usage("`--axis` goes with `--view section` only"));
    }
    match args.view {
        ViewArg::Section => picture.section(args),
        ViewArg::Footprint => picture.footprint(),
        ViewArg::Solid => picture.solid(args),
    }
}

struct Picture<'a> {
    scheme: &'a Scheme,
    cones: &'a Cones,
    /// Of the innermost tiles, in space.
    cuts: Vec<Cut>,
    /// Stages of a time block.
    height: i64,
    /// Tiles without faces.
    upright: Option<Upright>,
    wrong: Option<Dependence>,
}

/// Tiles whose bases are boxes.
enum Upright {
    Pyramids(Box<PyramidProgram>),
    Boxes(Boxes),
}

impl Upright {
    /// The innermost ones along an axis; `None` if it is not cut.
    fn along(&self, scheme: &Scheme, axis: Axis) -> Option<Overlap> {
        let (base, stages) = match self {
            Upright::Pyramids(program) => (program.base[axis], program.profile(scheme, axis)),
            Upright::Boxes(boxes) => {
                let base = boxes.levels.iter().rev().find_map(|level| level[axis])?;
                (base, vec![[0; 2]])
            }
        };
        (base < scheme.grid.cells[axis]).then_some(Overlap { base, stages })
    }
}

/// The faces of the innermost tiles, each with the shortest of its pitches.
fn faces(frame: &Frame, tiling: &Tiling) -> Vec<Cut> {
    let mut found: Vec<Cut> = Vec::new();
    // Where the updates of a stage differ, the one that is farthest ahead is shown.
    let most = |stage: &[Rational]| stage.iter().copied().max().unwrap_or(Rational::ZERO);
    for cut in tiling.levels.iter().flat_map(|level| &level.cuts) {
        match found.iter_mut().find(|known| known.face == cut.face) {
            Some(known) => known.pitch = known.pitch.min(cut.pitch),
            None => found.push(Cut {
                face: cut.face,
                pitch: cut.pitch,
                leads: frame.leads(&cut.face).iter().map(|l| most(l)).collect(),
            }),
        }
    }
    found
}

impl Picture<'_> {
    fn section(&self, args: &args::Cone) -> Result<String, Failure> {
        let axis = match &args.axis {
            Some(name) => self.axis(name)?,
            None => self.telling_axis(),
        };
        let component = match &args.component {
            Some(name) => self.component(name)?,
            None => self.telling_component(axis),
        };
        let stages = i64::from(self.cones.stages.max(1));
        let steps = self.steps(SECTION_STEPS.min((8 / stages).max(2) as u32));
        let later = stages.max(2);
        let mut cuts: Vec<Cut> = self.cuts.clone();
        cuts.retain(|cut| cut.face.form[axis] != 0);
        // Time blocks are tiles in time; shown where one ends within the picture.
        let ends = self.height < i64::from(steps) * stages + later;
        if !cuts.is_empty() && (ends || self.height <= MOST_WHOLE) {
            cuts.push(Cut {
                face: Face {
                    form: PerAxis::splat(0),
                    slope: -Rational::ONE,
                },
                pitch: Rational::whole(self.height),
                leads: Vec::new(),
            });
        }
        let view = Section {
            component,
            axis,
            steps,
            later: later as u32,
            cuts,
            overlap: self
                .upright
                .as_ref()
                .and_then(|tiles| tiles.along(self.scheme, axis)),
            whole: false,
            stressed: self.wrong,
        };
        let view = match args.component {
            Some(_) => view,
            None => self.whole_tile(view),
        };
        Ok(section(self.scheme, self.cones, &view))
    }

    /// The same with one whole tile and its past, where a tile is small enough to be seen and nothing else is to be
    /// shown.
    fn whole_tile(&self, view: Section) -> Section {
        let stages = i64::from(self.cones.stages.max(1));
        let height = match &view.overlap {
            Some(overlap) => overlap.stages.len() as i64,
            None => self.height,
        };
        let tiled = view.overlap.is_some() || !view.cuts.is_empty();
        if !tiled || height > MOST_WHOLE || view.stressed.is_some() {
            return view;
        }
        // The time block is the second one, so that there is one below it.
        let top = (2 * height).max(MOST_WHOLE.min(5));
        Section {
            steps: (top / stages).max(1) as u32,
            later: 1,
            whole: true,
            ..view
        }
    }

    fn footprint(&self) -> Result<String, Failure> {
        let axes = self.axes("footprint")?;
        let cuts = self.cuts_across(axes);
        let tile = self.middle_tile(&cuts);
        let stages = i64::from(self.cones.stages.max(1));
        let view = Footprint {
            axes,
            cuts,
            tile,
            stages: 0..(2 * stages).min(self.height).clamp(1, MOST_PANELS),
        };
        Ok(footprint(self.scheme, &view))
    }

    fn solid(&self, args: &args::Cone) -> Result<String, Failure> {
        let axes = self.axes("solid")?;
        let mut cuts = self.cuts_across(axes);
        // Seen from afar, faces are even.
        cuts.iter_mut().for_each(|cut| cut.leads.clear());
        let component = match &args.component {
            Some(name) => Some(self.component(name)?),
            None => None,
        };
        let subject = match (component, self.towers(axes, &cuts)) {
            (None, Some(tiles)) => Subject::Towers {
                cuts,
                tiles,
                stages: 0..MOST_STAGES.min(self.height),
            },
            (component, _) => Subject::Cone {
                component: component.unwrap_or_else(|| self.telling_component(axes[0])),
                steps: self.steps(CONE_STEPS),
            },
        };
        Ok(solid(self.scheme, self.cones, &Solid { axes, subject }))
    }

    /// A tile and the tiles beside it; `None` if the tiles are no towers: if they are not cut, or if they open and
    /// close in time.
    fn towers(&self, [ax, ay]: [Axis; 2], cuts: &[Cut]) -> Option<Vec<Vec<i64>>> {
        let tile = self.middle_tile(cuts);
        let beside: &[&[i64]] = match cuts {
            [_] => &[&[0], &[-1]],
            [one, other] => {
                let (p, q) = (one.face.form, other.face.form);
                if p[ax] * q[ay] == p[ay] * q[ax] {
                    return None;
                }
                &[&[0, 0], &[-1, 1], &[1, -1], &[-1, 0], &[0, -1]]
            }
            _ => return None,
        };
        let moved = |by: &&[i64]| tile.iter().zip(*by).map(|(n, d)| n + d).collect();
        Some(beside.iter().map(moved).collect())
    }

    /// The first axis, and the next one.
    fn axes(&self, view: &str) -> Result<[Axis; 2], Failure> {
        let present: Vec<Axis> = self.scheme.grid.present().collect();
        match present[..] {
            [first, second, ..] => Ok([first, second]),
            _ => Err(Failure::usage(format!(
                "the view `{view}` needs two axes; with one, `--view section` shows all"
            ))),
        }
    }

    /// The faces that the plane of two axes shows.
    fn cuts_across(&self, axes: [Axis; 2]) -> Vec<Cut> {
        let mut cuts = self.cuts.clone();
        cuts.retain(|cut| {
            let mut other = Axis::ALL.iter().filter(|a| !axes.contains(a));
            other.all(|&a| cut.face.form[a] == 0)
        });
        cuts
    }

    /// The numbers of the tile beside the origin that starts at stage 0.
    fn middle_tile(&self, cuts: &[Cut]) -> Vec<i64> {
        let first = self.scheme.grid.present().next();
        let beside = PerAxis::from_fn(|a| HalfIndex(i64::from(Some(a) == first)));
        let index = |cut: &Cut| cut.face.index(cut.pitch, beside, 0).unwrap_or(0);
        cuts.iter().map(index).collect()
    }

    /// `most` steps, or as many as keep the past of a value small.
    fn steps(&self, most: u32) -> u32 {
        let values = |steps: u32| {
            let wide = |axis: Axis| {
                let [down, up] = self.cones.slopes()[axis];
                let reach = (down + up).as_f64() * f64::from(self.cones.stages);
                reach * f64::from(steps) + 1.0
            };
            let cells: f64 = self.scheme.grid.present().map(wide).product();
            // A cone fills a third of its box or less.
            cells * f64::from(steps) * self.scheme.components.len() as f64 / 3.0
        };
        (1..=most)
            .rev()
            .find(|&steps| values(steps) <= MOST_VALUES)
            .unwrap_or(1)
    }

    /// The axis of a name.
    fn axis(&self, name: &str) -> Result<Axis, Failure> {
        let grid = &self.scheme.grid;
        let found = grid.present().find(|&a| grid.axis_name(a) == name);
        found.ok_or_else(|| {
            let all: Vec<&str> = grid.present().map(|a| grid.axis_name(a)).collect();
            Failure::usage(format!(
                "the scheme has no axis `{name}`; its axes are {}",
                all.join(", ")
            ))
        })
    }

    /// The axis along which the dependence that is against the order goes farthest, or else the first one that is cut.
    fn telling_axis(&self) -> Axis {
        let grid = &self.scheme.grid;
        let far = |d: Dependence| {
            let along = |a: Axis| d.space[a].0.abs();
            // Of equals the first.
            let farther = |best: Axis, next: Axis| {
                if along(next) > along(best) {
                    next
                } else {
                    best
                }
            };
            grid.present().reduce(farther)
        };
        let cut = |a: &Axis| {
            let upright = self.upright.as_ref();
            self.cuts.iter().any(|cut| cut.face.form[*a] != 0)
                || upright.is_some_and(|tiles| tiles.along(self.scheme, *a).is_some())
        };
        self.wrong
            .and_then(far)
            .or_else(|| grid.present().find(cut))
            .or_else(|| grid.present().next())
            .unwrap_or(Axis::INNER)
    }

    /// The component of a name.
    fn component(&self, name: &str) -> Result<ComponentId, Failure> {
        let names = || {
            let ids = self.scheme.component_ids();
            ids.map(|id| (id, &self.scheme.component(id).name))
        };
        let found = names().find(|(_, n)| *n == name).map(|(id, _)| id);
        found.ok_or_else(|| {
            let all: Vec<&str> = names().map(|(_, n)| n.as_str()).collect();
            Failure::usage(format!(
                "there is no component `{name}`; there are {}",
                all.join(", ")
            ))
        })
    }

    /// The component that waits against the order, or else the component of the last stage whose reads go farthest
    /// along an axis; of equals the last.
    fn telling_component(&self, axis: Axis) -> ComponentId {
        if let Some(wrong) = self.wrong {
            return wrong.to.component;
        }
        let reach = |id: ComponentId| {
            let reads = self.cones.local().filter(|d| d.to.component == id);
            let both = reads.map(|d| [1, -1].map(|s| d.slope(axis_form(axis, s))));
            both.map(|[up, down]| up.max(down)).max()
        };
        let last = self.scheme.stages.last();
        let targets = last.into_iter().flat_map(|s| &s.updates).map(|u| u.target);
        targets
            .max_by_key(|&id| reach(id))
            .unwrap_or(ComponentId(0))
    }
}
