//! The problem: one calculation with a scheme. Data around the updates: initial values, sources, probes, outputs.

use crate::host::HostExpr;
use crate::lattice::{Axis, PerAxis, Position, Region};
use crate::scheme::{Body, ComponentId, FileId, Scheme, StageId, StateId};

#[derive(Clone, Debug, Default)]
pub struct Problem {
    pub name: String,
    pub steps: u64,
    pub init: Vec<Init>,
    /// Fields that come from outside, with the boxes in which they are part of the values. They act before sources.
    pub incidents: Vec<Incident>,
    pub sources: Vec<Source>,
    pub probes: Vec<Probe>,
    pub state_probes: Vec<StateProbe>,
    pub series: Vec<Series>,
    pub outputs: Vec<Output>,
    pub statics: Vec<StaticOutput>,
    /// Media that vary over the grid, for pictures: results do not depend on them.
    pub media: Vec<Medium>,
}

/// Initial values of a component over its live region; other components start at 0. A later one replaces an earlier
/// one.
#[derive(Clone, Debug)]
pub struct Init {
    pub component: ComponentId,
    /// The version, 0 the newest one at the start. Versions without an entry start as [`crate::statics::start_of`]
    /// says.
    pub age: u8,
    pub value: StaticValue,
}

/// Values on the grid that do not change.
#[derive(Clone, Debug)]
pub enum StaticValue {
    /// Evaluated in double precision at each index, then rounded. Time is that of the component.
    Expr(HostExpr),
    File(FileId),
}

/// Adds `round(profile * wave)` to the values of a component in a region, right after the update of each step, or puts
/// it in their place.
///
/// The product is taken in double precision and rounded to the scheme's precision; the addition is in that precision.
/// Time in `wave` is that of the new value. Sources on the same value act in their order in the problem.
#[derive(Clone, Debug)]
pub struct Source {
    pub component: ComponentId,
    /// The stage after whose update of the component it acts.
    pub stage: StageId,
    /// Within the region of that update.
    pub region: Region,
    /// Acts only where this is not 0.
    pub condition: Option<HostExpr>,
    /// Depends on the place only.
    pub profile: HostExpr,
    /// Depends on time; where it also depends on the place, it is evaluated for every cell and step.
    pub wave: HostExpr,
    /// The product becomes the value, rather than being added to it.
    pub replaces: bool,
}

/// A field that comes from outside of the domain. In its boxes values belong to the total field, elsewhere to the
/// scattered one, which is the total less the incident one: [`crate::incident`] says how.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    pub name: String,
    pub field: IncidentField,
    pub boxes: Vec<TotalBox>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum IncidentField {
    Plane(PlaneWave),
    /// Values of place and time, by component; `None` where none are given.
    Given(Vec<Option<HostExpr>>),
}

/// A plane wave of the scheme itself, in the medium at the faces of its boxes.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaneWave {
    /// Where it goes, in cells: whole numbers without a common factor, not all 0; 0 along absent axes.
    pub direction: PerAxis<i64>,
    /// The drives that make it, added in each step.
    pub drives: Vec<Drive>,
    /// The largest rate at which the ends of its line absorb, per step.
    pub loss: f64,
}

/// Adds to a component of a plane wave's line, after its last update in each step.
#[derive(Clone, Debug, PartialEq)]
pub struct Drive {
    pub component: ComponentId,
    /// Depends on time only: that of the new value.
    pub wave: HostExpr,
}

/// A box of total fields: values at positions from one end to the other, in cells, both included. Along an axis without
/// faces it is the whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TotalBox {
    pub ends: PerAxis<[i64; 2]>,
}

impl TotalBox {
    /// Whether two boxes have positions in common, be it on their faces.
    pub fn meets(&self, other: &TotalBox) -> bool {
        let mut ends = Axis::ALL.into_iter().map(|a| (self.ends[a], other.ends[a]));
        ends.all(|([lo, hi], [from, to])| lo <= to && from <= hi)
    }
}

/// Records one value after every step whose number is a multiple of `every`.
#[derive(Clone, Debug)]
pub struct Probe {
    pub name: String,
    pub component: ComponentId,
    pub at: PerAxis<i64>,
    pub every: u64,
}

/// Records one value of a state after every step whose number is a multiple of `every`.
#[derive(Clone, Debug)]
pub struct StateProbe {
    pub name: String,
    pub state: StateId,
    /// In the zone of the state.
    pub at: PerAxis<i64>,
    pub every: u64,
}

/// A number of many values over time: recorded after every step whose number is a multiple of `every`.
/// [`crate::series`] says how it is computed.
#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub reduction: Reduction,
    /// At least one; a sum is that of all.
    pub terms: Vec<SeriesTerm>,
    pub every: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Sum,
    Min,
    Max,
}

/// The expression that is reduced at the places of one position.
#[derive(Clone, Debug)]
pub struct SeriesTerm {
    pub position: Position,
    /// Within the extent of components at the position.
    pub region: Region,
    /// Only indices where this is not 0 count.
    pub condition: Option<HostExpr>,
    /// In double precision, for any precision of the scheme. Coefficients are the term's.
    pub body: Body,
    pub coefs: Vec<HostExpr>,
}

/// Whether names of files have a sign as it is; others become `_`.
pub fn is_in_file_names(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "._-=,".contains(sign)
}

/// Takes values after every step whose number is a multiple of `every`, and writes them, or sums a spectrum.
#[derive(Clone, Debug)]
pub struct Output {
    /// Names the files: unique among the outputs, also with the signs that names of files have.
    pub name: String,
    pub component: ComponentId,
    /// The state that is written instead of the component: a state that its updates keep, which has the same positions
    /// and time. It is 0 outside of its zone.
    pub state: Option<StateId>,
    pub kind: OutputKind,
    /// The indices that are written, within the component's extent; of a slice, in its plane.
    pub region: Region,
    pub every: u64,
    /// Values are not written, but summed: the result is their spectrum at the end.
    pub spectrum: Option<Spectrum>,
}

/// The Fourier transform of values over time, `every * dt` times the sum of `value * exp(2 pi i f t)`, `t` being the
/// time of the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Spectrum {
    /// At least one; in cycles per unit of time.
    pub frequencies: Vec<f64>,
}

impl Problem {
    /// Whether a run has results other than its last values.
    pub fn has_results(&self) -> bool {
        let Problem {
            name: _,
            steps: _,
            init: _,
            incidents: _,
            sources: _,
            probes,
            state_probes,
            series,
            outputs,
            statics,
            media: _,
        } = self;
        let records = !probes.is_empty() || !state_probes.is_empty() || !series.is_empty();
        records || !outputs.is_empty() || !statics.is_empty()
    }

    /// The same problem with nothing to record or to write.
    pub fn without_results(&self) -> Problem {
        Problem {
            name: self.name.clone(),
            steps: self.steps,
            init: self.init.clone(),
            incidents: self.incidents.clone(),
            sources: self.sources.clone(),
            probes: Vec::new(),
            state_probes: Vec::new(),
            series: Vec::new(),
            outputs: Vec::new(),
            statics: Vec::new(),
            media: self.media.clone(),
        }
    }

    /// The outputs whose values are written.
    pub fn frames(&self) -> impl Iterator<Item = &Output> {
        let outputs = self.outputs.iter();
        outputs.filter(|output| output.spectrum.is_none())
    }

    /// The outputs that are spectra, each with its number and its frequencies.
    pub fn spectra(&self) -> impl Iterator<Item = (usize, &Output, &Spectrum)> {
        let outputs = self.outputs.iter().enumerate();
        outputs.filter_map(|(number, output)| Some((number, output, output.spectrum.as_ref()?)))
    }

    /// After multiples of how many steps something of more than single values is taken.
    pub fn intervals(&self) -> impl Iterator<Item = u64> + '_ {
        let outputs = self.outputs.iter().map(|o| o.every);
        let series = self.series.iter().map(|s| s.every);
        let states = self.state_probes.iter().map(|p| p.every);
        outputs.chain(series).chain(states)
    }
}

impl Output {
    /// The name of the values for people.
    pub fn quantity<'a>(&self, scheme: &'a Scheme) -> &'a str {
        match self.state {
            Some(state) => &scheme.states[state.index()].name,
            None => &scheme.component(self.component).name,
        }
    }

    /// Whether it is taken from the values at a pause, rather than recorded while steps run.
    pub fn needs_values(&self) -> bool {
        matches!(self.kind, OutputKind::Volume) || self.state.is_some()
    }
}

/// Writes values that do not change, such as a coefficient's, once.
#[derive(Clone, Debug)]
pub struct StaticOutput {
    /// Names the files: unique among all outputs, also with the signs that names of files have.
    pub name: String,
    pub position: Position,
    pub value: HostExpr,
    pub kind: OutputKind,
    /// The indices that are written, within the extent of components at this position.
    pub region: Region,
}

/// A coefficient or region with a name that varies over the grid and not in time.
#[derive(Clone, Debug)]
pub struct Medium {
    /// As the user writes it: `eps`, or `k.x` for a part.
    pub name: String,
    /// Where its values lie; an expression without a position of its own is evaluated in the middle of cells.
    pub position: Position,
    pub value: HostExpr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// The plane of one cell index.
    Slice {
        axis: Axis,
        index: i64,
    },
    Volume,
}
