//! The memory of a run beside its fields, known before the first step: tables of sources, records of probes, pictures
//! that wait to be written, and buffers for writing.
//!
//! All are upper bounds, in bytes. Vectors that grow may have twice the room that they need.

use super::gallery::MOST_IN_DIAGRAM;
use super::outputs::VolumeFormat;
use super::pictures::Shown;
use super::spectra::Spectra;
use super::{WAITING_PICTURES, picture_bytes_per_step};
use crate::host::injection::MOST_TABLED_STEPS;
use crate::simulation::slice_shape;
use torre_compiler::incident::Sizes;
use torre_compiler::lattice::Axis;
use torre_compiler::problem::{Output, OutputKind, Problem, Source};
use torre_compiler::reference::for_each_index;
use torre_compiler::scheme::{ComponentId, Scheme};
use torre_compiler::statics::{Files, source_acts};

/// The least bytes of blocks and buffers through which files are written.
const BLOCKS: u64 = 4 << 20;

/// Chunks of a Zarr store that are held at a time, as values and as bytes.
const CHUNKS: u64 = 2 * (16 << 20);

/// The buffer in which values get VTK's order, where a plane is not larger.
const REORDERED: u64 = 64 << 20;

/// A picture for people, as pixels and as it is compressed.
const PIXELS: u64 = 32 << 20;

/// Bytes of a row of a source's table beside its cells.
const ROW: u64 = 96;

/// How a run is made, as far as memory is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Calculations in memory that tabulate sources: one, or two with a check by compiled code.
    pub tabulated: u64,
    /// Calculations in memory that record: with the reference too.
    pub recorded: u64,
    /// The format of results, if there are any.
    pub results: Option<VolumeFormat>,
    /// Whether all components are written at the end.
    pub save_final: bool,
    /// Whether checkpoints are written.
    pub checkpoints: bool,
    /// Whether the fields are in files, with a state after each pass.
    pub in_files: bool,
    /// Whether it goes on from a checkpoint.
    pub resumed: bool,
}

/// Upper bounds in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub sources: u64,
    pub probes: u64,
    pub spectra: u64,
    pub pictures: u64,
    pub files: u64,
}

impl Needs {
    /// `cells` says how many cells a source acts on, at most: [`in_boxes`], [`anywhere`] or [`acting`].
    pub fn of(
        scheme: &Scheme,
        problem: &Problem,
        manner: Manner,
        cells: &dyn Fn(&Source) -> u64,
    ) -> Self {
        Self {
            sources: sources(scheme, problem, cells)
                .saturating_add(corrections(&Sizes::new(scheme, problem)))
                .saturating_mul(manner.tabulated),
            probes: probes(scheme, problem, manner).saturating_add(series(problem)),
            spectra: spectra(problem, manner),
            pictures: pictures(scheme, problem, manner)
                .saturating_add(drawn(scheme, problem, manner)),
            files: files(scheme, problem, manner),
        }
    }

    pub fn total(&self) -> u64 {
        let Needs {
            sources,
            probes,
            spectra,
            pictures,
            files,
        } = *self;
        [sources, probes, spectra, pictures, files]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// The cells of a source without a condition; none where a condition has to be evaluated first.
pub fn in_boxes(source: &Source) -> u64 {
    match source.condition {
        None => source.region.volume(),
        Some(_) => 0,
    }
}

/// The cells of a source if its condition holds everywhere.
pub fn anywhere(source: &Source) -> u64 {
    source.region.volume()
}

/// The cells that a source acts on, counted one by one.
pub fn acting(scheme: &Scheme, files: &dyn Files, source: &Source) -> u64 {
    if source.condition.is_none() {
        return source.region.volume();
    }
    let mut cells = 0;
    for_each_index(source.region, |at| {
        cells += u64::from(source_acts(scheme, files, source, at));
    });
    cells
}

/// The tables of places, profiles and waves; per cell an index and a profile.
fn sources(scheme: &Scheme, problem: &Problem, cells: &dyn Fn(&Source) -> u64) -> u64 {
    let flags = rows(scheme).saturating_mul(scheme.stages.len() as u64);
    let tables = problem.sources.iter().map(|source| {
        let cells = cells(source);
        let rows = cells.min(anywhere(source) / source.region[Axis::INNER].len().max(1) as u64);
        let waves = match source.wave.depends_on_place() || problem.steps > MOST_TABLED_STEPS {
            true => 0,
            false => problem.steps.saturating_mul(8),
        };
        cells
            .saturating_mul(16)
            .saturating_add(rows.saturating_mul(ROW))
            .saturating_add(waves)
    });
    match problem.sources.is_empty() {
        true => 0,
        false => tables.fold(flags, u64::saturating_add),
    }
}

/// The tables of corrections at the faces of boxes of total fields.
pub fn corrections(sizes: &Sizes) -> u64 {
    crate::host::corrections::bytes(sizes)
}

/// Rows along the inner axis.
fn rows(scheme: &Scheme) -> u64 {
    let of = |axis| scheme.grid.cells[axis].max(1) as u64 + 1;
    of(Axis::OUTER).saturating_mul(of(Axis::MIDDLE))
}

/// Records while the run goes on, and the values from which files are made at the end.
fn probes(scheme: &Scheme, problem: &Problem, manner: Manner) -> u64 {
    let values = (problem.probes.len() as u64).saturating_mul(problem.steps);
    let value = scheme.precision.bytes() as u64;
    let recorded = values.saturating_mul(16 * manner.recorded);
    // A copy of the records for a comparison or a checkpoint, or for the table; the points of a plot.
    let copies = match manner.recorded > 1 || manner.checkpoints || manner.results.is_some() {
        true => values.saturating_mul(8 * manner.recorded),
        false => 0,
    };
    let table = match manner.results {
        Some(_) => values
            .saturating_mul(2 * value + 16)
            .saturating_add(problem.steps.saturating_mul(16)),
        None => 0,
    };
    match problem.probes.is_empty() {
        true => 0,
        false => [recorded, copies, table]
            .into_iter()
            .fold(0, u64::saturating_add),
    }
}

/// Drawing the largest frame: its values, twice in double precision, once as they are written, and the pixels.
fn drawn(scheme: &Scheme, problem: &Problem, manner: Manner) -> u64 {
    if manner.results.is_none() {
        return 0;
    }
    let shown = |o: &&Output| Shown::of_output(scheme, o).is_some();
    let frames = problem.frames().filter(shown);
    let largest = frames.map(|o| o.region.volume()).max();
    largest.map_or(0, |values| {
        values
            .saturating_mul(16 + scheme.precision.bytes() as u64)
            .saturating_add(PIXELS + 24 * MOST_IN_DIAGRAM as u64)
    })
}

/// Records of reductions and states, with the values from which tables and pictures are made.
fn series(problem: &Problem) -> u64 {
    let states = problem.state_probes.iter().map(|p| p.every);
    let every = problem.series.iter().map(|s| s.every).chain(states);
    let values = every.map(|every| problem.steps / every);
    let rows = values.clone().max().unwrap_or(0);
    let columns = (problem.series.len() + problem.state_probes.len()) as u64;
    let values = values.fold(0, u64::saturating_add);
    let table = rows.saturating_mul(16 + 16 * columns);
    values.saturating_mul(48).saturating_add(table)
}

/// Sums of spectra, a copy of them for checkpoints, and the values that are added together.
fn spectra(problem: &Problem, manner: Manner) -> u64 {
    // A state in files has them until it has the next ones.
    let copies = match (manner.in_files, manner.checkpoints || manner.resumed) {
        (true, _) => 3,
        (false, true) => 2,
        (false, false) => 1,
    };
    Spectra::bytes(problem)
        .saturating_mul(copies)
        .saturating_add(Spectra::bytes_of_samples(problem, WAITING_PICTURES))
}

/// Pictures of slices that wait for the next pause, as many as are taken before it comes.
fn pictures(scheme: &Scheme, problem: &Problem, manner: Manner) -> u64 {
    let cells = problem
        .outputs
        .iter()
        .filter_map(|output| match output.kind {
            OutputKind::Slice { axis, .. } if !output.needs_values() => {
                let shape = slice_shape(scheme, output.component, axis);
                Some(shape.iter().map(|&n| n as u64).product::<u64>())
            }
            _ => None,
        });
    let cells: Vec<u64> = cells.collect();
    let Some(&largest) = cells.iter().max() else {
        return 0;
    };
    // All may be due after one step; beyond that the run pauses.
    let once = cells
        .iter()
        .fold(0, |sum: u64, &n| sum.saturating_add(n.saturating_mul(8)));
    let all = picture_bytes_per_step(scheme, problem) * problem.steps as f64;
    let waiting = (all as u64).min(WAITING_PICTURES);
    let written = match manner.results {
        Some(_) => largest.saturating_mul(scheme.precision.bytes() as u64),
        None => 0,
    };
    once.saturating_add(waiting)
        .saturating_mul(manner.recorded)
        .saturating_add(written)
}

/// The bytes for reading and writing components, one after the other.
fn files(scheme: &Scheme, problem: &Problem, manner: Manner) -> u64 {
    let value = scheme.precision.bytes() as u64;
    let component = |id: ComponentId| scheme.extent(id).volume().saturating_mul(value);
    let largest =
        |ids: &mut dyn Iterator<Item = ComponentId>| ids.map(component).max().unwrap_or(0);
    let volume = |output: &&Output| matches!(output.kind, OutputKind::Volume);
    let frames = problem.frames();
    let mut volumes = frames.filter(volume).map(|o| o.component);
    let volume = largest(&mut volumes);
    let all = largest(&mut scheme.component_ids());
    let written = match manner.save_final {
        true => all,
        false => volume,
    };
    let writing = match manner.results {
        _ if written == 0 => 0,
        None => 0,
        Some(VolumeFormat::Npy) => BLOCKS,
        // A store is made of whole volumes.
        Some(VolumeFormat::Zarr) => volume.saturating_add(CHUNKS + BLOCKS),
        Some(VolumeFormat::Vtk) => {
            let last = scheme.grid.cells[Axis::INNER].max(1) as u64;
            written
                .min(REORDERED.max(written / last))
                .saturating_add(BLOCKS)
        }
    };
    // A version of a component is read as a whole.
    let reading = match manner.resumed {
        true => all.saturating_add(BLOCKS),
        false => 0,
    };
    let checkpoint = match manner.checkpoints {
        true => BLOCKS,
        false => 0,
    };
    writing.max(reading).max(checkpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::resolve::{Options, Resolved};
    use torre_grammar::source::Source;

    const PLAIN: Manner = Manner {
        tabulated: 1,
        recorded: 1,
        results: None,
        save_final: false,
        checkpoints: false,
        in_files: false,
        resumed: false,
    };

    fn resolved(body: &str) -> Resolved {
        let text = format!(
            "use std::wave::wave_2d\nproblem p {{\n  scheme wave_2d\n  domain 100 x 50\n{body}\n}}\n"
        );
        let world = crate::world::FileWorld::beside(std::path::Path::new("p.torre"));
        let source = Source::new("p.torre", text);
        torre_compiler::driver::load(&world, &source, &Options::default()).unwrap()
    }

    fn needs(body: &str, manner: Manner) -> Needs {
        let Resolved {
            scheme, problem, ..
        } = resolved(body);
        Needs::of(&scheme, &problem, manner, &anywhere)
    }

    #[test]
    fn everything_that_grows_with_the_run_is_counted() {
        let none = needs("steps 1000", PLAIN);
        assert_eq!(none, Needs::default());
        let probes = "probe u at (1, 1) as a\nprobe u at (2, 2) as b\nsteps 1000";
        let recorded = needs(probes, PLAIN).probes;
        assert_eq!(recorded, 2 * 1000 * 16);
        let results = Some(VolumeFormat::Npy);
        let written = needs(probes, Manner { results, ..PLAIN }).probes;
        assert!(written >= recorded + 2 * 1000 * (8 + 4 + 16), "{written}");
        let twice = Manner {
            recorded: 2,
            ..PLAIN
        };
        assert!(needs(probes, twice).probes >= 2 * recorded);

        let conditional = "source u where (x - 50)^2 + (y - 25)^2 < 100 += sin(t)\nsteps 10";
        let Resolved {
            scheme, problem, ..
        } = resolved(conditional);
        let source = &problem.sources[0];
        assert_eq!(in_boxes(source), 0);
        let acting = acting(&scheme, &torre_compiler::statics::NoFiles, source);
        assert!((290..340).contains(&acting), "{acting}");
        assert!(anywhere(source) > acting);

        // A source over a box has an index and a profile for each cell.
        let source = "source u in x = 10..60, y = 0..40 += sin(t)\nsteps 1000";
        let sources = needs(source, PLAIN).sources;
        let cells = 50 * 40;
        assert!(
            (cells * 16..cells * 24 + 60_000).contains(&sources),
            "{sources}"
        );

        let slices = "output slice u x = 20 every 2\nsteps 1000";
        let pictures = needs(slices, PLAIN).pictures;
        assert!(
            (500 * 50 * 8..501 * 51 * 8 + 4000).contains(&pictures),
            "{pictures}"
        );
        // However long the run is, it pauses in time.
        let long = slices.replace("steps 1000", "steps 100000000");
        let pictures = needs(&long, PLAIN).pictures;
        assert!((WAITING_PICTURES..WAITING_PICTURES + 10_000).contains(&pictures));

        let volumes = "output volume u every 10\nsteps 1000";
        let component = 100 * 50 * 4;
        let files = |results, resumed| {
            let manner = Manner {
                results,
                resumed,
                ..PLAIN
            };
            needs(volumes, manner).files
        };
        assert_eq!(files(None, false), 0);
        assert!(files(Some(VolumeFormat::Npy), false) > 0);
        assert!(files(Some(VolumeFormat::Zarr), false) >= component + CHUNKS);
        assert!(files(None, true) >= component);
    }

    #[test]
    fn no_size_overflows() {
        let probes =
            "probe u at (1, 1) as a\noutput slice u x = 20 every 1\nsteps 1000000000000000";
        let manner = Manner {
            recorded: 2,
            results: Some(VolumeFormat::Vtk),
            ..PLAIN
        };
        assert!(needs(probes, manner).total() > 1 << 54);
    }
}
