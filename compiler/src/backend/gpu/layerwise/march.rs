//! The march of a thread: load, compute and store, group after group.

use super::pieces::{Stream, Streams};
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{Access, IntCmp, IntOp, Kernel, Variable};
use crate::backend::rows::{LaneOp, OperandPlace, RowProgram, Store};
use crate::ghost::{AxisGhosts, Ghost};
use crate::kernel::RowKernel;
use crate::lattice::{Axis, div_ceil};
use crate::layerwise::VECTOR_BYTES;
use crate::scheme::{ComponentId, Scheme, Value};
use std::collections::BTreeMap;

/// The values of a thread before it marches.
pub(super) struct ThreadPlace {
    /// Of its first group, at its vector.
    pub pointer: Operand,
    /// Its first inner index.
    pub z: Operand,
    pub lo: Operand,
    pub hi: Operand,
    /// Whether all its lanes lie in the range.
    pub whole: Operand,
}

/// The work of a thread with each group of its march.
pub(super) struct Marching<'a> {
    pub scheme: &'a Scheme,
    pub kernel: &'a RowKernel,
    pub program: &'a RowProgram,
    pub streams: &'a Streams,
    pub vector: Type,
    pub place: &'a ThreadPlace,
}

impl Marching<'_> {
    /// Loads the values that streams keep, for the first group of the march.
    pub fn keep(&self, k: &mut Kernel<'_>, pointer: Operand) -> Vec<Vec<Variable>> {
        let streams = self.streams.list.iter();
        streams
            .map(|stream| {
                let first = stream.distances.first().copied().unwrap_or(0);
                let before = if stream.kept { stream.span() } else { 0 };
                (first..first + before)
                    .map(|distance| {
                        let value = self.piece(k, stream, distance, pointer);
                        k.variable_of(value)
                    })
                    .collect()
            })
            .collect()
    }

    /// Loads the thread's own vectors that are new to the first group of the march.
    pub fn load_ahead(&self, k: &mut Kernel<'_>, pointer: Operand) -> Vec<Variable> {
        let own = self
            .streams
            .fresh()
            .filter(|(i, _)| self.streams.is_own(*i));
        own.map(|(stream, distance)| {
            let value = self.piece(k, &self.streams.list[stream], distance, pointer);
            k.variable_of(value)
        })
        .collect()
    }

    /// The pieces that are new to a group, by stream and distance. Pieces that were loaded ahead are replaced by pieces
    /// for the next group.
    fn load_fresh(
        &self,
        k: &mut Kernel<'_>,
        pointer: Operand,
        next: Operand,
        ahead: &[Variable],
    ) -> BTreeMap<(usize, i64), Operand> {
        let mut ahead = ahead.iter();
        let mut fresh = BTreeMap::new();
        for (i, distance) in self.streams.fresh() {
            let stream = &self.streams.list[i];
            let loaded = match self.streams.is_own(i) {
                true => ahead.next(),
                false => None,
            };
            let value = match loaded {
                None => self.piece(k, stream, distance, pointer),
                Some(variable) => {
                    let value = k.get(*variable);
                    let later = self.piece(k, stream, distance, next);
                    k.set(*variable, later);
                    value
                }
            };
            fresh.insert((i, distance), value);
        }
        fresh
    }

    /// Advances a group. `next` is where the next one can be read, `kept` and `ahead` are the values that were loaded
    /// for this one.
    pub fn group(
        &self,
        k: &mut Kernel<'_>,
        pointer: Operand,
        next: Operand,
        kept: &[Vec<Variable>],
        ahead: &[Variable],
    ) {
        let mut loaded = self.load_fresh(k, pointer, next, ahead);
        for (i, (stream, kept)) in self.streams.list.iter().zip(kept).enumerate() {
            let first = stream.distances.first().copied().unwrap_or(0);
            for (variable, distance) in kept.iter().zip(first..) {
                let value = k.get(*variable);
                loaded.insert((i, distance), value);
            }
            for (variable, distance) in kept.iter().zip(first + 1..) {
                k.set(*variable, loaded[&(i, distance)]);
            }
        }
        let mut lanes: BTreeMap<(usize, i64, i64), Operand> = BTreeMap::new();
        let mut values: Vec<Operand> = Vec::with_capacity(self.program.ops.len());
        for op in &self.program.ops {
            let of = |v: Value| values[v.index()];
            let value = match *op {
                LaneOp::Const(bits) => Operand::real(self.vector, bits),
                LaneOp::Load(place) => self.operand(k, &loaded, &mut lanes, place),
                ref op => match k.number(op, of) {
                    Some(value) => value,
                    None => Operand::poison(self.vector),
                },
            };
            values.push(value);
        }
        let updates = self.kernel.updates(self.scheme);
        for (update, store) in updates.zip(&self.program.stores) {
            let value = values[store.value.index()];
            self.store(k, pointer, update.target, store, value);
        }
    }

    /// A piece at a distance along the march.
    fn piece(
        &self,
        k: &mut Kernel<'_>,
        stream: &Stream,
        distance: i64,
        pointer: Operand,
    ) -> Operand {
        let element = self.vector.element();
        let by = self.streams.displacement(stream.piece, distance) * i64::from(element.bytes());
        let from = k.offset(pointer, by);
        let ty = match element {
            Type::Real { precision, .. } => Type::vector(precision, stream.piece.length as u32),
            other => other,
        };
        let target = self.written_by(stream);
        if !target.is_some_and(|target| self.ghosts_beside(target)) {
            let access = match target {
                Some(_) => Access::Plain,
                None => Access::ReadOnly,
            };
            return k.load(ty, from, ty.bytes(), access);
        }
        // Another thread stores a ghost in the last vector of the row, so only lanes in the range are touched.
        let lanes: Vec<Variable> = (0..stream.piece.length)
            .map(|lane| {
                let variable = k.variable_of(Operand::real(element, 0));
                let first = (stream.piece.start + lane) as i32;
                let index = k.int(IntOp::Add, self.place.z, Operand::i32(first));
                let inside = within(k, index, self.place.lo, self.place.hi);
                k.when(inside, |k| {
                    let from = k.offset(from, lane * i64::from(element.bytes()));
                    let value = k.load(element, from, element.bytes(), Access::Plain);
                    k.set(variable, value);
                });
                variable
            })
            .collect();
        let lanes: Vec<Operand> = lanes.into_iter().map(|v| k.get(v)).collect();
        k.pack(&lanes)
    }

    /// The component whose new value the kernel writes to the row of a stream. It then reads the row at its own place
    /// only (rule 4 of [`crate::scheme`]).
    fn written_by(&self, stream: &Stream) -> Option<ComponentId> {
        let row = stream.piece.line;
        let updates = self.kernel.updates(self.scheme);
        updates
            .zip(&self.program.stores)
            .find(|(_, store)| store.row == row)
            .map(|(update, _)| update.target)
    }

    /// Whether ghosts of a component lie in the vector in which its row ends.
    fn ghosts_beside(&self, target: ComponentId) -> bool {
        let lanes = i64::from(self.vector.lanes());
        let end = self.scheme.extent(target)[Axis::INNER].hi;
        let beside = |ghost: &Ghost| (end..div_ceil(end, lanes) * lanes).contains(&ghost.index);
        AxisGhosts::new(self.scheme, target, Axis::INNER)
            .pairs()
            .iter()
            .any(|(_, ghost)| beside(ghost))
    }

    /// The vector of a load.
    fn operand(
        &self,
        k: &mut Kernel<'_>,
        loaded: &BTreeMap<(usize, i64), Operand>,
        known: &mut BTreeMap<(usize, i64, i64), Operand>,
        place: OperandPlace,
    ) -> Operand {
        let places = self.streams.lanes_of(place);
        let whole = |vector: &Operand| {
            let (stream, distance, _) = places[0];
            let together = places
                .iter()
                .enumerate()
                .all(|(i, place)| *place == (stream, distance, i as i64));
            together && vector.ty == self.vector
        };
        if let Some(vector) = loaded.get(&(places[0].0, places[0].1)).filter(|v| whole(v)) {
            return *vector;
        }
        let mut lanes = Vec::with_capacity(places.len());
        for key in places {
            let (stream, distance, lane) = key;
            let value = match known.get(&key) {
                Some(value) => *value,
                None => {
                    let value = k.lane(loaded[&(stream, distance)], lane as u32);
                    known.insert(key, value);
                    value
                }
            };
            lanes.push(value);
        }
        k.pack(&lanes)
    }

    /// Stores an update's vector, and the ghosts of its values along the inner axis.
    fn store(
        &self,
        k: &mut Kernel<'_>,
        pointer: Operand,
        target: ComponentId,
        store: &Store,
        value: Operand,
    ) {
        let element = self.vector.element().bytes();
        let count = self.vector.lanes();
        let ThreadPlace {
            z, lo, hi, whole, ..
        } = *self.place;
        let mut lanes: Vec<Operand> = (0..count).map(|i| k.lane(value, i)).collect();
        let mut value = value;
        if self
            .scheme
            .grid
            .live(self.scheme.component(target).position)[Axis::INNER]
            .lo
            > 0
        {
            // The plane at index 0 is run with the others and stays 0.
            let plane = k.compare(IntCmp::Eq, z, Operand::i32(0));
            let zero = Operand::real(lanes[0].ty, 0);
            lanes[0] = k.choose(plane, zero, lanes[0]);
            value = k.pack(&lanes);
        }
        let to = k.offset(pointer, store.row * i64::from(element));
        let all = |k: &mut Kernel<'_>| k.store(value, to, VECTOR_BYTES, Access::Plain);
        k.either(whole, all, |k| {
            for (i, lane) in lanes.iter().enumerate() {
                let index = k.int(IntOp::Add, z, Operand::i32(i as i32));
                let inside = within(k, index, lo, hi);
                k.when(inside, |k| {
                    let to = k.offset(to, i as i64 * i64::from(element));
                    k.store(*lane, to, element, Access::Plain);
                });
            }
        });
        for (base, ghosts) in self.ghosts(target) {
            let here = k.compare(IntCmp::Eq, z, Operand::i32(base as i32));
            k.when(here, |k| {
                for (lane, ghost) in ghosts {
                    let index = Operand::i32((base + lane) as i32);
                    let inside = within(k, index, lo, hi);
                    k.when(inside, |k| {
                        let to = k.offset(to, (ghost.index - base) * i64::from(element));
                        let own = lanes[lane as usize];
                        let value = if ghost.negated { k.negated(own) } else { own };
                        k.store(value, to, element, Access::Plain);
                    });
                }
            });
        }
    }

    /// The ghosts along the inner axis, by the first index of their source's vector, with its lane.
    fn ghosts(&self, target: ComponentId) -> BTreeMap<i64, Vec<(i64, Ghost)>> {
        let lanes = i64::from(self.vector.lanes());
        let mut ghosts: BTreeMap<i64, Vec<(i64, Ghost)>> = BTreeMap::new();
        for (source, ghost) in AxisGhosts::new(self.scheme, target, Axis::INNER).pairs() {
            let lane = source.rem_euclid(lanes);
            ghosts.entry(source - lane).or_default().push((lane, ghost));
        }
        ghosts
    }
}

fn within(k: &mut Kernel<'_>, index: Operand, lo: Operand, hi: Operand) -> Operand {
    let begun = k.compare(IntCmp::Ge, index, lo);
    let before_end = k.compare(IntCmp::Lt, index, hi);
    k.int(IntOp::And, begun, before_end)
}
