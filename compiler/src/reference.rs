//! The reference: runs a scheme step by step over whole grids, one cell at a time. It is the meaning of the language;
//! it shares no layout, ghosts or kernels with the back ends, so that comparing them with it means something.

use crate::incident::{self, Field, Shell, Term, When};
pub use crate::lattice::for_each_index;
use crate::lattice::{Axis, PerAxis, Region};
use crate::problem::Problem;
use crate::real::Real;
use crate::scheme::{Body, ComponentId, Located, Op, Scheme, StageId, StateId, Update, Value};
use crate::statics::{self, Files, coef_value, init_of, init_value, source_acts, source_wave};

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

/// What an update has computed, with the places.
struct Computed<T> {
    values: Vec<(PerAxis<i64>, T)>,
    states: Vec<(StateId, PerAxis<i64>, T)>,
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
                let Some(init) = init_of(problem, id, age) else {
                    continue;
                };
                // Version 0 is the newest; older ones wrap round to the last time levels.
                let time_level = usize::from((time_levels - age) % time_levels);
                for_each_index(grid.live(component.position), |at| {
                    let value = init_value(scheme, files, init, age, at);
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
    pub fn set_value(&mut self, id: ComponentId, at: PerAxis<i64>, value: T) {
        let time_level = self.time_level(id, self.versions[id.index()]);
        self.values[id.index()][time_level].set(at, value);
    }

    /// What a probe has recorded, one value per step.
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
    pub fn run(&mut self) {
        while self.steps < self.problem.steps {
            self.step();
        }
    }

    /// Runs one step: every stage in turn.
    pub fn step(&mut self) {
        let scheme = self.scheme;
        for id in scheme.stage_ids() {
            let stage = &scheme.stages[id.index()];
            // All updates of a stage read what was there before it.
            let computed: Vec<Computed<T>> =
                stage.updates.iter().map(|u| self.compute(u)).collect();
            let corrections = self.corrections(id);
            for (update, Computed { values, states }) in stage.updates.iter().zip(computed) {
                for (state, at, value) in states {
                    self.states[state.index()].set(at, value);
                }
                let target = update.target;
                let version = self.versions[target.index()] + 1;
                let time_level = self.time_level(target, version);
                for (at, value) in values {
                    self.values[target.index()][time_level].set(at, value);
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

    /// What is added at the faces of boxes of total fields after a stage. Incident fields are then those before the
    /// next one.
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
        for_each_index(update.region, |at| {
            let masked = update
                .mask
                .is_some_and(|m| self.coefs[m.index()].get(at).to_f64() == 0.0);
            if masked {
                return;
            }
            let zero = T::default();
            let mut value = self.eval(&update.body, at, zero, &mut scratch);
            for amendment in &update.amendments {
                if self.scheme.zone(amendment.zone).contains(at) {
                    value = self.eval(&amendment.body, at, value, &mut scratch);
                    for advance in &amendment.advances {
                        let new = scratch[advance.value.index()];
                        out.states.push((advance.state, at, new));
                    }
                }
            }
            out.values.push((at, value));
        });
        out
    }

    /// The result of a body; `base` is the value of the update so far. All values are left in `v`.
    fn eval(&self, body: &Body, at: PerAxis<i64>, base: T, v: &mut Vec<T>) -> T {
        v.clear();
        let get = |v: &[T], x: Value| v[x.index()];
        for op in &body.ops {
            let value = match *op {
                Op::Const(c) => T::from_f64(c),
                Op::Read(read) => {
                    let component = self.scheme.component(read.component);
                    let from = PerAxis::from_fn(|a| at[a] + i64::from(read.offset[a]));
                    match self.scheme.grid.resolve(component.position, from) {
                        Located::Zero => T::default(),
                        Located::Stored { at, negated } => {
                            let time_levels = u64::from(component.time_levels);
                            let version = self.versions[read.component.index()] + time_levels
                                - u64::from(read.age);
                            let time_level = self.time_level(read.component, version);
                            let value = self.values[read.component.index()][time_level].get(at);
                            if negated { value.neg() } else { value }
                        }
                    }
                }
                Op::Coef(m) => self.coefs[m.index()].get(at),
                Op::Base => base,
                Op::State(s) => self.states[s.index()].get(at),
                Op::Neg(a) => get(v, a).neg(),
                Op::Abs(a) => get(v, a).abs(),
                Op::Flush(a) => get(v, a).flush(),
                Op::Sqrt(a) => get(v, a).sqrt(),
                Op::Power2(a) => get(v, a).power2(),
                Op::Exponent(a) => get(v, a).exponent(),
                Op::Add(a, b) => get(v, a).add(get(v, b)),
                Op::Sub(a, b) => get(v, a).sub(get(v, b)),
                Op::Mul(a, b) => get(v, a).mul(get(v, b)),
                Op::Div(a, b) => get(v, a).div(get(v, b)),
                Op::Fma(a, b, c) => get(v, a).mul_add(get(v, b), get(v, c)),
                Op::Select {
                    cmp,
                    a,
                    b,
                    then,
                    otherwise,
                } => {
                    if get(v, a).compare(cmp, get(v, b)) {
                        get(v, then)
                    } else {
                        get(v, otherwise)
                    }
                }
            };
            v.push(value);
        }
        get(v, body.result)
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
