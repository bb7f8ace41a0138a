//! Towers as PTX in an interpreter that looks for races: same bits as row kernels stage by stage. Towers that an end of the grid cuts
//! run on the host.

mod ends;
mod host;
mod parts;
mod random;
mod spans;
mod waits;

use super::*;
use crate::backend::interp::Interp;
use crate::backend::llvm::library::Library;
use crate::backend::nvptx::{Gpu, compile};
use crate::cone::{Rational, cones};
use crate::kernel::{self, Code, KernelSet, RowKernel, UpdateSet};
use crate::lattice::{Interval, PerAxis, Region};
use crate::schedule::{Cut, Frame, Level, Tiling, check_tiling};
use crate::scheme::{Boundary, Precision, StageId};
use crate::testing::{Limits, Memory, Rng, elasticity, maxwell, random_scheme};
use crate::tile::residency::{Unfit, towers};
use crate::tile::{TileProgram, lower};
use host::Host;
use torre_ptx::{Buffer, Counts, Device, Param};

/// Of random schemes whose towers are small.
const LIMITS: Limits = Limits {
    dimensions: 3,
    components: 3,
    stages: 3,
    ops: 8,
    length: 14,
    width: 20,
    reach: 2,
};

struct Run {
    kernels: Kernels,
    text: String,
    program: TileProgram,
    towers: Towers,
}

fn tiled(
    scheme: &Scheme,
    layout: &Layout,
    pitches: [Rational; 2],
) -> Result<(TileProgram, Towers), Unfit> {
    let frame = Frame::new(scheme, &cones(scheme)).opened();
    let cut = |form: [i32; 3], pitch| Cut {
        face: frame.fitting(PerAxis(form)),
        pitch,
    };
    let tiling = Tiling {
        height: 1 << 20,
        levels: vec![Level {
            cuts: vec![cut([1, 1, 0], pitches[0]), cut([1, -1, 0], pitches[1])],
        }],
    };
    check_tiling(&frame, &tiling).expect("fitting faces are legal");
    let program = lower(scheme, &frame, &tiling);
    let towers = towers(scheme, layout, &program)?;
    Ok((program, towers))
}

fn prepare(
    library: &Library,
    scheme: &Scheme,
    layout: &Layout,
    pitches: [Rational; 2],
    options: Options,
) -> Result<Run, Unfit> {
    let (program, towers) = tiled(scheme, layout, pitches)?;
    let mut module = Module::new();
    let kernels = emit(&mut module, scheme, layout, &towers, &[], options).ok_or(Unfit::Size)?;
    let designed = design(scheme, layout, &towers, options);
    assert_eq!(designed.as_ref(), Ok(&kernels), "known before code is");
    if let Some(flow) = &kernels.flow {
        assert_eq!(
            flow.named,
            module.shared_bytes().next_multiple_of(LINE as u32)
        );
    }
    // Spans need nothing of later ones.
    let old = options.spans.is_some() && !options.shift;
    let gpu = Gpu::named(if old { "sm_80" } else { "sm_90a" }).expect("a known name");
    let text = compile(library, &module, gpu).expect("valid IR").text;
    Ok(Run {
        kernels,
        text,
        program,
        towers,
    })
}

/// What towers did.
#[derive(Debug, Default)]
struct Report {
    /// That ran as kernels, and on the host.
    whole: usize,
    cut: usize,
    counts: Option<Counts>,
    /// Pieces that were copied to shared memory.
    copies: u64,
    /// Operations on numbers, of whole warps.
    arithmetic: u64,
    /// Ghosts along the inner axis were made where rows arrive.
    made: bool,
}

/// Runs time blocks of some periods by towers, and compares with the host.
fn differ(
    library: &Library,
    scheme: &Scheme,
    pitches: [Rational; 2],
    periods: u64,
    options: Options,
    seed: u64,
    flow: bool,
) -> Option<Report> {
    let mut rng = Rng::new(seed);
    let mut host = Host::new(scheme, &mut rng);
    let mut expected = Host::new(scheme, &mut Rng::new(seed));
    let run = prepare(library, scheme, &host.layout, pitches, options).ok()?;
    let module = torre_ptx::Module::parse(&run.text).expect("PTX that is understood");
    let mut device = Device::new();
    let array = device.upload(host.bytes());
    let mut report = Report::default();
    let steps = periods * run.towers.steps;
    let refresh = run.kernels.flow.as_ref().and_then(|f| f.ghosts.as_ref());
    report.made = refresh.is_some();
    for time_block in 0..2 {
        let step = time_block * steps;
        (step..step + steps).for_each(|n| expected.step(n));
        if refresh.is_some() {
            ends::spoil(&mut host, &mut device, array);
        }
        if flow {
            let order = Order {
                width: rng.within(1, 4),
                overlap: rng.within(0, 3),
                lead: rng.within(0, 4) as u32,
                partitions: rng.within(1, 3) as u32,
            };
            let done = run_flow(
                scheme,
                &run,
                &module,
                &host.layout,
                &mut device,
                array,
                periods,
                order,
                seed,
            )?;
            report.whole += done.whole;
            report.copies += done.copies;
            report.arithmetic += done.arithmetic;
            continue;
        }
        run_time_block(
            scheme,
            &run,
            &module,
            &mut host,
            &mut device,
            array,
            step,
            periods,
            &mut report,
            seed,
        );
    }
    if let Some(refresh) = refresh {
        let entry = module.entry(&refresh.symbol).expect("it was emitted");
        let (blocks, threads) = ([refresh.blocks, 1, 1], [refresh.threads, 1, 1]);
        let options = torre_ptx::Options::default();
        let done = device.launch(entry, blocks, threads, 0, &[array.into()], &options);
        done.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{scheme}"));
    }
    let bytes = device.read(array).to_vec();
    host.bytes().copy_from_slice(&bytes);
    // All that updates read, ghosts included.
    for id in scheme.component_ids() {
        for slot in 0..scheme.component(id).time_levels {
            let row = host.layout.row(id, slot.into());
            crate::reference::for_each_index(scheme.visible(id), |at| {
                let element = host.layout.element(row, at) as usize;
                let [found, expected] = [&host, &expected].map(|h| h.memory.bits(element));
                assert_eq!(
                    found, expected,
                    "seed {seed}: {id} slot {slot} at {at:?}, {report:?}\n{scheme}"
                );
            });
        }
    }
    Some(report)
}

#[expect(clippy::too_many_arguments, reason = "it has one caller")]
fn run_flow(
    scheme: &Scheme,
    run: &Run,
    module: &torre_ptx::Module,
    layout: &Layout,
    device: &mut Device,
    array: Buffer,
    periods: u64,
    order: Order,
    seed: u64,
) -> Option<Report> {
    let kernel = run.kernels.flow.as_ref()?;
    let all = tasks(scheme, layout, &run.towers, periods, order)?;
    assert!(waits::all_end(&all), "seed {seed}\n{scheme}");
    let list = &all.tasks;
    let words: Vec<i32> = list.iter().flat_map(Task::words).collect();
    // As if there had been time blocks before.
    let apart = PROGRESS_BYTES as usize / 4;
    let cluster = kernel.cluster;
    let blocks = cluster as usize;
    let mut progress = vec![7i32; list.len() * blocks * apart];
    progress.resize(progress.len() + blocks * apart, i32::MAX);
    let [words, progress] = [words, progress].map(|words| device.upload(&words));
    let mut rng = Rng::new(seed);
    // Blocks are spread over partitions, or all are near one.
    let near: Vec<u32> = (0..rng.within(1, 3 * blocks as i64))
        .map(|_| rng.within(0, order.partitions.into()) as u32)
        .collect();
    let starts: Vec<(Vec<i32>, Buffer)> = (0..all.starts.len())
        .map(|start| all.lists(start, &near).expect("few tasks"))
        .map(|words| (words.clone(), device.upload(&words)))
        .collect();
    // All that can run at a time, or as few as there have to be.
    let resident = rng.within(order.partitions.into(), 3) as u32 * cluster;
    let hooks = device.upload(&[0i32; 4]);
    let stages = (periods * run.towers.steps) as u32 * scheme.stages.len() as u32;
    let spans = match &kernel.spans {
        Some(spans) => spans.of(stages.into())?.iter().map(Span::words).collect(),
        None => vec![[0; 3]],
    };
    let mut since = 7;
    let mut report = Report::default();
    let all_starts = spans.iter().flat_map(|span| {
        let starts = starts.iter().enumerate();
        starts.map(move |start| (span, start))
    });
    for (span, (start, (listed, lists))) in all_starts {
        let until = all.until(start);
        let mut params = vec![
            array.into(),
            words.into(),
            Param::U32(until as u32),
            progress.into(),
            (*lists).into(),
            Param::U32(order.partitions),
            Param::U32(since),
            Param::U32(since + 1 + stages),
            Param::U32(order.lead),
            hooks.into(),
            hooks.into(),
            hooks.into(),
        ];
        if kernel.spans.is_some() {
            params.extend(span.map(|word| Param::U32(word as u32)));
        }
        let options = torre_ptx::Options {
            seed,
            resident,
            ..torre_ptx::Options::default()
        };
        let entry = module.entry(&kernel.symbol).expect("it was emitted");
        let threads = [kernel.threads, 1, 1];
        let counts = device.launch(
            entry,
            [3 * cluster, 1, 1],
            threads,
            kernel.shared,
            &params,
            &options,
        );
        let counts = counts.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{scheme}"));
        report.copies += counts.copies;
        let numbers = counts.opcodes.iter().filter(|(op, _)| op.contains(".rn."));
        report.arithmetic += numbers.map(|(_, executed)| executed.warps).sum::<u64>();
        let bytes = listed.iter().flat_map(|word| word.to_le_bytes());
        assert!(device.read(*lists).iter().copied().eq(bytes), "seed {seed}");
        if until == list.len() {
            since += 1 + stages;
        }
    }
    report.whole = list.iter().filter(|t| t.whole[0] < t.whole[1]).count();
    Some(report)
}

#[expect(clippy::too_many_arguments, reason = "it has two callers")]
fn run_time_block(
    scheme: &Scheme,
    run: &Run,
    module: &torre_ptx::Module,
    host: &mut Host<'_>,
    device: &mut Device,
    array: Buffer,
    step: u64,
    periods: u64,
    report: &mut Report,
    seed: u64,
) {
    let per_step = scheme.stages.len() as i64;
    let numbers = Interval::new(0, (periods * run.towers.steps) as i64 * per_step);
    let cuts = [run.program.levels[0][0], run.program.levels[0][1]];
    let rooms = run.towers.rooms(scheme, &host.layout);
    let whole = run.program.whole();
    let [first, second] = cuts.map(|cut| run.program.indices(&whole, cut, numbers));
    for column in first.lo + second.lo..first.hi + second.hi {
        let tiles = (first.lo..first.hi).map(|i| [i, column - i]);
        let tiles = tiles.filter(|t| second.contains(t[1]));
        let mut launches = std::collections::BTreeMap::<_, Vec<i64>>::new();
        let mut others = Vec::new();
        for tile in tiles {
            match run.towers.part(&rooms, tile, periods) {
                Some(part) if !part.whole.is_empty() && !part.clipped => {
                    let [x, y] = [0, 1]
                        .map(|a| part.origin[a] + part.whole.start as i64 * run.towers.advance[a]);
                    let group = host.layout.group(x, y);
                    let key = (part.alignment, part.whole.start, part.whole.end);
                    launches
                        .entry(key)
                        .or_default()
                        .push(group * host.layout.element_bytes as i64);
                    others.push((tile, part.whole));
                }
                _ => others.push((tile, periods..periods)),
            }
        }
        // What comes before the whole part of each tower, then that, then the rest.
        let per_period = run.towers.steps as i64 * per_step;
        let mut on_host = |device: &mut Device, after: bool| {
            let bytes = device.read(array).to_vec();
            host.bytes().copy_from_slice(&bytes);
            host.all_ghosts();
            for (tile, part) in &others {
                let range = match after {
                    false => Interval::new(0, part.start as i64 * per_period),
                    true => Interval::new(part.end as i64 * per_period, numbers.hi),
                };
                let mut tower = run.program.whole();
                (0..2).for_each(|c| run.program.narrow(&mut tower, cuts[c], tile[c]));
                run.program.walk(&tower, range, &mut |segment| {
                    let now = step + (segment.number / per_step) as u64;
                    for update in run.program.updates(segment.stage, segment.classes).iter() {
                        host.advance(segment.stage, now, update, segment.rows);
                    }
                    report.cut += 1;
                });
            }
            let bytes = host.bytes().to_vec();
            device.write(array, 0, &bytes).expect("it fits");
        };
        on_host(device, false);
        for ((alignment, start, end), origins) in &launches {
            let kernel = &run.kernels.towers[*alignment];
            let entry = module.entry(&kernel.symbol).expect("it was emitted");
            let table = device.upload(origins);
            let options = torre_ptx::Options {
                seed,
                ..torre_ptx::Options::default()
            };
            let params = [array.into(), table.into(), Param::U32((end - start) as u32)];
            let grid = [origins.len() as u32, 1, 1];
            let counts = device.launch(
                entry,
                grid,
                [kernel.threads, 1, 1],
                kernel.shared,
                &params,
                &options,
            );
            let counts = counts.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{scheme}"));
            report.whole += origins.len();
            report.counts = Some(counts);
        }
        on_host(device, true);
    }
}

fn library() -> Option<&'static Library> {
    Library::open()
        .inspect_err(|error| eprintln!("skipped: {error}"))
        .ok()
}

const ZERO: [[Boundary; 2]; 3] = [[Boundary::Zero; 2]; 3];
/// Ghosts beyond all ends.
const WALLS: [[Boundary; 2]; 3] = {
    use Boundary::*;
    [[Pec, Pmc], [Pmc, Pec], [Pec, Pmc]]
};
/// Ghosts along the first axis and the inner axis.
const MIRRORS: [[Boundary; 2]; 3] = {
    use Boundary::*;
    [[Pec, Pmc], [Zero; 2], [Pmc, Pec]]
};
/// The inner axis is periodic.
const RING: [[Boundary; 2]; 3] = {
    use Boundary::*;
    [[Zero, Pec], [Zero; 2], [Periodic; 2]]
};

/// FDTD of an order with such ends.
fn fdtd(order: u32, precision: Precision, cells: [i64; 3], ends: [[Boundary; 2]; 3]) -> Scheme {
    bounded(maxwell(order, precision, cells), ends)
}

/// The scheme with other ends.
fn bounded(mut scheme: Scheme, boundary: [[Boundary; 2]; 3]) -> Scheme {
    scheme.grid.boundary = PerAxis(boundary);
    crate::testing::everywhere(&mut scheme);
    scheme
}

/// Whole towers of a scheme, with so many cells in a pitch of both faces, give the bits of rows: more than so many of them.
fn same_bits(
    library: &Library,
    (number, scheme, pitch, periods): (usize, &Scheme, i64, u64),
    options: Options,
    least: usize,
) -> Report {
    let pitches = [Rational::whole(pitch); 2];
    let report = differ(
        library,
        scheme,
        pitches,
        periods,
        options,
        number as u64,
        true,
    );
    let report = report.unwrap_or_else(|| panic!("towers of {} {number}", scheme.name));
    assert!(report.whole > least, "{number}: {report:?}");
    report
}

#[test]
fn towers_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    let whole = |n: i64| [Rational::whole(n); 2];
    let usual = Options {
        shift: true,
        single: true,
        ..Options::default()
    };
    let plain = Options {
        asynchronous: false,
        ..usual
    };
    for (seed, (scheme, pitches, periods, options)) in [
        (
            fdtd(4, Precision::F32, [23, 25, 37], ZERO),
            whole(6),
            4,
            usual,
        ),
        (
            fdtd(4, Precision::F32, [22, 29, 32], WALLS),
            whole(6),
            3,
            usual,
        ),
        (
            fdtd(4, Precision::F64, [26, 27, 20], RING),
            whole(9),
            2,
            usual,
        ),
        (
            fdtd(2, Precision::F32, [17, 16, 24], WALLS),
            whole(3),
            5,
            plain,
        ),
        // Lines for which a slot ends with what is above the last index, and a copy goes beyond that.
        (
            fdtd(4, Precision::F32, [18, 19, 27], WALLS),
            whole(6),
            2,
            usual,
        ),
        (
            fdtd(4, Precision::F32, [18, 19, 28], RING),
            whole(6),
            2,
            usual,
        ),
        // Lines of which two warps copy each row, and a third one does not.
        (
            fdtd(2, Precision::F64, [9, 11, 128], ZERO),
            whole(3),
            2,
            usual,
        ),
        // Lines for which registers are moved, with an idle warp.
        (
            fdtd(2, Precision::F32, [9, 11, 200], WALLS),
            whole(3),
            2,
            Options {
                beside: 200,
                ..usual
            },
        ),
        // With three, which copy.
        (
            fdtd(2, Precision::F32, [9, 11, 150], WALLS),
            whole(3),
            2,
            Options {
                beside: 200,
                ..usual
            },
        ),
        (elasticity(Precision::F32, [21, 22, 12]), whole(6), 3, plain),
        (
            elasticity(Precision::F64, [19, 24, 12]),
            whole(3),
            3,
            Options {
                direct: true,
                ..plain
            },
        ),
    ]
    .into_iter()
    .enumerate()
    {
        // Whole towers alone, too, once for each precision.
        let both = [false, true];
        for &flow in if seed < 3 { &both[..] } else { &both[1..] } {
            let report = differ(
                library,
                &scheme,
                pitches,
                periods,
                options,
                seed as u64,
                flow,
            );
            let report = report.unwrap_or_else(|| panic!("towers of {} {seed}", scheme.name));
            assert!(report.whole > 4, "{seed}: {report:?}");
        }
    }
}

/// Rings that towers divide evenly, with a narrow face, with towers that lie on the lattice in two ways, with a seam, with both; of one block and
/// of two.
#[test]
fn towers_go_around_periodic_axes() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let walls = [Pec, Pmc];
    let (f32, f64) = (Precision::F32, Precision::F64);
    let second = [walls, [Periodic; 2], [Zero; 2]];
    let first = [[Periodic; 2], walls, [Periodic; 2]];
    let both = [[Periodic; 2], [Periodic; 2], walls];
    for (seed, (scheme, pitch, periods, parts)) in [
        (fdtd(4, f32, [26, 30, 20], second), 6, 3, 1),
        (fdtd(4, f32, [25, 34, 17], second), 6, 3, 1),
        (fdtd(2, f64, [14, 19, 16], second), 3, 4, 1),
        (fdtd(4, f32, [60, 26, 20], first), 6, 3, 1),
        (fdtd(2, f32, [33, 17, 24], both), 3, 4, 1),
        (fdtd(4, f64, [52, 29, 12], both), 6, 2, 1),
        (fdtd(2, f32, [26, 16, 40], both), 3, 2, 2),
        (bounded(elasticity(f32, [50, 31, 12]), both), 6, 2, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let options = Options {
            shift: seed % 2 == 0,
            parts,
            ..Options::default()
        };
        same_bits(library, (seed, &scheme, pitch, periods), options, 4);
    }
}
