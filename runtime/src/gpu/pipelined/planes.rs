//! Where planes lie: in the host's array, and in the device's buffer.

use super::in_flight::{HeldPlanes, InFlight};
use crate::gpu::device::Address;
use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::layout::{GPU_ALIGNMENT, Layout};
use torre_compiler::pipeline::Window;

/// The bytes of planes across the first axis, with all ghosts along the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaneBytes {
    /// Of the towers along that axis.
    way: i64,
    /// Bytes of a plane.
    each: i64,
    /// Bytes before the first plane of an array, and after the last one.
    before: i64,
    after: i64,
    /// Ghost planes below index 0.
    ghosts: i64,
    /// Planes of the buffer.
    places: i64,
    held: HeldPlanes,
}

impl PlaneBytes {
    pub fn new(layout: &Layout, way: i64, how: InFlight) -> PlaneBytes {
        let places = how.held.places();
        let element = layout.element_bytes as i64;
        let held = layout.visible(Axis::OUTER);
        let after = layout.elements - layout.after_planes();
        PlaneBytes {
            way,
            each: layout.stride[Axis::OUTER] * element,
            before: layout.first_plane() * element,
            after: match (layout.windowed, places) {
                // Kernels read up to two lines more than they need.
                (true, Some(_)) => 2 * GPU_ALIGNMENT as i64,
                _ => after.max(0) * element,
            },
            ghosts: -held.lo,
            places: places.unwrap_or(held.len()),
            held: how.held,
        }
    }

    /// Whether planes go around.
    pub fn is_circular(&self) -> bool {
        self.held.unit().is_some()
    }

    pub fn held(&self) -> HeldPlanes {
        self.held
    }

    /// Bytes of a plane.
    pub fn each(&self) -> u64 {
        self.each as u64
    }

    /// Bytes of the buffer; of a circular one the bytes that are mapped twice in a row.
    pub fn buffer_bytes(&self) -> u64 {
        let planes = self.each.saturating_mul(self.places);
        let bytes = planes.saturating_add(self.before + self.after) as u64;
        match self.held.unit() {
            Some(unit) => bytes.div_ceil(unit.max(1)).saturating_mul(unit.max(1)),
            None => bytes,
        }
    }

    /// Planes along the way, as the array counts them.
    pub fn of_array(&self, planes: Interval) -> Interval {
        match self.way < 0 {
            true => Interval::new(1 - planes.hi, 1 - planes.lo),
            false => planes,
        }
    }

    /// Bytes from the beginning of a circular buffer to plane number `base`, without the bytes before all planes.
    /// Planes are as far apart as in an array, modulo the bytes of the buffer, whether planes divide these or not. As
    /// many planes as there are places follow along the way, in either of both mappings or across them.
    fn around(&self, base: i64) -> i64 {
        let bytes = self.buffer_bytes() as i64;
        match self.way < 0 {
            // The others lie below it, so it is as high as it can be.
            true => {
                let highest = 2 * bytes - self.before - self.after - self.each;
                let own = base.wrapping_mul(-self.each);
                highest - highest.wrapping_sub(own).rem_euclid(bytes)
            }
            false => base.wrapping_mul(self.each).rem_euclid(bytes),
        }
    }

    /// Where an array would begin whose planes lie as they do in a pass, if plane number `base` lies at place 0. Most
    /// of it is not there.
    pub fn array(&self, buffer: Address, window: &Window, pass: u64, base: i64) -> Address {
        if self.is_circular() {
            let place = window.place(pass, 0, base);
            let zero = match self.way < 0 {
                true => place.wrapping_neg(),
                false => place,
            };
            let planes = zero.wrapping_sub(self.ghosts).wrapping_mul(self.each);
            return buffer.offset(self.around(base).wrapping_add(planes));
        }
        // The place, counted up from the buffer's beginning, of plane 0.
        let zero = match self.way < 0 {
            true => self.places - 1 - window.place(pass, 0, base),
            false => window.place(pass, 0, base),
        };
        buffer.offset((zero - self.ghosts).wrapping_mul(self.each))
    }

    /// Planes along the way as the array counts them, in parts that follow each other there; around a ring with the
    /// rotation of their pass.
    pub fn parts(&self, planes: Interval, ring: Option<i64>, rotation: i64) -> Vec<Part> {
        let planes = self.of_array(planes);
        let Some(ring) = ring else {
            return vec![Part {
                planes,
                of_array: planes,
            }];
        };
        let mut parts = Vec::new();
        let mut next = planes.lo;
        while next < planes.hi {
            let first = (next + self.way * rotation).rem_euclid(ring);
            let count = (planes.hi - next).min(ring - first);
            parts.push(Part {
                planes: Interval::new(next, next + count),
                of_array: Interval::new(first, first + count),
            });
            next += count;
        }
        parts
    }

    /// Where an array begins whose planes lie `moved` planes against the way of planes of `array` with the same
    /// indices.
    pub fn farther(&self, array: Address, moved: i64) -> Address {
        array.offset((-self.way * moved).wrapping_mul(self.each))
    }

    /// Bytes from where an array begins to the first of some planes, as it counts them.
    pub fn offset(&self, planes: Interval) -> i64 {
        self.before + (planes.lo + self.ghosts) * self.each
    }

    /// The bytes of all planes of an array that passes move.
    pub fn bytes_of_all(&self, window: &Window) -> std::ops::Range<u64> {
        let planes = match window.ring {
            Some(ring) => Interval::new(0, ring),
            None => self.of_array(window.planes),
        };
        let start = self.offset(planes) as u64;
        start..start + planes.len() as u64 * self.each()
    }

    /// Copies, one after the other, that move places of the buffer by some along the way: from, to and bytes.
    pub fn moves(&self, buffer: Address, places: Interval, by: i64) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut end = places.hi;
        while end > places.lo {
            let count = by.min(end - places.lo);
            let first = end - count;
            let at = |place: i64| {
                // Places are counted along the way, bytes up.
                let low = match self.way < 0 {
                    true => self.places - place - count,
                    false => place,
                };
                buffer.offset(self.before + low * self.each)
            };
            moves.push(Move {
                from: at(first),
                to: at(first + by),
                bytes: (count * self.each) as u64,
            });
            end = first;
        }
        moves
    }
}

/// Planes that follow each other in the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// As a pass counts them, up in the array.
    pub planes: Interval,
    pub of_array: Interval,
}

/// A copy within the buffer; the places do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub from: Address,
    pub to: Address,
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::pipeline::DeviceBuffer;
    use torre_compiler::scheme::Precision;
    use torre_compiler::testing::maxwell;

    /// A window of 7 places, either way.
    fn window_of(layout: &Layout, way: i64, circular: Option<u64>) -> (PlaneBytes, Window) {
        let how = InFlight {
            blocks: 1,
            group: 1,
            ahead: 0,
            spread: false,
            held: HeldPlanes::window(7, circular),
        };
        let planes = PlaneBytes::new(layout, way, how);
        let window = Window {
            planes: planes.of_array(layout.visible(Axis::OUTER)),
            ring: None,
            buffer: match circular {
                Some(_) => DeviceBuffer::Circular { places: 7 },
                None => DeviceBuffer::Sliding { places: 7 },
            },
            devices: 1,
            in_flight: 1,
            ahead: 0,
            spread: false,
        };
        (planes, window)
    }

    /// In a circular buffer for each plane with which an operation can begin, all planes lie inside of both mappings
    /// with the values that are read around them, and their distances, modulo the bytes of one mapping, are the same.
    #[test]
    fn planes_go_around() {
        let scheme = maxwell(4, Precision::F32, [9, 5, 7]);
        let layout = Layout::for_window(&scheme).expect("a small size");
        for (way, unit) in [(1, 3 << 10), (-1, 3 << 10), (1, 1 << 20), (-1, 256)] {
            let (planes, window) = window_of(&layout, way, Some(unit));
            let bytes = planes.buffer_bytes() as i64;
            assert!(bytes % unit as i64 == 0 && bytes >= 7 * planes.each);
            let buffer = Address(1 << 40);
            let mut places = std::collections::BTreeMap::new();
            for pass in 0..9 {
                for lowest in window.planes.lo..window.planes.hi {
                    let base = window.number(pass, lowest);
                    let array = planes.array(buffer, &window, pass, base);
                    for plane in lowest..(lowest + 7).min(window.planes.hi) {
                        let own = planes.of_array(Interval::new(plane, plane + 1));
                        let place = array.offset(planes.offset(own)).0 - buffer.0;
                        let place = place as i64;
                        assert!(place >= planes.before, "{way} {pass} {lowest} {plane}");
                        assert!(place + planes.each + planes.after <= 2 * bytes);
                        let own = place.rem_euclid(bytes);
                        let number = window.number(pass, plane);
                        assert_eq!(*places.entry(number).or_insert(own), own);
                    }
                }
            }
            let (first, start) = places.first_key_value().expect("planes");
            for (number, place) in &places {
                let apart = way * (number - first) * planes.each;
                assert_eq!((start + apart).rem_euclid(bytes), *place);
            }
        }
    }

    /// Planes that were moved lie where a plane of the new base is looked for, either way.
    #[test]
    fn moved_planes_are_found() {
        let scheme = maxwell(4, Precision::F64, [9, 5, 7]);
        let layout = Layout::for_gpu(&scheme).expect("a small size");
        for way in [1, -1] {
            let (planes, window) = window_of(&layout, way, None);
            let buffer = Address(1 << 20);
            let (pass, base) = (2, 100);
            // A plane of the pass that lies at place 2.
            let plane = base + 2 + pass as i64 * window.numbers_per_pass();
            let address = |base: i64| {
                let array = planes.array(buffer, &window, pass, base);
                array.offset(planes.offset(planes.of_array(Interval::new(plane, plane + 1))))
            };
            for by in 1..5 {
                let moves = planes.moves(buffer, Interval::new(0, 3), by);
                let found = moves.iter().find(|m| {
                    let from = address(base).0;
                    m.from.0 <= from && from < m.from.0 + m.bytes
                });
                let found = found.expect("each place is moved");
                let to = found.to.0 + (address(base).0 - found.from.0);
                assert_eq!(to, address(base - by).0, "{way} {by}");
                let overlaps = |m: &Move| m.from.0.abs_diff(m.to.0) < m.bytes;
                assert!(!moves.iter().any(overlaps));
                let end = buffer.0 + planes.buffer_bytes();
                assert!(
                    moves
                        .iter()
                        .all(|m| m.to.0 + m.bytes <= end && m.to.0 >= buffer.0)
                );
            }
        }
    }
}
