//! The loads of a thread: aligned pieces of rows, and the pieces that it keeps from one group of its march to the next.
//!
//! A thread advances one vector of cells at a time and marches along the outer axis. The values that it reads lie in
//! *lines*: a row of the group at some distance along the middle axis. Of a line it needs elements around its vector,
//! at some distances along the outer axis. Elements are loaded in pieces, each the smallest aligned part of a vector
//! that holds the needed elements. A piece that is needed at several distances along the march is loaded once, at the
//! farthest one, and kept.

use crate::backend::rows::{OperandPlace, RowProgram};
use crate::lattice::Axis;
use crate::layout::Layout;
use std::collections::{BTreeMap, BTreeSet};

/// A part of a row, from the start of the group at distance 0 along the march.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    /// In elements, to the thread's own index of the row: that of the row, and of the group along the middle axis.
    pub line: i64,
    /// The first element, counted from the thread's first one.
    pub start: i64,
    /// Elements: a power of two, no more than a vector has.
    pub length: i64,
}

/// A piece, and the distances along the march at which it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    pub piece: Piece,
    /// Ascending.
    pub distances: Vec<i64>,
    /// Whether the piece is kept from one group to the next.
    pub kept: bool,
}

impl Stream {
    /// From the nearest to the farthest distance.
    pub fn span(&self) -> i64 {
        match (self.distances.first(), self.distances.last()) {
            (Some(first), Some(last)) => last - first,
            _ => 0,
        }
    }
}

/// All loads of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Streams {
    pub list: Vec<Stream>,
    lanes: i64,
    reach: i64,
    group: i64,
    plane: i64,
}

impl Streams {
    /// `budget`: registers of 32 bits for kept pieces.
    pub fn new(program: &RowProgram, layout: &Layout, lanes: i64, budget: i64) -> Streams {
        let mut streams = Streams {
            list: Vec::new(),
            lanes,
            reach: i64::from(layout.reach[Axis::MIDDLE][0]),
            group: layout.stride[Axis::MIDDLE],
            plane: layout.stride[Axis::OUTER],
        };
        // Per line and distance, the elements that are needed.
        let mut needed: BTreeMap<(i64, i64), BTreeSet<i64>> = BTreeMap::new();
        for place in program.loads() {
            let (line, distance) = streams.split(place.row);
            let elements = needed.entry((line, distance)).or_default();
            elements.extend(place.shift..place.shift + lanes);
        }
        let mut distances: BTreeMap<Piece, Vec<i64>> = BTreeMap::new();
        for ((line, distance), elements) in needed {
            let mut rest = elements.into_iter().peekable();
            while let Some(first) = rest.next() {
                let vector = first.div_euclid(lanes);
                let mut last = first;
                while let Some(next) = rest.next_if(|e| e.div_euclid(lanes) == vector) {
                    last = next;
                }
                let mut length = 1;
                while first.div_euclid(length) != last.div_euclid(length) {
                    length *= 2;
                }
                let piece = Piece {
                    line,
                    start: first.div_euclid(length) * length,
                    length,
                };
                distances.entry(piece).or_default().push(distance);
            }
        }
        let words = layout.element_bytes as i64 / 4;
        streams.list = distances
            .into_iter()
            .map(|(piece, distances)| Stream {
                piece,
                distances,
                kept: false,
            })
            .collect();
        // The streams that save most loads for their registers come first.
        let mut order: Vec<usize> = (0..streams.list.len()).collect();
        let cost = |s: &Stream| (s.span() * s.piece.length * words).max(1);
        order.sort_by_key(|&i| {
            let s = &streams.list[i];
            let saved = (s.distances.len() as i64 - 1) * s.piece.length * words;
            (std::cmp::Reverse(saved * 1000 / cost(s)), i)
        });
        let mut left = budget;
        for i in order {
            let s = &mut streams.list[i];
            let registers = s.span() * s.piece.length * words;
            if s.distances.len() > 1 && registers <= left {
                s.kept = true;
                left -= registers;
            }
        }
        streams
    }

    /// The loads of a group that no group before it has made: streams, each at its distances; a kept stream at its
    /// farthest distance only.
    pub fn fresh(&self) -> impl Iterator<Item = (usize, i64)> + '_ {
        self.list.iter().enumerate().flat_map(|(i, stream)| {
            let skipped = match stream.kept {
                true => stream.distances.len() - 1,
                false => 0,
            };
            stream.distances[skipped..].iter().map(move |d| (i, *d))
        })
    }

    /// Whether a stream is of the thread's own vector. Fresh pieces of it come from memory, while neighbours along the
    /// other axes are fresh to the threads there, too.
    pub fn is_own(&self, stream: usize) -> bool {
        let Piece {
            line,
            start,
            length,
        } = self.list[stream].piece;
        (0..self.group).contains(&line) && start == 0 && length == self.lanes
    }

    /// Registers of 32 bits for fresh pieces of the thread's own vectors, with elements of `element` bytes.
    pub fn own_words(&self, element: u32) -> i64 {
        let own = self.fresh().filter(|(i, _)| self.is_own(*i)).count() as i64;
        own * self.lanes * i64::from(element) / 4
    }

    /// Registers of 32 bits for all pieces that are loaded and kept, with elements of `element` bytes.
    pub fn words(&self, element: u32) -> i64 {
        let kept = |s: &Stream| if s.kept { s.span() * s.piece.length } else { 0 };
        let fresh = |(i, _): (usize, i64)| self.list[i].piece.length;
        let all = self.list.iter().map(kept).sum::<i64>() + self.fresh().map(fresh).sum::<i64>();
        all * i64::from(element) / 4
    }

    /// A displacement as a line and a distance along the march.
    fn split(&self, row: i64) -> (i64, i64) {
        // Rows of a group, at any distance that is read along the middle axis, take less than a plane.
        let distance = (row + self.reach * self.group).div_euclid(self.plane);
        (row - distance * self.plane, distance)
    }

    /// Where the elements of a load are: per lane the stream, the distance, and the lane of the piece.
    pub fn lanes_of(&self, place: OperandPlace) -> Vec<(usize, i64, i64)> {
        let (line, distance) = self.split(place.row);
        (place.shift..place.shift + self.lanes)
            .filter_map(|element| {
                self.list.iter().enumerate().find_map(|(i, s)| {
                    let lane = element - s.piece.start;
                    let here = s.piece.line == line
                        && (0..s.piece.length).contains(&lane)
                        && s.distances.contains(&distance);
                    here.then_some((i, distance, lane))
                })
            })
            .collect()
    }

    /// From the thread's own index to a piece at a distance, in elements.
    pub fn displacement(&self, piece: Piece, distance: i64) -> i64 {
        piece.line + distance * self.plane + piece.start
    }
}
