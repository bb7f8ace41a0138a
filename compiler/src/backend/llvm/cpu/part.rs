//! Vectors of which only some lanes are stored.
//!
//! Where vectors have no masks of their own, a masked store takes as long as a dozen others (AVX2 on Zen 3), or is a
//! jump for each lane. So there the last vector of rows whose length is no multiple of a vector's has a block of its
//! own, with stores of as many lanes as are left. To store a whole vector with old values in the other lanes would be
//! shorter, but there lie ghosts, which a tile of another thread may write.

use super::shape::{Lanes, Tail};
use super::{Function, Types};
use crate::backend::rows::Store;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

impl Function<'_> {
    /// The last vector of rows that are no whole number of vectors, where masks are slow.
    pub(super) fn tail(&self) -> Option<Tail> {
        let (lanes, until) = (self.types.lanes, self.program.until);
        let left = until.rem_euclid(lanes);
        (left != 0 && !self.types.has_masks()).then_some(Tail {
            at: until - left,
            lanes: left,
        })
    }

    /// For the start of a call: whether it ends where rows end.
    pub(super) fn tail_end(&self) -> String {
        let until = self.program.until;
        self.tail().map_or(String::new(), |_| {
            format!("  %until.end = icmp eq i64 %hi, {until}\n")
        })
    }

    /// For a step: whether its vector, if it is not whole, is the last one of the rows, and begins in the range.
    pub(super) fn is_tail(&self) -> &'static str {
        match self.tail() {
            None => "",
            Some(_) => "\n  %until.tail = and i1 %started, %until.end",
        }
    }

    /// Where a vector outside of bands goes that is not whole.
    pub(super) fn partial(&self) -> &'static str {
        match self.tail() {
            None => "part",
            Some(_) => "partial",
        }
    }

    /// The last vector of the rows, outside of bands.
    pub(super) fn tail_block(&mut self) -> fmt::Result {
        let Some(Tail { at, lanes }) = self.tail() else {
            return Ok(());
        };
        writeln!(
            self.out,
            "partial:
  br i1 %until.tail, label %tail, label %part
tail:
  %tail.p = getelementptr {}, ptr %g, i64 {at}",
            self.types.scalar
        )?;
        self.stream_pointers("tail", &at.to_string())?;
        self.values("tail", &BTreeMap::new(), 1)?;
        let program = self.program;
        for (i, store) in program.stores.iter().enumerate() {
            self.store("tail", i, store, Lanes::First(lanes))?;
        }
        writeln!(self.out, "  br label %{}", self.after_row())
    }

    /// One vector of which only some lanes are stored.
    pub(super) fn part(&mut self) -> fmt::Result {
        writeln!(
            self.out,
            "part:
  %part.p = getelementptr {}, ptr %g, i64 %z",
            self.types.scalar
        )?;
        self.stream_pointers("part", "%z")?;
        self.values("part", &BTreeMap::new(), 1)?;
        self.lanes_within("%mask", ["%lo", "%hi"].map(str::to_owned))?;
        let program = self.program;
        for (i, store) in program.stores.iter().enumerate() {
            self.store("part", i, store, Lanes::Of("%mask"))?;
        }
        Ok(())
    }

    /// The i-th store of a block.
    pub(super) fn store(
        &mut self,
        block: &str,
        i: usize,
        store: &Store,
        stored: Lanes<'_>,
    ) -> fmt::Result {
        let Types {
            lanes,
            vector,
            suffix,
            scalar,
            bytes,
            ..
        } = self.types;
        let value = self.types.name(self.program, block, 0, store.value);
        let to = format!("%{block}.t{i}");
        writeln!(
            self.out,
            "  {to} = getelementptr i8, ptr {}, i64 {}",
            Self::stored_from(block, store),
            store.row * bytes,
        )?;
        match stored {
            Lanes::All => writeln!(
                self.out,
                "  store {vector} {value}, ptr {to}, align {bytes}"
            ),
            Lanes::Of(mask) => writeln!(
                self.out,
                "  call void @llvm.masked.store.{suffix}.p0({vector} {value}, ptr align {bytes} {to}, <{lanes} x i1> \
                 {mask})"
            ),
            Lanes::First(count) => {
                let first: Vec<String> = (0..count).map(|i| format!("i32 {i}")).collect();
                writeln!(
                    self.out,
                    "  {to}.v = shufflevector {vector} {value}, {vector} poison, <{count} x i32> <{}>
  store <{count} x {scalar}> {to}.v, ptr {to}, align {bytes}",
                    first.join(", ")
                )
            }
        }
    }

    /// Which lanes of the vector at `%z` lie between two indices.
    pub(super) fn lanes_within(&mut self, name: &str, [lo, hi]: [String; 2]) -> fmt::Result {
        let lanes = self.types.lanes;
        let iota: Vec<String> = (0..lanes).map(|i| format!("i32 {i}")).collect();
        let ints = format!("<{lanes} x i32>");
        for (end, at, compare) in [("lo", lo, "sge"), ("hi", hi, "slt")] {
            let behind = distance(lanes, &format!("{name}.{end}"), [at.as_str(), "%z"], lanes);
            writeln!(
                self.out,
                "{behind}  {name}.{end} = icmp {compare} {ints} <{}>, {name}.{end}.v",
                iota.join(", ")
            )?;
        }
        writeln!(
            self.out,
            "  {name} = and <{lanes} x i1> {name}.lo, {name}.hi"
        )
    }
}

/// Text that makes `{name}.v`: how far an index lies behind another one, in all lanes, clamped to -1 and `most`.
/// Indices have 64 bits, lanes 32.
pub(super) fn distance(lanes: i64, name: &str, [at, from]: [&str; 2], most: i64) -> String {
    let ints = format!("<{lanes} x i32>");
    format!(
        "  {name}.far = sub i64 {at}, {from}
  {name}.below = call i64 @llvm.smax.i64(i64 {name}.far, i64 -1)
  {name}.64 = call i64 @llvm.smin.i64(i64 {name}.below, i64 {most})
  {name}.32 = trunc i64 {name}.64 to i32
  {name}.0 = insertelement {ints} poison, i32 {name}.32, i64 0
  {name}.v = shufflevector {ints} {name}.0, {ints} poison, {ints} zeroinitializer\n"
    )
}
