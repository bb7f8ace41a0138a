//! Loads from the array and stores to it.

use super::cells::{InTile, Known};
use super::context::{Context, Surroundings, Values, within};
use super::ends::{AXES, Coordinates};
use super::place::Patch;
use crate::backend::gpu::abi::Patches;
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{Access, IntOp, Kernel};
use crate::lattice::{Axis, Interval, PerAxis, Position};
use crate::layout::RowId;
use crate::patch::Along;

/// Where bases are stored.
#[derive(Clone, Copy)]
pub(super) struct Store {
    pub array: Operand,
    /// Cells from both ends of a base along the axes: if there are some, no others are stored.
    pub rims: Option<[[i64; 2]; 3]>,
    pub surroundings: Surroundings,
}

/// Cells of a line of a patch that are stored together.
#[derive(Clone, Copy)]
struct Piece {
    first: i64,
    /// Whether they lie in the base along the inner axis, and in a rim.
    own: Known,
    rim: Known,
}

/// Bytes of the widest access.
const VECTOR: i64 = 16;

impl Context<'_> {
    /// Loads the rows that are held, and coefficients; 0 where nothing is stored.
    pub(super) fn load(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        surroundings: Surroundings,
    ) -> Values {
        let shape = &self.program.shape;
        let nothing = vec![Operand::poison(self.real); shape.count()];
        let mut values = Values {
            rows: vec![nothing; self.program.held.len()],
            coefs: Vec::new(),
        };
        for (row, held) in self.program.held.iter().enumerate() {
            if *held {
                let component = self.program.components[row];
                let position = self.scheme.component(component).position;
                values.rows[row] =
                    self.load_row(k, patch, surroundings, RowId(row as u32), position);
            }
        }
        for (number, coef) in self.program.coefs.iter().enumerate() {
            let position = self.scheme.coefs[coef.index()].position;
            let own = self.load_row(
                k,
                patch,
                surroundings,
                self.layout.coef_row(*coef),
                position,
            );
            if self.coefs_are_shared() {
                for (cell, value) in own.into_iter().enumerate() {
                    let to = self.coef_slot(k, patch, number, cell);
                    k.store(value, to, self.bytes as u32, Access::Plain);
                }
            } else {
                values.coefs.push(own);
            }
        }
        values
    }

    /// Where a thread keeps a coefficient of a cell in shared memory.
    fn coef_slot(&self, k: &mut Kernel<'_>, patch: &Patch, number: usize, cell: usize) -> Operand {
        let slot = (number * self.program.shape.count() + cell) as i64;
        k.offset(patch.slot, self.areas()[0] + slot * self.slot_bytes())
    }

    /// A coefficient at a cell of the patch.
    pub(super) fn coef(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        values: &Values,
        number: usize,
        cell: usize,
    ) -> Operand {
        if !self.coefs_are_shared() {
            return values.coefs[number][cell];
        }
        let from = self.coef_slot(k, patch, number, cell);
        k.load(self.real, from, self.bytes as u32, Access::Plain)
    }

    /// Bytes from the first cell of a patch to one in its line along the outer and the middle axis.
    pub(super) fn line_bytes(&self, i: i64, l: i64) -> i64 {
        let stride = &self.layout.stride;
        (i * stride[Axis::OUTER] + l * stride[Axis::MIDDLE]) * self.bytes
    }

    /// A row where cell (x, y, z) of an array would be.
    pub(super) fn pointer(
        &self,
        k: &mut Kernel<'_>,
        array: Operand,
        row: RowId,
        at: [Operand; 3],
    ) -> Operand {
        let first = self.layout.element(row, PerAxis::splat(0)) * self.bytes;
        let mut line = k.offset(array, first);
        for n in self.program.axes().filter(|n| *n < 2) {
            let index = k.resize(at[n], Type::I64);
            let bytes = self.layout.stride[AXES[n]] * self.bytes;
            let by = k.int(IntOp::Mul, index, Operand::i64(bytes));
            line = k.advance(line, by, 1);
        }
        let z = k.resize(at[2], Type::I64);
        k.advance(line, z, self.bytes as u32)
    }

    /// The lines of a patch, by their cells along the outer and the middle axis.
    pub(super) fn lines(&self) -> impl Iterator<Item = [i64; 2]> + use<> {
        let [px, py, _] = self.program.shape.patch;
        (0..px).flat_map(move |i| (0..py).map(move |l| [i, l]))
    }

    /// Values of a patch that are accessed together, along the inner axis.
    pub(super) fn lanes(&self) -> i64 {
        let Along {
            base, halo, tiles, ..
        } = &self.program.along[2];
        let divides = |n: &i64| {
            self.program.shape.patch[2] % n == 0
                && halo[0] % n == 0
                && (*tiles == 1 || base % n == 0)
        };
        let mut lanes = VECTOR / self.bytes;
        while !divides(&lanes) {
            lanes /= 2;
        }
        lanes
    }

    /// Cells of an access to an array of values. Cells beyond the ends of a row are no part of it.
    fn lanes_in(&self, surroundings: Surroundings) -> i64 {
        match surroundings {
            Surroundings::Bare => self.lanes(),
            Surroundings::Ends => 1,
        }
    }

    /// Cells of an access to an array of rims, of any tile: pieces of a row of which a cell is stored are whole, as
    /// nothing else lies in the rest of them. What a tile has there, others may have, too: no update changes it, and
    /// ghosts are made anew.
    pub(super) fn lanes_of_rims(&self) -> i64 {
        match self.program.along[2].ring {
            // Else a piece would go on at the other end.
            Some(ring) if ring % self.lanes() != 0 => 1,
            _ => self.lanes(),
        }
    }

    fn load_row(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        surroundings: Surroundings,
        row: RowId,
        position: Position,
    ) -> Vec<Operand> {
        let pz = self.program.shape.patch[2];
        let mut all = Vec::new();
        if surroundings == Surroundings::Ends {
            let mut at = self.coordinates(k, patch);
            let extent = self.scheme.grid.extent(position);
            let extent = AXES.map(|axis| extent[axis]);
            for [i, l] in self.lines() {
                let line = self.line_pointer(k, &at, k.param(Patches::FROM), row, [i, l], extent);
                for j in 0..pz {
                    let z = at.clamped(k, 2, j, extent[2]);
                    let z = k.resize(z, Type::I64);
                    let from = k.advance(line, z, self.bytes as u32);
                    let value = k.load(self.real, from, self.bytes as u32, self.of_array());
                    let there = at.inside(k, [i, l, j], extent);
                    let zero = Operand::real(self.real, 0);
                    all.push(k.choose(there, value, zero));
                }
            }
            return all;
        }
        let lanes = self.lanes();
        let vector = Type::vector(self.scheme.precision, lanes as u32);
        let first = [0, 1, 2].map(|n| patch.first(k, n));
        let first = self.pointer(k, k.param(Patches::FROM), row, first);
        for [i, l] in self.lines() {
            let line = k.offset(first, self.line_bytes(i, l));
            for j in (0..pz).step_by(lanes as usize) {
                let from = k.offset(line, j * self.bytes);
                let several = k.load(vector, from, vector.bytes(), self.of_array());
                all.extend((0..lanes).map(|lane| k.lane(several, lane as u32)));
            }
        }
        all
    }

    /// How the array is read: no load of what the launch before stores may be moved up before its end.
    fn of_array(&self) -> Access {
        match self.early {
            true => Access::Plain,
            false => Access::ReadOnly,
        }
    }

    /// Where a line of a patch begins in an array, or the nearest one in the grid.
    fn line_pointer(
        &self,
        k: &mut Kernel<'_>,
        at: &Coordinates,
        array: Operand,
        row: RowId,
        line: [i64; 2],
        extent: [Interval; 3],
    ) -> Operand {
        let mut first = [Operand::i32(0); 3];
        for n in self.program.axes().filter(|n| *n < 2) {
            first[n] = at.clamped(k, n, line[n], extent[n]);
        }
        self.pointer(k, array, row, first)
    }

    /// Stores the values of a row in the base, or in its rims.
    pub(super) fn store(
        &self,
        k: &mut Kernel<'_>,
        patch: &Patch,
        row: usize,
        values: &[Operand],
        to: Store,
    ) {
        let Store { array, rims, .. } = to;
        let [px, py, pz] = self.program.shape.patch;
        let component = self.program.components[row];
        let extent = self.scheme.extent(component);
        let at = self.found_anew(k, [0, 1, 2].map(|n| [patch.origin[n], patch.local[n]]));
        let first = self.pointer(k, array, RowId(row as u32), at);
        let lanes = match rims {
            Some(_) => self.lanes_of_rims(),
            None => self.lanes_in(to.surroundings),
        };
        let cells = InTile::new(k, self, patch);
        let stored = |k: &mut Kernel<'_>, n: usize, cell: i64| {
            let base = cells.base(k, n, cell);
            let along = &self.program.along[n];
            let own = extent[AXES[n]];
            let whole = own.lo <= 0 && own.hi >= along.base * along.tiles;
            if to.surroundings == Surroundings::Bare || whole {
                return base;
            }
            let index = k.int(IntOp::Add, at[n], Operand::i32(cell as i32));
            let there = Known::Where(within(k, index, self.touching(n, own, lanes)));
            base.and(k, there)
        };
        // Whether a cell lies in a rim along an axis, if rims alone are stored.
        let in_rim = |k: &mut Kernel<'_>, n: usize, cell: i64| match rims {
            Some(rims) => cells.rim(k, n, cell, rims[n]),
            None => Known::Always,
        };
        let pieces: Vec<Piece> = (0..pz)
            .step_by(lanes as usize)
            .map(|first| Piece {
                first,
                own: stored(k, 2, first),
                rim: in_rim(k, 2, first),
            })
            .collect();
        for i in 0..px {
            let own_x = stored(k, 0, i);
            let rim_x = in_rim(k, 0, i);
            own_x.when(k, |k| {
                for l in 0..py {
                    let own_y = stored(k, 1, l);
                    let rim_y = in_rim(k, 1, l).or(k, rim_x);
                    for piece in &pieces {
                        let rim = piece.rim.or(k, rim_y);
                        let own = piece.own.and(k, own_y).and(k, rim);
                        if matches!(own, Known::Never) {
                            continue;
                        }
                        let by = self.line_bytes(i, l) + piece.first * self.bytes;
                        let number = self.program.shape.number([i, l, piece.first]);
                        let several = &values[number..][..lanes as usize];
                        // Rims are stored often, and a jump takes longer than a store that stores nothing.
                        if rims.is_some() {
                            k.store_several_if(own.operand(), several, first, by);
                            continue;
                        }
                        own.when(k, |k| {
                            let several = k.pack(several);
                            let to = k.offset(first, by);
                            k.store(several, to, several.ty.bytes(), Access::Plain);
                        });
                    }
                }
            });
        }
    }

    /// The cells along an axis with which accesses of `lanes` cells begin that meet an interval.
    pub(super) fn touching(&self, n: usize, own: Interval, lanes: i64) -> Interval {
        match AXES[n] {
            Axis::INNER => Interval::new(own.lo - (lanes - 1), own.hi),
            _ => own,
        }
    }

    /// The patch's first cell, counted from the tile's, found anew.
    pub(super) fn local(&self, k: &mut Kernel<'_>, patch: &Patch) -> [Operand; 3] {
        let mut local = patch.local;
        for n in self.program.axes() {
            if self.program.shape.threads[n] > 1 {
                local[n] = k.again(local[n]);
            }
        }
        local
    }

    /// Sums for each axis, found anew.
    pub(super) fn found_anew(&self, k: &mut Kernel<'_>, terms: [[Operand; 2]; 3]) -> [Operand; 3] {
        let mut sums = [Operand::i32(0); 3];
        for n in self.program.axes() {
            let sum = k.int(IntOp::Add, terms[n][0], terms[n][1]);
            sums[n] = k.again(sum);
        }
        sums
    }
}
