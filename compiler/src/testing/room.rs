//! Random towers, and schemes that are large enough for them.

use super::random::{Limits, Rng, random_scheme};
use super::schemes::everywhere;
use crate::cone::Rational;
use crate::lattice::Axis;
use crate::scheme::{Boundary, Scheme};

/// Lets a scheme with three axes have fewer than `most` cells along the first two, more where these are periodic: room
/// for towers with interior periods, and for rings.
pub fn make_room_for_towers(rng: &mut Rng, scheme: &mut Scheme, most: i64) {
    for axis in [Axis::OUTER, Axis::MIDDLE] {
        let ring = if scheme.grid.is_periodic(axis) { 14 } else { 0 };
        let cells = ring + rng.within(14, most);
        let by = cells - scheme.grid.cells[axis];
        lengthen(scheme, axis, by);
    }
}

/// A pitch of small towers.
pub fn tower_pitch(rng: &mut Rng) -> Rational {
    Rational::new(rng.within(4, 16), 2).unwrap_or(Rational::ONE)
}

/// Pitches of both faces of small towers.
pub fn tower_pitches(rng: &mut Rng) -> [Rational; 2] {
    [tower_pitch(rng), tower_pitch(rng)]
}

/// Makes an axis longer; a region that ends where the axis does, ends later.
pub fn lengthen(scheme: &mut Scheme, axis: Axis, by: i64) {
    let end = |scheme: &Scheme, id| scheme.grid.live(scheme.component(id).position)[axis].hi;
    let targets = scheme.stages.iter().flat_map(|s| &s.updates);
    let before: Vec<i64> = targets.map(|u| end(scheme, u.target)).collect();
    scheme.grid.cells[axis] += by;
    let updates = scheme.stages.iter_mut().flat_map(|s| &mut s.updates);
    for (update, before) in updates.zip(before) {
        if update.region[axis].hi == before {
            update.region[axis].hi += by;
        }
    }
}

/// Lines between ends about which a component is odd below and even above, or the other way around. Updates act where
/// they did along them, or everywhere if they acted on no index that is free now.
pub fn between_odd_and_even(scheme: &mut Scheme) {
    let axis = Axis::INNER;
    scheme.grid.boundary[axis] = [Boundary::Pec, Boundary::Pmc];
    for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
        let position = scheme.components[update.target.index()].position;
        let live = scheme.grid.live(position)[axis];
        let range = update.region[axis].intersect(live);
        update.region[axis] = match range.is_empty() {
            true => live,
            false => range,
        };
    }
}

/// A random scheme with an outer axis, of which one or both of the first two axes are periodic and so long that many
/// tiles are far from the ends of the fold.
pub fn random_folded_scheme(rng: &mut Rng) -> Scheme {
    let limits = Limits {
        dimensions: 3,
        components: 3,
        stages: 2,
        ops: 6,
        length: 4,
        width: 8,
        reach: 2,
    };
    let mut scheme = random_scheme(rng, &limits);
    while scheme.grid.axes[Axis::OUTER].is_none() {
        scheme = random_scheme(rng, &limits);
    }
    let both = rng.once_in(3);
    let first = rng.once_in(2) || scheme.grid.axes[Axis::MIDDLE].is_none();
    for (axis, folded) in [(Axis::OUTER, first), (Axis::MIDDLE, !first)] {
        if scheme.grid.axes[axis].is_none() {
            continue;
        }
        let by = rng.within(20, 36);
        lengthen(&mut scheme, axis, by);
        if folded || both {
            scheme.grid.boundary[axis] = [Boundary::Periodic; 2];
        }
    }
    everywhere(&mut scheme);
    scheme
}
