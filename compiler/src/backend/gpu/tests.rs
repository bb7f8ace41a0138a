//! The emission layer: the IR that is written, and the code that LLVM makes of it.

use super::*;
use crate::backend::llvm::library::{Error, Library};
use crate::backend::rows::LaneOp;
use crate::scheme::{Cmp, Precision, Value};

fn library() -> Option<&'static Library> {
    Library::open()
        .inspect_err(|error| eprintln!("skipped: {error}"))
        .ok()
}

/// A kernel with one of everything that both precisions have.
fn sample(precision: Precision, lanes: u32) -> Module {
    let mut module = Module::new();
    let ty = Type::vector(precision, lanes);
    let shared = module.shared(Type::scalar(precision), 256, 16);
    let launch = Launch {
        threads: [64, 1, 1],
        blocks: 2,
        ..Launch::default()
    };
    let mut k = module.kernel("sample", &[Type::GLOBAL, Type::I32], launch);
    let thread = k.special(Special::Thread(0));
    let outside = k.compare(IntCmp::Ge, thread, k.param(1));
    k.exit_if(outside);
    let wide = k.resize(thread, Type::I64);
    let at = k.advance(k.param(0), wide, ty.bytes());
    let sum = k.variable_of(Operand::real(ty, 0.5f64.to_bits()));
    let one = Operand::i32(1);
    k.repeat(Operand::i32(0), k.param(1), one, Some(2), |k, _| {
        let a = k.load(ty, at, ty.bytes(), Access::Plain);
        let values = [k.get(sum), a];
        let of = |v: Value| values[v.index()];
        let (a, b) = (Value(0), Value(1));
        let ops = [
            LaneOp::Add(a, b),
            LaneOp::Sub(a, b),
            LaneOp::Mul(a, b),
            LaneOp::Div(a, b),
            LaneOp::Fma(a, b, a),
            LaneOp::Sqrt(b),
            LaneOp::Abs(b),
            LaneOp::Flush(b),
            LaneOp::Neg(b),
            LaneOp::Select {
                cmp: Cmp::Lt,
                a,
                b,
                then: b,
                otherwise: a,
            },
        ];
        let results: Vec<Operand> = ops.iter().filter_map(|op| k.number(op, of)).collect();
        let total = results.into_iter().reduce(|a, b| k.sum(a, b));
        k.set(sum, total.expect("some results"));
    });
    let total = k.get(sum);
    let place = k.advance(shared, wide, precision.bytes() as u32);
    let first = k.lane(total, 0);
    k.store(first, place, precision.bytes() as u32, Access::Plain);
    k.barrier();
    let first = k.load(first.ty, shared, precision.bytes() as u32, Access::Plain);
    let all = vec![first; lanes as usize];
    let all = k.pack(&all);
    k.store(all, at, ty.bytes(), Access::Plain);
    let moved = k.pure_assembly("mov.u32 $0, $1;", "=r,r", &[Type::I32], &[thread]);
    let holds = k.compare(IntCmp::Eq, moved[0], Operand::i32(7));
    k.when(holds, |k| {
        let converted = k.convert(first, Type::scalar(Precision::F64));
        let next = k.offset(at, 1024);
        k.store(converted, next, 8, Access::Volatile);
    });
    k.finish();
    module
}

#[test]
fn every_gpu_gets_code_with_ieee_operations() {
    let Some(library) = library() else { return };
    for gpu in Gpu::all() {
        for (precision, lanes) in [
            (Precision::F32, 1),
            (Precision::F32, 4),
            (Precision::F64, 1),
            (Precision::F64, 2),
        ] {
            let ptx = compile(library, &sample(precision, lanes), gpu).expect("valid IR");
            for part in [
                format!(".version {}", gpu.ptx),
                format!(".target {}", gpu.name),
                ".visible .entry sample(".to_owned(),
                ".reqntid 64".to_owned(),
                ".minnctapersm 2".to_owned(),
                format!("div.rn.{precision}"),
                format!("sqrt.rn.{precision}"),
                // In the place of a zero that is divided.
                match precision {
                    Precision::F32 => "0f30800000".to_owned(),
                    Precision::F64 => "0d39B0000000000000".to_owned(),
                },
                "bar.sync".to_owned(),
            ] {
                assert!(ptx.text.contains(&part), "{part} in {}", ptx.text);
            }
            let fused = format!("fma.rn.{precision}");
            assert!(ptx.text.contains(&fused), "{}", ptx.text);
            assert!(!ptx.text.contains(".local"), "{}", ptx.text);
        }
    }
}

#[test]
fn what_a_gpu_lacks_is_refused_before_llvm_sees_it() {
    let Some(library) = library() else { return };
    let mut module = Module::new();
    let launch = Launch {
        threads: [32, 1, 1],
        cluster: 2,
        ..Launch::default()
    };
    let mut k = module.kernel("clustered", &[Type::GLOBAL], launch);
    k.call("llvm.nvvm.barrier.cluster.arrive.aligned", &[]);
    k.call("llvm.nvvm.barrier.cluster.wait.aligned", &[]);
    k.finish();
    let compiled = |name| compile(library, &module, Gpu::named(name).expect("a known name"));
    assert!(matches!(compiled("sm_89"), Err(Error::Target { .. })));
    let ptx = compiled("sm_90").expect("clusters").text;
    assert!(ptx.contains(".reqnctapercluster"), "{ptx}");
}

#[test]
fn functions_that_nobody_has_are_refused() {
    let Some(library) = library() else { return };
    let mut module = Module::new();
    let launch = Launch {
        threads: [32, 1, 1],
        ..Launch::default()
    };
    let mut k = module.kernel("calls", &[Type::GLOBAL], launch);
    let value = k.value_of("unknown", Type::I32, &[]);
    k.store(value, k.param(0), 4, Access::Plain);
    k.finish();
    let gpu = Gpu::named("sm_90").expect("a known name");
    let result = compile(library, &module, gpu);
    assert!(matches!(result, Err(Error::Codegen { .. })), "{result:?}");
}
