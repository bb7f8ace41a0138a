//! Asynchronous copies under way: groups of a thread, and copies that arrive at barrier objects.

use std::collections::{BTreeMap, VecDeque};

use crate::alu::LANES;
use crate::clock::Witness;
use crate::object::Objects;
use crate::place::Place;

/// The source of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) place: Place,
    pub(crate) bytes: usize,
}

/// A copy of a thread.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) to: usize,
    pub(crate) lane: u32,
    /// Nothing, if no bytes are read.
    pub(crate) from: Option<Source>,
    pub(crate) data: [u8; WIDEST],
    pub(crate) bytes: usize,
    pub(crate) pc: u32,
}

impl Element {
    pub(crate) fn data(&self) -> &[u8] {
        &self.data[..self.bytes]
    }
}

/// Bytes of the widest copy of a thread.
pub(crate) const WIDEST: usize = 16;

/// A bulk copy to global memory.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) from: usize,
    pub(crate) to: Place,
    pub(crate) data: Vec<u8>,
    /// Shared memory was read.
    pub(crate) read: bool,
    pub(crate) pc: u32,
}

/// Groups of copies, and the one that is not closed yet.
#[derive(Debug)]
pub(crate) struct Groups<T> {
    pub(crate) open: Vec<T>,
    pub(crate) closed: VecDeque<Vec<T>>,
}

impl<T> Default for Groups<T> {
    fn default() -> Self {
        Groups {
            open: Vec::new(),
            closed: VecDeque::new(),
        }
    }
}

impl<T> Groups<T> {
    pub(crate) fn commit(&mut self) {
        self.closed.push_back(std::mem::take(&mut self.open));
    }

    /// Takes all groups but the newest ones.
    pub(crate) fn take(&mut self, keep: usize) -> Vec<T> {
        let count = self.closed.len().saturating_sub(keep);
        self.closed.drain(..count).flatten().collect()
    }

    /// Moves all copies, of closed groups and the open one, to a list.
    pub(crate) fn move_all(&mut self, list: &mut Vec<T>) {
        list.extend(self.closed.drain(..).flatten());
        list.append(&mut self.open);
    }
}

/// Data that arrive in shared memory at a barrier object without a wait of a thread.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) cargo: Cargo,
    pub(crate) object: usize,
    /// The knowledge of the lanes that asked for it.
    pub(crate) witness: Option<Witness>,
    pub(crate) warp: usize,
    pub(crate) lanes: u32,
    pub(crate) pc: u32,
    /// The round in which it arrives.
    pub(crate) due: u64,
}

impl Flight {
    /// Whether it is the same but for the lanes.
    pub(crate) fn is_like(&self, other: &Flight) -> bool {
        let witnesses = match (&self.witness, &other.witness) {
            (Some(this), Some(other)) => this.view.same(&other.view),
            (this, other) => this.is_none() && other.is_none(),
        };
        witnesses && self.due == other.due && self.object == other.object
    }
}

#[derive(Debug)]
pub(crate) enum Cargo {
    /// A bulk copy, whose bytes count.
    Bulk {
        to: usize,
        from: Place,
        bytes: usize,
    },
    /// Copies of threads, which arrive with them.
    Elements(Vec<Element>),
}

/// Barrier objects and copies of a block.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    pub(crate) objects: Objects,
    /// By thread.
    pub(crate) elements: Vec<Groups<Element>>,
    pub(crate) stores: BTreeMap<u32, Groups<Store>>,
    pub(crate) flights: Vec<Flight>,
    pub(crate) round: u64,
    pub(crate) agents: u32,
    /// The latest time of any object, so that later ones that stand in its lane begin after it.
    pub(crate) latest: u32,
}

impl Transfers {
    pub(crate) fn elements_of(&mut self, thread: u32) -> &mut Groups<Element> {
        let thread = thread as usize;
        if thread >= self.elements.len() {
            self.elements.resize_with(thread + 1, Groups::default);
        }
        &mut self.elements[thread]
    }

    /// The copies of a thread so far go with one of the flights from the first one of its warp on, or a new one.
    pub(crate) fn embark(&mut self, thread: u32, first: usize, flight: Flight) {
        let mut flights = self.flights[first..].iter();
        let index = match flights.position(|other| other.is_like(&flight)) {
            Some(index) => first + index,
            None => {
                self.flights.push(flight);
                self.flights.len() - 1
            }
        };
        self.elements_of(thread);
        let flight = &mut self.flights[index];
        flight.lanes |= 1 << (thread % LANES as u32);
        if let Cargo::Elements(elements) = &mut flight.cargo {
            self.elements[thread as usize].move_all(elements);
        }
    }

    /// Whether copies will arrive without a wait of a thread.
    pub(crate) fn under_way(&self) -> bool {
        !self.flights.is_empty()
    }
}
