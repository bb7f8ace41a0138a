//! Where updates take the value of a coefficient: at other places it may be infinite or NaN, since no value that is
//! stored depends on it.

use crate::evaluate::evaluate_all;
use crate::lattice::{Axis, Interval, PerAxis, Region};
use crate::real::Real;
use crate::scheme::{Amendment, Body, CoefId, Op, Scheme, Update, Value};
use crate::statics::{Files, coef_value};

/// Whether an update that acts at an index of a coefficient's extent computes a value or a state from the coefficient.
/// Choices by coefficients and constants take only the value that they choose there. A coefficient of one axis is
/// looked for at all places of its index along this axis.
pub fn is_taken(scheme: &Scheme, files: &dyn Files, coef: CoefId, at: PerAxis<i64>) -> bool {
    let taken_at = |at| {
        let place = Place {
            scheme,
            files,
            coef,
            at,
        };
        let mut updates = scheme.stages.iter().flat_map(|s| &s.updates);
        updates.any(|update| place.is_taken_by(update))
    };
    let Some(axis) = scheme.coefs[coef.index()].only_axis else {
        return taken_at(at);
    };
    amended_with(scheme, coef).any(|mut cells| {
        cells[axis] = cells[axis].intersect(Interval::new(at[axis], at[axis] + 1));
        let [x, y, z] = Axis::ALL.map(|a| cells[a].lo..cells[a].hi);
        x.into_iter().any(|x| {
            let mut groups = y.clone().map(|y| [x, y]);
            groups.any(|[x, y]| z.clone().any(|z| taken_at(PerAxis([x, y, z]))))
        })
    })
}

/// The cells in which amendments that read a coefficient act.
fn amended_with(scheme: &Scheme, coef: CoefId) -> impl Iterator<Item = Region> + '_ {
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    updates.flat_map(move |update| {
        let reads = move |a: &&Amendment| a.body.coefs().any(|id| id == coef);
        let boxes = |a: &Amendment| scheme.zone(a.zone).boxes.clone();
        let boxes = update.amendments.iter().filter(reads).flat_map(boxes);
        boxes.map(|of_zone| of_zone.intersect(update.region))
    })
}

/// An index at which a coefficient is looked for.
struct Place<'a> {
    scheme: &'a Scheme,
    files: &'a dyn Files,
    coef: CoefId,
    at: PerAxis<i64>,
}

impl Place<'_> {
    fn is_taken_by(&self, update: &Update) -> bool {
        let mut coefs = update.bodies().flat_map(Body::coefs).chain(update.mask);
        if !update.region.contains(self.at) || coefs.all(|id| id != self.coef) {
            return false;
        }
        if let Some(mask) = update.mask {
            if mask == self.coef {
                return true;
            }
            if self.value(mask) == 0.0 {
                return false;
            }
        }
        // By operation of a body whether its result depends on the coefficient; `base`: whether the value so far does.
        let dependent = |body: &Body, base: bool| {
            let operand = |_: &mut (), number: usize| match body.ops[number] {
                Op::Coef(id) => id == self.coef,
                Op::Base => base,
                _ => false,
            };
            let number = |_: &mut (), op: &Op, found: &[bool]| self.depends(body, op, found);
            evaluate_all(&mut (), body, operand, number)
        };
        let mut depends = dependent(&update.body, false)[update.body.result.index()];
        for amendment in &update.amendments {
            if !self.scheme.zone(amendment.zone).contains(self.at) {
                continue;
            }
            let values = dependent(&amendment.body, depends);
            if (amendment.advances.iter()).any(|advance| values[advance.value.index()]) {
                return true;
            }
            depends = values[amendment.body.result.index()];
        }
        depends
    }

    /// Whether the result of an operation depends on the coefficient; `found`: whether the ones before do.
    fn depends(&self, body: &Body, op: &Op, found: &[bool]) -> bool {
        let of = |v: Value| found[v.index()];
        let mut any = false;
        match *op {
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => match (self.known(body, a), self.known(body, b)) {
                (Some(x), Some(y)) => {
                    let chosen = if x.compare(cmp, y) { then } else { otherwise };
                    any = of(a) || of(b) || of(chosen);
                }
                _ => op.operands(|v| any |= of(v)),
            },
            _ => op.operands(|v| any |= of(v)),
        }
        any
    }

    /// The value of an operand that does not depend on fields.
    fn known(&self, body: &Body, value: Value) -> Option<f64> {
        match body.ops[value.index()] {
            Op::Const(c) => Some(c),
            Op::Coef(id) => Some(self.value(id)),
            _ => None,
        }
    }

    fn value(&self, id: CoefId) -> f64 {
        let coef = &self.scheme.coefs[id.index()];
        let value = coef_value(self.scheme, self.files, coef.position, &coef.value, self.at);
        self.scheme.precision.round(value)
    }
}
