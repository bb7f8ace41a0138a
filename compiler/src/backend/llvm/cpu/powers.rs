//! Whole powers of 2 as bits of numbers.

use super::{Function, Types};
use std::fmt::{self, Write};

impl Function<'_> {
    pub(super) fn power2(&mut self, to: &str, a: &str) -> fmt::Result {
        let bits = self.types.precision.power_bits();
        let [lo, hi, shift] =
            [bits.least, bits.most, bits.shift].map(|n| self.types.splat(n.to_bits()));
        let Types {
            lanes, vector: v, ..
        } = self.types;
        let (truth, word, words) = (
            format!("<{lanes} x i1>"),
            self.types.word(),
            self.types.words(),
        );
        writeln!(
            self.out,
            "  {to}.above = fcmp olt {v} {lo}, {a}
  {to}.least = select {truth} {to}.above, {v} {a}, {v} {lo}
  {to}.below = fcmp olt {v} {to}.least, {hi}
  {to}.most = select {truth} {to}.below, {v} {to}.least, {v} {hi}
  {to}.sum = fadd {v} {to}.most, {shift}
  {to}.word = bitcast {v} {to}.sum to {words}
  {to}.field = shl {words} {to}.word, splat ({word} {})
  {to} = bitcast {words} {to}.field to {v}",
            bits.mantissa
        )
    }

    pub(super) fn exponent(&mut self, to: &str, a: &str) -> fmt::Result {
        let bits = self.types.precision.power_bits();
        let [whole, start] = [bits.whole, bits.start].map(|n| self.types.splat(n.to_bits()));
        let Types {
            vector: v, suffix, ..
        } = self.types;
        let (word, words) = (self.types.word(), self.types.words());
        writeln!(
            self.out,
            "  {to}.abs = call {v} @llvm.fabs.{suffix}({v} {a})
  {to}.word = bitcast {v} {to}.abs to {words}
  {to}.field = lshr {words} {to}.word, splat ({word} {})
  {to}.whole = bitcast {v} {whole} to {words}
  {to}.or = or {words} {to}.field, {to}.whole
  {to}.sum = bitcast {words} {to}.or to {v}
  {to} = fsub {v} {to}.sum, {start}",
            bits.mantissa
        )
    }
}
