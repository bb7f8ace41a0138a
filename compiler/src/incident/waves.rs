//! The waves of corrections, step by step. Values that depend on earlier steps are gathered in the order of steps; the
//! rest may be done for several steps at the same time.

use super::field::{Field, Given, When};
use super::line::{Line, Slot, add_weighted};
use super::settled;
use crate::lattice::{Interval, PerAxis};
use crate::scheme::{ComponentId, Scheme, StageId};
use crate::statics::Files;

/// A value of the field times a weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// A stretch of a line, or a point of a given field.
    pub(super) value: u32,
    /// From the point of the place.
    pub(super) shift: i32,
    pub(super) weight: f64,
}

/// Places that read across faces in the same way.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    /// Where its parts end in the parts of all kinds; they begin where the parts of the kind before end.
    pub(super) parts: u32,
    /// The points of the line at which they lie: one wave for each.
    pub(super) points: Interval,
    /// The number of the first wave.
    pub(super) first: i64,
}

/// Points of a slot of a line.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    slot: Slot,
    points: Interval,
}

/// The waves of an update in a box.
#[derive(Clone, Debug)]
pub(super) struct Waves {
    field: usize,
    stage: StageId,
    /// The stretches of which they are made, where the field is a plane wave.
    stretches: Vec<Stretch>,
    kinds: Vec<Kind>,
    /// The parts of all kinds.
    parts: Vec<Part>,
    /// How many there are.
    pub(super) count: usize,
}

/// A value of a given field that corrections need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GivenPoint {
    pub(super) component: ComponentId,
    pub(super) lag: i64,
    pub(super) at: PerAxis<i64>,
}

/// The input of the waves of a step that depends on earlier steps: values of stretches of lines.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    step: u64,
    values: Vec<f64>,
}

/// Makes waves of gathered values, in any order of steps.
#[derive(Clone, Debug)]
pub struct Summing<'a> {
    pub(super) waves: &'a [Waves],
    pub(super) points: &'a [Vec<GivenPoint>],
    /// By field.
    pub(super) given: Vec<Option<&'a Given>>,
}

/// Goes from step to step, and gathers the input of waves.
#[derive(Debug)]
pub struct Gathering<'a> {
    pub(super) waves: &'a [Waves],
    /// By field.
    pub(super) lines: Vec<Option<&'a mut Line>>,
    pub(super) step: &'a mut u64,
}

/// Multiplications in the time in which an expression is evaluated, about.
pub(super) const POINT: u64 = 50;

impl Gathering<'_> {
    /// Gathers the input of the waves of the next step.
    pub fn gather(&mut self, scheme: &Scheme, files: &dyn Files, out: &mut Gathered) {
        out.step = *self.step;
        out.values.clear();
        self.advance(scheme, files, |line, stretch| {
            let Interval { lo, hi } = stretch.points;
            let values = &line.values(stretch.slot)[lo as usize..hi as usize];
            out.values.extend_from_slice(values);
        });
    }

    /// Goes through a step.
    pub(super) fn skip(&mut self, scheme: &Scheme, files: &dyn Files) {
        self.advance(scheme, files, |_, _| ());
    }

    /// Goes through a step, stage by stage; looks at all stretches before their stages.
    fn advance(
        &mut self,
        scheme: &Scheme,
        files: &dyn Files,
        mut look: impl FnMut(&Line, &Stretch),
    ) {
        for stage in scheme.stage_ids() {
            for waves in self.waves.iter().filter(|waves| waves.stage == stage) {
                if let Some(line) = &self.lines[waves.field] {
                    waves.stretches.iter().for_each(|own| look(line, own));
                }
            }
            for line in self.lines.iter_mut().flatten() {
                line.advance(scheme, files, stage.index(), *self.step);
            }
        }
        *self.step += 1;
    }
}

impl Summing<'_> {
    /// Appends the waves of a step in their order.
    pub fn sum(&self, scheme: &Scheme, files: &dyn Files, gathered: &Gathered, out: &mut Vec<f64>) {
        let begin = out.len();
        let count = self.waves.iter().map(|waves| waves.count).sum::<usize>();
        out.resize(begin + count, 0.0);
        let at = When {
            scheme,
            files,
            stage: StageId(0),
            step: gathered.step,
        };
        let own = self.given.iter().zip(self.points).map(|(given, points)| {
            let value = |given: &&Given| {
                let value = |p: &GivenPoint| given.value(&at, p.component, p.lag, p.at);
                points.iter().map(value).collect()
            };
            given.as_ref().map(value).unwrap_or_default()
        });
        let own: Vec<Vec<f64>> = own.collect();
        // Stretches were gathered stage by stage.
        let mut values = gathered.values.as_slice();
        for stage in scheme.stage_ids() {
            let mut rest = &mut out[begin..];
            for waves in self.waves {
                let (sums, others) = rest.split_at_mut(waves.count);
                rest = others;
                if waves.stage != stage {
                    continue;
                }
                match self.given[waves.field] {
                    Some(_) => waves.of_points(&own[waves.field], sums),
                    None => values = waves.of_stretches(values, sums),
                }
            }
        }
        for wave in &mut out[begin..] {
            *wave = settled(scheme, *wave);
        }
    }
}

impl Waves {
    /// The parts of plane waves name slots, until now.
    pub(super) fn new(
        number: usize,
        field: &Field,
        stage: StageId,
        kinds: Vec<Kind>,
        mut parts: Vec<Part>,
    ) -> Waves {
        let mut stretches: Vec<Stretch> = Vec::new();
        if let Field::Plane(_) = field {
            let mut begin = 0;
            for kind in &kinds {
                let end = kind.parts as usize;
                for part in &mut parts[begin..end] {
                    let slot = part.value as usize;
                    let shift = i64::from(part.shift);
                    let points = Interval::new(kind.points.lo + shift, kind.points.hi + shift);
                    let known = stretches.iter().position(|stretch| stretch.slot == slot);
                    let number = known.unwrap_or_else(|| {
                        stretches.push(Stretch { slot, points });
                        stretches.len() - 1
                    });
                    let own = &mut stretches[number];
                    own.points = own.points.hull(points);
                    part.value = number as u32;
                }
                begin = end;
            }
        }
        Waves {
            field: number,
            stage,
            count: kinds.iter().map(|kind| kind.points.len() as usize).sum(),
            stretches,
            kinds,
            parts,
        }
    }

    /// Bytes of their terms.
    pub(super) fn bytes(&self) -> u64 {
        let kinds = self.kinds.len() * size_of::<Kind>();
        (kinds + self.parts.len() * size_of::<Part>()) as u64
    }

    /// Values that are gathered for them.
    pub(super) fn gathered(&self) -> usize {
        let values = self.stretches.iter().map(|own| own.points.len() as usize);
        values.sum()
    }

    /// Multiplications of a step.
    pub(super) fn operations(&self) -> u64 {
        let mut begin = 0;
        let of = self.kinds.iter().map(|kind| {
            let parts = kind.parts - std::mem::replace(&mut begin, kind.parts);
            u64::from(parts + 1) * kind.points.len() as u64
        });
        of.sum()
    }

    /// The sums of the parts of all waves, part by part.
    fn sum<'v>(&self, out: &mut [f64], values: impl Fn(&Part, Interval) -> &'v [f64]) {
        let (mut rest, mut begin) = (out, 0);
        for kind in &self.kinds {
            let (own, others) = rest.split_at_mut(kind.points.len() as usize);
            let end = kind.parts as usize;
            own.fill(0.0);
            let parts = self.parts[begin..end].iter();
            add_weighted(
                own,
                parts.map(|part| (values(part, kind.points), part.weight)),
            );
            (rest, begin) = (others, end);
        }
    }

    /// From the values of all stretches, one after the other; gives the rest of the values.
    fn of_stretches<'v>(&self, values: &'v [f64], out: &mut [f64]) -> &'v [f64] {
        let mut rest = values;
        let stretches = self.stretches.iter().map(|stretch| {
            let (own, others) = rest.split_at(stretch.points.len() as usize);
            rest = others;
            own
        });
        let stretches: Vec<&[f64]> = stretches.collect();
        self.sum(out, |part, points| {
            let number = part.value as usize;
            let first = points.lo + i64::from(part.shift) - self.stretches[number].points.lo;
            &stretches[number][first as usize..][..points.len() as usize]
        });
        rest
    }

    fn of_points(&self, values: &[f64], out: &mut [f64]) {
        self.sum(out, |part, _| &values[part.value as usize..][..1]);
    }
}
