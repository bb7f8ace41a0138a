//! From syntax to meaning: names, positions, times and shapes are checked, definitions inlined, and each update is put
//! into its normal form. This is the last stage that knows the user's text.
//!
//! ```text
//! load, derive                            modules and items; schemes with their bases
//! declare, supply, files, sides, bound    axes, parameters, fields; coefficients; the grid
//! evaluate, names, inline, operate, difference
//!                                         expressions become nodes of a graph, with shape and position
//! order, branches                         statements, in the order in which they run
//! linearize, emit                         normal form; operations of one update
//! require                                 conditions on the parameters of definitions
//! layers, zoned                           layers at sides; values that a zone amends
//! regions, confine, enclose, ranges, exact, assemble
//!                                         regions and masks; stages and time levels
//! times, second_order, stages, taylor     updates that are not centred in time
//! gather, incoming, places, probe, output, reduce, spectrum, fit
//!                                         initial values, sources and results; memory
//! ```
//!
//! `pose` runs these for a problem. Hostile programs are refused in bounded time and memory: expressions that are
//! evaluated, nodes of the graph, steps on it and operations are all counted.

mod ahead;
mod allow;
mod assemble;
mod bloch;
mod bound;
mod branches;
mod built_in;
mod central;
pub mod codes;
mod confine;
mod declare;
mod derive;
mod difference;
mod elsewhere;
mod emit;
mod enclose;
mod evaluate;
mod exact;
mod files;
mod files_read;
mod fit;
mod flush;
mod fraction;
mod frame;
mod gather;
mod graph;
mod held;
mod incoming;
mod inline;
mod kept;
mod layers;
mod linearize;
mod load;
mod missing;
mod names;
mod once;
mod operate;
mod order;
mod output;
mod parsed;
mod places;
mod pose;
mod probe;
mod ranges;
mod reduce;
mod regions;
mod report;
mod require;
mod resolver;
mod results;
mod revise;
mod scan;
mod searches;
mod second_order;
mod sides;
mod silences;
mod sizes;
mod space;
mod spectrum;
mod stages;
mod suggest;
mod supply;
mod taylor;
mod times;
mod value;
mod worth;
mod zoned;
mod zones;

pub use report::Place;
pub use silences::Silences;

use crate::analysis::{self, Patience, Places};
use crate::lattice::{Axis, PerAxis, Region};
use crate::problem::Problem;
use crate::scheme::{Precision, Scheme};
use crate::statics::NoFiles;
use crate::world::World;
use load::Library;
use parsed::Parsed;
use resolver::Resolver;
use space::Space;
use std::rc::Rc;
use torre_grammar::ast::{self, Ast};
use torre_grammar::diag::{Diagnostic, Diagnostics};
use torre_grammar::source::Source;

/// The options of the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which problem of the file; not needed if there is one.
    pub problem: Option<String>,
    pub precision: Precision,
    /// Parameters by name with the text of their values, `domain` with `AxBxC`, `steps` with a number. Later ones win.
    pub overrides: Vec<(String, String)>,
    /// Bytes that the fields may take.
    pub memory: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            problem: None,
            precision: Precision::F32,
            overrides: Vec::new(),
            memory: None,
        }
    }
}

/// A number that a problem or the command line may set.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub value: f64,
}

/// A calculation with all that is known of it.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub scheme: Scheme,
    /// The scheme as it would be with periodic sides, where these have a phase: its long waves are those of the
    /// equations.
    pub without_phases: Option<Scheme>,
    pub problem: Problem,
    /// The scheme's parameters in the order of its text.
    pub parameters: Vec<Parameter>,
    /// The words with which the problem states its lower and upper sides, with the cells of a layer; `None` where it
    /// states none.
    pub sides: PerAxis<[Option<String>; 2]>,
    /// The file and the modules that it uses, in the order in which they were met.
    pub sources: Vec<Source>,
    /// The tables that were read, under the names that the program uses.
    pub tables: Vec<Source>,
    /// The right-hand sides from which the scheme's stages come, stage by stage.
    pub statements: Vec<Place>,
    /// The schedules that are written for the scheme, schedules of the problem's file first.
    pub schedules: Vec<(String, ast::Schedule)>,
    pub warnings: Diagnostics,
    /// For warnings that only the values of files or a run tell.
    pub silences: Silences,
}

/// Resolves one problem of a file with its scheme.
pub fn resolve(
    world: &dyn World,
    source: &Source,
    ast: &Ast,
    options: &Options,
) -> Result<Resolved, Diagnostics> {
    Program::new(world, source, ast.clone()).resolve(options)
}

/// All faults of a file.
pub fn check(world: &dyn World, source: &Source, ast: &Ast, options: &Options) -> Diagnostics {
    Program::new(world, source, ast.clone()).check(options)
}

/// A program that may be resolved several times; its modules are parsed once.
#[derive(Clone)]
pub struct Program<'a> {
    world: &'a dyn World,
    source: &'a Source,
    ast: Rc<Ast>,
    modules: Rc<Parsed>,
}

impl<'a> Program<'a> {
    pub fn new(world: &'a dyn World, source: &'a Source, ast: Ast) -> Self {
        Self {
            world,
            source,
            ast: Rc::new(ast),
            modules: Rc::default(),
        }
    }

    /// The same with a change.
    pub fn changed(&self, change: impl FnOnce(Ast) -> Ast) -> Self {
        Self {
            world: self.world,
            source: self.source,
            ast: Rc::new(change(Ast::clone(&self.ast))),
            modules: self.modules.clone(),
        }
    }

    /// The names of its problems, in the order of the text.
    pub fn problems(&self) -> Vec<String> {
        let name = |item: &ast::Item| match &item.kind {
            ast::ItemKind::Problem(problem) => Some(problem.name.node.clone()),
            _ => None,
        };
        self.ast.items.iter().filter_map(name).collect()
    }

    /// All faults of a file: every scheme, on a domain of its own where no problem uses it, and every problem.
    pub fn check(&self, options: &Options) -> Diagnostics {
        let mut resolver = Resolver::new(self.world);
        resolver.library = Library::sharing(&self.modules);
        let module = resolver.library.load(
            self.world,
            &mut resolver.report,
            self.source,
            self.ast.clone(),
        );
        let source = resolver.library.module(module).source.clone();
        for space in [Space::Scheme, Space::Problem] {
            for (item, name) in resolver.library.own(module, space) {
                if resolver
                    .within_file(&Place::new(&source, name.span))
                    .is_err()
                {
                    return resolver.report.finish(self.source);
                }
                // Errors have been reported.
                let _ = match space {
                    Space::Problem => resolver.check_problem(item, options),
                    _ => resolver.check_scheme(item, options),
                };
            }
        }
        resolver.reset();
        resolver.scan_definitions(module);
        resolver.report.finish(self.source)
    }

    /// Resolves one of its problems.
    pub fn resolve(&self, options: &Options) -> Result<Resolved, Diagnostics> {
        let mut guess = Guess::default();
        let (resolved, frame) = self.resolve_once(options, guess)?;
        if !frame.asks_speed || !resolved.scheme.files.is_empty() {
            return Ok(resolved);
        }
        let shifted = Axis::ALL.into_iter().any(|a| frame.bloch[a].is_some());
        let resolved = match shifted {
            // Where waves begin with another phase, the longest ones are not the slowest to change.
            true => {
                guess.without_phases = true;
                self.resolve_once(options, guess)?.0
            }
            false => resolved,
        };
        // Layers do not change the waves of a scheme, so a scheme that was resolved with a guess tells how fast they
        // are.
        let scheme = &resolved.scheme;
        let fastest = |places: &Places| -> Option<f64> {
            let pace = analysis::pace(scheme, &NoFiles, places);
            let pace = pace.filter(|p| p.moves && p.coefficient > 0.0)?;
            // Few digits, so that the last bits of eigenvalues, which machines may round in their own ways, are none
            // of the result.
            format!("{:.4e}", pace.coefficient).parse().ok()
        };
        let places = analysis::places(scheme, &NoFiles, Patience::Long).ok();
        match places.as_ref().and_then(fastest) {
            Some(speed) => {
                let has_media = places.is_some_and(|places| places.settings > 1);
                let in_layers = |axis| {
                    let zones = frame.zones.iter().filter(|zone| zone.is_layer_of(axis));
                    let boxes: Vec<Region> = zones.flat_map(|z| z.boxes.clone()).collect();
                    let wanted = has_media && !boxes.is_empty();
                    let places = wanted
                        .then(|| analysis::places_in(scheme, &NoFiles, &boxes, Patience::Long));
                    fastest(&places?.ok()?)
                };
                let guess = Guess {
                    speed: Some(speed),
                    layer_speeds: PerAxis::from_fn(in_layers),
                    ..Guess::default()
                };
                self.resolve_once(options, guess)
                    .map(|(resolved, _)| resolved)
            }
            None if shifted => Ok(self.resolve_once(options, Guess::default())?.0),
            None => Ok(resolved),
        }
    }

    /// The same for its waves alone: layers and incident fields are made for a usual speed of waves, which changes
    /// nothing that an analysis of waves looks at. The domain has the given lengths, whichever size its cells have.
    pub fn resolve_waves(
        &self,
        options: &Options,
        lengths: PerAxis<f64>,
    ) -> Result<Resolved, Diagnostics> {
        let guess = Guess {
            lengths: Some(lengths),
            ..Guess::default()
        };
        self.resolve_once(options, guess)
            .map(|(resolved, _)| resolved)
    }

    /// Resolves it for a guess; with it the frame of its declarations.
    fn resolve_once(
        &self,
        options: &Options,
        guess: Guess,
    ) -> Result<(Resolved, frame::Frame), Diagnostics> {
        let mut resolver = Resolver::new(self.world);
        resolver.library = Library::sharing(&self.modules);
        resolver.speed = guess.speed;
        resolver.layer_speeds = guess.layer_speeds;
        resolver.lengths = guess.lengths;
        resolver.without_phases = guess.without_phases;
        let module = resolver.library.load(
            self.world,
            &mut resolver.report,
            self.source,
            self.ast.clone(),
        );
        let result = resolver.resolve_problem(module, options);
        let frame = std::mem::take(&mut resolver.frame);
        let failed = resolver.report.has_errors();
        let diagnostics = resolver.report.finish(self.source);
        match result {
            Ok(resolved) if !failed => {
                let resolved = Resolved {
                    warnings: diagnostics,
                    ..resolved
                };
                Ok((resolved, frame))
            }
            _ if failed => Err(diagnostics),
            _ => Err(Diagnostic::error(
                codes::INTERNAL,
                "the program was refused without a reason",
            )
            .hint("this is a defect of Torre, not of your program: please report it")
            .into()),
        }
    }
}

/// The guess with which a program is resolved.
#[derive(Clone, Copy, Default)]
struct Guess {
    /// The speed of the fastest waves.
    speed: Option<f64>,
    /// The same in the layers along each axis, where it may be another one.
    layer_speeds: PerAxis<Option<f64>>,
    /// Whether Bloch-periodic sides are plainly periodic.
    without_phases: bool,
    /// The lengths of the domain, where they do not follow from its cells.
    lengths: Option<PerAxis<f64>>,
}
