//! Running a tower program as PTX, beside row kernels.

use torre_compiler::backend::gpu::abi::{
    Argument, GhostsOf, TimeBlock, TowerBuffers, Volumes, queues, task_words,
};
use torre_compiler::backend::gpu::tower::{GHOSTS, NEAR, TOWERS, emit_with};
use torre_compiler::backend::gpu::{Gpu, Module, compile};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::cone::{Rational, cones};
use torre_compiler::layout::GPU_ALIGNMENT;
use torre_compiler::schedule::Frame;
use torre_compiler::scheme::Scheme;
use torre_compiler::testing::{Rng, Stagewise, diamonds};
use torre_compiler::tile::lower;
use torre_compiler::tower::block::{Division, Options};
use torre_compiler::tower::{NoProgram, Numbering, Order, TowerProgram, tasks, verify};
use torre_ptx::{Device, Param};

/// Two time blocks of towers of random order, on random values.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    pub library: &'a Library,
    pub scheme: &'a Scheme,
    /// Of both faces.
    pub pitches: [Rational; 2],
    /// Of a time block.
    pub periods: u64,
    pub options: Options,
    /// Rows are packed where they can be.
    pub packed: bool,
    /// Bound of the offsets within an instruction that accesses memory.
    pub near: i64,
    pub seed: u64,
    /// Lines of IR from which on a kernel is not compiled.
    pub most_lines: usize,
}

/// The work of towers.
#[derive(Debug, Default)]
pub struct Report {
    /// Towers with interior periods, in all time blocks.
    pub with_interior: usize,
    /// The ones of them with amendments.
    pub amended: usize,
    /// Chunks that were copied to shared memory.
    pub copies: u64,
    /// Operations on numbers, of whole warps.
    pub arithmetic: u64,
    /// Towers make ghosts along the inner axis.
    pub makes_ghosts: bool,
}

/// Progress of time blocks before.
const SINCE: i32 = 7;

fn params(arguments: &[Argument]) -> Vec<Param> {
    let param = |argument: &Argument| match *argument {
        Argument::Place(place) => Param::U64(place),
        Argument::Word(word) => Param::U32(word as u32),
        Argument::Long(long) => Param::U64(long as u64),
    };
    arguments.iter().map(param).collect()
}

impl<'a> Trial<'a> {
    pub fn new(library: &'a Library, scheme: &'a Scheme, pitch: i64, periods: u64) -> Trial<'a> {
        Trial {
            library,
            scheme,
            pitches: [Rational::whole(pitch); 2],
            periods,
            options: Options::default(),
            packed: false,
            near: NEAR,
            seed: 0,
            most_lines: usize::MAX,
        }
    }

    /// The program; or why there is none.
    pub fn program(&self, scheme: &Scheme) -> Result<TowerProgram, NoProgram> {
        let layout = torre_compiler::layout::Layout::for_gpu(scheme).expect("a small scheme");
        let frame = Frame::new(scheme, &cones(scheme)).opened();
        let tiling = diamonds(&frame, self.pitches, 1 << 20);
        let tiles = lower(scheme, &frame, &tiling).expect("fitting faces are legal");
        let program = match self.packed && Numbering::packs(scheme) {
            true => TowerProgram::packed(scheme, &layout, &tiles, self.options)?,
            false => TowerProgram::new(scheme, &layout, &tiles, &[], self.options)?,
        };
        let verified = verify(scheme, &layout, &program);
        verified.unwrap_or_else(|fault| panic!("seed {}: {fault}\n{scheme}", self.seed));
        Ok(program)
    }

    fn ptx(
        &self,
        stagewise: &Stagewise<'_>,
        program: &TowerProgram,
    ) -> Result<torre_ptx::Module, String> {
        let mut module = Module::new();
        emit_with(
            &mut module,
            self.scheme,
            &stagewise.layout,
            program,
            self.near,
        );
        let named = module.shared_bytes();
        assert_eq!(
            program.block.named_bytes(),
            named.next_multiple_of(GPU_ALIGNMENT as u32),
            "seed {}: shared memory beside rows",
            self.seed
        );
        // Z blocks need nothing of later GPUs.
        let Options {
            division,
            abilities,
        } = self.options;
        let is_plain = matches!(division, Division::ZBlocks(_)) && !abilities.moves_registers;
        let gpu = Gpu::named(if is_plain { "sm_80" } else { "sm_90a" }).expect("a known name");
        let lines = module.text().lines().count();
        if lines > self.most_lines {
            return Err(format!("a kernel of {lines} lines"));
        }
        let text = compile(self.library, &module, gpu).expect("valid IR").text;
        Ok(torre_ptx::Module::parse(&text).expect("PTX that is understood"))
    }

    /// Runs towers that exist.
    pub fn succeed(&self) -> Report {
        let name = &self.scheme.name;
        let result = self.run();
        result.unwrap_or_else(|reason| panic!("towers of {name}, seed {}: {reason}", self.seed))
    }

    /// Compares towers with row kernels; an error where there are no towers, or no such time blocks.
    pub fn run(&self) -> Result<Report, String> {
        let Trial { scheme, seed, .. } = *self;
        let mut rng = Rng::new(seed);
        let mut own = Stagewise::new(scheme, &mut rng);
        let mut expected = Stagewise::new(scheme, &mut Rng::new(seed));
        let program = self.program(scheme).map_err(|reason| reason.to_string())?;
        let module = self.ptx(&own, &program)?;
        let mut device = Device::new();
        let array = device.upload_bytes(own.bytes().to_vec());
        let mut report = Report {
            makes_ghosts: program.block.ghosts.is_some(),
            ..Report::default()
        };
        let steps = self.periods * program.towers.steps;
        for time_block in 0..2 {
            let step = time_block * steps;
            (step..step + steps).for_each(|n| expected.step(n));
            if report.makes_ghosts {
                // They are not read in memory.
                let bytes = device.read(array).to_vec();
                own.bytes().copy_from_slice(&bytes);
                own.spoil_inner_ghosts(1e30);
                let bytes = own.bytes().to_vec();
                device.write(array, 0, &bytes).expect("it fits");
            }
            let time_block = TimeBlockTrial {
                trial: self,
                program: &program,
                module: &module,
                // Looking for them takes as long as the rest.
                races: time_block == seed % 2,
                order: Order {
                    width: rng.within(1, 4),
                    overlap: rng.within(0, 3),
                    head_start: rng.within(0, 4) as u32,
                    partitions: rng.within(1, 3) as u32,
                },
            };
            time_block.run(&own, &mut device, array.address(), &mut report)?;
        }
        if let Some(ghosts) = &program.block.ghosts {
            let pass = &ghosts.pass;
            let entry = module.entry(GHOSTS).expect("it was emitted");
            let (blocks, threads) = ([pass.blocks, 1, 1], [pass.threads, 1, 1]);
            let arguments = GhostsOf {
                array: array.address(),
            };
            let params = params(&arguments.arguments());
            let options = torre_ptx::Options::default();
            let done = device.launch(entry, blocks, threads, 0, &params, &options);
            done.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{scheme}"));
        }
        let bytes = device.read(array).to_vec();
        own.bytes().copy_from_slice(&bytes);
        let difference = own.difference(&expected);
        assert_eq!(difference, None, "seed {seed}: {report:?}\n{scheme}");
        Ok(report)
    }
}

/// A time block of a trial.
struct TimeBlockTrial<'a> {
    trial: &'a Trial<'a>,
    program: &'a TowerProgram,
    module: &'a torre_ptx::Module,
    /// Whether races are looked for.
    races: bool,
    order: Order,
}

impl TimeBlockTrial<'_> {
    fn run(
        &self,
        own: &Stagewise<'_>,
        device: &mut Device,
        array: u64,
        report: &mut Report,
    ) -> Result<(), String> {
        let Trial {
            scheme,
            periods,
            seed,
            ..
        } = *self.trial;
        let TowerProgram { towers, block, .. } = self.program;
        let layout = &own.layout;
        let list = tasks(scheme, layout, towers, periods, self.order).ok_or("no such ring")?;
        let count = list.tasks.len();
        let with_interior =
            |task: &&torre_compiler::tower::Task| !task.placement.interior.is_empty();
        report.with_interior += list.tasks.iter().filter(with_interior).count();
        let amends = |task: &&torre_compiler::tower::Task| {
            let variant = towers.variants.all[task.placement.variant];
            with_interior(task) && !variant.zones.is_empty()
        };
        report.amended += list.tasks.iter().filter(amends).count();
        let words = list.tasks.iter().map(|task| {
            let words = task_words(layout, task, count, 0);
            words.expect("small numbers")
        });
        let words: Vec<i32> = words.flatten().collect();
        let time_block = TimeBlock::new(scheme, towers, block, list, self.order, periods);
        let time_block = time_block.ok_or("z blocks lean too much")?;
        let cluster = time_block.cluster;
        let mut rng = Rng::new(seed);
        // Blocks are spread over partitions, or all are near one.
        let near: Vec<u32> = (0..rng.within(1, 3 * i64::from(cluster)))
            .map(|_| rng.within(0, self.order.partitions.into()) as u32)
            .collect();
        let launches = 0..time_block.list.launches.len();
        let queues = launches.map(|n| queues(&time_block.list, n, &near).expect("few tasks"));
        let queues: Vec<Vec<i32>> = queues.collect();
        let queue_buffers = queues.iter().map(|words| device.upload(words));
        let queue_buffers: Vec<torre_ptx::Buffer> = queue_buffers.collect();
        let none = device.upload(&[0i32; 4]).address();
        let buffers = TowerBuffers {
            array,
            tasks: device.upload(&words).address(),
            progress: device.upload(&time_block.progress(SINCE)).address(),
            queues: queue_buffers.iter().map(|b| b.address()).collect(),
            points: none,
            waves: none,
            records: none,
            beside: None,
        };
        // All blocks that can run at a time, or as few as there have to be.
        let resident = rng.within(self.order.partitions.into(), 3) as u32 * cluster;
        let entry = self.module.entry(TOWERS).expect("it was emitted");
        let options = torre_ptx::Options {
            seed,
            resident,
            races: self.races,
            pieces: false,
            ..torre_ptx::Options::default()
        };
        for launch in time_block.launches(&buffers, &Volumes::default(), SINCE as u32) {
            let counts = device.launch(
                entry,
                [3 * cluster, 1, 1],
                [time_block.threads, 1, 1],
                time_block.shared_bytes,
                &params(&launch.arguments),
                &options,
            );
            let counts = counts.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{scheme}"));
            report.copies += counts.copies;
            let numbers = counts.opcodes.iter().filter(|(op, _)| op.contains(".rn."));
            report.arithmetic += numbers.map(|(_, executed)| executed.warps).sum::<u64>();
            let queue: Vec<i32> = device.download(queue_buffers[launch.number]);
            assert_eq!(queue, queues[launch.number], "seed {seed}: used up");
        }
        Ok(())
    }
}
