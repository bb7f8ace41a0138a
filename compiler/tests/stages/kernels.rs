//! All back ends give the same bits.

use proptest::prelude::*;
#[cfg(feature = "cranelift")]
use torre_compiler::backend::cranelift::{CraneliftCode, Error as CraneliftError, Features};
use torre_compiler::backend::interp::Interp;
use torre_compiler::backend::llvm::cpu::{LlvmCode, Shape, emit};
use torre_compiler::backend::llvm::library::{Cpu, Library};
use torre_compiler::backend::rows::RowProgram;
use torre_compiler::elementary::{self, Sequence};
use torre_compiler::kernel::{
    Code, KernelSet, RowKernel, Run, RunStart, UpdateSet, ZoneParts, ZoneSplitter, ZonedRuns,
    run_axis,
};
use torre_compiler::lattice::{Axis, Group, Interval, PerAxis};
use torre_compiler::layout::Layout;
use torre_compiler::scheme::{
    Body, Cmp, ComponentId, Op, Precision, Read, Scheme, Value, ZoneId, ZoneSet, verify,
};
use torre_compiler::testing::{
    Limits, Memory, Rng, add_random_bands, add_random_zones, elasticity, maxwell, random_kernels,
    random_scheme,
};

pub(super) fn kernel_set(scheme: &Scheme, kernels: Vec<RowKernel>) -> KernelSet {
    let layout = Layout::new(scheme).expect("a small scheme");
    KernelSet::new(scheme, layout, kernels)
}

/// All updates of all stages.
pub(super) fn whole(scheme: &Scheme) -> KernelSet {
    let kernels = scheme.stage_ids().map(|stage| RowKernel {
        stage,
        phase: 0,
        updates: UpdateSet::all(scheme.stages[stage.index()].updates.len()),
        zones: ZoneSet::default(),
    });
    kernel_set(scheme, kernels.collect())
}

/// Some of the compiled forms that this machine can run; LLVM's with windows, without, or both.
pub(super) fn compiled(
    scheme: &Scheme,
    set: &KernelSet,
    rng: &mut Rng,
    windows: &[bool],
) -> Vec<Box<dyn Code>> {
    let mut codes: Vec<Box<dyn Code>> = Vec::new();
    let host = Library::open().and_then(|library| Ok((library, Cpu::host(library)?)));
    match host {
        Ok((library, host)) => {
            // Older processors, too: their masked stores are others, and their fused operations may be calls.
            let older = ["x86-64", "x86-64-v2", "x86-64-v3"].into_iter();
            let older = older.filter_map(Cpu::named);
            let mut cpus: Vec<Cpu> = older
                .filter(|cpu| cpu.vector_bits <= host.vector_bits && cpu.fma <= host.fma)
                .collect();
            cpus.extend([host.clone(), host]);
            for &window in windows {
                let cpu = rng.pick(&cpus);
                let widths = [128, 256, 512].map(|bits| bits.min(cpu.vector_bits));
                let shape = Shape {
                    vector_bits: *rng.pick(&widths),
                    window,
                };
                let code = LlvmCode::with_shape(library, cpu, shape, scheme, set);
                codes.push(Box::new(code.expect("valid IR")));
            }
        }
        Err(error) => eprintln!("skipped: LLVM: {error}"),
    }
    #[cfg(feature = "cranelift")]
    for features in [Features::Host, Features::Baseline] {
        match CraneliftCode::new(scheme, set, features) {
            Ok(code) => codes.push(Box::new(code)),
            Err(CraneliftError::Host(reason)) => eprintln!("skipped: Cranelift: {reason}"),
            Err(error) => panic!("{error}"),
        }
    }
    codes
}

/// The parts of runs in which a kernel runs, by its zones: cut at these, or at all zones, as where it runs one part of
/// some updates.
fn zoned(scheme: &Scheme, layout: &Layout, kernel: &RowKernel, over: Over<'_>) -> Vec<ZonedRuns> {
    let Over {
        origin,
        runs,
        range,
        cut,
    } = over;
    if scheme.zones.is_empty() {
        return vec![ZonedRuns {
            zones: ZoneSet::default(),
            range,
            runs: runs.to_vec(),
            records: Vec::new(),
        }];
    }
    let stride = layout.stride[run_axis(scheme)] * layout.element_bytes as i64;
    let starts: Vec<RunStart> = runs
        .iter()
        .map(|run| {
            let by = run.offset / stride;
            let place = match run_axis(scheme) {
                Axis::MIDDLE => origin + Group::new(0, by),
                _ => origin + Group::new(by, 0),
            };
            RunStart {
                place,
                offset: run.offset,
                groups: run.groups,
            }
        })
        .collect();
    let all = ZoneSet(u32::MAX);
    let relevant = RowKernel::relevant(scheme, kernel.stage, kernel.updates, all);
    let split = ZoneSplitter::new(scheme, layout);
    let mut parts = ZoneParts::default();
    let starts = starts.iter().copied();
    let cut = match cut {
        CutAt::Own => relevant,
        CutAt::All => all,
    };
    split.split(layout, cut, origin, starts, range, &mut parts);
    let own = parts.iter();
    let own = own.filter(|p| p.zones.intersect(relevant) == kernel.zones);
    own.cloned().collect()
}

/// Runs over a range, whose offsets count from a group.
#[derive(Clone, Copy)]
struct Over<'a> {
    origin: Group,
    runs: &'a [Run],
    range: Interval,
    cut: CutAt,
}

/// The zones at whose ends runs are cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CutAt {
    /// Zones that amend the kernel's updates.
    Own,
    All,
}

/// A call of a kernel, cut at the ends of zones.
pub(super) struct Call {
    pub kernel: usize,
    /// The group that its runs count from.
    pub element: i64,
    pub parts: Vec<ZonedRuns>,
}

impl Call {
    /// A kernel over a random part of the domain.
    pub fn random(scheme: &Scheme, set: &KernelSet, index: usize, rng: &mut Rng) -> Call {
        let layout = &set.layout;
        let kernel = &set.kernels[index];
        let run = run_axis(scheme);
        let cells = scheme.grid.cells;
        let mut at = PerAxis::from_fn(|a| rng.within(0, cells[a] - 1));
        at[Axis::INNER] = 0;
        // Two runs, one behind the other with a gap between; empty ones are allowed.
        let length = cells[run] - at[run];
        let first = rng.within(-1, length);
        let gap = rng.within(first.max(0), length);
        let bytes = layout.element_bytes as i64;
        let runs = [
            Run {
                offset: 0,
                groups: first,
            },
            Run {
                offset: gap * set.run_stride(scheme) * bytes,
                groups: rng.within(-1, length - gap),
            },
        ];
        let runs = &runs[..rng.within(0, 2) as usize];
        let place = Group::new(at[Axis::OUTER], at[Axis::MIDDLE]);
        let length = cells[Axis::INNER];
        let (lo, hi) = match rng.below(4) {
            0 => (0, length),
            _ => (rng.within(0, length), rng.within(0, length)),
        };
        let cut = *rng.pick(&[CutAt::Own, CutAt::All]);
        let over = Over {
            origin: place,
            runs,
            range: Interval::new(lo, hi),
            cut,
        };
        Call {
            kernel: index,
            element: layout.group(place.x, place.y),
            parts: zoned(scheme, layout, kernel, over),
        }
    }

    pub fn run(&self, code: &dyn Code, memory: &mut Memory) {
        for part in &self.parts {
            // SAFETY: the ranges lie in the domain, and the layout holds all that its cells can read; the code was
            // compiled for this processor.
            unsafe { part.run(code, self.kernel, memory.pointer(self.element), part.range) };
        }
    }
}

/// Runs all kernels over random parts of the domain, each on the memory that the ones before it left. LLVM, which takes
/// most of the time, compiles one form: others have their turn with other random numbers.
fn compare(scheme: &Scheme, set: &KernelSet, rng: &mut Rng, special: u64) -> Result<(), String> {
    let window = rng.below(2) == 1;
    let codes = compiled(scheme, set, rng, &[window]);
    compare_codes(scheme, set, &codes, rng, special)
}

pub(super) fn compare_codes(
    scheme: &Scheme,
    set: &KernelSet,
    codes: &[Box<dyn Code>],
    rng: &mut Rng,
    special: u64,
) -> Result<(), String> {
    let interp = Interp::new(scheme, set);
    let mut expected = Memory::new(&set.layout);
    expected.fill(rng, special);
    for (index, kernel) in set.kernels.iter().enumerate() {
        let call = Call::random(scheme, set, index, rng);
        let before = expected.clone();
        call.run(&interp, &mut expected);
        for code in codes {
            let mut memory = before.clone();
            call.run(&**code, &mut memory);
            if let Some(i) = memory.difference(&expected) {
                return Err(format!(
                    "{} {kernel} {:?}: element {i} is {:x}, not {:x}, and was {:x}\n{scheme}",
                    code.description(),
                    call.parts,
                    memory.bits(i),
                    expected.bits(i),
                    before.bits(i),
                ));
            }
        }
    }
    Ok(())
}

fn limits() -> impl Strategy<Value = Limits> {
    (
        1..4usize,
        1..5usize,
        1..4usize,
        1..24usize,
        1..120i64,
        1..6i64,
        0..40i64,
    )
        .prop_map(
            |(dimensions, components, stages, ops, length, width, reach)| Limits {
                dimensions,
                components,
                stages,
                ops,
                length,
                width,
                reach,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn back_ends_agree(seed: u64, limits in limits(), special in 0..40u64) {
        let mut rng = Rng::new(seed);
        let scheme = random_scheme(&mut rng, &limits);
        prop_assert_eq!(verify(&scheme), Ok(()));
        let kernels = random_kernels(&mut rng, &scheme);
        let set = kernel_set(&scheme, kernels);
        compare(&scheme, &set, &mut rng, special).map_err(TestCaseError::fail)?;
    }

    /// In zones, with states and profiles.
    #[test]
    fn back_ends_agree_in_zones(seed: u64, limits in limits(), special in 0..40u64) {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        add_random_zones(&mut rng, &limits, &mut scheme);
        prop_assert_eq!(verify(&scheme), Ok(()));
        let kernels = random_kernels(&mut rng, &scheme);
        let set = kernel_set(&scheme, kernels);
        compare(&scheme, &set, &mut rng, special).map_err(TestCaseError::fail)?;
    }

    /// In zones that rows meet in bands.
    #[test]
    fn back_ends_agree_in_bands(seed: u64, limits in limits(), special in 0..40u64) {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        add_random_bands(&mut rng, &limits, &mut scheme);
        prop_assert_eq!(verify(&scheme), Ok(()));
        let kernels = random_kernels(&mut rng, &scheme);
        let set = kernel_set(&scheme, kernels);
        compare(&scheme, &set, &mut rng, special).map_err(TestCaseError::fail)?;
    }

    /// Kernels read whole vectors, and one beside them for windows: the layout has room for them.
    #[test]
    fn vectors_stay_in_the_array(seed: u64, limits in limits()) {
        let mut rng = Rng::new(seed);
        let scheme = random_scheme(&mut rng, &limits);
        let set = kernel_set(&scheme, random_kernels(&mut rng, &scheme));
        let layout = &set.layout;
        let lanes = 64 / layout.element_bytes as i64;
        let cells = scheme.grid.cells;
        let first = layout.group(0, 0);
        let last = layout.group(cells[Axis::OUTER] - 1, cells[Axis::MIDDLE] - 1)
            + (cells[Axis::INNER] - 1).div_euclid(lanes) * lanes;
        for program in RowProgram::all(&scheme, &set) {
            for place in program.loads() {
                let shift = place.shift.div_euclid(lanes) * lanes;
                prop_assert!(first + place.row + shift >= 0);
                prop_assert!(last + place.row + shift + 2 * lanes <= layout.elements);
            }
        }
    }
}

/// Vectors in the bands of one zone leave the states of other zones alone, whose places they would reach: three zones
/// with bands and two states each.
#[test]
fn states_of_other_bands_stay() {
    let limits = Limits {
        dimensions: 3,
        components: 2,
        stages: 1,
        ops: 8,
        length: 115,
        width: 2,
        reach: 33,
    };
    let mut rng = Rng::new(9_481_043_725_338_929_464);
    let mut scheme = random_scheme(&mut rng, &limits);
    add_random_bands(&mut rng, &limits, &mut scheme);
    let kernels = random_kernels(&mut rng, &scheme);
    let set = kernel_set(&scheme, kernels);
    let states = scheme.zones.iter().enumerate().map(|(zone, _)| {
        let banded = !set.bands.of(ZoneId(zone as u32)).is_empty();
        (banded, scheme.states_of(ZoneId(zone as u32)).count())
    });
    assert_eq!(states.collect::<Vec<_>>(), [(true, 2); 3]);
    let codes = compiled(&scheme, &set, &mut rng, &[false, true]);
    assert_eq!(compare_codes(&scheme, &set, &codes, &mut rng, 1), Ok(()));
}

#[test]
fn known_schemes_agree() {
    for precision in [Precision::F32, Precision::F64] {
        let schemes = [
            maxwell(2, precision, [4, 5, 37]),
            maxwell(4, precision, [5, 4, 70]),
            elasticity(precision, [4, 5, 40]),
        ];
        for scheme in schemes {
            assert_eq!(verify(&scheme), Ok(()));
            for seed in 0..3 {
                let set = whole(&scheme);
                let result = compare(&scheme, &set, &mut Rng::new(seed), 0);
                assert_eq!(result, Ok(()));
            }
        }
    }
}

/// In vectors longer than the processor's, too, which LLVM splits.
#[test]
fn tiny_values_become_zero() {
    let host = Library::open().and_then(|library| Ok((library, Cpu::host(library)?)));
    let (library, cpu) = match host {
        Ok(host) => host,
        Err(error) => return eprintln!("skipped: LLVM: {error}"),
    };
    for precision in [Precision::F32, Precision::F64] {
        let mut scheme = maxwell(2, precision, [2, 3, 100]);
        for (n, update) in scheme.stages[0].updates.iter_mut().enumerate() {
            let read = Op::Read(Read {
                component: ComponentId(n as u32),
                offset: PerAxis([0, 0, 1]),
                age: 0,
            });
            // Half of the values stay.
            let most = Op::Const(2.0 * precision.flush_threshold());
            update.body = Body {
                ops: vec![read, most, Op::Mul(Value(0), Value(1)), Op::Flush(Value(2))],
                result: Value(3),
            };
        }
        let set = whole(&scheme);
        let mut codes: Vec<Box<dyn Code>> = Vec::new();
        for vector_bits in [128, 256, 512] {
            for window in [false, true] {
                let shape = Shape {
                    vector_bits,
                    window,
                };
                let code = LlvmCode::with_shape(library, &cpu, shape, &scheme, &set);
                codes.push(Box::new(code.expect("valid IR")));
            }
        }
        for seed in 0..12 {
            let mut rng = Rng::new(seed);
            let result = compare_codes(&scheme, &set, &codes, &mut rng, 2);
            assert_eq!(result, Ok(()));
        }
    }
}

/// SSE has packed comparisons that want their operand in memory to be aligned.
#[test]
fn comparisons_of_rows_at_an_offset_agree() {
    for precision in [Precision::F32, Precision::F64] {
        let mut scheme = maxwell(2, precision, [2, 2, 33]);
        for shift in -3..=3 {
            let update = &mut scheme.stages[0].updates[0];
            let read = |component: u32, shift: i32| {
                Op::Read(Read {
                    component: ComponentId(component),
                    offset: PerAxis([0, 0, shift]),
                    age: 0,
                })
            };
            let select = Op::Select {
                cmp: Cmp::Le,
                a: Value(0),
                b: Value(1),
                then: Value(2),
                otherwise: Value(0),
            };
            update.body = Body {
                ops: vec![read(0, 0), read(1, shift), read(2, 1), select],
                result: Value(3),
            };
            let set = whole(&scheme);
            for seed in 0..2 {
                let result = compare(&scheme, &set, &mut Rng::new(seed), 5);
                assert_eq!(result, Ok(()));
            }
        }
    }
}

/// An update that applies a function to values beside its target, of magnitudes up to 50.
pub(super) fn applied(function: &Sequence) -> Body {
    let mut ops = vec![Op::Const(50.0)];
    let mut values = Vec::new();
    for shift in 0..function.arguments as i32 {
        ops.push(Op::Read(Read {
            component: ComponentId(1),
            offset: PerAxis([0, 0, shift]),
            age: 0,
        }));
        ops.push(Op::Mul(Value(0), Value(ops.len() as u32 - 1)));
        values.push(Value(ops.len() as u32 - 1));
    }
    for op in &function.ops {
        ops.push(op.map(|v| values[v.index()]));
        values.push(Value(ops.len() as u32 - 1));
    }
    Body {
        ops,
        result: values[function.result.index()],
    }
}

#[test]
fn elementary_functions_agree() {
    use torre_compiler::host::HostUnary as H;
    for precision in [Precision::F32, Precision::F64] {
        let unary = [
            H::Exp,
            H::Log,
            H::Sin,
            H::Cos,
            H::Tan,
            H::Tanh,
            H::Floor,
            H::Ceil,
            H::Round,
        ];
        let unary = unary.map(|op| elementary::function(op, precision).expect("a function"));
        for (n, function) in unary
            .iter()
            .chain([&elementary::power(precision)])
            .enumerate()
        {
            let mut scheme = maxwell(2, precision, [2, 3, 33]);
            scheme.stages[0].updates.truncate(1);
            scheme.stages[0].updates[0].body = applied(function);
            scheme.stages.truncate(1);
            assert_eq!(verify(&scheme), Ok(()));
            let set = whole(&scheme);
            // Values of all magnitudes, infinities and NaN among them.
            let mut rng = Rng::new(n as u64);
            let codes = compiled(&scheme, &set, &mut rng, &[n % 2 == 0]);
            for special in [0, 10, 40] {
                let result = compare_codes(&scheme, &set, &codes, &mut rng, special);
                assert_eq!(result, Ok(()));
            }
        }
    }
}

/// In vectors of AVX2, shuffles for a value of f32 across two of them cost more than a load of it.
#[test]
fn vectors_of_avx2_are_loaded_at_their_offsets() {
    let shuffles = |name, precision| {
        let cpu = Cpu::named(name).expect("a known name");
        let scheme = maxwell(4, precision, [4, 4, 64]);
        let ir = emit(&scheme, &whole(&scheme), Shape::of(&cpu, precision));
        let main = ir.split_once("\nmain1:").expect("a loop").1;
        let main = main.split_once("\nbehind1:").expect("its end").0;
        main.contains("shufflevector")
    };
    assert!(!shuffles("x86-64-v3", Precision::F32));
    assert!(!shuffles("znver3", Precision::F32));
    assert!(shuffles("znver3", Precision::F64));
    assert!(shuffles("sapphirerapids", Precision::F32));
    assert!(shuffles("x86-64-v2", Precision::F32));
}

/// Where vectors have no masks, the last vector of rows that are no whole number of vectors is stored without.
#[test]
fn the_end_of_rows_needs_no_mask() {
    let tail = |name, length| {
        let cpu = Cpu::named(name).expect("a known name");
        let scheme = maxwell(4, Precision::F32, [4, 4, length]);
        let ir = emit(&scheme, &whole(&scheme), Shape::of(&cpu, Precision::F32));
        let tail = ir.split_once("\ntail:")?.1;
        let tail = tail.split_once("  br label").expect("its end").0;
        assert!(!tail.contains("masked"));
        Some(tail.matches("  store").count())
    };
    assert_eq!(tail("znver3", 100), Some(3));
    assert_eq!(tail("znver3", 101), Some(3));
    assert_eq!(tail("x86-64-v2", 101), Some(3));
    assert_eq!(tail("znver3", 96), None);
    assert_eq!(tail("x86-64-v2", 100), None);
    assert_eq!(tail("sapphirerapids", 100), None);
}

/// One update, in the narrowest vectors.
#[test]
fn the_printed_form_of_a_small_kernel() {
    let mut scheme = maxwell(2, Precision::F64, [1, 1, 8]);
    scheme.stages.truncate(1);
    let mut set = whole(&scheme);
    set.kernels[0].updates = UpdateSet(1);
    let shape = Shape {
        vector_bits: 128,
        window: true,
    };
    assert_eq!(emit(&scheme, &set, shape), include_str!("curl.ll"));
}
