//! A problem, resolved in double precision and run by the reference.

use std::path::Path;
use torre_compiler::driver::load;
use torre_compiler::problem::Problem;
use torre_compiler::reference::{Reference, for_each_index};
use torre_compiler::resolve::Options;
use torre_compiler::scheme::{Boundary, ComponentId, Precision, Scheme};
use torre_compiler::series::{RowValues, reduce};
use torre_compiler::statics::coordinate;
use torre_grammar::diag::Diagnostics;
use torre_grammar::source::Source;
use torre_runtime::files::LoadedFiles;
use torre_runtime::world::{FileWorld, read_source};

/// A scheme and problem with the values of the files that they name.
pub struct Case {
    scheme: Scheme,
    problem: Problem,
    warnings: Diagnostics,
    files: LoadedFiles,
}

fn shown(found: &Diagnostics) -> String {
    let mut text = String::new();
    for d in &found.0 {
        text += &format!("{}: {}", d.code.0, d.message);
        for label in &d.labels {
            let (start, end) = (label.span.start as usize, label.span.end as usize);
            let line = label.source.text()[..start].matches('\n').count() + 1;
            let at = label.source.text().get(start..end).unwrap_or_default();
            text += &format!("\n  {}:{line}: `{at}`: {}", label.source.name(), label.text);
        }
        text += "\n";
    }
    text
}

impl Case {
    /// The only problem of a text. Panics with the diagnostics if it has errors.
    pub fn new(text: &str) -> Self {
        Self::build(&Source::new("test", text), Path::new(""), &[])
    }

    /// The only problem of a file, with settings as on the command line.
    pub fn file(path: &Path, settings: &[(&str, &str)]) -> Self {
        let source = read_source(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self::build(&source, path, settings)
    }

    fn build(source: &Source, path: &Path, settings: &[(&str, &str)]) -> Self {
        let world = FileWorld::beside(path);
        let options = Options {
            precision: Precision::F64,
            overrides: settings
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            ..Options::default()
        };
        let resolved = load(&world, source, &options).unwrap_or_else(|d| panic!("{}", shown(&d)));
        let files = LoadedFiles::load(&world, &resolved.scheme).unwrap_or_else(|e| panic!("{e}"));
        Self {
            scheme: resolved.scheme,
            problem: resolved.problem,
            warnings: resolved.warnings,
            files,
        }
    }

    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The codes of the compiler's warnings.
    pub fn warnings(&self) -> Vec<&str> {
        self.warnings.0.iter().map(|d| d.code.0).collect()
    }

    /// The names of all components.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.scheme.components.iter().map(|c| c.name.as_str())
    }

    pub fn has(&self, component: &str) -> bool {
        self.components().any(|c| c == component)
    }

    fn id(&self, component: &str) -> ComponentId {
        self.scheme
            .component_ids()
            .find(|&id| self.scheme.component(id).name == component)
            .unwrap_or_else(|| panic!("the scheme has no component {component}"))
    }

    /// The physical time of a component after some steps.
    pub fn time(&self, component: &str, steps: u64) -> f64 {
        self.scheme.time(self.id(component), steps) * self.scheme.grid.dt
    }

    /// The positions of all values of a component in units of length, axes in the order of the scheme, in the order of
    /// [`Run::values`].
    pub fn places(&self, component: &str) -> Vec<[f64; 3]> {
        let id = self.id(component);
        let position = self.scheme.component(id).position;
        let grid = &self.scheme.grid;
        let mut places = Vec::new();
        for_each_index(self.scheme.extent(id), |at| {
            let mut place = [0.0; 3];
            for (p, axis) in place.iter_mut().zip(grid.present()) {
                *p = coordinate(grid, axis, position[axis], at[axis]);
            }
            places.push(place);
        });
        places
    }

    /// Values of a component along the last axis.
    pub fn width(&self, component: &str) -> usize {
        let extent = self.scheme.extent(self.id(component));
        extent[torre_compiler::lattice::Axis::INNER].len() as usize
    }

    /// The part of a value's cell that lies in the domain, for sums over the lattice: half for a value in a mirror
    /// plane.
    pub fn plane_weights(&self, component: &str) -> Vec<f64> {
        let id = self.id(component);
        let position = self.scheme.component(id).position;
        let grid = &self.scheme.grid;
        let mut weights = Vec::new();
        for_each_index(self.scheme.extent(id), |at| {
            let mut weight = 1.0;
            for axis in grid.present().filter(|&a| !position[a].is_half()) {
                let [lower, upper] = grid.boundary[axis];
                let mirrored = |b| matches!(b, Boundary::Pec | Boundary::Pmc);
                let low = at[axis] == 0 && mirrored(lower);
                let high = at[axis] == grid.cells[axis] && mirrored(upper);
                if low || high {
                    weight *= 0.5;
                }
            }
            weights.push(weight);
        });
        weights
    }

    pub fn start(&self) -> Run<'_> {
        Run {
            case: self,
            state: Reference::new(&self.scheme, &self.problem, &self.files),
            steps: 0,
        }
    }
}

/// A running case.
pub struct Run<'a> {
    case: &'a Case,
    state: Reference<'a, f64>,
    steps: u64,
}

/// The values that records reduce.
struct Rows<'r>(&'r Run<'r>);

impl RowValues for Rows<'_> {
    fn copy_row(&self, id: ComponentId, age: u8, x: i64, y: i64, to: &mut Vec<f64>) {
        let [outer, middle, inner] = self.0.case.scheme.extent(id).0;
        let row = (x - outer.lo) * middle.len() + (y - middle.lo);
        let first = (row * inner.len()) as usize;
        to.clear();
        to.extend(&self.0.state.aged_values(id, age)[first..first + inner.len() as usize]);
    }
}

impl<'a> Run<'a> {
    pub fn case(&self) -> &'a Case {
        self.case
    }

    pub fn step(&mut self) {
        self.state.step();
        self.steps += 1;
    }

    /// The present value of a record.
    pub fn record(&self, name: &str) -> f64 {
        let case = self.case;
        let series = case.problem.series.iter().find(|s| s.name == name);
        let series = series.unwrap_or_else(|| panic!("the problem has no record {name}"));
        reduce(&case.scheme, &case.files, series, &Rows(self), self.steps)
    }

    /// The newest values of a component over its extent, last axis fastest.
    pub fn values(&self, component: &str) -> &[f64] {
        self.state.values(self.case.id(component))
    }
}
