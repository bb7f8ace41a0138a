//! The state of resolving a file, and its reports of errors.

use super::codes;
use super::files_read::FilesRead;
use super::frame::Frame;
use super::graph::Graph;
use super::load::{ItemId, Library};
use super::report::{Outcome, Place, Report, Reported, USED};
use super::searches::Searches;
use super::value::{Use, Value};
use super::zones::Zoned;
use crate::lattice::PerAxis;
use crate::world::World;
use std::collections::BTreeMap;
use torre_grammar::diag::{Code, Diagnostic};

/// The most names in a block.
pub const LOCALS: usize = 1_000;

/// A constant that is being computed or has been.
pub enum Constant {
    Running,
    Done(Value),
}

/// The state of resolving a file.
pub struct Resolver<'w> {
    pub world: &'w dyn World,
    pub library: Library,
    pub graph: Graph,
    pub report: Report,
    /// The scheme at hand, as far as it is declared.
    pub frame: Frame,
    pub constants: BTreeMap<ItemId, Constant>,
    pub inlined: Vec<Use>,
    pub files: FilesRead,
    pub zoned: Zoned,
    /// The fastest long waves of the scheme, in lengths per time, once they are known.
    pub speed: Option<f64>,
    /// The lengths of the domain, where they do not follow from its cells.
    pub lengths: Option<PerAxis<f64>>,
    /// Whether Bloch-periodic sides are plainly periodic.
    pub without_phases: bool,
    pub searches: Searches,
    pub nested: usize,
    pub steps: u64,
    /// Whether it was said that the program is too complex.
    exhausted: bool,
}

impl<'w> Resolver<'w> {
    pub fn new(world: &'w dyn World) -> Self {
        Self {
            world,
            library: Library::default(),
            graph: Graph::default(),
            report: Report::default(),
            frame: Frame::default(),
            constants: BTreeMap::new(),
            inlined: Vec::new(),
            files: FilesRead::default(),
            zoned: Zoned::default(),
            speed: None,
            lengths: None,
            without_phases: false,
            searches: Searches::default(),
            nested: 0,
            steps: 0,
            exhausted: false,
        }
    }

    /// Forgets a scheme before the next one.
    pub fn reset(&mut self) {
        self.graph = self.graph.successor();
        self.frame = Frame::default();
        self.constants.clear();
        self.files.reset();
        self.zoned = Zoned::default();
    }

    /// An error at a place; inside of definitions with the places that use them.
    pub fn error(&self, code: Code, message: impl Into<String>, at: &Place) -> Diagnostic {
        Diagnostic::error(code, message).at(&at.source, at.span, "here")
    }

    pub fn fail<T>(&mut self, diagnostic: Diagnostic) -> Outcome<T> {
        self.tell(diagnostic);
        Err(Reported)
    }

    /// Adds to the report, with the places where inlined definitions are used.
    fn tell(&mut self, mut diagnostic: Diagnostic) {
        let uses = self.inlined.iter().rev();
        let shown: Vec<Place> = match self.inlined.len() {
            0..=3 => uses.map(|u| u.place.clone()).collect(),
            _ => uses
                .clone()
                .take(1)
                .chain(self.inlined.first())
                .map(|u| u.place.clone())
                .collect(),
        };
        for place in shown {
            diagnostic = diagnostic.at(&place.source, place.span, USED);
        }
        self.report.push(diagnostic);
    }

    pub fn too_complex<T>(&mut self, place: &Place) -> Outcome<T> {
        if std::mem::replace(&mut self.exhausted, true) {
            return Err(Reported);
        }
        let d = self
            .error(
                codes::TOO_COMPLEX,
                "this is too complex: it has too many operations once all definitions are inlined",
                place,
            )
            .hint("make it shorter, or store intermediate values in fields");
        self.fail(d)
    }
}
