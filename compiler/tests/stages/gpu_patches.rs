//! Patches of random schemes: same bits as row kernels stage by stage, in PTX that is interpreted.

use torre_compiler::backend::gpu::abi::{Argument, GhostsOf, PROGRESS_BYTES, Patches};
use torre_compiler::backend::gpu::patch::*;
use torre_compiler::backend::gpu::{Gpu, Module, compile};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::layout::Layout;
use torre_compiler::patch::{CoefPlace, PatchProgram, Shape, Staying, WARP, verify};
use torre_compiler::schedule::Pyramid;
use torre_compiler::scheme::{Precision, Scheme};
use torre_compiler::testing::{
    Effort, Limits, Rng, Stagewise, add_layers, add_random_zones, everywhere, lengthen, maxwell,
    random_patches, random_scheme,
};
use torre_ptx::{Device, Param};

fn library() -> Option<&'static Library> {
    Effort::Least.choose();
    Library::open()
        .inspect_err(|error| eprintln!("skipped: {error}"))
        .ok()
}

fn params(arguments: &[Argument]) -> Vec<Param> {
    let param = |argument: &Argument| match *argument {
        Argument::Place(place) => Param::U64(place),
        Argument::Word(word) => Param::U32(word as u32),
        Argument::Long(long) => Param::U64(long as u64),
    };
    arguments.iter().map(param).collect()
}

/// Two launches on random values, of several time blocks where tiles stay; gives the tiles that were bare.
fn compare(library: &Library, scheme: &Scheme, program: &PatchProgram, seed: u64) -> i64 {
    let mut rng = Rng::new(seed);
    let mut own = Stagewise::new(scheme, &mut rng);
    let mut expected = Stagewise::new(scheme, &mut Rng::new(seed));
    let layout = own.layout.clone();
    let mut module = Module::new();
    // Launches of one of them begin early.
    let gpu = Gpu::named(["sm_80", "sm_90"][(seed % 2) as usize]).expect("a known name");
    emit(&mut module, scheme, &layout, program, gpu);
    let text = compile(library, &module, gpu).expect("valid IR").text;
    let module = torre_ptx::Module::parse(&text).expect("PTX that is understood");
    let mut device = Device::new();
    let arrays = [0, 1].map(|_| device.upload_bytes(own.bytes().to_vec()));
    let lists = device.upload(&vec![-1i32; program.tiles() as usize]);
    let nothing = device.upload(&[0i32; 4]).address();
    let blocks = program.blocks().map(|n| n as u32);
    let threads = [WARP as u32, program.shape.warps() as u32, 1];
    let shared = program.shared_bytes(scheme.precision.bytes()) as u32;
    // Looking for races takes as long as the rest.
    let options = |races: bool| torre_ptx::Options {
        seed,
        resident: program.tiles() as u32,
        races,
        pieces: false,
        ..torre_ptx::Options::default()
    };
    let (mut step, mut since) = (0, 0);
    let rims = device.alloc_tracked(2 * layout.bytes() as usize).address();
    let words = program.tiles() as usize * PROGRESS_BYTES as usize / 4;
    let progress = device.upload(&vec![0u32; words]).address();
    let staying = program.stays.as_ref();
    let neighbours = device
        .upload(&staying.map_or(vec![0], Staying::table))
        .address();
    let room_numbers = device.upload(&program.rooms.table()).address();
    let bytes = program
        .rooms
        .bytes(&program.shape, scheme.precision.bytes());
    let rooms = device.alloc_tracked(bytes as usize).address();
    for time_block in 0..2 {
        let height = program.height / program.round;
        let rounds = match staying {
            Some(_) => 4 * height - height / 2 - time_block,
            None => height - time_block.min(height - 1),
        };
        for _ in 0..rounds * program.round {
            expected.step(step);
            step += 1;
        }
        let [from, to] = [time_block, 1 - time_block].map(|n| arrays[n as usize].address());
        let arguments = Patches {
            from,
            to,
            rounds: rounds as i32,
            all: 1,
            lists: lists.address(),
            ranges: nothing,
            entries: nothing,
            waves: nothing,
            wave_count: 0,
            records: nothing,
            record_count: 0,
            rims,
            progress,
            neighbours,
            since,
            room_numbers,
            rooms,
        };
        since += program.exchanges(rounds * program.round) as i32;
        let entry = module.entry(PATCHES).expect("it was emitted");
        let params = params(&arguments.arguments());
        let done = device.launch(
            entry,
            blocks,
            threads,
            shared,
            &params,
            &options(time_block == seed % 2),
        );
        done.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{program}\n{scheme}"));
    }
    if let Some((blocks, threads)) = ghost_threads(scheme, &layout) {
        let entry = module.entry(GHOSTS).expect("it was emitted");
        let array = arrays[0].address();
        let params = params(&GhostsOf { array }.arguments());
        let done = device.launch(entry, blocks, threads, 0, &params, &options(true));
        done.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{scheme}"));
    }
    let bytes = device.read(arrays[0]).to_vec();
    own.bytes().copy_from_slice(&bytes);
    let difference = own.difference(&expected);
    assert_eq!(difference, None, "seed {seed}:\n{program}\n{scheme}");
    let bare = |n: usize| {
        let (along, tile) = (&program.along[n], program.shape.tile()[n]);
        let inside = |t: &i64| {
            let first = along.origin(*t);
            along.bare.lo <= first && first + tile <= along.bare.hi
        };
        (0..along.tiles).filter(inside).count() as i64
    };
    bare(0) * bare(1) * bare(2)
}

/// Where tiles are between two time blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    InMemory,
    OnChip,
}

/// Bytes of shared memory of a block.
const MOST_SHARED: u64 = 200 << 10;

/// The amendments in parts of the grid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amended {
    Nowhere,
    InZones,
}

/// Axes of schemes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axes {
    OneOrTwo,
    Three,
}

impl Axes {
    fn limits(self) -> Limits {
        match self {
            Axes::OneOrTwo => Limits::PATCHES,
            Axes::Three => Limits::PATCHES_IN_SPACE,
        }
    }

    /// Rooms of a program on average, at least.
    fn rooms(self) -> i64 {
        match self {
            Axes::OneOrTwo => 2,
            Axes::Three => 1,
        }
    }

    /// Cells by which an axis is made longer so that some tiles are far from its ends.
    fn longer(self, axis: Axis) -> i64 {
        match (self, axis) {
            (Axes::OneOrTwo, Axis::INNER) => 150,
            (Axes::OneOrTwo, _) => 40,
            (Axes::Three, _) => 12,
        }
    }
}

/// Zones of any kind, and some like absorbing layers, along one axis or several.
fn add_zones(rng: &mut Rng, limits: &Limits, scheme: &mut Scheme) {
    if rng.once_in(2) {
        return add_random_zones(rng, limits, scheme);
    }
    let cells = scheme.grid.cells;
    let layers = PerAxis::from_fn(|axis| match scheme.grid.axes[axis] {
        Some(_) if !rng.once_in(4) => (cells[axis] / 3).min(rng.within(1, 8)),
        _ => 0,
    });
    add_layers(scheme, layers);
}

fn run(seeds: impl Iterator<Item = u64>, axes: Axes, between: Between, amended: Amended) {
    let Some(library) = library() else { return };
    let limits = axes.limits();
    let (mut schemes, mut bare, mut tiles, mut exchanged) = (0, 0, 0, 0);
    let (mut with_rooms, mut states) = (0i64, 0i64);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        if axes == Axes::Three && scheme.grid.dimensions() < 3 {
            continue;
        }
        if seed % 3 == 0 {
            // Some tiles are far from all ends, and updates act everywhere in them.
            everywhere(&mut scheme);
            let present: Vec<Axis> = scheme.grid.present().collect();
            for axis in present {
                lengthen(&mut scheme, axis, axes.longer(axis));
            }
        }
        if amended == Amended::InZones {
            add_zones(&mut rng, &limits, &mut scheme);
            torre_compiler::scheme::verify(&scheme).expect("a valid scheme");
        }
        let Some(mut program) = random_patches(&mut rng, &scheme) else {
            continue;
        };
        let shared = program.shared_bytes(scheme.precision.bytes());
        if program.tiles() > 60 || shared > MOST_SHARED {
            continue;
        }
        if between == Between::OnChip {
            let layout = Layout::for_gpu(&scheme).expect("a small scheme");
            program.stay(&layout);
            let verified = verify(&scheme, &layout, &program);
            verified.unwrap_or_else(|fault| panic!("{fault}\n{program}\n{scheme}"));
            if program.stays.is_none() {
                continue;
            }
            exchanged += usize::from(program.tiles() > 1);
        }
        schemes += 1;
        with_rooms += i64::from(program.rooms.count);
        states += i64::from(program.rooms.any() && !scheme.states.is_empty());
        tiles += program.tiles();
        bare += i64::from(compare(library, &scheme, &program, seed) > 0);
    }
    assert!(
        schemes > 10 && tiles > 2 * schemes,
        "{schemes} {tiles} {bare}"
    );
    assert!(between == Between::InMemory || exchanged > 7, "{exchanged}");
    match amended {
        // Tiles far from all ends have a test of their own.
        Amended::Nowhere if axes == Axes::Three => {}
        Amended::Nowhere => assert!(5 * bare > schemes, "{schemes} {tiles} {bare}"),
        Amended::InZones => assert!(
            with_rooms > axes.rooms() * schemes && 4 * states > schemes,
            "{schemes} {with_rooms} {states}"
        ),
    }
}

#[test]
fn patches_of_random_schemes_give_the_bits_of_rows() {
    run(
        (0..60).step_by(2),
        Axes::OneOrTwo,
        Between::InMemory,
        Amended::Nowhere,
    );
}

#[test]
fn patches_of_more_random_schemes_give_the_bits_of_rows() {
    run(
        (1..60).step_by(2),
        Axes::OneOrTwo,
        Between::InMemory,
        Amended::Nowhere,
    );
}

#[test]
fn tiles_that_stay_give_the_bits_of_rows() {
    run(
        (0..60).step_by(2),
        Axes::OneOrTwo,
        Between::OnChip,
        Amended::Nowhere,
    );
}

#[test]
fn more_tiles_that_stay_give_the_bits_of_rows() {
    run(
        (1..60).step_by(2),
        Axes::OneOrTwo,
        Between::OnChip,
        Amended::Nowhere,
    );
}

/// Electric and magnetic fields use the same slots one after the other. Threads meet before a field is published:
/// without it there are races.
#[test]
fn slots_that_are_used_again_need_a_barrier() {
    let Some(library) = library() else { return };
    let scheme = maxwell(2, Precision::F32, [9, 20, 10]);
    let layout = Layout::for_gpu(&scheme).expect("a small scheme");
    let program = |reuses_slots: bool| {
        let shape = Shape {
            threads: [1, 8, 8],
            patch: [8, 2, 1],
            coefs: CoefPlace::Registers,
            reuses_slots,
            blocks: 1,
        };
        let pyramid = Pyramid {
            height: 1,
            base: PerAxis([4, 10, 4].map(Some)),
        };
        let program = PatchProgram::new(&scheme, &layout, &pyramid, shape);
        let mut program = program.expect("small bases");
        program.stay(&layout);
        assert!(program.stays.is_some());
        program
    };
    let (own, mut again) = (program(false), program(true));
    assert!(2 * again.slots.count() <= own.slots.count() + 2, "{again}");
    assert!(own.stages.iter().all(|stage| !stage.frees), "{own}");
    compare(library, &scheme, &again, 3);
    for stage in &mut again.stages {
        assert!(std::mem::take(&mut stage.frees), "{own}");
    }
    assert!(verify(&scheme, &layout, &again).is_err());
    let run = || compare(library, &scheme, &again, 3);
    let fault = std::panic::catch_unwind(run).expect_err("a race");
    let message = fault.downcast_ref::<String>().expect("a message");
    assert!(message.contains("race"), "{message}");
}

/// The shape of tiles in space, of patches of 8 x 2 cells.
fn in_space(threads: [i64; 3]) -> Shape {
    Shape {
        threads,
        patch: [8, 2, 1],
        coefs: CoefPlace::Registers,
        reuses_slots: false,
        blocks: 1,
    }
}

/// Blocks that begin early wait before they read values, which the launch before may have stored: no load of them is
/// one that an assembler may move up, as loads of what no launch changes are.
#[test]
fn values_are_read_after_the_launch_before() {
    let Some(library) = library() else { return };
    let scheme = maxwell(2, Precision::F32, [9, 20, 10]);
    let layout = Layout::for_gpu(&scheme).expect("a small scheme");
    let shape = in_space([1, 8, 8]);
    let pyramid = Pyramid {
        height: 1,
        base: PerAxis([4, 10, 4].map(Some)),
    };
    let mut program = PatchProgram::new(&scheme, &layout, &pyramid, shape).expect("small bases");
    let text = |program: &PatchProgram, name: &str| {
        let gpu = Gpu::named(name).expect("a known name");
        let mut module = Module::new();
        emit(&mut module, &scheme, &layout, program, gpu);
        compile(library, &module, gpu).expect("valid IR").text
    };
    // Whether blocks wait, and loads of what no launch changes.
    let found = |program: &PatchProgram, name: &str| {
        let text = text(program, name);
        let waits = text.contains("griddepcontrol.wait");
        (waits, text.matches("ld.global.nc.").count())
    };
    let (early, late) = (found(&program, "sm_90"), found(&program, "sm_80"));
    assert_eq!([early.0, late.0], [true, false]);
    // No tile of so small a grid is far from its ends, so there is code for one kind.
    let rows = program.held.iter().filter(|held| **held).count();
    assert_eq!(late.1 - early.1, rows * shape.count());
    // All blocks of tiles that stay begin together.
    program.stay(&layout);
    let staying = ["sm_90", "sm_80"].map(|name| found(&program, name));
    assert_eq!(staying[0], staying[1]);
    assert!(!staying[0].0);
}

#[test]
fn patches_in_zones_give_the_bits_of_rows() {
    run(
        (0..80).step_by(2),
        Axes::OneOrTwo,
        Between::InMemory,
        Amended::InZones,
    );
}

#[test]
fn patches_in_more_zones_give_the_bits_of_rows() {
    run(
        (1..60).step_by(2),
        Axes::OneOrTwo,
        Between::InMemory,
        Amended::InZones,
    );
}

#[test]
fn tiles_that_stay_in_zones_give_the_bits_of_rows() {
    run(0..36, Axes::OneOrTwo, Between::OnChip, Amended::InZones);
}

#[test]
fn tiles_in_space_give_the_bits_of_rows() {
    run(0..100, Axes::Three, Between::OnChip, Amended::Nowhere);
}

#[test]
fn tiles_in_space_with_zones_give_the_bits_of_rows() {
    run(0..120, Axes::Three, Between::OnChip, Amended::InZones);
}

#[test]
fn tiles_in_space_far_from_ends_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    for (order, precision, cells) in [(2, Precision::F32, 14), (2, Precision::F64, 13)] {
        let scheme = maxwell(order, precision, [cells; 3]);
        let layout = Layout::for_gpu(&scheme).expect("a small scheme");
        let shape = in_space([1, 4, 8]);
        let pyramid = Pyramid {
            height: 1,
            base: PerAxis([4, 4, 4].map(Some)),
        };
        let program = PatchProgram::new(&scheme, &layout, &pyramid, shape);
        let mut program = program.expect("small bases");
        program.stay(&layout);
        verify(&scheme, &layout, &program).expect("a right program");
        assert!(program.stays.is_some());
        assert!(compare(library, &scheme, &program, 7) > 0, "{program}");
    }
}
