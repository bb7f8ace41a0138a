//! The reference: runs a scheme step by step over whole grids, operation by operation. It is the meaning of the
//! language; it shares no layout, ghosts or kernels with the back ends, so that comparing them with it means something.
//! Each operation is applied to a piece of a line, cell after cell, which takes a fraction of the time of all
//! operations for one cell after the other.

use crate::incident::{self, Field, Shell, Term, When};
pub use crate::lattice::for_each_index;
use crate::lattice::{Axis, PerAxis, Region};
use crate::problem::Problem;
use crate::real::Real;
use crate::scheme::{
    Body, ComponentId, Located, Op, Read, Scheme, StageId, StateId, Update, Value,
};
use crate::statics::{self, Files, coef_value, init_value, source_acts, source_wave, start_of};

/// A dense array over a region that starts at index 0, inner axis fastest.
#[derive(Clone, Debug)]
struct Dense<T> {
    extent: Region,
    values: Vec<T>,
}

impl<T: Real> Dense<T> {
    fn filled(extent: Region) -> Self {
        Self {
            extent,
            values: vec![T::default(); extent.volume() as usize],
        }
    }

    fn index(&self, at: PerAxis<i64>) -> usize {
        Axis::ALL
            .iter()
            .fold(0, |n, &a| n * self.extent[a].hi + at[a]) as usize
    }

    fn get(&self, at: PerAxis<i64>) -> T {
        self.values[self.index(at)]
    }

    fn set(&mut self, at: PerAxis<i64>, value: T) {
        let i = self.index(at);
        self.values[i] = value;
    }

    fn piece(&self, piece: Piece) -> &[T] {
        let from = self.index(piece.first);
        &self.values[from..from + piece.len]
    }

    fn set_piece(&mut self, piece: Piece, values: &[T]) {
        let from = self.index(piece.first);
        self.values[from..from + piece.len].copy_from_slice(values);
    }
}

/// A running calculation in precision `T`, which must be that of the scheme.
pub struct Reference<'a, T> {
    scheme: &'a Scheme,
    problem: &'a Problem,
    files: &'a dyn Files,
    /// Per component its time levels; version v lies in time level v modulo their number.
    values: Vec<Vec<Dense<T>>>,
    /// Version of the newest value of each component.
    versions: Vec<u64>,
    coefs: Vec<Dense<T>>,
    /// Per state its values at the cells of its zone, over the whole grid.
    states: Vec<Dense<T>>,
    /// Per probe one value per step.
    probes: Vec<Vec<T>>,
    /// Incident fields, right before the stage that runs next.
    incoming: Vec<Field>,
    /// Places at the faces of boxes of total fields, by stage.
    corrected: Vec<Vec<Corrected>>,
    steps: u64,
}

/// A place that reads across the faces of a box of total fields.
struct Corrected {
    /// Index into the incident fields.
    field: usize,
    target: ComponentId,
    at: PerAxis<i64>,
    terms: Vec<Term>,
}

/// Cells one after the other along the inner axis.
#[derive(Clone, Copy)]
struct Piece {
    first: PerAxis<i64>,
    len: usize,
}

impl Piece {
    fn cells(self) -> impl Iterator<Item = PerAxis<i64>> {
        (self.first[Axis::INNER]..).take(self.len).map(move |i| {
            let mut at = self.first;
            at[Axis::INNER] = i;
            at
        })
    }

    /// The longest pieces of the cells that fulfil a condition.
    fn split(self, fulfils: impl Fn(PerAxis<i64>) -> bool) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut follows = false;
        for at in self.cells() {
            let here = fulfils(at);
            match pieces.last_mut() {
                Some(piece) if here && follows => piece.len += 1,
                _ if here => pieces.push(Piece { first: at, len: 1 }),
                _ => {}
            }
            follows = here;
        }
        pieces
    }

    /// Where the cells of a part of it lie in it.
    fn position_of(self, part: Piece) -> std::ops::Range<usize> {
        let from = (part.first[Axis::INNER] - self.first[Axis::INNER]) as usize;
        from..from + part.len
    }
}

/// Calls `f` with every line of a region.
fn for_each_line(region: Region, mut f: impl FnMut(Piece)) {
    let len = region[Axis::INNER].len().max(0);
    let mut starts = region;
    starts[Axis::INNER].hi = starts[Axis::INNER].lo + len.min(1);
    for_each_index(starts, |first| {
        f(Piece {
            first,
            len: len as usize,
        });
    });
}

/// The values that an update has computed.
struct Computed<T> {
    values: Vec<(Piece, Vec<T>)>,
    states: Vec<(StateId, Piece, Vec<T>)>,
}

/// The incident fields of a problem, and by stage the places that they correct. A problem with incident fields that
/// cannot be has been refused before ([`incident::check`]).
fn incoming(
    scheme: &Scheme,
    problem: &Problem,
    files: &dyn Files,
) -> (Vec<Field>, Vec<Vec<Corrected>>) {
    let mut fields = Vec::new();
    let mut corrected: Vec<Vec<Corrected>> = scheme.stages.iter().map(|_| Vec::new()).collect();
    for incident in &problem.incidents {
        let Ok(field) = Field::new(scheme, incident, files) else {
            continue;
        };
        for of in &incident.boxes {
            let shell = Shell::new(scheme, of);
            for stage in scheme.stage_ids() {
                for update in &scheme.stages[stage.index()].updates {
                    let sites = incident::for_each_site(&shell, files, stage, update, |site| {
                        corrected[stage.index()].push(Corrected {
                            field: fields.len(),
                            target: site.target,
                            at: site.at,
                            terms: site.terms.to_vec(),
                        });
                        Ok(())
                    });
                    debug_assert_eq!(sites, Ok(()));
                }
            }
        }
        fields.push(field);
    }
    (fields, corrected)
}

impl<'a, T: Real> Reference<'a, T> {
    #[inline(never)]
    pub fn new(scheme: &'a Scheme, problem: &'a Problem, files: &'a dyn Files) -> Self {
        debug_assert_eq!(T::PRECISION, scheme.precision);
        let (incoming, corrected) = incoming(scheme, problem, files);
        let grid = &scheme.grid;
        let mut values = Vec::new();
        for id in scheme.component_ids() {
            let component = scheme.component(id);
            let time_levels = component.time_levels;
            let mut arrays = vec![Dense::filled(scheme.extent(id)); usize::from(time_levels)];
            for age in 0..time_levels {
                let Some(start) = start_of(scheme, problem, id, age) else {
                    continue;
                };
                // Version 0 is the newest; older ones wrap round to the last time levels.
                let time_level = usize::from((time_levels - age) % time_levels);
                for_each_index(grid.live(component.position), |at| {
                    let value = init_value(scheme, files, &start, at);
                    arrays[time_level].set(at, T::from_f64(value).flush());
                });
            }
            values.push(arrays);
        }
        let coefs = scheme
            .coefs
            .iter()
            .map(|m| {
                let mut array = Dense::filled(grid.extent(m.position));
                for_each_index(array.extent, |at| {
                    let value = coef_value(scheme, files, m.position, &m.value, at);
                    array.set(at, T::from_f64(value));
                });
                array
            })
            .collect();
        Self {
            scheme,
            problem,
            files,
            values,
            versions: vec![0; scheme.components.len()],
            coefs,
            states: scheme
                .states
                .iter()
                .map(|s| Dense::filled(grid.extent(s.position)))
                .collect(),
            probes: vec![Vec::new(); problem.probes.len()],
            incoming,
            corrected,
            steps: 0,
        }
    }

    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The newest value of a component at an index of its extent.
    pub fn value(&self, id: ComponentId, at: PerAxis<i64>) -> T {
        self.newest(id).get(at)
    }

    /// The newest values of a component over its extent, inner axis fastest.
    pub fn values(&self, id: ComponentId) -> &[T] {
        &self.newest(id).values
    }

    /// The values of a version that is still kept, inner axis fastest: 0 is the newest.
    pub fn aged_values(&self, id: ComponentId, age: u8) -> &[T] {
        let time_levels = u64::from(self.scheme.component(id).time_levels);
        let version = self.versions[id.index()] + time_levels - u64::from(age) % time_levels;
        &self.values[id.index()][self.time_level(id, version)].values
    }

    /// Replaces the newest value of a component; for tests that perturb.
    #[cfg(any(test, feature = "testing"))]
    pub fn set_value(&mut self, id: ComponentId, at: PerAxis<i64>, value: T) {
        let time_level = self.time_level(id, self.versions[id.index()]);
        self.values[id.index()][time_level].set(at, value);
    }

    /// The record of a probe, one value per step.
    pub fn probe(&self, index: usize) -> &[T] {
        &self.probes[index]
    }

    fn newest(&self, id: ComponentId) -> &Dense<T> {
        &self.values[id.index()][self.time_level(id, self.versions[id.index()])]
    }

    fn time_level(&self, id: ComponentId, version: u64) -> usize {
        (version % u64::from(self.scheme.component(id).time_levels)) as usize
    }

    /// Runs the whole problem.
    #[inline(never)]
    pub fn run(&mut self) {
        while self.steps < self.problem.steps {
            self.step();
        }
    }

    /// Runs one step: every stage in turn.
    #[inline(never)]
    pub fn step(&mut self) {
        let scheme = self.scheme;
        for id in scheme.stage_ids() {
            let stage = &scheme.stages[id.index()];
            // All updates of a stage read values from before it.
            let computed: Vec<Computed<T>> =
                stage.updates.iter().map(|u| self.compute(u)).collect();
            let corrections = self.corrections(id);
            for (update, Computed { values, states }) in stage.updates.iter().zip(computed) {
                for (state, piece, new) in states {
                    self.states[state.index()].set_piece(piece, &new);
                }
                let target = update.target;
                let version = self.versions[target.index()] + 1;
                let time_level = self.time_level(target, version);
                for (piece, new) in values {
                    self.values[target.index()][time_level].set_piece(piece, &new);
                }
                self.versions[target.index()] = version;
                for (_, at, value) in corrections.iter().filter(|c| c.0 == target) {
                    let array = &mut self.values[target.index()][time_level];
                    array.set(*at, array.get(*at).add(*value));
                }
                self.add_sources(id, target);
            }
        }
        self.steps += 1;
        for (probe, record) in self.problem.probes.iter().zip(&mut self.probes) {
            let time_levels = u64::from(scheme.component(probe.component).time_levels);
            let time_level = (self.versions[probe.component.index()] % time_levels) as usize;
            record.push(self.values[probe.component.index()][time_level].get(probe.at));
        }
    }

    /// The corrections at the faces of boxes of total fields after a stage. Incident fields are then the ones before
    /// the next stage.
    fn corrections(&mut self, stage: StageId) -> Vec<(ComponentId, PerAxis<i64>, T)> {
        let when = When {
            scheme: self.scheme,
            files: self.files,
            stage,
            step: self.steps,
        };
        let corrected = self.corrected[stage.index()].iter().map(|place| {
            let field = &self.incoming[place.field];
            let terms = place.terms.iter();
            let sum = terms.fold(0.0, |sum, term| {
                sum + term.weight * field.value(&when, term)
            });
            let sum = incident::settled(self.scheme, sum);
            (place.target, place.at, T::from_f64(sum))
        });
        let corrections = corrected.collect();
        self.incoming.iter_mut().for_each(|f| f.advance(&when));
        corrections
    }

    /// The values of a state over the grid, inner axis fastest; 0 outside of its zone.
    pub fn state_values(&self, id: StateId) -> &[T] {
        &self.states[id.index()].values
    }

    fn compute(&self, update: &Update) -> Computed<T> {
        let mut out = Computed {
            values: Vec::new(),
            states: Vec::new(),
        };
        let mut scratch = Vec::new();
        let unmasked = |at| match update.mask {
            Some(mask) => self.coefs[mask.index()].get(at).to_f64() != 0.0,
            None => true,
        };
        for_each_line(update.region, |line| {
            for piece in line.split(unmasked) {
                let zeros = vec![T::default(); piece.len];
                self.evaluate(&update.body, piece, &zeros, &mut scratch);
                let mut values = scratch[update.body.result.index()].clone();
                for amendment in &update.amendments {
                    let zone = self.scheme.zone(amendment.zone);
                    for part in piece.split(|at| zone.contains(at)) {
                        let values = &mut values[piece.position_of(part)];
                        self.evaluate(&amendment.body, part, values, &mut scratch);
                        values.copy_from_slice(&scratch[amendment.body.result.index()]);
                        for advance in &amendment.advances {
                            let new = scratch[advance.value.index()].clone();
                            out.states.push((advance.state, part, new));
                        }
                    }
                }
                out.values.push((piece, values));
            }
        });
        out
    }

    /// Leaves the values of all operations of a body in `v`; `base` are the values of the update so far.
    fn evaluate(&self, body: &Body, piece: Piece, base: &[T], v: &mut Vec<Vec<T>>) {
        v.resize_with(v.len().max(body.ops.len()), Vec::new);
        for (number, op) in body.ops.iter().enumerate() {
            let (known, rest) = v.split_at_mut(number);
            let out = &mut rest[0];
            out.clear();
            let of = |x: Value| known[x.index()].as_slice();
            let pairs = |a: Value, b: Value| of(a).iter().zip(of(b));
            match *op {
                Op::Const(c) => out.resize(piece.len, T::from_f64(c)),
                Op::Read(read) => self.read(read, piece, out),
                Op::Coef(m) => out.extend_from_slice(self.coefs[m.index()].piece(piece)),
                Op::Base => out.extend_from_slice(base),
                Op::State(s) => out.extend_from_slice(self.states[s.index()].piece(piece)),
                Op::Neg(a) => out.extend(of(a).iter().map(|a| a.neg())),
                Op::Abs(a) => out.extend(of(a).iter().map(|a| a.abs())),
                Op::Flush(a) => out.extend(of(a).iter().map(|a| a.flush())),
                Op::Sqrt(a) => out.extend(of(a).iter().map(|a| a.sqrt())),
                Op::Power2(a) => out.extend(of(a).iter().map(|a| a.power2())),
                Op::Exponent(a) => out.extend(of(a).iter().map(|a| a.exponent())),
                Op::Add(a, b) => out.extend(pairs(a, b).map(|(&a, &b)| a.add(b))),
                Op::Sub(a, b) => out.extend(pairs(a, b).map(|(&a, &b)| a.sub(b))),
                Op::Mul(a, b) => out.extend(pairs(a, b).map(|(&a, &b)| a.mul(b))),
                Op::Div(a, b) => out.extend(pairs(a, b).map(|(&a, &b)| a.div(b))),
                Op::Fma(a, b, c) => {
                    let products = pairs(a, b).zip(of(c));
                    out.extend(products.map(|((&a, &b), &c)| a.mul_add(b, c)));
                }
                Op::Select {
                    cmp,
                    a,
                    b,
                    then,
                    otherwise,
                } => {
                    let chosen = pairs(a, b).map(|(&a, &b)| a.compare(cmp, b));
                    let values = chosen.zip(pairs(then, otherwise));
                    out.extend(values.map(
                        |(first, (&then, &otherwise))| {
                            if first { then } else { otherwise }
                        },
                    ));
                }
            }
        }
    }

    /// The values that a body reads. All cells of a piece that lie within the grid along the inner axis are stored in
    /// one line, or nowhere.
    fn read(&self, read: Read, piece: Piece, out: &mut Vec<T>) {
        let component = self.scheme.component(read.component);
        let version = self.versions[read.component.index()] + u64::from(component.time_levels)
            - u64::from(read.age);
        let values = &self.values[read.component.index()][self.time_level(read.component, version)];
        let grid = &self.scheme.grid;
        let from = Piece {
            first: PerAxis::from_fn(|a| piece.first[a] + i64::from(read.offset[a])),
            ..piece
        };
        let [lo, hi] = [0, from.len as i64].map(|n| from.first[Axis::INNER] + n);
        let stored = grid.live(component.position)[Axis::INNER];
        let middle = stored.lo.clamp(lo, hi)..stored.hi.clamp(lo, hi);
        let part = |range: std::ops::Range<i64>| {
            let mut first = from.first;
            first[Axis::INNER] = range.start;
            let len = (range.end - range.start).max(0) as usize;
            Piece { first, len }
        };
        let mut copy = |part: Piece| match grid.resolve(component.position, part.first) {
            Located::Zero => out.resize(out.len() + part.len, T::default()),
            Located::Stored { at, negated } => {
                let line = values.piece(Piece { first: at, ..part });
                match negated {
                    true => out.extend(line.iter().map(|x| x.neg())),
                    false => out.extend_from_slice(line),
                }
            }
        };
        let one = |first| Piece { first, len: 1 };
        part(lo..middle.start).cells().for_each(|at| copy(one(at)));
        if !middle.is_empty() {
            copy(part(middle.clone()));
        }
        part(middle.end..hi).cells().for_each(|at| copy(one(at)));
    }

    fn add_sources(&mut self, stage: StageId, target: ComponentId) {
        let (scheme, files, step) = (self.scheme, self.files, self.steps);
        let position = scheme.component(target).position;
        for source in &self.problem.sources {
            if source.component != target || source.stage != stage {
                continue;
            }
            let time_level = self.time_level(target, self.versions[target.index()]);
            let array = &mut self.values[target.index()][time_level];
            for_each_index(source.region, |at| {
                if source_acts(scheme, files, source, at) {
                    let profile = statics::coef_value(scheme, files, position, &source.profile, at);
                    let given = profile * source_wave(scheme, files, source, step, at);
                    let given = T::from_f64(given);
                    let value = match source.replaces {
                        true => given,
                        false => array.get(at).add(given),
                    };
                    array.set(at, value);
                }
            });
        }
    }
}
