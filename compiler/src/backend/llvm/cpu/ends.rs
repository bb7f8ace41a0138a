//! Ghosts along the inner axis, written after each group: vectors of the row's ends, shuffled, with masked stores.
//!
//! Sources are loaded in the aligned vectors in which they were stored a moment before. Which ghosts belong to `lo..hi`
//! is the same for all groups of a call, so masks are computed once.
//!
//! Vectors below 512 bits have no masks of their own: a masked store of AVX2 takes a dozen cycles on Zen 3, and other
//! processors have none at all. There ghosts are written one by one where all of an end belong to `lo..hi`.

use super::part::distance;
use super::{Function, Types};
use crate::backend::ends::{EndGhost, RowEnds};
use std::fmt::{self, Write};

/// Ghosts that one masked store writes.
struct Piece {
    /// Of the row.
    row: i64,
    /// The index of the vector's first lane.
    first: i64,
    /// The indices of one or two aligned vectors with the sources.
    loads: Vec<i64>,
    ghosts: Vec<EndGhost>,
}

/// The values that are written near one end.
#[derive(Default)]
struct Side {
    /// Rows whose value at index 0 becomes 0.
    zeros: Vec<i64>,
    pieces: Vec<Piece>,
}

impl Side {
    /// The sources from the first to the last.
    fn sources(&self) -> (i64, i64) {
        let own = self.pieces.iter().flat_map(|p| &p.ghosts).map(|g| g.source);
        let zero = self.zeros.iter().map(|_| 0);
        let all: Vec<i64> = own.chain(zero).collect();
        (
            all.iter().min().copied().unwrap_or(0),
            all.iter().max().copied().unwrap_or(-1),
        )
    }

    fn is_empty(&self) -> bool {
        self.zeros.is_empty() && self.pieces.is_empty()
    }

    /// The ghosts, each with its row.
    fn ghosts(&self) -> impl Iterator<Item = (i64, EndGhost)> {
        let of = |piece: &Piece| {
            let row = piece.row;
            piece
                .ghosts
                .clone()
                .into_iter()
                .map(move |ghost| (row, ghost))
        };
        self.pieces.iter().flat_map(of)
    }
}

/// The ghosts of a row in pieces.
fn pieces(ends: &RowEnds, lanes: i64) -> Vec<Piece> {
    let mut ghosts = ends.ghosts.clone();
    ghosts.sort_by_key(|g| g.ghost);
    let mut pieces: Vec<Piece> = Vec::new();
    for ghost in ghosts {
        let load = ghost.source.div_euclid(lanes) * lanes;
        let fits = |piece: &&mut Piece| {
            let near = |at: &i64| (at - load).abs() <= lanes;
            ghost.ghost < piece.first + lanes
                && ghost.negated == piece.ghosts[0].negated
                && (piece.loads.contains(&load)
                    || piece.loads.len() < 2 && piece.loads.iter().all(near))
        };
        match pieces.last_mut().filter(fits) {
            Some(piece) => {
                if !piece.loads.contains(&load) {
                    piece.loads.push(load);
                    piece.loads.sort_unstable();
                }
                piece.ghosts.push(ghost);
            }
            None => pieces.push(Piece {
                row: ends.row,
                first: ghost.ghost,
                loads: vec![load],
                ghosts: vec![ghost],
            }),
        }
    }
    pieces
}

impl Function<'_> {
    /// The values that are written near the lower and near the upper end.
    fn sides(&self) -> [Side; 2] {
        let mut sides = [Side::default(), Side::default()];
        for ends in &self.program.ends {
            if ends.zero {
                sides[0].zeros.push(ends.row);
            }
            let all = || ends.ghosts.iter().map(|g| g.source);
            let middle = (all().min().unwrap_or(0) + all().max().unwrap_or(0)) / 2;
            for (upper, side) in sides.iter_mut().enumerate() {
                let ghosts = ends.ghosts.iter().copied();
                let own = RowEnds {
                    ghosts: ghosts
                        .filter(|g| usize::from(g.source > middle) == upper)
                        .collect(),
                    ..*ends
                };
                side.pieces.extend(pieces(&own, self.types.lanes));
            }
        }
        sides
    }

    /// Where a group goes when its values are computed.
    pub(super) fn after_row(&self) -> &'static str {
        match self.program.ends.is_empty() {
            true => "next",
            false => "ends",
        }
    }

    /// Masks, and whether there is anything to write near each end: for the start of a call.
    pub(super) fn end_masks(&self) -> String {
        if self.program.ends.is_empty() {
            return String::new();
        }
        let lanes = self.types.lanes;
        let ints = format!("<{lanes} x i32>");
        let mut out = String::new();
        for (n, side) in self.sides().iter().enumerate() {
            let (first, last) = side.sources();
            out += &format!(
                "  %ends{n}.lo = icmp sle i64 %lo, {last}
  %ends{n}.hi = icmp sgt i64 %hi, {first}
  %ends{n}.some = and i1 %ends{n}.lo, %ends{n}.hi\n"
            );
            if !self.types.has_masks() {
                out += &format!(
                    "  %ends{n}.from = icmp sle i64 %lo, {first}
  %ends{n}.to = icmp sgt i64 %hi, {last}
  %ends{n}.all = and i1 %ends{n}.from, %ends{n}.to\n"
                );
            }
            // Sources lie close to each other, wherever on a line.
            for end in ["lo", "hi"] {
                let ([at, from], most) = ([format!("%{end}"), first.to_string()], last - first + 1);
                out += &distance(lanes, &format!("%ends{n}.{end}"), [&at, &from], most);
            }
            let mut mask = |name: String, sources: Vec<Option<i64>>| {
                // A value that is not written has an index below all.
                let below = i64::from(i32::MIN);
                let sources = sources.iter().map(|s| s.map_or(below, |s| s - first));
                let sources: Vec<String> = sources.map(|s| format!("i32 {s}")).collect();
                let sources = format!("{ints} <{}>", sources.join(", "));
                out += &format!(
                    "  {name}.lo = icmp sge {sources}, %ends{n}.lo.v
  {name}.hi = icmp slt {sources}, %ends{n}.hi.v
  {name} = and <{lanes} x i1> {name}.lo, {name}.hi\n"
                );
            };
            if !side.zeros.is_empty() {
                mask(
                    format!("%ends{n}.zero"),
                    (0..lanes).map(|i| (i == 0).then_some(0)).collect(),
                );
            }
            for (i, piece) in side.pieces.iter().enumerate() {
                let of = |index: i64| piece.ghosts.iter().find(|g| g.ghost == index);
                let lane = |lane| of(piece.first + lane).map(|g| g.source);
                mask(format!("%ends{n}.m{i}"), (0..lanes).map(lane).collect());
            }
        }
        out
    }

    /// The blocks between a group's values and the next group.
    pub(super) fn ends(&mut self) -> fmt::Result {
        if self.program.ends.is_empty() {
            return Ok(());
        }
        for (n, side) in self.sides().iter().enumerate() {
            let (label, behind) = match n {
                0 => ("ends", "ends.upper"),
                _ => ("ends.upper", "next"),
            };
            if side.is_empty() {
                writeln!(self.out, "{label}:\n  br label %{behind}")?;
                continue;
            }
            writeln!(self.out, "{label}:")?;
            if !self.types.has_masks() {
                writeln!(
                    self.out,
                    "  br i1 %ends{n}.all, label %ends{n}.each, label %ends{n}.choice
ends{n}.each:"
                )?;
                self.each(n, side)?;
                writeln!(self.out, "  br label %{behind}\nends{n}.choice:")?;
            }
            writeln!(
                self.out,
                "  br i1 %ends{n}.some, label %ends{n}, label %{behind}
ends{n}:"
            )?;
            self.side(n, side)?;
            writeln!(self.out, "  br label %{behind}")?;
        }
        Ok(())
    }

    /// Writes all of a side, one by one.
    fn each(&mut self, n: usize, side: &Side) -> fmt::Result {
        let Types { scalar, bytes, .. } = self.types;
        for (i, (row, ghost)) in side.ghosts().enumerate() {
            let name = format!("%ends{n}.e{i}");
            writeln!(
                self.out,
                "  {name}.p = getelementptr i8, ptr %g, i64 {}
  {name} = load {scalar}, ptr {name}.p, align {bytes}",
                (row + ghost.source) * bytes
            )?;
            if ghost.negated {
                writeln!(self.out, "  {name}.n = fneg {scalar} {name}")?;
            }
        }
        for (i, row) in side.zeros.iter().enumerate() {
            writeln!(
                self.out,
                "  %ends{n}.ez{i} = getelementptr i8, ptr %g, i64 {}
  store {scalar} 0.0, ptr %ends{n}.ez{i}, align {bytes}",
                row * bytes
            )?;
        }
        for (i, (row, ghost)) in side.ghosts().enumerate() {
            let value = if ghost.negated { ".n" } else { "" };
            writeln!(
                self.out,
                "  %ends{n}.et{i} = getelementptr i8, ptr %g, i64 {}
  store {scalar} %ends{n}.e{i}{value}, ptr %ends{n}.et{i}, align {bytes}",
                (row + ghost.ghost) * bytes
            )?;
        }
        Ok(())
    }

    /// Writes the values of a side that belong to `lo..hi`.
    fn side(&mut self, n: usize, side: &Side) -> fmt::Result {
        let Types {
            lanes,
            vector,
            bytes,
            suffix,
            ..
        } = self.types;
        // All loads come first: after a masked store, a load of the same vector would wait for it.
        for (i, piece) in side.pieces.iter().enumerate() {
            let name = format!("%ends{n}.v{i}");
            for (k, at) in piece.loads.iter().enumerate() {
                writeln!(
                    self.out,
                    "  {name}.p{k} = getelementptr i8, ptr %g, i64 {}
  {name}.l{k} = load {vector}, ptr {name}.p{k}, align {bytes}",
                    (piece.row + at) * bytes
                )?;
            }
            let last = piece.loads.len() - 1;
            let from = |source: i64| {
                let load = source.div_euclid(*lanes) * lanes;
                source - load + if load == piece.loads[0] { 0 } else { *lanes }
            };
            let lane = |lane: i64| {
                let of = piece.ghosts.iter().find(|g| g.ghost == piece.first + lane);
                format!("i32 {}", of.map_or(0, |g| from(g.source)))
            };
            let indices: Vec<String> = (0..*lanes).map(lane).collect();
            writeln!(
                self.out,
                "  {name}.s = shufflevector {vector} {name}.l0, {vector} {name}.l{last}, <{lanes} x i32> <{}>",
                indices.join(", ")
            )?;
            if piece.ghosts[0].negated {
                writeln!(self.out, "  {name}.n = fneg {vector} {name}.s")?;
            }
        }
        for (i, row) in side.zeros.iter().enumerate() {
            writeln!(
                self.out,
                "  %ends{n}.z{i} = getelementptr i8, ptr %g, i64 {}
  call void @llvm.masked.store.{suffix}.p0({vector} zeroinitializer, ptr align {bytes} %ends{n}.z{i}, <{lanes} x i1> \
  %ends{n}.zero)",
                row * bytes
            )?;
        }
        for (i, piece) in side.pieces.iter().enumerate() {
            let value = if piece.ghosts[0].negated { "n" } else { "s" };
            writeln!(
                self.out,
                "  %ends{n}.t{i} = getelementptr i8, ptr %g, i64 {}
  call void @llvm.masked.store.{suffix}.p0({vector} %ends{n}.v{i}.{value}, ptr align {bytes} %ends{n}.t{i}, <{lanes} \
  x i1> %ends{n}.m{i})",
                (piece.row + piece.first) * bytes
            )?;
        }
        Ok(())
    }
}
