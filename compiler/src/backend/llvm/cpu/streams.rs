//! Streams of kernels: where they begin in a run, and their values.

use super::{Function, Types};
use crate::backend::rows::LaneOp;
use std::fmt::{self, Write};

impl Function<'_> {
    /// Where streams begin in a run, and where they are at a group, with the values that are the same for the whole
    /// row.
    pub(super) fn streams(&self) -> (String, String) {
        let Types {
            lanes,
            scalar,
            vector,
            bytes,
            ..
        } = self.types;
        let (mut begin, mut at_group) = (String::new(), String::new());
        for (n, used) in self.program.streams.iter().enumerate() {
            let record = used.record;
            begin += &format!(
                "  %q{n}.r = getelementptr i8, ptr %r, i64 {record}
  %q{n}.offset = load i64, ptr %q{n}.r
  %q{n}.start = getelementptr i8, ptr %base, i64 %q{n}.offset\n"
            );
            at_group +=
                &format!("  %q{n} = phi ptr [ %q{n}.start, %run ], [ %q{n}.next, %next ]\n");
        }
        for (op, place) in self.program.ops.iter().enumerate() {
            if let LaneOp::Stream(place) = place
                && place.uniform
            {
                let (n, at) = (place.stream, place.at * bytes);
                at_group += &format!(
                    "  %u{op}.p = getelementptr i8, ptr %q{n}, i64 {at}
  %u{op}.1 = load {scalar}, ptr %u{op}.p, align {bytes}
  %u{op}.0 = insertelement {vector} poison, {scalar} %u{op}.1, i64 0
  %u{op} = shufflevector {vector} %u{op}.0, {vector} poison, <{lanes} x i32> zeroinitializer\n"
                );
            }
        }
        (begin, at_group)
    }

    /// The pointers of a block into streams of rows, at an index of the inner axis.
    pub(super) fn stream_pointers(&mut self, block: &str, z: &str) -> fmt::Result {
        let scalar = self.types.scalar;
        for n in 0..self.program.streams.len() {
            let from = match block.starts_with("band") {
                true => self.band_of_stream(block, n, z)?,
                false => format!("%q{n}"),
            };
            writeln!(
                self.out,
                "  %{block}.q{n} = getelementptr {scalar}, ptr {from}, i64 {z}"
            )?;
        }
        Ok(())
    }

    /// The pointer of a block that a store counts from.
    pub(super) fn stored_from(block: &str, store: &crate::backend::rows::Store) -> String {
        match store.stream {
            None => format!("%{block}.p"),
            Some(n) => format!("%{block}.q{n}"),
        }
    }
}
