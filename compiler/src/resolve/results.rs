//! Results of a problem while they are gathered.

use super::graph::NodeId;
use super::report::Place;
use super::value::Scope;
use crate::problem::{Incident, Init, Output, Probe, Series, Source, StateProbe, StaticOutput};
use std::collections::{BTreeMap, BTreeSet};

/// The common context of statements about results.
pub struct Recorded<'a> {
    pub scope: &'a Scope,
    /// The whole statement.
    pub place: &'a Place,
    pub every: u64,
}

/// Results of a problem while they are gathered.
#[derive(Default)]
pub struct Results {
    pub init: Vec<Init>,
    pub incoming: Incoming,
    pub sources: Vec<Source>,
    /// The place and the condition of each source in the text.
    pub source_texts: Vec<SourceText>,
    pub probes: Vec<Probe>,
    pub state_probes: Vec<StateProbe>,
    pub outputs: Vec<Output>,
    pub statics: Vec<StaticOutput>,
    pub probe_names: BTreeSet<String>,
    pub series: Vec<Series>,
    pub series_names: BTreeSet<String>,
    /// By an output's name with the signs of a file's name, the last number that it was given.
    pub output_names: BTreeMap<String, u64>,
    /// The same for spectra.
    pub spectrum_names: BTreeMap<String, u64>,
}

/// The place and the condition of a source in the text.
pub struct SourceText {
    /// Where it is written.
    pub(super) place: Place,
    /// The whole of its condition, if it has one.
    pub(super) condition: Option<NodeId>,
}

/// Incident fields while they are gathered.
#[derive(Default)]
pub struct Incoming {
    pub list: Vec<Incident>,
    /// Where each has its name.
    pub(super) names: Vec<Place>,
    /// Where the boxes of each are written.
    pub(super) boxes: Vec<Vec<Place>>,
}
