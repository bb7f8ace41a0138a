//! The states of zones: their sizes, and which of them have their states in planes of the grid.

use super::{GPU_ALIGNMENT, LONG, Layout, Lines, TooLarge};
use crate::lattice::{Axis, Interval, PerAxis, Region, div_ceil, div_floor};
use crate::scheme::{Scheme, ZoneId};

/// The states of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneLayout {
    /// States in a group.
    pub rows: u32,
    /// From a state to the next one of a group.
    pub row_stride: i64,
    /// From a group to the next along the middle axis, and along the outer axis where there is no middle one.
    pub group: i64,
    /// From an index to the next along the outer axis, in all boxes: that of the longest one along the middle axis, or
    /// that of the grid.
    pub plane: i64,
    /// Whether states lie in the planes of the grid.
    pub in_planes: bool,
    pub boxes: Vec<BoxLayout>,
}

/// The states of a box of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxLayout {
    /// Cell indices.
    pub region: Region,
    /// Where the element of row 0 of the first group would be at inner index 0. Rows have the alignment of rows of the
    /// grid.
    pub origin: i64,
}

impl ZoneLayout {
    /// Elements of a plane of the longest box along the middle axis.
    pub(super) fn own_plane(&self) -> i64 {
        let widths = self.boxes.iter().map(|b| b.region[Axis::MIDDLE].len());
        self.group * widths.max().unwrap_or(0)
    }
}

impl BoxLayout {
    /// Where row 0 of a group would have inner index 0.
    pub fn group(&self, zone: &ZoneLayout, x: i64, y: i64) -> i64 {
        let (x, y) = (
            x - self.region[Axis::OUTER].lo,
            y - self.region[Axis::MIDDLE].lo,
        );
        self.origin + x * zone.plane + y * zone.group
    }
}

/// All zones, with boxes that have no place yet.
pub(super) fn sized(
    scheme: &Scheme,
    extent: PerAxis<i64>,
    line: i64,
) -> Result<Vec<ZoneLayout>, TooLarge> {
    let whole = extent.map(|n| Interval::new(0, n));
    let zone = |zone: usize| {
        let id = ZoneId(zone as u32);
        let rows = scheme.states_of(id).count() as i64;
        let boxes = scheme.zones[zone].boxes.iter();
        let boxes: Vec<Region> = boxes
            .map(|b| b.intersect(whole))
            .filter(|b| !b.is_empty())
            .collect();
        // From the line of the first index to the end of that of the last one.
        let lines = |z: Interval| Interval::new(div_floor(z.lo, line), div_ceil(z.hi, line));
        let longest = boxes.iter().map(|b| lines(b[Axis::INNER]).len()).max();
        let row_stride = longest.unwrap_or(0) * line;
        let group = rows.checked_mul(row_stride).ok_or(TooLarge)?;
        let widest = boxes.iter().map(|b| b[Axis::MIDDLE].len()).max();
        let plane = group.checked_mul(widest.unwrap_or(0)).ok_or(TooLarge)?;
        let boxes = boxes.into_iter();
        Ok(ZoneLayout {
            rows: rows as u32,
            row_stride,
            group,
            plane,
            in_planes: false,
            boxes: boxes
                .map(|region| BoxLayout { region, origin: 0 })
                .collect(),
        })
    };
    (0..scheme.zones.len()).map(zone).collect()
}

/// Puts long zones into planes; origins of their boxes become displacements there. Boxes of a zone that have no plane
/// in common take the same room. Gives the elements that each plane takes for them.
pub(super) fn put_into_planes(
    zones: &mut [ZoneLayout],
    extent: PerAxis<i64>,
) -> Result<i64, TooLarge> {
    let mut taken = 0i64;
    for zone in zones {
        let longest = zone.boxes.iter().map(|b| b.region[Axis::OUTER].len()).max();
        zone.in_planes = longest.is_some_and(|planes| planes * LONG >= extent[Axis::OUTER]);
        if !zone.in_planes {
            continue;
        }
        // The planes of the boxes in each room.
        let mut rooms: Vec<Vec<Interval>> = Vec::new();
        for part in &mut zone.boxes {
            let own = part.region[Axis::OUTER];
            let is_free = |room: &Vec<Interval>| room.iter().all(|r| r.intersect(own).is_empty());
            let room = rooms.iter().position(is_free).unwrap_or(rooms.len());
            rooms.resize(rooms.len().max(room + 1), Vec::new());
            rooms[room].push(own);
            let from = zone.plane.checked_mul(room as i64);
            part.origin = from.and_then(|n| n.checked_add(taken)).ok_or(TooLarge)?;
        }
        let all = zone.plane.checked_mul(rooms.len() as i64);
        taken = all.and_then(|n| n.checked_add(taken)).ok_or(TooLarge)?;
    }
    Ok(taken)
}

impl Layout {
    /// The states of some planes across the outer axis that lie beside them: a line for each box of a zone.
    pub fn beside_part(&self, planes: Interval) -> Vec<Lines> {
        let line = (GPU_ALIGNMENT / self.element_bytes) as i64;
        let of_box = |(zone, own): (&ZoneLayout, &BoxLayout)| {
            let x = own.region[Axis::OUTER].intersect(planes);
            let begin = div_floor(own.region[Axis::INNER].lo, line) * line;
            Lines {
                first: own.group(zone, x.lo, own.region[Axis::MIDDLE].lo) + begin,
                length: x.len() * zone.plane,
                stride: 0,
                count: 1,
            }
        };
        let zones = self.zones.iter().filter(|zone| !zone.in_planes);
        let boxes = zones.flat_map(|zone| zone.boxes.iter().map(move |own| (zone, own)));
        let all = boxes.map(of_box);
        all.filter(|lines| lines.length > 0).collect()
    }
}
