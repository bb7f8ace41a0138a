//! Layerwise kernels: each advances a set of updates of one stage over a box of the grid.
//!
//! ```text
//! thread            one vector of 16 bytes along the vector axis, one place along the diamond axis
//!   march:            group after group along the lean axis, some tens of them
//!     load              what is new; what a later group needs again stays in registers
//!     compute           all updates, in the order of their bodies
//!     store             vectors; single lanes at the ends of the range
//! ```
//!
//! Images along the vector axis are stored by the thread that has their source, since every row has some. Those along the other axes,
//! where few rows have any, are copied afterwards ([`super::service`]).

mod pieces;
#[cfg(test)]
mod tests;

use super::ir::{Launch, Module, Operand, Type};
use super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Variable};
use crate::backend::rows::{RowOp, RowProgram, Store};
use crate::kernel::{KernelSet, RowKernel};
use crate::lattice::{Axis, Region};
use crate::scheme::{ComponentId, Image, Scheme, Value};
use pieces::{Stream, Streams};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a vector, and of the widest access that all GPUs have.
const VECTOR_BYTES: u32 = 16;

/// How kernels are shaped: what may be tried, without an effect on results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Threads of a block along the vector axis and the diamond axis.
    pub threads: [u32; 2],
    /// Groups that a thread marches over, where the grid is large enough.
    pub march: u32,
    /// Groups whose code follows each other without a jump.
    pub unroll: u32,
    /// Registers of 32 bits for values that are kept along the march.
    pub kept: u32,
    /// Blocks that a multiprocessor should hold at least; 0: as the assembler likes.
    pub blocks: u32,
}

impl Shape {
    /// For grids with or without a diamond axis.
    pub fn of(scheme: &Scheme) -> Shape {
        let threads = match scheme.grid.axes[Axis::DIAMOND] {
            Some(_) => [32, 4],
            None => [128, 1],
        };
        Shape {
            threads,
            march: 16,
            unroll: 2,
            kept: 96,
            blocks: 0,
        }
    }
}

/// How a kernel is started over a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    pub blocks: [u32; 3],
    pub threads: [u32; 3],
    /// From the array's first element to row 0, vector index 0 of the box's first group: the kernel's pointer.
    pub element: i64,
    /// The kernel's further parameters, of 32 bits: groups along the lean axis, along the diamond axis, first and last vector index
    /// (exclusive), groups that a thread marches over.
    pub params: [i32; 5],
}

/// The types of a kernel's parameters.
const PARAMS: [Type; 6] = [
    Type::GLOBAL,
    Type::I32,
    Type::I32,
    Type::I32,
    Type::I32,
    Type::I32,
];

/// Elements of a vector.
fn lanes(scheme: &Scheme) -> u32 {
    VECTOR_BYTES / scheme.precision.bytes() as u32
}

/// How to run a kernel of this shape over a box, on a device that likes at least so many threads at a time; `None` where the box
/// exceeds what can be started at once.
pub fn start(
    scheme: &Scheme,
    set: &KernelSet,
    shape: Shape,
    region: Region,
    threads: u64,
) -> Option<Start> {
    let [lean, diamond, vector] = region.0;
    let lanes = i64::from(lanes(scheme));
    let [wide, deep] = shape.threads.map(i64::from);
    let first = vector.lo.div_euclid(lanes) * lanes;
    let along = div_ceil(vector.hi - first, wide * lanes);
    let across = div_ceil(diamond.len(), deep);
    // Enough threads are more important than long marches.
    let most = i64::from(shape.march.max(1)).min(lean.len().max(1));
    let wanted = (threads as i64).max(1);
    let line = along.saturating_mul(across).saturating_mul(wide * deep);
    let marches = div_ceil(wanted, line.max(1)).max(div_ceil(lean.len(), most));
    let march = div_ceil(lean.len(), marches.min(lean.len()).max(1)).max(1);
    let small = |n: i64, most: i64| u32::try_from(n).ok().filter(|_| n <= most);
    let number = |n: i64| i32::try_from(n).ok().filter(|n| *n < i32::MAX - 1024);
    Some(Start {
        blocks: [
            small(along, i64::from(i32::MAX))?,
            small(across, 65535)?,
            small(div_ceil(lean.len(), march), 65535)?,
        ],
        threads: [shape.threads[0], shape.threads[1], 1],
        element: set.layout.group(lean.lo, diamond.lo),
        params: [
            number(lean.len())?,
            number(diamond.len())?,
            number(vector.lo)?,
            number(vector.hi)?,
            number(march)?,
        ],
    })
}

fn div_ceil(a: i64, b: i64) -> i64 {
    crate::lattice::div_ceil(a, b)
}

/// Adds a kernel for each one of a set, under the name of its [`RowProgram`], with the parameters of [`Start`].
pub fn emit(module: &mut Module, scheme: &Scheme, set: &KernelSet, shape: Shape) {
    // A kernel that the set lists twice is written once.
    let kernels: BTreeSet<&RowKernel> = set.kernels.iter().collect();
    for kernel in kernels {
        let program = RowProgram::new(scheme, set, kernel);
        let lanes = lanes(scheme);
        let streams = Streams::new(
            &program,
            &set.layout,
            i64::from(lanes),
            i64::from(shape.kept),
        );
        let [x, y] = shape.threads;
        let launch = Launch {
            threads: [x, y, 1],
            blocks: shape.blocks,
            ..Launch::default()
        };
        let writer = module.kernel(&program.symbol, &PARAMS, launch);
        Writer {
            k: writer,
            scheme,
            set,
            kernel,
            program: &program,
            streams: &streams,
            shape,
            vector: Type::vector(scheme.precision, lanes),
        }
        .write();
    }
}

/// What a thread knows before it marches.
struct Place {
    /// Of its first group, at its vector.
    pointer: Operand,
    /// Its first vector index.
    z: Operand,
    lo: Operand,
    hi: Operand,
    /// Whether all its lanes lie in the range.
    whole: Operand,
}

struct Writer<'a, 'm> {
    k: Kernel<'m>,
    scheme: &'a Scheme,
    set: &'a KernelSet,
    kernel: &'a RowKernel,
    program: &'a RowProgram,
    streams: &'a Streams,
    shape: Shape,
    /// The type of a thread's vector.
    vector: Type,
}

impl Writer<'_, '_> {
    fn write(mut self) {
        let place = self.place();
        let [count, chunk] = [1, 5].map(|i| self.k.param(i));
        let block = self.k.special(Special::Block(2));
        let from = self.k.int(IntOp::Mul, block, chunk);
        let until = self.k.int(IntOp::Add, from, chunk);
        let until = self.k.int(IntOp::Min, until, count);
        let stride = self.bytes(self.set.layout.stride[Axis::LEAN]);
        let wide = self.k.resize(from, Type::I64);
        let by = self.k.int(IntOp::Mul, wide, Operand::i64(stride));
        let first = self.k.advance(place.pointer, by, 1);
        let pointer = self.k.variable_of(first);
        let kept = self.keep(first);
        let mut k = self.k;
        let (program, streams) = (self.program, self.streams);
        let marching = Marching {
            scheme: self.scheme,
            kernel: self.kernel,
            program,
            streams,
            vector: self.vector,
            kept: &kept,
            place: &place,
        };
        k.repeat(
            from,
            until,
            Operand::i32(1),
            Some(self.shape.unroll),
            |k, _| {
                let here = k.get(pointer);
                marching.group(k, here);
                let next = k.offset(here, stride);
                k.set(pointer, next);
            },
        );
        k.finish();
    }

    fn bytes(&self, elements: i64) -> i64 {
        elements * self.set.layout.element_bytes as i64
    }

    /// Finds the thread's place; threads outside of the box end.
    fn place(&mut self) -> Place {
        let lanes = self.vector.lanes() as i32;
        let element = self.vector.element().bytes();
        let group = self.bytes(self.set.layout.stride[Axis::DIAMOND]);
        let [wide, deep] = self.shape.threads.map(|n| n as i32);
        let k = &mut self.k;
        let [across, lo, hi] = [2, 3, 4].map(|i| k.param(i));
        let [block_z, thread_z] = [Special::Block(0), Special::Thread(0)].map(|s| k.special(s));
        let number = k.int(IntOp::Mul, block_z, Operand::i32(wide));
        let number = k.int(IntOp::Add, number, thread_z);
        let by = k.int(IntOp::Mul, number, Operand::i32(lanes));
        let first = k.int(IntOp::And, lo, Operand::i32(-lanes));
        let z = k.int(IntOp::Add, first, by);
        let behind = k.compare(IntCmp::Ge, z, hi);
        k.exit_if(behind);
        let [block_y, thread_y] = [Special::Block(1), Special::Thread(1)].map(|s| k.special(s));
        let y = k.int(IntOp::Mul, block_y, Operand::i32(deep));
        let y = k.int(IntOp::Add, y, thread_y);
        let beside = k.compare(IntCmp::Ge, y, across);
        k.exit_if(beside);
        let y = k.resize(y, Type::I64);
        let by = k.int(IntOp::Mul, y, Operand::i64(group));
        let row = k.advance(k.param(0), by, 1);
        let wide_z = k.resize(z, Type::I64);
        let pointer = k.advance(row, wide_z, element);
        let end = k.int(IntOp::Add, z, Operand::i32(lanes));
        let begun = k.compare(IntCmp::Ge, z, lo);
        let ended = k.compare(IntCmp::Le, end, hi);
        let whole = k.int(IntOp::And, begun, ended);
        Place {
            pointer,
            z,
            lo,
            hi,
            whole,
        }
    }

    /// Loads what streams keep, for the first group of the march.
    fn keep(&mut self, pointer: Operand) -> Vec<Vec<Variable>> {
        let streams = self.streams;
        let mut kept = Vec::with_capacity(streams.list.len());
        for stream in &streams.list {
            let mut variables = Vec::new();
            if stream.kept {
                let first = stream.distances[0];
                for distance in first..first + stream.span() {
                    let value = load(
                        &mut self.k,
                        self.vector,
                        streams,
                        stream,
                        distance,
                        pointer,
                        Access::ReadOnly,
                    );
                    variables.push(self.k.variable_of(value));
                }
            }
            kept.push(variables);
        }
        kept
    }
}

/// Loads a piece at a distance along the march.
fn load(
    k: &mut Kernel<'_>,
    vector: Type,
    streams: &Streams,
    stream: &Stream,
    distance: i64,
    pointer: Operand,
    access: Access,
) -> Operand {
    let element = vector.element();
    let ty = match element {
        Type::Real { precision, .. } => Type::vector(precision, stream.piece.length as u32),
        other => other,
    };
    let by = streams.displacement(stream.piece, distance) * i64::from(element.bytes());
    let from = k.offset(pointer, by);
    k.load(ty, from, ty.bytes(), access)
}

/// One group of the march.
struct Marching<'a> {
    scheme: &'a Scheme,
    kernel: &'a RowKernel,
    program: &'a RowProgram,
    streams: &'a Streams,
    vector: Type,
    kept: &'a [Vec<Variable>],
    place: &'a Place,
}

impl Marching<'_> {
    fn group(&self, k: &mut Kernel<'_>, pointer: Operand) {
        let loaded = self.load(k, pointer);
        let mut lanes: BTreeMap<(usize, i64, i64), Operand> = BTreeMap::new();
        let mut values: Vec<Operand> = Vec::with_capacity(self.program.ops.len());
        for op in &self.program.ops {
            let of = |v: Value| values[v.index()];
            let value = match *op {
                RowOp::Const(bits) => Operand::real(self.vector, bits),
                RowOp::Load(place) => self.operand(k, &loaded, &mut lanes, place),
                ref op => match k.number(op, of) {
                    Some(value) => value,
                    None => Operand::poison(self.vector),
                },
            };
            values.push(value);
        }
        let updates = self.kernel.updates(self.scheme);
        for (update, store) in updates.zip(&self.program.stores) {
            self.store(
                k,
                pointer,
                update.target,
                store,
                values[store.value.index()],
            );
        }
    }

    /// The pieces of this group, by stream and distance.
    fn load(&self, k: &mut Kernel<'_>, pointer: Operand) -> BTreeMap<(usize, i64), Operand> {
        let mut loaded = BTreeMap::new();
        for (i, stream) in self.streams.list.iter().enumerate() {
            let at = |k: &mut Kernel<'_>, distance| self.piece(k, stream, distance, pointer);
            let (Some(&first), true) = (stream.distances.first(), stream.kept) else {
                for &distance in &stream.distances {
                    let value = at(k, distance);
                    loaded.insert((i, distance), value);
                }
                continue;
            };
            let mut row: Vec<Operand> = self.kept[i].iter().map(|v| k.get(*v)).collect();
            row.push(at(k, first + stream.span()));
            for (variable, next) in self.kept[i].iter().zip(&row[1..]) {
                k.set(*variable, *next);
            }
            loaded.extend(
                row.iter()
                    .enumerate()
                    .map(|(n, v)| ((i, first + n as i64), *v)),
            );
        }
        loaded
    }

    fn piece(
        &self,
        k: &mut Kernel<'_>,
        stream: &Stream,
        distance: i64,
        pointer: Operand,
    ) -> Operand {
        let Some(target) = self.written_by(stream) else {
            let (vector, streams) = (self.vector, self.streams);
            return load(
                k,
                vector,
                streams,
                stream,
                distance,
                pointer,
                Access::ReadOnly,
            );
        };
        let (vector, streams) = (self.vector, self.streams);
        if !self.images_beside(target) {
            return load(k, vector, streams, stream, distance, pointer, Access::Plain);
        }
        // Another thread stores an image in the last vector of the row, so only lanes in the range are touched.
        let element = vector.element();
        let by = streams.displacement(stream.piece, distance) * i64::from(element.bytes());
        let from = k.offset(pointer, by);
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

    /// The component whose new value the kernel writes to the row of a stream. It then reads the row at its own place only (rule 4 of
    /// [`crate::scheme`]).
    fn written_by(&self, stream: &Stream) -> Option<ComponentId> {
        let row = stream.piece.line;
        let updates = self.kernel.updates(self.scheme);
        updates
            .zip(&self.program.stores)
            .find(|(_, store)| store.row == row)
            .map(|(update, _)| update.target)
    }

    /// Whether images of a component lie in the vector in which its row ends.
    fn images_beside(&self, target: ComponentId) -> bool {
        let lanes = i64::from(self.vector.lanes());
        let end = self.scheme.extent(target)[Axis::VECTOR].hi;
        let beside = |image: &Image| (end..div_ceil(end, lanes) * lanes).contains(&image.index);
        vector_images(self.scheme, target)
            .iter()
            .any(|(_, image)| beside(image))
    }

    /// The vector of a load.
    fn operand(
        &self,
        k: &mut Kernel<'_>,
        loaded: &BTreeMap<(usize, i64), Operand>,
        known: &mut BTreeMap<(usize, i64, i64), Operand>,
        place: crate::backend::rows::Place,
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

    /// Stores an update's vector, and the images along the vector axis of what it holds.
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
        let Place {
            z, lo, hi, whole, ..
        } = *self.place;
        let mut lanes: Vec<Operand> = (0..count).map(|i| k.lane(value, i)).collect();
        let mut value = value;
        if self
            .scheme
            .grid
            .live(self.scheme.component(target).position)[Axis::VECTOR]
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
        let (all, some, done) = (k.label(), k.label(), k.label());
        k.branch(whole, all, some);
        k.place(all);
        k.store(value, to, VECTOR_BYTES, Access::Plain);
        k.jump(done);
        k.place(some);
        for (i, lane) in lanes.iter().enumerate() {
            let index = k.int(IntOp::Add, z, Operand::i32(i as i32));
            let inside = within(k, index, lo, hi);
            k.when(inside, |k| {
                let to = k.offset(to, i as i64 * i64::from(element));
                k.store(*lane, to, element, Access::Plain);
            });
        }
        k.place(done);
        for (base, images) in self.images(target) {
            let here = k.compare(IntCmp::Eq, z, Operand::i32(base as i32));
            k.when(here, |k| {
                for (lane, image) in images {
                    let index = Operand::i32((base + lane) as i32);
                    let inside = within(k, index, lo, hi);
                    k.when(inside, |k| {
                        let to = k.offset(to, (image.index - base) * i64::from(element));
                        let own = lanes[lane as usize];
                        let value = if image.negated { k.negated(own) } else { own };
                        k.store(value, to, element, Access::Plain);
                    });
                }
            });
        }
    }

    /// The images along the vector axis, by the first index of their source's vector, with its lane.
    fn images(&self, target: ComponentId) -> BTreeMap<i64, Vec<(i64, Image)>> {
        let lanes = i64::from(self.vector.lanes());
        let mut images: BTreeMap<i64, Vec<(i64, Image)>> = BTreeMap::new();
        for (source, image) in vector_images(self.scheme, target) {
            let lane = source.rem_euclid(lanes);
            images.entry(source - lane).or_default().push((lane, image));
        }
        images
    }
}

fn within(k: &mut Kernel<'_>, index: Operand, lo: Operand, hi: Operand) -> Operand {
    let begun = k.compare(IntCmp::Ge, index, lo);
    let before_end = k.compare(IntCmp::Lt, index, hi);
    k.int(IntOp::And, begun, before_end)
}

/// The images of a component along the vector axis, each with its source, sources ascending.
pub fn vector_images(scheme: &Scheme, id: ComponentId) -> Vec<(i64, Image)> {
    let position = scheme.component(id).position;
    let visible = scheme.visible(id)[Axis::VECTOR];
    let extent = scheme.extent(id)[Axis::VECTOR];
    // Only sources near the ends have images; a grid has more indices than images.
    let reach = (extent.lo - visible.lo).max(visible.hi - extent.hi).max(0) + 4;
    let near = |i: &i64| *i - extent.lo <= reach || extent.hi - *i <= reach;
    (extent.lo..extent.hi)
        .filter(near)
        .flat_map(|i| {
            scheme
                .grid
                .images(Axis::VECTOR, position, i, visible)
                .map(move |image| (i, image))
        })
        .collect()
}
