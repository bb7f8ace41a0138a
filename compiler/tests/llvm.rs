//! LLVM from IR text to results: exact bits, errors as data, several threads, code that lives as long as its handles.

use std::fmt::Write;
use std::process::Command;
use std::thread;

use torre_compiler::backend::gpu::Gpu;
use torre_compiler::backend::llvm::library::{
    Cpu, Entry, Error, Jit, Library, Object, Options, Passes, Target, compile, compile_to_asm,
    optimise,
};

fn gpu(name: &str) -> Target {
    Gpu::named(name).expect("a known name").target()
}

fn library() -> &'static Library {
    Library::open().unwrap_or_else(|error| panic!("{error}"))
}

fn host() -> Cpu {
    Cpu::host(library()).expect("a CPU that is a target")
}

fn options(passes: &'static str) -> Options {
    Options {
        passes: Passes::new(passes),
        ..Options::CPU
    }
}

fn load(ir: &str, cpu: &Cpu, options: &Options) -> Jit {
    let object = compile(library(), ir, &cpu.target, options).unwrap_or_else(|e| panic!("{e}"));
    Jit::load(library(), &object).unwrap_or_else(|e| panic!("{e}"))
}

/// The CPU targets whose code the host can run: itself and the levels of x86-64 below it.
fn runnable() -> Vec<Cpu> {
    let host = host();
    let levels = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"];
    let below = levels
        .into_iter()
        .filter_map(Cpu::named)
        .filter(|cpu| cpu.vector_bits < host.vector_bits || cpu.vector_bits == 128);
    std::iter::once(host.clone()).chain(below).collect()
}

/// A row kernel in explicit vectors, with a masked tail: `o[i] = fma(a[i+2], 0.25, fma(a[i+1], b[i], a[i] * third))`.
fn row_kernel(scalar: &str, lanes: u32, third: f64) -> String {
    let vector = format!("<{lanes} x {scalar}>");
    let suffix = if scalar == "float" { "f32" } else { "f64" };
    let (fma, mask) = (
        format!("@llvm.fma.v{lanes}{suffix}"),
        format!("<{lanes} x i1>"),
    );
    let get_mask = format!("@llvm.get.active.lane.mask.v{lanes}i1.i64");
    let masked_load = format!("@llvm.masked.load.v{lanes}{suffix}.p0");
    let masked_store = format!("@llvm.masked.store.v{lanes}{suffix}.p0");
    let third = format!("splat ({scalar} {:#018X})", third.to_bits());
    let quarter = format!("splat ({scalar} 0.25)");
    let mut ir = String::new();
    let full = [("x0", "a"), ("x1", "a1"), ("x2", "a2"), ("y", "b")];
    for (block, masked) in [("loop", false), ("tail", true)] {
        writeln!(ir, "{block}:").unwrap();
        let index = if masked { "%whole" } else { "%i" };
        if !masked {
            writeln!(ir, "  %i = phi i64 [0, %entry], [%next, %loop]").unwrap();
        } else {
            writeln!(ir, "  %m = call {mask} {get_mask}(i64 %whole, i64 %n)").unwrap();
        }
        for (name, base) in full {
            writeln!(
                ir,
                "  %p{name}.{block} = getelementptr {scalar}, ptr %{base}, i64 {index}"
            )
            .unwrap();
            let source = format!("ptr %p{name}.{block}");
            if masked {
                writeln!(
                    ir,
                    "  %{name}.{block} = call {vector} {masked_load}({source}, i32 4, {mask} %m, {vector} \
                     zeroinitializer)"
                )
            } else {
                writeln!(ir, "  %{name}.{block} = load {vector}, {source}, align 4")
            }
            .unwrap();
        }
        write!(
            ir,
            "  %t.{block} = fmul {vector} %x0.{block}, {third}
  %u.{block} = call {vector} {fma}({vector} %x1.{block}, {vector} %y.{block}, {vector} %t.{block})
  %v.{block} = call {vector} {fma}({vector} %x2.{block}, {vector} {quarter}, {vector} %u.{block})
  %po.{block} = getelementptr {scalar}, ptr %o, i64 {index}
"
        )
        .unwrap();
        if masked {
            writeln!(
                ir,
                "  call void {masked_store}({vector} %v.tail, ptr %po.tail, i32 4, {mask} %m)\n  br label %exit"
            )
        } else {
            writeln!(
                ir,
                "  store {vector} %v.loop, ptr %po.loop, align 4
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, %whole
  br i1 %more, label %loop, label %tail"
            )
        }
        .unwrap();
    }
    format!(
        "define void @row(ptr noalias %o, ptr noalias %a, ptr noalias %b, i64 %n) nounwind {{
entry:
  %rest = urem i64 %n, {lanes}
  %whole = sub i64 %n, %rest
  %a1 = getelementptr {scalar}, ptr %a, i64 1
  %a2 = getelementptr {scalar}, ptr %a, i64 2
  %any = icmp ugt i64 %whole, 0
  br i1 %any, label %loop, label %tail
{ir}exit:
  ret void
}}
declare {vector} {fma}({vector}, {vector}, {vector})
declare {mask} {get_mask}(i64, i64)
declare {vector} {masked_load}(ptr, i32, {mask}, {vector})
declare void {masked_store}({vector}, ptr, i32, {mask})
"
    )
}

/// Numbers of many magnitudes, subnormals among them, from a linear congruential generator.
fn samples(count: usize) -> Vec<f64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 11
    };
    (0..count)
        .map(|i| {
            let mantissa = next() as f64 / (1u64 << 53) as f64 - 0.5;
            let exponent = if i % 7 == 0 {
                -140
            } else {
                (next() % 40) as i32 - 20
            };
            mantissa * f64::from(exponent).exp2()
        })
        .collect()
}

const LENGTHS: [usize; 7] = [0, 1, 7, 16, 31, 64, 1003];

type Row<T> = unsafe extern "C" fn(*mut T, *const T, *const T, i64);

/// Runs the row kernel for every length and compares with `expected(a0, a1, a2, b)`; cells beyond the row keep their
/// value.
fn check_row<T: Copy + PartialEq + std::fmt::Debug>(
    entry: &Entry<Row<T>>,
    from: fn(f64) -> T,
    expected: fn(T, T, T, T) -> T,
    name: &str,
) {
    for length in LENGTHS {
        let numbers: Vec<T> = samples(2 * length + 4).into_iter().map(from).collect();
        let (a, b) = numbers.split_at(length + 2);
        let untouched = from(7.0);
        let mut o = vec![untouched; length + 2];
        // SAFETY: the rows have `length` elements, two more in `a`, and the kernel was compiled for this CPU.
        unsafe { (**entry)(o.as_mut_ptr(), a.as_ptr(), b.as_ptr(), length as i64) };
        let mut reference: Vec<T> = (0..length)
            .map(|i| expected(a[i], a[i + 1], a[i + 2], b[i]))
            .collect();
        reference.extend([untouched; 2]);
        assert_eq!(o, reference, "{name}, length {length}");
    }
}

#[test]
fn vector_rows_give_the_bits_of_scalar_rust() {
    for cpu in runnable() {
        for passes in ["", Passes::CPU.as_str(), "default<O3>"] {
            let name = format!("{} after `{passes}`", cpu.target);
            let third = f64::from(1.0f32 / 3.0);
            let ir = row_kernel("float", cpu.lanes(4), third);
            // SAFETY: `@row` has this signature.
            let row = unsafe { load(&ir, &cpu, &options(passes)).entry::<Row<u32>>("row") };
            let expected = |a0: u32, a1: u32, a2: u32, b: u32| {
                let [a0, a1, a2, b] = [a0, a1, a2, b].map(f32::from_bits);
                let t = a1.mul_add(b, a0 * (1.0f32 / 3.0));
                a2.mul_add(0.25, t).to_bits()
            };
            check_row(&row.unwrap(), |x| (x as f32).to_bits(), expected, &name);

            let ir = row_kernel("double", cpu.lanes(8), 1.0 / 3.0);
            // SAFETY: `@row` has this signature.
            let row = unsafe { load(&ir, &cpu, &options(passes)).entry::<Row<u64>>("row") };
            let expected = |a0: u64, a1: u64, a2: u64, b: u64| {
                let [a0, a1, a2, b] = [a0, a1, a2, b].map(f64::from_bits);
                let t = a1.mul_add(b, a0 * (1.0 / 3.0));
                a2.mul_add(0.25, t).to_bits()
            };
            check_row(&row.unwrap(), f64::to_bits, expected, &name);
        }
    }
}

#[test]
fn a_product_and_a_sum_are_not_contracted() {
    let ir = "define double @f(double %a, double %b, double %c) {
  %p = fmul double %a, %b
  %s = fadd double %p, %c
  ret double %s
}";
    type F = unsafe extern "C" fn(f64, f64, f64) -> f64;
    let epsilon = f64::EPSILON;
    for passes in ["", "default<O3>"] {
        // SAFETY: `@f` has this signature.
        let f = unsafe { load(ir, &host(), &options(passes)).entry::<F>("f") }.unwrap();
        // SAFETY: it takes and returns numbers.
        let result = unsafe { f(1.0 + epsilon, 1.0 - epsilon, -1.0) };
        assert_eq!(result, 0.0, "fused, it would be -epsilon^2");
    }
}

#[test]
fn functions_of_the_c_library_are_those_of_rust() {
    let ir = "define void @f(ptr %o, double %x, float %y) {
  %a = call double @llvm.sin.f64(double %x)
  store double %a, ptr %o
  %p1 = getelementptr double, ptr %o, i64 1
  %b = call double @llvm.pow.f64(double %x, double 1.7)
  store double %b, ptr %p1
  %p2 = getelementptr double, ptr %o, i64 2
  %c = call float @llvm.exp.f32(float %y)
  %d = fpext float %c to double
  store double %d, ptr %p2
  %p3 = getelementptr double, ptr %o, i64 3
  %e = call double @llvm.floor.f64(double %x)
  store double %e, ptr %p3
  ret void
}
declare double @llvm.sin.f64(double)
declare double @llvm.pow.f64(double, double)
declare float @llvm.exp.f32(float)
declare double @llvm.floor.f64(double)";
    type F = unsafe extern "C" fn(*mut f64, f64, f32);
    for cpu in runnable() {
        // SAFETY: `@f` has this signature.
        let f = unsafe { load(ir, &cpu, &Options::CPU).entry::<F>("f") }.unwrap();
        for x in [0.1, 1.5, 12.25] {
            let mut o = [0.0; 4];
            // SAFETY: it writes four numbers.
            unsafe { f(o.as_mut_ptr(), x, x as f32) };
            let expected = [x.sin(), x.powf(1.7), f64::from((x as f32).exp()), x.floor()];
            assert_eq!(o.map(f64::to_bits), expected.map(f64::to_bits));
        }
    }
}

#[test]
fn threads_compile_and_run_at_the_same_time() {
    let cpu = host();
    thread::scope(|scope| {
        for thread in 0..4 {
            let cpu = &cpu;
            scope.spawn(move || {
                for round in 0..5 {
                    let factor = 10 * thread + round;
                    let ir =
                        format!("define i64 @f(i64 %x) {{ %y = mul i64 %x, {factor} ret i64 %y }}");
                    let jit = load(&ir, cpu, &options("default<O3>"));
                    type F = unsafe extern "C" fn(i64) -> i64;
                    // SAFETY: `@f` has this signature.
                    let f = unsafe { jit.entry::<F>("f") }.unwrap();
                    // SAFETY: it takes and returns an integer.
                    assert_eq!(unsafe { f(7) }, 7 * factor);
                    let gpu = gpu("sm_90");
                    compile_to_asm(library(), &ir, &gpu, &Options::PTX).unwrap();
                }
            });
        }
    });
}

#[test]
fn an_entry_keeps_its_code_and_crosses_threads() {
    fn check<T: Send + Sync + 'static>(value: T) -> T {
        value
    }
    type F = unsafe extern "C" fn() -> i32;
    let entry: Entry<F> = {
        let jit = check(load(
            "define i32 @f() { ret i32 42 }",
            &host(),
            &Options::CPU,
        ));
        // SAFETY: `@f` has this signature.
        check(unsafe { jit.entry("f") }.unwrap())
    };
    let clone = entry.clone();
    drop(entry);
    // SAFETY: it takes nothing.
    let result = thread::spawn(move || unsafe { clone() }).join();
    assert_eq!(result.unwrap(), 42);
}

#[test]
fn bad_input_is_an_error_with_its_reason() {
    let target = &host().target;
    let attempt = |ir: &str, target: &Target, passes: &'static str| {
        compile(library(), ir, target, &options(passes)).expect_err("it is wrong")
    };
    let error = attempt("define void @f( {", target, "");
    assert!(
        matches!(&error, Error::Parse { message } if !message.is_empty()),
        "{error}"
    );
    let error = attempt("define void @f() { ret void }\0 more", target, "");
    assert_eq!(error, Error::ZeroByte { name: "IR" });
    // Uses a value where it is not defined on every path.
    let ir = "define i32 @f(i1 %c) {
  br i1 %c, label %a, label %b
a:
  %x = add i32 1, 2
  br label %b
b:
  ret i32 %x
}";
    let error = attempt(ir, target, "");
    assert!(
        matches!(&error, Error::Verify { message } if message.contains("dominate")),
        "{error}"
    );
    let good = "define void @f() { ret void }";
    let error = attempt(good, target, "no-such-pass");
    assert!(
        matches!(&error, Error::Passes { message, .. } if message.contains("no-such-pass")),
        "{error}"
    );
    let error = attempt(good, target, "a\0b");
    assert!(matches!(error, Error::ZeroByte { .. }), "{error}");
    let unknown = Target {
        triple: "pdp11-dec-unix".to_owned(),
        ..target.clone()
    };
    let error = attempt(good, &unknown, "");
    assert!(
        matches!(&error, Error::Target { target, .. } if target.contains("pdp11")),
        "{error}"
    );
}

#[test]
fn an_error_of_code_generation_is_collected() {
    // The constraint asks for a register that does not exist; the code generator reports it as a diagnostic.
    let ir = "define void @f() { call void asm sideeffect \"nop\", \"{nosuch}\"(i32 1) ret void }";
    let error = compile(library(), ir, &host().target, &Options::CPU).unwrap_err();
    assert!(
        matches!(&error, Error::Codegen { message } if !message.is_empty()),
        "{error}"
    );
}

#[test]
fn a_symbol_that_does_not_exist_is_named() {
    let jit = load(
        "declare void @outside_of_everything()
define void @f() { call void @outside_of_everything() ret void }",
        &host(),
        &Options::CPU,
    );
    let error = jit.address("g").unwrap_err();
    assert!(
        matches!(&error, Error::Symbol { name, .. } if name == "g"),
        "{error}"
    );
    let error = jit.address("f").unwrap_err();
    assert!(
        error.to_string().contains("outside_of_everything"),
        "{error}"
    );
}

#[test]
fn bytes_that_are_no_object_are_refused() {
    // SAFETY: not an object at all, which LLVM tells from its first bytes.
    let object = unsafe { Object::from_bytes(b"not an object".to_vec()) };
    let error = Jit::load(library(), &object).unwrap_err();
    assert!(matches!(error, Error::Load { .. }), "{error}");
}

#[test]
fn the_table_of_processors_agrees_with_llvm() {
    let ir = "define <16 x float> @f(<16 x float> %a, <16 x float> %b, <16 x i32> %c) {
  %m = icmp sgt <16 x i32> %c, zeroinitializer
  %p = fmul contract <16 x float> %a, %b
  %s = fadd contract <16 x float> %p, %a
  %r = select <16 x i1> %m, <16 x float> %s, <16 x float> %b
  ret <16 x float> %r
}";
    for name in Cpu::names() {
        let cpu = Cpu::named(name).unwrap();
        let mut options = Options::CPU;
        options.passes = Passes::NONE;
        let asm = compile_to_asm(library(), ir, &cpu.target, &options).unwrap();
        let fused = ["vfm", "fmla", "fmadd"].iter().any(|f| asm.contains(f));
        assert_eq!(fused, cpu.fma, "{name}:\n{asm}");
        let width = if asm.contains("{%k") {
            512
        } else if asm.contains("vfm") && asm.contains("%ymm") {
            256
        } else {
            128
        };
        assert_eq!(width, cpu.vector_bits, "{name}:\n{asm}");
    }
}

#[test]
fn large_vectors_stay_whole() {
    let ir = row_kernel("float", 16, 0.5);
    let v4 = Cpu::named("x86-64-v4").unwrap();
    let asm = compile_to_asm(library(), &ir, &v4.target, &Options::CPU).unwrap();
    assert!(asm.contains("%zmm") && asm.contains("vfmadd"), "{asm}");
    // Constants are addressed relative to the instruction pointer, not put into the code as 64-bit addresses.
    assert!(asm.contains("(%rip)") && !asm.contains("movabs"), "{asm}");
}

#[test]
fn ptx_is_made_where_the_library_has_the_target() {
    let ir = "define ptx_kernel void @k(ptr addrspace(1) %p, float %x) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %q = getelementptr float, ptr addrspace(1) %p, i32 %i
  %a = load float, ptr addrspace(1) %q
  %b = call float @llvm.fma.f32(float %a, float %x, float 1.0)
  store float %b, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare float @llvm.fma.f32(float, float, float)";
    for name in ["sm_70", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"] {
        let gpu = gpu(name);
        let ptx = compile_to_asm(library(), ir, &gpu, &Options::PTX).unwrap();
        for part in [
            ".visible .entry k",
            "fma.rn.f32",
            &format!(".target {name}"),
        ] {
            assert!(ptx.contains(part), "{part} in {ptx}");
        }
    }
    assert_eq!(Gpu::named("sm_1"), None);
}

#[test]
fn optimised_ir_is_printed() {
    let ir = "define i32 @f(i32 %x) { %a = add i32 %x, 1 %b = add i32 %a, 1 ret i32 %b }";
    let text = optimise(library(), ir, &host().target, &Options::CPU).unwrap();
    assert!(text.contains("add i32 %x, 2"), "{text}");
    assert!(
        text.contains(&format!("target triple = \"{}\"", host().target.triple)),
        "{text}"
    );
}

/// The task of the process that `a_fatal_error_ends_the_process_with_a_message` starts.
const FATAL_CHILD: &str = "TORRE_TEST_FATAL";

#[test]
fn a_fatal_error_ends_the_process_with_a_message() {
    if std::env::var_os(FATAL_CHILD).is_some() {
        // Clusters do not exist before sm_90: the instruction cannot be selected.
        let ir = "define void @f() { call void @llvm.nvvm.barrier.cluster.arrive() ret void }
declare void @llvm.nvvm.barrier.cluster.arrive()";
        let gpu = gpu("sm_70");
        let result = compile_to_asm(library(), ir, &gpu, &Options::PTX);
        panic!("LLVM returned {result:?}");
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("a_fatal_error_ends_the_process_with_a_message")
        .env(FATAL_CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.code(), Some(101), "{text}");
    assert!(text.contains("torre: LLVM gave up: "), "{text}");
    assert!(text.contains("while compiling for sm_70"), "{text}");
}
