//! From a tiling in cells and fractions to a tile program in integers that may be executed.

use super::verify::verify;
use super::{Class, Plane, PlaneCut, TileProgram};
use crate::cone::{Rational, axis_form};
use crate::kernel::{UpdateSet, row_region};
use crate::lattice::{Axis, PerAxis, gcd};
use crate::schedule::{Cut, Frame, Illegal, Tiling, check_tiling};
use crate::scheme::Scheme;
use std::fmt;
use std::ops::Deref;

/// A program that was checked before it is executed.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked<P>(P);

/// Why a tiling has no tile program.
#[derive(Clone, Debug, PartialEq)]
pub enum NoTiles {
    /// The tiling is not legal.
    Illegal(Illegal),
    /// The program breaks a rule of tile programs: a defect of the compiler.
    Fault(String),
}

impl fmt::Display for NoTiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTiles::Illegal(illegal) => write!(f, "{illegal:?}"),
            NoTiles::Fault(fault) => f.write_str(fault),
        }
    }
}

/// The tile program of a tiling, if the tiling is legal in the frame; the rules of tile programs are checked.
pub fn lower(
    scheme: &Scheme,
    frame: &Frame,
    tiling: &Tiling,
) -> Result<Checked<TileProgram>, NoTiles> {
    check_tiling(frame, tiling).map_err(NoTiles::Illegal)?;
    let program = in_integers(scheme, frame, tiling);
    verify(scheme, &program).map_err(NoTiles::Fault)?;
    Ok(Checked(program))
}

impl<P> Checked<P> {
    pub fn into_inner(self) -> P {
        self.0
    }
}

impl<P> Deref for Checked<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.0
    }
}

/// The same tiles in integers, whether the tiling is legal or not: models estimate tilings that users may correct.
pub fn in_integers(scheme: &Scheme, frame: &Frame, tiling: &Tiling) -> TileProgram {
    let mut planes: Vec<Plane> = Vec::new();
    // Per plane, stage and update.
    let mut leads: Vec<Vec<Vec<i64>>> = Vec::new();
    let mut plane_cut = |cut: &Cut| {
        let Scaled {
            plane,
            pitch,
            leads: own,
        } = scale(frame, cut);
        let index = planes.iter().position(|p| *p == plane).unwrap_or_else(|| {
            planes.push(plane);
            leads.push(own);
            planes.len() - 1
        });
        PlaneCut {
            plane: index,
            pitch,
        }
    };
    let levels = tiling
        .levels
        .iter()
        .map(|level| level.cuts.iter().map(&mut plane_cut).collect())
        .collect();
    let seam = seam(frame, tiling).map(|cut| plane_cut(&cut).plane);
    let stages = scheme
        .stage_ids()
        .map(|stage| {
            let mut classes: Vec<Class> = Vec::new();
            for (i, update) in scheme.stages[stage.index()].updates.iter().enumerate() {
                let region = row_region(scheme, update);
                if region.is_empty() {
                    continue;
                }
                let mut updates = UpdateSet::default();
                updates.insert(i);
                let class = Class {
                    updates,
                    region,
                    position: frame.position(stage, i).map(|h| h.0),
                    leads: leads.iter().map(|l| l[stage.index()][i]).collect(),
                };
                match classes.iter_mut().find(|c| c.runs_with(&class)) {
                    Some(same) => same.updates.insert(i),
                    None => classes.push(class),
                }
            }
            classes
        })
        .collect();
    TileProgram {
        height: tiling.height,
        planes,
        levels,
        stages,
        ring: PerAxis::from_fn(|a| frame.folded[a].then_some(2 * scheme.grid.cells[a])),
        open: frame.open,
        seam,
        reach: scheme.reach().map(|ends| i64::from(ends[0].max(ends[1]))),
        three_axes: scheme.grid.axes[Axis::MIDDLE].is_some(),
    }
}

/// See [`TileProgram::seam`].
fn seam(frame: &Frame, tiling: &Tiling) -> Option<Cut> {
    let cuts = &tiling.levels.first()?.cuts;
    let along = cuts.first()?.face.form[Axis::OUTER].signum();
    let same = |cut: &Cut| cut.face.form[Axis::OUTER].signum() == along;
    (frame.open[Axis::OUTER] && along != 0 && cuts.iter().all(same)).then(|| Cut {
        face: frame.fitting(axis_form(Axis::OUTER, -along)),
        pitch: Rational::ONE,
    })
}

impl Class {
    /// They lie in the same tiles everywhere.
    fn runs_with(&self, other: &Class) -> bool {
        (self.region, self.position) == (other.region, other.position) && self.leads == other.leads
    }
}

/// A cut in integers.
struct Scaled {
    plane: Plane,
    pitch: i64,
    /// Per stage and update.
    leads: Vec<Vec<i64>>,
}

/// The smallest integers: one unit of depth is 1 / (2 * common denominator) of a cell; events lie on multiples of it.
fn scale(frame: &Frame, cut: &Cut) -> Scaled {
    // In half cells: form * (2 p), slope 2 s, leads 2 l, pitch 2 P; then all times the common denominator.
    let double = |n: Rational| n * Rational::whole(2);
    let (slope, pitch) = (double(cut.face.slope), double(cut.pitch));
    let leads = frame.leads(&cut.face);
    let all = leads.iter().flatten().map(|&l| double(l).den());
    let den = all.fold(lcm(slope.den(), pitch.den()), lcm);
    let whole = |n: Rational| n.num() * (den / n.den());
    Scaled {
        plane: Plane {
            form: cut.face.form.map(|c| i64::from(c) * den),
            slope: whole(slope),
        },
        pitch: whole(pitch).max(1),
        leads: leads
            .iter()
            .map(|stage| stage.iter().map(|&l| whole(double(l))).collect())
            .collect(),
    }
}

fn lcm(a: i64, b: i64) -> i64 {
    (a / gcd(a, b).max(1)).saturating_mul(b)
}
