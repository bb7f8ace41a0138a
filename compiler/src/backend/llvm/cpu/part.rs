//! Vectors of which only some lanes are stored.

use super::{Function, Types};
use crate::backend::rows::Store;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

impl Function<'_> {
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
            self.store("part", i, store, Some("%mask"))?;
        }
        Ok(())
    }

    /// The i-th store of a block, of all lanes or of the lanes of a mask.
    pub(super) fn store(
        &mut self,
        block: &str,
        i: usize,
        store: &Store,
        mask: Option<&str>,
    ) -> fmt::Result {
        let Types {
            lanes,
            vector,
            suffix,
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
        match mask {
            None => writeln!(
                self.out,
                "  store {vector} {value}, ptr {to}, align {bytes}"
            ),
            Some(mask) => writeln!(
                self.out,
                "  call void @llvm.masked.store.{suffix}.p0({vector} {value}, ptr align {bytes} {to}, <{lanes} x i1> {mask})"
            ),
        }
    }

    /// Which lanes of the vector at `%z` lie between two indices.
    pub(super) fn lanes_within(&mut self, name: &str, [lo, hi]: [String; 2]) -> fmt::Result {
        let lanes = self.types.lanes;
        let iota: Vec<String> = (0..lanes).map(|i| format!("i32 {i}")).collect();
        let ints = format!("<{lanes} x i32>");
        for (end, at, compare) in [("lo", lo, "sge"), ("hi", hi, "slt")] {
            writeln!(
                self.out,
                "  {name}.{end}.64 = sub i64 {at}, %z
  {name}.{end}.32 = trunc i64 {name}.{end}.64 to i32
  {name}.{end}.0 = insertelement {ints} poison, i32 {name}.{end}.32, i64 0
  {name}.{end}.v = shufflevector {ints} {name}.{end}.0, {ints} poison, {ints} zeroinitializer
  {name}.{end} = icmp {compare} {ints} <{}>, {name}.{end}.v",
                iota.join(", ")
            )?;
        }
        writeln!(
            self.out,
            "  {name} = and <{lanes} x i1> {name}.lo, {name}.hi"
        )
    }
}
