//! Random towers, and schemes that are large enough for them.

use super::random::Rng;
use crate::cone::Rational;
use crate::lattice::Axis;
use crate::scheme::Scheme;

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

/// Makes an axis longer; what ends where the axis does, ends later.
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
