//! Vectors that lie in a band of some zone: how rows get to them, and how their code differs.

use super::shape::Lanes;
use super::{Function, Types};
use crate::backend::rows::{LaneOp, RowProgram, Store};
use crate::kernel::{Band, Bands, Stream};
use crate::scheme::ZoneId;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::ops::Range;

/// Vectors in bands that get a block of their own.
const MOST_PLACES: usize = 8;

/// The zones of a program that lie in bands.
pub(super) struct Banded<'a> {
    zones: Vec<(ZoneId, &'a [Band])>,
    /// Where whole vectors in bands begin, ascending: each has a block of its own, in which masks are constants. Empty
    /// where they are too many, or none; then one block takes all.
    places: Vec<i64>,
}

/// A block for whole vectors in bands, or for the last vector of rows.
struct Whole {
    name: String,
    /// Where its vector begins; `None`: at `%z`.
    at: Option<i64>,
}

impl<'a> Banded<'a> {
    pub fn new(program: &RowProgram, bands: &'a Bands, lanes: i64) -> Banded<'a> {
        let zone = |op: &LaneOp| match op {
            LaneOp::InBand { zone, .. } => Some(*zone),
            _ => None,
        };
        let zones: BTreeSet<ZoneId> = program.ops.iter().filter_map(zone).collect();
        let mut banded = Banded {
            zones: zones.into_iter().map(|z| (z, bands.of(z))).collect(),
            places: Vec::new(),
        };
        let places = |band: &Band| (first(band, lanes)..band.range.hi).step_by(lanes as usize);
        let places: BTreeSet<i64> = banded.all().flat_map(places).collect();
        if places.len() <= MOST_PLACES {
            banded.places = places.into_iter().collect();
        }
        banded
    }

    /// The blocks for whole vectors.
    fn whole(&self) -> Vec<Whole> {
        let own = |&at: &i64| Whole {
            name: place_block(at),
            at: Some(at),
        };
        match self.places.is_empty() {
            true => vec![Whole {
                name: "band".to_string(),
                at: None,
            }],
            false => self.places.iter().map(own).collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }

    /// The zone of a stream, if it lies in bands, with their numbers among all.
    fn place(&self, stream: Stream) -> Option<(ZoneId, Range<usize>)> {
        let Stream::Zone(zone) = stream else {
            return None;
        };
        let index = self.zones.iter().position(|(z, _)| *z == zone)?;
        let before = self.zones[..index].iter();
        let first = before.map(|(_, bands)| bands.len()).sum();
        Some((zone, first..first + self.zones[index].1.len()))
    }

    fn all(&self) -> impl Iterator<Item = &Band> {
        self.zones.iter().flat_map(|(_, bands)| *bands)
    }

    /// The bands of a stream, if its zone lies in some.
    fn of(&self, stream: Stream) -> &[Band] {
        let own = |zone| self.zones.iter().find(|(z, _)| *z == zone);
        match stream {
            Stream::Zone(zone) => own(zone).map_or(&[], |(_, bands)| bands),
            Stream::AxisCoefs(_) => &[],
        }
    }
}

/// Where the first vector of a band begins.
fn first(band: &Band, lanes: i64) -> i64 {
    band.range.lo.div_euclid(lanes) * lanes
}

/// The name of the block for the whole vector at a place.
fn place_block(at: i64) -> String {
    match at < 0 {
        true => format!("bandatm{}", -at),
        false => format!("bandat{at}"),
    }
}

impl Function<'_> {
    /// The last index at which a whole vector lies in `lo..hi` and before the next band.
    pub(super) fn full(&self) -> &'static str {
        match self.banded.is_empty() {
            true => "%full",
            false => "%full.band",
        }
    }

    /// The further operands of a phi node where a row goes on behind bands.
    pub(super) fn behind_bands(&self) -> String {
        if self.banded.is_empty() {
            return String::new();
        }
        let tail = self.tail().map(|tail| tail.at);
        let whole = self.banded.whole().into_iter();
        let others = whole.filter(|block| tail.is_none() || block.at != tail);
        let behind = others.map(|block| {
            let block = &block;
            let next = self.behind(block);
            format!(", [ {next}, %{}.done ]", block.name)
        });
        behind.collect::<String>() + ", [ %part.next, %bandpart.done ]"
    }

    /// Where the vector behind that of a block begins.
    fn behind(&self, block: &Whole) -> String {
        block.at.map_or("%part.next".to_string(), |at| {
            (at + self.types.lanes).to_string()
        })
    }

    /// The end of a step: which block computes the next vector.
    pub(super) fn choose(&mut self, whole: &str) -> fmt::Result {
        let lanes = self.types.lanes;
        let next = format!(
            "  %part.next = add i64 %z, {lanes}
  %part.more = icmp slt i64 %part.next, %hi"
        );
        if self.banded.is_empty() {
            return writeln!(
                self.out,
                "{next}\n  br i1 %whole, label %{whole}, label %{}",
                self.partial()
            );
        }
        let mut text = String::new();
        let (mut inside, mut full) = ("false".to_string(), "%full".to_string());
        for (n, band) in self.banded.all().enumerate() {
            let (first, end) = (first(band, lanes), band.range.hi);
            text += &format!(
                "  %band{n}.begun = icmp sge i64 %z, {first}
  %band{n}.on = icmp slt i64 %z, {end}
  %band{n}.in = and i1 %band{n}.begun, %band{n}.on
  %band{n}.any = or i1 {inside}, %band{n}.in
  %band{n}.end = select i1 %band{n}.begun, i64 %full, i64 {}
  %band{n}.full = call i64 @llvm.smin.i64(i64 {full}, i64 %band{n}.end)\n",
                first - lanes,
            );
            inside = format!("%band{n}.any");
            full = format!("%band{n}.full");
        }
        writeln!(
            self.out,
            "{text}  %full.band = add i64 {full}, 0
{next}"
        )?;
        match self.banded.places.is_empty() {
            true => writeln!(
                self.out,
                "  br i1 {inside}, label %inside, label %outside
inside:
  br i1 %whole, label %band, label %bandpart"
            )?,
            false => {
                let places = self.banded.places.iter();
                let (mut cases, mut begin) = (String::new(), String::new());
                let tail = self.tail().map(|tail| tail.at);
                for (at, block) in places.map(|&at| (at, place_block(at))) {
                    let all = match tail == Some(at) {
                        true => "%until.tail",
                        false => "%whole",
                    };
                    cases += &format!(" i64 {at}, label %{block}.at");
                    begin +=
                        &format!("{block}.at:\n  br i1 {all}, label %{block}, label %bandpart\n");
                }
                writeln!(
                    self.out,
                    "  switch i64 %z, label %outside [{cases} ]\n{begin}"
                )?;
            }
        }
        writeln!(
            self.out,
            "outside:
  br i1 %whole, label %{whole}, label %{}",
            self.partial()
        )
    }

    /// The blocks for a vector in bands: whole ones, and one of which only some lanes are stored.
    pub(super) fn bands(&mut self) -> fmt::Result {
        if self.banded.is_empty() {
            return Ok(());
        }
        let after = self.after_row();
        for whole in self.banded.whole() {
            let Some(at) = whole.at else {
                self.band(&whole.name, None)?;
                self.band_stores(&whole.name, Lanes::All)?;
                writeln!(
                    self.out,
                    "  br label %{0}.done
{0}.done:
  br i1 %part.more, label %step, label %{after}",
                    whole.name
                )?;
                continue;
            };
            let (block, next) = (&whole.name, at + self.types.lanes);
            self.band(block, Some(at))?;
            if let Some(tail) = self.tail()
                && tail.at == at
            {
                self.place_stores(block, at, Lanes::First(tail.lanes))?;
                writeln!(self.out, "  br label %{after}")?;
                continue;
            }
            self.place_stores(block, at, Lanes::All)?;
            match self.banded.places.contains(&next) {
                false => writeln!(self.out, "  br label %{block}.done")?,
                // That one is mostly a whole vector, too.
                true => writeln!(
                    self.out,
                    "  %{block}.on = icmp sle i64 {next}, %full
  br i1 %{block}.on, label %{}, label %{block}.done",
                    place_block(next)
                )?,
            }
            writeln!(
                self.out,
                "{block}.done:
  %{block}.more = icmp slt i64 {next}, %hi
  br i1 %{block}.more, label %step, label %{after}"
            )?;
        }
        self.band("bandpart", None)?;
        let ends = ["lo", "hi"].map(|end| format!("%{end}"));
        self.lanes_within("%bandpart.mask", ends)?;
        self.band_stores("bandpart", Lanes::Of("%bandpart.mask"))?;
        writeln!(
            self.out,
            "  br label %bandpart.done
bandpart.done:
  br i1 %part.more, label %step, label %{after}"
        )
    }

    /// The values of a vector in bands, at a known place or at `%z`.
    fn band(&mut self, block: &str, at: Option<i64>) -> fmt::Result {
        let z = at.map_or("%z".to_string(), |at| at.to_string());
        writeln!(
            self.out,
            "{block}:\n  %{block}.p = getelementptr {}, ptr %g, i64 {z}",
            self.types.scalar
        )?;
        self.stream_pointers(block, &z)?;
        match at {
            None => self.band_masks(block)?,
            Some(at) => self.place_masks(block, at)?,
        }
        for op in 0..self.program.ops.len() {
            self.value(block, &Default::default(), op, 0)?;
        }
        Ok(())
    }

    /// Per zone, which lanes of the vector at a place lie in its bands.
    fn place_masks(&mut self, block: &str, at: i64) -> fmt::Result {
        let lanes = self.types.lanes;
        for (zone, bands) in &self.banded.zones {
            let inside = |i: i64| bands.iter().any(|band| band.range.contains(i));
            let bits: Vec<String> = (at..at + lanes)
                .map(|i| format!("i1 {}", u8::from(inside(i))))
                .collect();
            writeln!(
                self.out,
                "  %{block}.in{} = or <{lanes} x i1> <{}>, zeroinitializer",
                zone.index(),
                bits.join(", ")
            )?;
        }
        Ok(())
    }

    /// The stores of the whole vector at a place, as [`Function::band_stores`].
    fn place_stores(&mut self, block: &str, at: i64, stored: Lanes<'_>) -> fmt::Result {
        let (program, lanes) = (self.program, self.types.lanes);
        for (i, store) in program.in_bands.iter().enumerate() {
            let stream = store.stream.map(|n| program.streams[n as usize].stream);
            let bands = stream.map_or(&[][..], |stream| self.banded.of(stream));
            let meets = |b: &Band| first(b, lanes) <= at && at < b.range.hi;
            if bands.is_empty() || bands.iter().any(meets) {
                self.store(block, i, store, stored)?;
            }
        }
        Ok(())
    }

    /// The stores of a vector in bands. States of a zone are stored where the vector lies in one of its own bands:
    /// elsewhere other values have these places, perhaps of other threads.
    fn band_stores(&mut self, block: &str, stored: Lanes<'_>) -> fmt::Result {
        let program = self.program;
        let stream = |store: &Store| store.stream.map(|n| program.streams[n as usize].stream);
        let mut stores: Vec<(usize, &Store)> = program.in_bands.iter().enumerate().collect();
        // Stores of a stream together.
        stores.sort_by_key(|(_, store)| store.stream);
        for group in stores.chunk_by(|a, b| a.1.stream == b.1.stream) {
            let own = stream(group[0].1).and_then(|stream| self.banded.place(stream));
            let Some((zone, bands)) = own else {
                for (i, store) in group {
                    self.store(block, *i, store, stored)?;
                }
                continue;
            };
            let zone = zone.index();
            let mut any = "false".to_string();
            for n in bands {
                let name = format!("%{block}.s{zone}.{n}");
                writeln!(self.out, "  {name} = or i1 {any}, %band{n}.in")?;
                any = name;
            }
            writeln!(
                self.out,
                "  br i1 {any}, label %{block}.states{zone}, label %{block}.behind{zone}
{block}.states{zone}:"
            )?;
            for (i, store) in group {
                self.store(block, *i, store, stored)?;
            }
            writeln!(
                self.out,
                "  br label %{block}.behind{zone}
{block}.behind{zone}:"
            )?;
        }
        Ok(())
    }

    /// Per zone, which lanes lie in its bands.
    fn band_masks(&mut self, block: &str) -> fmt::Result {
        let lanes = self.types.lanes;
        let zones: Vec<(ZoneId, Vec<Band>)> = (self.banded.zones.iter())
            .map(|(zone, bands)| (*zone, bands.to_vec()))
            .collect();
        for (zone, bands) in zones {
            let zone = zone.index();
            let mut name = String::new();
            for (n, band) in bands.iter().enumerate() {
                let own = format!("%{block}.z{zone}.{n}");
                self.lanes_within(&own, [band.range.lo, band.range.hi].map(|i| i.to_string()))?;
                if n == 0 {
                    name = own;
                    continue;
                }
                let all = format!("%{block}.z{zone}.any{n}");
                writeln!(self.out, "  {all} = or <{lanes} x i1> {name}, {own}")?;
                name = all;
            }
            writeln!(
                self.out,
                "  %{block}.in{zone} = or <{lanes} x i1> {name}, zeroinitializer"
            )?;
        }
        Ok(())
    }

    /// In a band: from where a stream is at a group to where it is for the band at a place, in a name.
    pub(super) fn band_of_stream(
        &mut self,
        block: &str,
        n: usize,
        z: &str,
    ) -> Result<String, fmt::Error> {
        let Types { lanes, bytes, .. } = self.types;
        let stream = self.program.streams[n].stream;
        let bands = self.banded.of(stream).to_vec();
        let mut by = "0".to_string();
        for (i, band) in bands.iter().enumerate().skip(1) {
            let name = format!("%{block}.by{n}.{i}");
            writeln!(
                self.out,
                "  {name}.on = icmp sge i64 {z}, {}
  {name} = select i1 {name}.on, i64 {}, i64 {by}",
                first(band, *lanes),
                band.distance * bytes
            )?;
            by = name;
        }
        let from = format!("%{block}.from{n}");
        writeln!(self.out, "  {from} = getelementptr i8, ptr %q{n}, i64 {by}")?;
        Ok(from)
    }
}
