//! The front end in one call: source text to a resolved calculation.

use crate::analysis::Lattice;
use crate::lattice::{Axis, PerAxis};
use crate::resolve::{Options, Program, Resolved};
use crate::scheme::{Precision, Scheme};
use crate::world::World;
use torre_grammar::ast::{Ast, ItemKind, ProblemStmt};
use torre_grammar::diag::Diagnostics;
use torre_grammar::parse;
use torre_grammar::source::Source;

/// Parses a source and resolves one of its problems.
pub fn load(
    world: &dyn World,
    source: &Source,
    options: &Options,
) -> Result<Resolved, Diagnostics> {
    program(world, source)?.resolve(options)
}

/// Parses a source, for several of its problems.
pub fn program<'a>(world: &'a dyn World, source: &'a Source) -> Result<Program<'a>, Diagnostics> {
    Ok(Program::new(world, source, parse(source)?))
}

/// A calculation that is resolved again with other numbers, in double precision.
pub struct Variable<'a> {
    /// The text without the parts that [`without_places`] drops.
    program: Program<'a>,
    options: Options,
    base: Resolved,
}

impl<'a> Variable<'a> {
    pub fn new(
        world: &'a dyn World,
        source: &'a Source,
        options: &Options,
    ) -> Result<Self, Diagnostics> {
        Self::of(&program(world, source)?, options)
    }

    /// The same for a source that is parsed.
    pub fn of(program: &Program<'a>, options: &Options) -> Result<Self, Diagnostics> {
        let options = Options {
            precision: Precision::F64,
            memory: None,
            ..options.clone()
        };
        let base = program.resolve(&options)?;
        Ok(Self {
            program: program.changed(without_places),
            options,
            base,
        })
    }

    /// The calculation as it is.
    pub fn base(&self) -> &Resolved {
        &self.base
    }

    /// The value of a parameter, if there is one of that name.
    pub fn parameter(&self, name: &str) -> Option<f64> {
        let mut parameters = self.base.parameters.iter();
        parameters.find(|p| p.name == name).map(|p| p.value)
    }

    /// The scheme with other values of some parameters, as far as its waves go. Coordinates, the lengths of the domain
    /// and the regions of updates stay as in the calculation itself, so that a cell keeps its medium and its updates
    /// where the cell size changes. `None` if it cannot be resolved with them, or has other updates.
    pub fn with(&self, values: &[(&str, f64)]) -> Option<Scheme> {
        self.resolved(values).map(|(scheme, _)| scheme)
    }

    /// The scheme with another time step and other cell sizes, by the parameters that set them. `None` if there are
    /// none, or if they do not give these sizes.
    pub fn sized(&self, lattice: &Lattice) -> Option<Scheme> {
        let grid = &self.base.scheme.grid;
        let own: Vec<String> = grid
            .present()
            .map(|axis| format!("h{}", grid.axis_name(axis)))
            .collect();
        let mut values = Vec::new();
        for (axis, own) in grid.present().zip(&own) {
            if lattice.spacing != grid.spacing {
                let names = [own.as_str(), "h"];
                let name = names.into_iter().find(|n| self.parameter(n).is_some())?;
                values.push((name, lattice.spacing[axis]));
            }
        }
        // A step that follows the cell size has to be set, too.
        if self.parameter("dt").is_some() {
            values.push(("dt", lattice.dt));
        }
        let (scheme, found) = self.resolved(&values)?;
        // Axes without an extent have one cell, of any size.
        let same = |axis: Axis| found.spacing[axis] == lattice.spacing[axis];
        (found.dt == lattice.dt && grid.present().all(same)).then_some(scheme)
    }

    fn resolved(&self, values: &[(&str, f64)]) -> Option<(Scheme, Lattice)> {
        let mut options = self.options.clone();
        for (name, value) in values {
            let text = format!("{value:?}");
            options.overrides.push(((*name).to_owned(), text));
        }
        let grid = &self.base.scheme.grid;
        let lengths = PerAxis::from_fn(|a| grid.spacing[a] * grid.cells[a] as f64);
        let resolved = self.program.resolve_waves(&options, lengths).ok()?;
        let mut scheme = resolved.scheme;
        let found = Lattice {
            dt: scheme.grid.dt,
            spacing: scheme.grid.spacing,
        };
        let base = &self.base.scheme;
        scheme.grid.spacing = base.grid.spacing;
        take_regions(&mut scheme, base)?;
        Some((scheme, found))
    }
}

/// A program without initial values, sources, probes and outputs. A scheme is the same without them, and their places,
/// where they are given as lengths, lie in other cells or outside of the domain when the cell size changes.
fn without_places(mut ast: Ast) -> Ast {
    for item in &mut ast.items {
        if let ItemKind::Problem(problem) = &mut item.kind {
            problem.body.retain(|statement| match statement.kind.node {
                ProblemStmt::Init { .. }
                | ProblemStmt::Source { .. }
                | ProblemStmt::Incident { .. }
                | ProblemStmt::Total { .. }
                | ProblemStmt::Probe { .. }
                | ProblemStmt::Record { .. }
                | ProblemStmt::Slice { .. }
                | ProblemStmt::Volume { .. }
                | ProblemStmt::Spectrum { .. } => false,
                ProblemStmt::Scheme { .. }
                | ProblemStmt::Const { .. }
                | ProblemStmt::Domain(_)
                | ProblemStmt::Boundary(_)
                | ProblemStmt::Region(_)
                | ProblemStmt::Coef { .. }
                | ProblemStmt::Allow(_)
                | ProblemStmt::Steps(_) => true,
            });
        }
    }
    ast
}

/// Limits the updates of a scheme to the regions of the same updates of another one; `None` if it has others.
fn take_regions(scheme: &mut Scheme, from: &Scheme) -> Option<()> {
    if scheme.stages.len() != from.stages.len() {
        return None;
    }
    for (stage, from) in scheme.stages.iter_mut().zip(&from.stages) {
        if stage.updates.len() != from.updates.len() {
            return None;
        }
        for (update, from) in stage.updates.iter_mut().zip(&from.updates) {
            if update.target != from.target {
                return None;
            }
            update.region = from.region;
        }
    }
    Some(())
}
