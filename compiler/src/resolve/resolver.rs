//! The state of resolving a file, and its reports of errors.

use super::codes;
use super::evaluate::STEPS;
use super::files_read::FilesRead;
use super::frame::Frame;
use super::graph::{Graph, WORK};
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

/// The most operations in a whole file, as a multiple of the most in one scheme or problem.
const FILE: f64 = 16.0;

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
    /// The same in the layers along each axis, where it is another one.
    pub layer_speeds: PerAxis<Option<f64>>,
    /// The lengths of the domain, where they do not follow from its cells.
    pub lengths: Option<PerAxis<f64>>,
    /// Whether Bloch-periodic sides are plainly periodic.
    pub without_phases: bool,
    pub searches: Searches,
    pub nested: usize,
    pub steps: u64,
    /// Operations for earlier schemes and problems, as a multiple of the most in one.
    before: f64,
    /// Whether it was said that the scheme or problem is too complex.
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
            layer_speeds: PerAxis::splat(None),
            lengths: None,
            without_phases: false,
            searches: Searches::default(),
            nested: 0,
            steps: 0,
            before: 0.0,
            exhausted: false,
        }
    }

    /// Forgets a scheme before the next one, which may have as many operations.
    pub fn reset(&mut self) {
        let evaluated = self.steps as f64 / STEPS as f64;
        let worked = self.graph.work() as f64 / WORK as f64;
        self.before += evaluated.max(worked);
        self.steps = 0;
        self.exhausted = false;
        self.graph = Graph::default();
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

    /// Refuses a scheme or problem of a file whose earlier schemes and problems have too many operations.
    pub fn within_file(&mut self, name: &Place) -> Outcome<()> {
        if self.before <= FILE {
            return Ok(());
        }
        let message = "the rest of this file is not checked: its schemes and problems are too complex together";
        let d = self
            .error(codes::TOO_COMPLEX, message, name)
            .hint("make several files of it");
        self.fail(d)
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
