//! Coefficients that are no finite numbers.

use crate::host::{HostBinary, HostExpr};
use crate::lattice::{Axis, HalfIndex};
use crate::scheme::{Body, CoefId, Scheme, Update};
use crate::statics::coordinate;

/// Makes coefficients that are stored for every cell infinite or NaN where no update acts that reads them.
pub fn add_poles(scheme: &mut Scheme) {
    for number in 0..scheme.coefs.len() {
        let id = CoefId(number as u32);
        let updates = || scheme.stages.iter().flat_map(|s| &s.updates);
        let is_mask = updates().any(|update| update.mask == Some(id));
        if is_mask || scheme.coefs[number].only_axis.is_some() {
            continue;
        }
        let reads = |update: &&Update| update.bodies().flat_map(Body::coefs).any(|c| c == id);
        let acting = updates().filter(reads).map(|update| acts(scheme, update));
        let or = |a, b| HostExpr::binary(HostBinary::Or, a, b);
        let taken = acting.reduce(or).unwrap_or(HostExpr::Number(0.0));
        if taken.as_number() == Some(1.0) {
            continue;
        }
        let pole = [f64::INFINITY, f64::NAN, f64::NEG_INFINITY][number % 3];
        let value = scheme.coefs[number].value.clone();
        let [taken, value, pole] = [taken, value, HostExpr::Number(pole)].map(Box::new);
        scheme.coefs[number].value = HostExpr::If(taken, value, pole);
    }
}

/// Where an update acts: 1 where it does, else 0.
fn acts(scheme: &Scheme, update: &Update) -> HostExpr {
    let grid = &scheme.grid;
    let position = scheme.component(update.target).position;
    let live = grid.live(position);
    let mut conditions = Vec::new();
    for axis in Axis::ALL
        .into_iter()
        .filter(|&a| update.region[a] != live[a])
    {
        let bounds = [
            (HostBinary::Ge, update.region[axis].lo),
            (HostBinary::Lt, update.region[axis].hi),
        ];
        conditions.extend(bounds.map(|(compare, index)| {
            let bound = HostExpr::Number(coordinate(grid, axis, position[axis], index));
            HostExpr::binary(compare, HostExpr::Coordinate(axis, HalfIndex::ZERO), bound)
        }));
    }
    let mask = update.mask.map(|mask| {
        let value = scheme.coefs[mask.index()].value.clone();
        HostExpr::binary(HostBinary::Ne, value, HostExpr::Number(0.0))
    });
    let and = |a, b| HostExpr::binary(HostBinary::And, a, b);
    let all = conditions.into_iter().chain(mask).reduce(and);
    all.unwrap_or(HostExpr::Number(1.0))
}
