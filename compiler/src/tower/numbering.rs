//! How the threads of a line are numbered along the inner axis.
//!
//! A line has a thread for each index of its longest row. Between a lower mirror about which a component is odd and an
//! upper mirror about which it is even, a row of N cells has N + 1 indices, but index 0 is held at 0. If N is a
//! multiple of 32, one value takes a warp of its own, and the quarter of a multiprocessor on which that warp runs has
//! more work than the others: on an H200, FDTD(4,2) between `pec` and `pmc` on 256 cells does 0.79 of its rate between
//! `pmc` and `pec`. *Packed* rows leave index 0 out: thread n has the value of index n + 1.
//!
//! All of a tower program then refers to a packed scheme, in which these components lie a whole cell farther, and to a
//! layout of the same memory for it. Sources and probes keep the indices of the grid ([`super::PointRow`]).

use super::block::WARP;
use crate::lattice::{Axis, HalfIndex, Interval, Position, div_ceil};
use crate::layout::Layout;
use crate::scheme::{Grid, Op, Scheme};
use std::borrow::Cow;

/// How threads are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// Thread n has index n of each row.
    #[default]
    Grid,
    /// Thread n has the n-th value of each row that is not held at 0.
    Packed,
}

/// A scheme and a layout as the programs of towers see them.
#[derive(Clone, Debug)]
pub struct View<'a> {
    pub scheme: Cow<'a, Scheme>,
    pub layout: Cow<'a, Layout>,
}

impl Numbering {
    /// The numberings that are worthwhile, the one with fewer threads first.
    pub fn all(scheme: &Scheme) -> Vec<Numbering> {
        let both = [Numbering::Packed, Numbering::Grid];
        let [packed, whole] = both.map(|own| div_ceil(own.length(scheme), WARP));
        match packed < whole && Numbering::packs(scheme) {
            true => both.to_vec(),
            false => vec![Numbering::Grid],
        }
    }

    /// Whether rows can be packed, and lines are shorter then.
    pub fn packs(scheme: &Scheme) -> bool {
        let [packed, whole] = [Numbering::Packed, Numbering::Grid].map(|own| own.length(scheme));
        packed < whole && can_pack(scheme, whole)
    }

    /// The longest row, in values.
    fn length(self, scheme: &Scheme) -> i64 {
        let lengths = scheme.components.iter().map(|component| {
            let extent = scheme.grid.extent(component.position)[Axis::INNER];
            extent.hi - self.first(&scheme.grid, component.position)
        });
        lengths.max().unwrap_or(0)
    }

    /// The index of thread 0 in rows of a position.
    pub fn first(self, grid: &Grid, position: Position) -> i64 {
        let axis = Axis::INNER;
        let [lower, upper] = grid.boundary[axis].map(|end| end.is_odd(axis, position));
        let begins_late = position[axis] == HalfIndex::ZERO
            && grid.axes[axis].is_some()
            && [lower, upper] == [Some(true), Some(false)];
        match self {
            Numbering::Packed => i64::from(begins_late),
            Numbering::Grid => 0,
        }
    }

    /// A scheme and a layout with this numbering.
    pub fn view<'a>(self, scheme: &'a Scheme, layout: &'a Layout) -> View<'a> {
        match self {
            Numbering::Grid => View {
                scheme: Cow::Borrowed(scheme),
                layout: Cow::Borrowed(layout),
            },
            Numbering::Packed => {
                let scheme = packed(scheme);
                View {
                    layout: Cow::Owned(layout.packed(&scheme)),
                    scheme: Cow::Owned(scheme),
                }
            }
        }
    }
}

/// Whether nothing else depends on indices along the inner axis: no coefficient of that axis alone, and no zone that
/// ends within lines of `length` values.
fn can_pack(scheme: &Scheme, length: i64) -> bool {
    let axis = Axis::INNER;
    let mut boxes = scheme.zones.iter().flat_map(|zone| &zone.boxes);
    let whole = boxes.all(|own| own[axis].lo <= 0 && own[axis].hi >= length);
    let mut coefs = scheme.coefs.iter();
    whole && coefs.all(|coef| coef.only_axis != Some(axis))
}

/// The scheme with packed rows.
fn packed(scheme: &Scheme) -> Scheme {
    let axis = Axis::INNER;
    let first = |position: Position| Numbering::Packed.first(&scheme.grid, position);
    let mut packed = scheme.clone();
    let components = packed.components.iter_mut().map(|own| &mut own.position);
    let coefs = packed.coefs.iter_mut().map(|own| &mut own.position);
    let states = packed.states.iter_mut().map(|own| &mut own.position);
    for position in components.chain(coefs).chain(states) {
        position[axis] = position[axis] + HalfIndex::cells(first(*position));
    }
    let of = |id: crate::scheme::ComponentId| first(scheme.component(id).position);
    for update in packed
        .stages
        .iter_mut()
        .flat_map(|stage| &mut stage.updates)
    {
        let own = of(update.target);
        let Interval { lo, hi } = update.region[axis];
        update.region[axis] = Interval::new(lo - own, hi - own);
        let amendments = update.amendments.iter_mut().map(|own| &mut own.body);
        for body in amendments.chain([&mut update.body]) {
            for op in &mut body.ops {
                if let Op::Read(read) = op {
                    read.offset[axis] += (own - of(read.component)) as i32;
                }
            }
        }
    }
    let length = Numbering::Packed.length(scheme);
    for own in packed.zones.iter_mut().flat_map(|zone| &mut zone.boxes) {
        own[axis] = own[axis].intersect(Interval::new(0, length));
    }
    packed
}
