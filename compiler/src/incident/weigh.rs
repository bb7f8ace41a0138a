//! The reads of updates across faces, with their weights.

use super::fault::Fault;
use super::shell::Shell;
use crate::analysis::{Nonlinear, weights};
use crate::host_range::{HostBox, Range, range};
use crate::lattice::{Axis, HalfIndex, Offset, PerAxis, Position, Region};
use crate::scheme::{CoefId, ComponentId, FileId, Located, Read, Scheme, StageId, Update};
use crate::statics::{Files, coef_value, coordinates};
use std::rc::Rc;

/// The weights of the values that an update reads.
pub type Weights = Rc<Result<Vec<(Read, f64)>, Nonlinear>>;

/// An update at any place.
pub struct Weigher<'a> {
    scheme: &'a Scheme,
    files: &'a dyn Files,
    update: &'a Update,
    /// Coefficients that it reads.
    used: Vec<CoefId>,
    /// Whether they are the same at all places that are looked at.
    fixed: bool,
    /// Coefficients of the place before, with the weights that follow from them.
    coefs: Vec<f64>,
    known: Option<Option<Weights>>,
}

impl<'a> Weigher<'a> {
    /// Of places in some boxes.
    pub fn new(
        scheme: &'a Scheme,
        files: &'a dyn Files,
        update: &'a Update,
        boxes: &[Region],
    ) -> Weigher<'a> {
        let mut used: Vec<CoefId> = update.body.coefs().chain(update.mask).collect();
        used.sort_unstable();
        used.dedup();
        let acting = boxes.iter().map(|b| b.intersect(update.region));
        let acting: Vec<Region> = acting.filter(|b| !b.is_empty()).collect();
        Weigher {
            scheme,
            files,
            update,
            fixed: used.iter().all(|id| is_same(scheme, *id, &acting)),
            used,
            coefs: vec![f64::NAN; scheme.coefs.len()],
            known: None,
        }
    }

    /// Whether weights are the same at all places of the boxes at which the update acts.
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// The weights at a place; `None` where the update does not act.
    pub fn at(&mut self, at: PerAxis<i64>) -> Option<Weights> {
        if !self.update.region.contains(at) {
            return None;
        }
        if self.known.is_none() || !self.fixed {
            let mut same = self.known.is_some();
            for &id in &self.used {
                let coef = &self.scheme.coefs[id.index()];
                let value = coef_value(self.scheme, self.files, coef.position, &coef.value, at);
                let value = self.scheme.precision.round(value);
                same &= self.coefs[id.index()].to_bits() == value.to_bits();
                self.coefs[id.index()] = value;
            }
            if !same {
                let acts = self
                    .update
                    .mask
                    .is_none_or(|m| self.coefs[m.index()] != 0.0);
                let found = || Rc::new(weights(&self.update.body, &self.coefs));
                self.known = Some(acts.then(found));
            }
        }
        self.known.clone().flatten()
    }
}

/// Whether a coefficient has one value in some boxes, as far as its expression tells.
fn is_same(scheme: &Scheme, id: CoefId, boxes: &[Region]) -> bool {
    let coef = &scheme.coefs[id.index()];
    if coef.value.as_number().is_some() {
        return true;
    }
    let values = boxes.iter().map(|cells| {
        let places = Cells {
            scheme,
            position: coef.position,
            cells: *cells,
        };
        range(&coef.value, &places)
    });
    values
        .reduce(Range::hull)
        .is_none_or(|all| all.is_point() && all.size().is_finite())
}

/// A box of cells as expressions see it, without the values of files.
struct Cells<'a> {
    scheme: &'a Scheme,
    position: Position,
    cells: Region,
}

impl HostBox for Cells<'_> {
    fn coordinate(&self, axis: Axis, by: HalfIndex) -> Range {
        let grid = &self.scheme.grid;
        coordinates(grid, axis, self.position[axis] + by, self.cells[axis])
    }

    fn file(&self, _: FileId, _: Offset) -> Range {
        Range::WHOLE
    }
}

/// A part of a correction: a weight times a value of the incident field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    pub component: ComponentId,
    /// 0: the newest version when the stage starts.
    pub age: u8,
    pub at: PerAxis<i64>,
    /// With the sign of the correction.
    pub weight: f64,
}

/// A place that reads across faces.
#[derive(Clone, Copy, Debug)]
pub struct Site<'t> {
    pub stage: StageId,
    pub target: ComponentId,
    pub at: PerAxis<i64>,
    /// At least one, in the order in which they are added.
    pub terms: &'t [Term],
}

/// Calls `f` for each place at which an update reads across the faces of a box, the inner axis fastest.
pub fn for_each_site(
    shell: &Shell<'_>,
    files: &dyn Files,
    stage: StageId,
    update: &Update,
    mut f: impl FnMut(&Site<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut sites = Sites::new(shell, files, stage, update);
    shell.for_each(update.target, |at| sites.look(at, &mut f))
}

/// The places at which an update reads across the faces of a box.
pub struct Sites<'a> {
    shell: &'a Shell<'a>,
    stage: StageId,
    update: &'a Update,
    weigher: Weigher<'a>,
    terms: Vec<Term>,
}

impl<'a> Sites<'a> {
    pub fn new(
        shell: &'a Shell<'a>,
        files: &'a dyn Files,
        stage: StageId,
        update: &'a Update,
    ) -> Sites<'a> {
        Sites {
            shell,
            stage,
            update,
            weigher: Weigher::new(shell.scheme, files, update, &shell.parts(update.target)),
            terms: Vec::new(),
        }
    }

    /// Whether weights are the same at all places at which the update acts.
    pub fn are_fixed(&self) -> bool {
        self.weigher.fixed
    }

    /// Calls `f` for the places of a row, in ascending order.
    pub fn of_row(
        &mut self,
        row: [i64; 2],
        mut f: impl FnMut(&Site<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let shell = self.shell;
        shell.for_each_of_row(self.update.target, row, |at| self.look(at, &mut f))
    }

    fn look(
        &mut self,
        at: PerAxis<i64>,
        f: &mut impl FnMut(&Site<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Sites { shell, update, .. } = *self;
        let scheme = shell.scheme;
        let own = shell.has(scheme.component(update.target).position, at);
        // Where the value that is read is stored, and whether with the other sign, if a face lies between. A box keeps
        // away from ends of zeros.
        let crossing = |read: &Read| {
            let there = PerAxis::from_fn(|a| at[a] + i64::from(read.offset[a]));
            let of = scheme.component(read.component).position;
            match scheme.grid.resolve(of, there) {
                Located::Stored { at, negated } => {
                    (shell.has(of, at) != own).then_some((at, negated))
                }
                Located::Zero => None,
            }
        };
        if update.body.reads().all(|read| crossing(read).is_none()) {
            return Ok(());
        }
        let Some(weights) = self.weigher.at(at) else {
            return Ok(());
        };
        let weights = weights.as_ref().as_ref().map_err(|why| Fault::Nonlinear {
            target: update.target,
            at,
            why: why.clone(),
        })?;
        self.terms.clear();
        for (read, weight) in weights {
            if let Some((at, negated)) = crossing(read) {
                self.terms.push(Term {
                    component: read.component,
                    age: read.age,
                    at,
                    weight: if own != negated { *weight } else { -weight },
                });
            }
        }
        if self.terms.is_empty() {
            return Ok(());
        }
        f(&Site {
            stage: self.stage,
            target: update.target,
            at,
            terms: &self.terms,
        })
    }
}
