//! Planted faults of every kind: each is found, at its line, and the right kernel beside it passes.

use crate::common::{PLACES, launch, module, pointers, run, seed, text};
use torre_ptx::{Device, Fault, FaultKind, Module, Options, Param};

/// Runs a kernel on two blocks' worth of words and expects a fault of this kind at the line that contains `at`.
pub(crate) fn expect(kind: FaultKind, at: &str, grid: u32, block: u32, body: &str) -> Fault {
    let module = module(&pointers(&["a"]), &format!("{PLACES}{body}"));
    for seed in 0..6 {
        match run(&module, grid, block, 2048, &crate::common::seed(seed)) {
            Ok(_) => panic!("seed {seed}: no fault\n{body}"),
            Err(fault) => {
                assert_eq!(fault.kind, kind, "seed {seed}: {fault}");
                assert!(fault.text.contains(at), "seed {seed}: {fault}");
                if seed == 5 {
                    return fault;
                }
            }
        }
    }
    unreachable!("six seeds")
}

/// Runs a kernel with several seeds; nothing may be found.
pub(crate) fn passes(grid: u32, block: u32, body: &str) {
    let module = module(&pointers(&["a"]), &format!("{PLACES}{body}"));
    for seed in 0..12 {
        let result = run(&module, grid, block, 2048, &crate::common::seed(seed));
        result.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{body}"));
    }
}

const EXCHANGE: &str = "st.shared.u32 [%d2], %r1;\nbar.sync 0;\nld.shared.u32 %r2, [%d2+4];";

#[test]
fn races_in_shared_memory() {
    let rest = "bar.sync 0;\nst.global.u32 [%d1], %r1;";
    // The last thread reads beyond the words that the threads wrote, so all write one word more.
    let write =
        "st.shared.u32 [%d2], %r1;\nsetp.ne.u32 %p1, %r1, 63;\n@!%p1 st.shared.u32 [%d2+4], 0;\n";
    let read = "ld.shared.u32 %r2, [%d2+4];\n";
    passes(1, 64, &format!("{write}bar.sync 0;\n{read}{rest}"));
    // Lanes of one warp run together here, but nothing promises it: only pairs of other lanes' accesses are found
    // where memory has been written at all.
    expect(
        FaultKind::Race,
        "ld.shared",
        1,
        32,
        "st.shared.u32 [%d2], %r1;\nxor.b32 %r3, %r1, 1;\nshl.b32 %r3, %r3, 2;\nmov.u64 %d5, dynamic;\ncvt.u32.u64 \
         %r4, %d5;\nadd.s32 %r3, %r3, %r4;\nld.shared.u32 %r2, [%r3];",
    );
    // The second write comes too early for the neighbour's read.
    let late = format!("{write}bar.sync 0;\n{read}st.shared.u32 [%d2], %r2;\n{rest}");
    expect(FaultKind::Race, "shared.u32", 1, 64, &late);
    passes(
        1,
        64,
        &format!("{write}bar.sync 0;\n{read}bar.sync 0;\nst.shared.u32 [%d2], %r2;\n{rest}"),
    );
    // Two threads write one word.
    let both = "shr.u32 %r3, %r1, 1;\nmul.wide.u32 %d4, %r3, 4;\nmov.u64 %d5, dynamic;\nadd.s64 %d4, %d4, %d5;\n";
    expect(
        FaultKind::Race,
        "st.shared",
        1,
        64,
        &format!("{both}st.shared.u32 [%d4], 1;"),
    );
    passes(
        1,
        64,
        &format!("{both}st.shared.u32 [%d2], 0;\nbar.sync 0;\natom.shared.add.u32 %r2, [%d4], 1;"),
    );
    // A barrier of half of the threads orders only these.
    let half = "setp.lt.u32 %p1, %r1, 64;\nst.shared.u32 [%d2], %r1;\nsub.s32 %r4, 127, %r1;\nshl.b32 %r4, %r4, 2;\n\
                mov.u64 %d5, dynamic;\ncvt.u32.u64 %r5, %d5;\nadd.s32 %r4, %r4, %r5;\n\
                @!%p1 bra OTHER;\nbar.sync 1, 64;\nbra READ;\nOTHER:\nbar.sync 2, 64;\nREAD:\nBARRIERld.shared.u32 \
                %r6, [%r4];";
    expect(
        FaultKind::Race,
        "shared.u32",
        1,
        128,
        &format!(
            "st.shared.u32 [%d2], %r1;\nbar.sync 0;\n{}",
            half.replace("BARRIER", "")
        ),
    );
    passes(1, 128, &half.replace("BARRIER", "bar.sync 3, 128;\n"));
}

#[test]
fn lanes_of_a_warp_are_ordered_by_its_barrier() {
    let swap = "st.shared.u32 [%d2], %r1;\nSYNCxor.b32 %r3, %r1, 1;\nshl.b32 %r3, %r3, 2;\nmov.u64 %d5, dynamic;\n\
                cvt.u32.u64 %r4, %d5;\nadd.s32 %r3, %r3, %r4;\nld.shared.u32 %r2, [%r3];";
    passes(1, 32, &swap.replace("SYNC", "bar.warp.sync -1;\n"));
    expect(
        FaultKind::Race,
        "ld.shared",
        1,
        32,
        &swap.replace("SYNC", "activemask.b32 %r9;\n"),
    );
}

#[test]
fn races_in_global_memory() {
    // All blocks write the same words.
    expect(
        FaultKind::Race,
        "st.global",
        2,
        32,
        "st.global.u32 [%d1], %r1;",
    );
    passes(1, 32, "st.global.u32 [%d1], %r1;");
    passes(2, 32, "red.global.add.u32 [%d1], 1;");
    // A read of a value that another block writes.
    expect(
        FaultKind::Race,
        "global.u32",
        2,
        32,
        "mov.u32 %r5, %ctaid.x;\nsetp.eq.u32 %p1, %r5, 0;\n@%p1 st.global.u32 [%d1], 1;\n@!%p1 ld.global.u32 %r6, \
         [%d1];",
    );
    // Within a block a barrier orders global memory too.
    let neighbour = "st.global.u32 [%d1], %r1;\nBARRIERld.global.u32 %r2, [%d1+4];";
    passes(1, 128, &neighbour.replace("BARRIER", "bar.sync 0;\n"));
    expect(
        FaultKind::Race,
        "global.u32",
        1,
        128,
        &neighbour.replace("BARRIER", ""),
    );
    // The read-only path is for memory that the launch does not write, ordered or not.
    expect(
        FaultKind::ReadOnly,
        "ld.global.nc",
        1,
        32,
        "st.global.u32 [%d1], %r1;\nbar.sync 0;\nld.global.nc.u32 %r2, [%d1];",
    );
}

/// Block 0 writes words 0 to 31, then sets word 100; block 1 waits for that and copies the words.
fn message(publish: &str, poll: &str) -> String {
    format!(
        "ld.param.u64 %d6, [a];\nmov.u32 %r5, %ctaid.x;\nsetp.ne.u32 %p1, %r5, 0;\n@%p1 bra READER;\n\
         st.global.u32 [%d1], %r1;\nbar.sync 0;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra END;\n{publish}\nbra END;\n\
         READER:\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra SEEN;\nPOLL:\n{poll}\nsetp.eq.u32 %p3, %r6, 0;\n@%p3 bra \
         POLL;\nFENCE\n\
         SEEN:\nbar.sync 0;\nld.global.u32 %r7, [%d1];\nst.global.u32 [%d1+1024], %r7;\nEND:"
    )
}

#[test]
fn messages_between_blocks() {
    let release = "st.release.gpu.global.u32 [%d6+400], 1;";
    let acquire = "ld.acquire.gpu.global.u32 %r6, [%d6+400];";
    let relaxed = (
        "st.relaxed.gpu.global.u32 [%d6+400], 1;",
        "ld.relaxed.gpu.global.u32 %r6, [%d6+400];",
    );
    let fence = "fence.acq_rel.gpu;\n";
    let good = [
        message(release, acquire).replace("FENCE", ""),
        message(&format!("{fence}{}", relaxed.0), relaxed.1).replace("FENCE", fence),
        message(
            &format!("{fence}red.relaxed.gpu.global.add.u32 [%d6+400], 1;"),
            acquire,
        )
        .replace("FENCE", ""),
        message(
            "membar.gl;\nst.volatile.global.u32 [%d6+400], 1;",
            "ld.volatile.global.u32 %r6, [%d6+400];",
        )
        .replace("FENCE", "membar.gl;"),
        message(
            "atom.release.gpu.global.exch.b32 %r8, [%d6+400], 1;",
            "atom.acquire.gpu.global.add.u32 %r6, [%d6+400], 0;",
        )
        .replace("FENCE", ""),
    ];
    for body in good {
        passes(2, 64, &body);
    }
    let bad = [
        message(relaxed.0, acquire).replace("FENCE", ""),
        message(release, relaxed.1).replace("FENCE", ""),
        message(release, acquire)
            .replace(
                "bar.sync 0;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra END",
                "setp.ne.u32 %p2, %r1, 0;\n@%p2 bra END",
            )
            .replace("FENCE", ""),
        message(&release.replace("gpu", "cta"), acquire).replace("FENCE", ""),
        message(&format!("fence.acq_rel.cta;\n{}", relaxed.0), acquire).replace("FENCE", ""),
    ];
    for body in bad {
        let module = module(&pointers(&["a"]), &format!("{PLACES}{body}"));
        let faults = (0..6).filter(|number| match run(&module, 2, 64, 2048, &seed(*number)) {
            Err(fault) => {
                assert_eq!(fault.kind, FaultKind::Race, "{fault}");
                true
            }
            Ok(_) => false,
        });
        assert_eq!(faults.count(), 6, "{body}");
    }
    // A weak flag is a race itself.
    expect(
        FaultKind::Race,
        "[%d6+400]",
        2,
        64,
        &message("st.global.u32 [%d6+400], 1;", acquire).replace("FENCE", ""),
    );
}

#[test]
fn bounds_and_alignment() {
    let fault = expect(
        FaultKind::OutOfBounds,
        "ld.global",
        1,
        32,
        "ld.global.u32 %r2, [%d1+8192];",
    );
    assert_eq!((fault.thread, fault.block), ([0, 0, 0], [0, 0, 0]));
    assert!(
        fault.to_string().contains("buffer of 8192 bytes"),
        "{fault}"
    );
    let fault = expect(
        FaultKind::OutOfBounds,
        "st.global",
        1,
        32,
        "st.global.u32 [%d1+8164], 1;",
    );
    assert_eq!(fault.thread, [7, 0, 0]);
    expect(
        FaultKind::OutOfBounds,
        "ld.global",
        1,
        32,
        "ld.global.u32 %r2, [%d1+-4];",
    );
    expect(
        FaultKind::OutOfBounds,
        "st.shared",
        1,
        32,
        "st.shared.u32 [%d2+4096], 1;",
    );
    expect(
        FaultKind::OutOfBounds,
        "ld.shared",
        1,
        32,
        "mov.u64 %d9, 0;\nld.shared.u32 %r2, [%d9];",
    );
    expect(
        FaultKind::OutOfBounds,
        "ld.param",
        1,
        32,
        "ld.param.u64 %d9, [a+8];",
    );
    expect(
        FaultKind::OutOfBounds,
        "ld.local",
        1,
        32,
        ".local .align 4 .b8 mine[16];\nld.local.u32 %r2, [mine+16];",
    );
    expect(
        FaultKind::Misaligned,
        "ld.global",
        1,
        32,
        "ld.global.u32 %r2, [%d1+2];",
    );
    expect(
        FaultKind::Misaligned,
        "v4.b32",
        1,
        1,
        "ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%d1+8];",
    );
    expect(
        FaultKind::Misaligned,
        "st.shared",
        1,
        2,
        "st.shared.u64 [%d2], %d1;",
    );
    passes(
        1,
        32,
        "ld.global.u32 %r2, [%d1+8064];\nst.shared.u32 [%d2+3968], 1;",
    );
}

#[test]
fn what_was_never_written() {
    expect(
        FaultKind::UninitialisedRegister,
        "add.s32",
        1,
        32,
        "add.s32 %r2, %r1, %r9;",
    );
    let fault = expect(
        FaultKind::UninitialisedRegister,
        "add.s32",
        1,
        32,
        "setp.lt.u32 %p1, %r1, 5;\n@%p1 mov.u32 %r9, 1;\nadd.s32 %r2, %r1, %r9;",
    );
    assert_eq!(fault.thread, [5, 0, 0]);
    expect(
        FaultKind::UninitialisedRegister,
        "@%p7",
        1,
        32,
        "@%p7 bra END;\nEND:",
    );
    expect(
        FaultKind::UninitialisedRegister,
        "st.global",
        1,
        32,
        "st.global.u32 [%d1], %r9;",
    );
    expect(FaultKind::UninitialisedMemory, "ld.shared", 1, 64, EXCHANGE);
    expect(
        FaultKind::UninitialisedMemory,
        "ld.local",
        1,
        32,
        ".local .align 4 .b8 mine[16];\nld.local.u32 %r2, [mine];",
    );
    let module = module(
        &pointers(&["a"]),
        &format!("{PLACES}ld.global.u32 %r2, [%d1];"),
    );
    let mut device = Device::new();
    let tracked = device.alloc_tracked(128);
    device.write(tracked, 0, &[0; 124]).unwrap();
    let fault = launch(&mut device, &module, 1, 32, &[tracked], &seed(0)).unwrap_err();
    assert_eq!(
        (fault.kind, fault.thread),
        (FaultKind::UninitialisedMemory, [31, 0, 0]),
        "{fault}"
    );
    device.write(tracked, 124, &[0; 4]).unwrap();
    launch(&mut device, &module, 1, 32, &[tracked], &seed(0)).unwrap();
}

#[test]
fn writes_to_constants() {
    let table = ".visible .const .align 4 .b8 table[8] = {1, 0, 0, 0, 2};\n";
    let body = "mov.u64 %d1, table;\ncvta.const.u64 %d2, %d1;\nld.const.u32 %r1, [%d1];\nld.u32 %r2, [%d2+4];\nst.u32 \
        [%d2], %r1;";
    let module = Module::parse(
        &text("", body).replace(".visible .entry", &format!("{table}.visible .entry")),
    )
    .unwrap();
    let fault = run_nothing(&module).unwrap_err();
    assert_eq!(fault.kind, FaultKind::ReadOnly, "{fault}");
    let body = "mov.u64 %d1, a;\ncvta.param.u64 %d2, %d1;\nld.u32 %r1, [%d2];\nst.u32 [%d2], %r1;";
    let module = crate::common::module(".param .u32 a", body);
    let entry = module.entry("k").unwrap();
    let fault = Device::new()
        .launch(entry, [1; 3], [1; 3], 0, &[Param::U32(1)], &seed(0))
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::ReadOnly, "{fault}");
}

fn run_nothing(module: &Module) -> Result<(), Fault> {
    let entry = module.entry("k").unwrap();
    Device::new()
        .launch(entry, [1; 3], [1; 3], 0, &[], &seed(0))
        .map(|_| ())
}

#[test]
fn barriers_that_not_all_reach() {
    // Half of a warp, half of the block, one that has ended, and two barriers that wait for each other's threads.
    expect(
        FaultKind::DivergentBarrier,
        "",
        1,
        32,
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bar.sync 0;",
    );
    expect(
        FaultKind::DivergentBarrier,
        "",
        1,
        64,
        "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra END;\nbar.sync 0;\nEND:",
    );
    expect(
        FaultKind::DivergentBarrier,
        "",
        1,
        64,
        "setp.eq.u32 %p1, %r1, 3;\n@%p1 exit;\nbar.sync 0;",
    );
    expect(
        FaultKind::DivergentBarrier,
        "bar.sync",
        1,
        64,
        "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nbar.sync 2, 64;\nbra END;\nA:\nbar.sync 2, \
         64;\nbar.sync 1, 64;\nEND:",
    );
    expect(
        FaultKind::DivergentBarrier,
        "bar.sync",
        1,
        32,
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra A;\nbar.sync 0;\nbra END;\nA:\nbar.sync 0;\nEND:",
    );
    expect(
        FaultKind::DivergentBarrier,
        "",
        1,
        32,
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra A;\nshfl.sync.down.b32 %r2, %r1, 1, 31, -1;\nA:",
    );
    expect(
        FaultKind::BadBarrier,
        "bar.sync",
        1,
        128,
        "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nbra END;\nA:\nbar.sync 1, 96;\nEND:\nbar.sync 2, \
         128;",
    );
    expect(FaultKind::BadBarrier, "bar.sync", 1, 64, "bar.sync 16;");
    expect(FaultKind::BadBarrier, "bar.sync", 1, 64, "bar.sync 1, 40;");
    passes(
        1,
        64,
        "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nbra END;\nA:\nbar.arrive 1, 64;\nEND:\nbar.sync 0;",
    );
}

#[test]
fn deadlocks() {
    let wait = "ld.param.u64 %d6, [a];\nPOLL:\nld.acquire.gpu.global.u32 %r6, [%d6+400];\nsetp.eq.u32 %p3, %r6, \
        0;\n@%p3 bra POLL;";
    let fault = expect(FaultKind::Deadlock, "", 1, 64, wait);
    assert!(fault.message.contains("line"), "{fault}");
    // A block waits for one that only starts when it has ended.
    let ring = "ld.param.u64 %d6, [a];\nmov.u32 %r5, %ctaid.x;\nsetp.eq.u32 %p1, %r5, 0;\n@!%p1 bra \
        SET;\nPOLL:\nld.acquire.gpu.global.u32 %r6, [%d6+400];\n\
                setp.eq.u32 %p3, %r6, 0;\n@%p3 bra POLL;\nbra END;\nSET:\nred.release.gpu.global.add.u32 [%d6+400], \
                1;\nEND:";
    passes(2, 32, ring);
    let module = module(&pointers(&["a"]), &format!("{PLACES}{ring}"));
    let one = Options {
        resident: 1,
        ..Options::default()
    };
    assert_eq!(
        run(&module, 2, 32, 2048, &one).unwrap_err().kind,
        FaultKind::Deadlock
    );
    let endless = crate::common::module("", "LOOP:\nbra LOOP;");
    let entry = endless.entry("k").unwrap();
    let limit = Options {
        limit: 100_000,
        ..Options::default()
    };
    let fault = Device::new()
        .launch(entry, [1; 3], [1; 3], 0, &[], &limit)
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Limit);
}

/// With warps that sleep where nothing goes on, these polls would take more rounds than a launch may be idle.
#[test]
fn polls_that_give_up_end() {
    let polls = "ld.param.u64 %d6, [a];\nmov.u32 %r5, 0;\nPOLL:\nld.acquire.gpu.global.u32 %r6, [%d6+400];\n\
                 add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p3, %r5, 300;\n@%p3 bra POLL;";
    passes(1, 32, polls);
}

#[test]
fn launches_that_do_not_fit() {
    let module = module(".param .u64 a", "");
    let entry = module.entry("k").unwrap();
    let mut device = Device::new();
    let mut kind = |grid, block, shared, params: &[Param]| {
        device
            .launch(entry, grid, block, shared, params, &seed(0))
            .map(|_| ())
            .map_err(|fault| fault.kind)
    };
    let ok = [Param::U64(0)];
    assert_eq!(kind([1; 3], [1; 3], 0, &ok), Ok(()));
    assert_eq!(kind([1; 3], [1; 3], 0, &[]), Err(FaultKind::Launch));
    assert_eq!(
        kind([1; 3], [1; 3], 0, &[Param::U32(0)]),
        Err(FaultKind::Launch)
    );
    assert_eq!(kind([1; 3], [1025, 1, 1], 0, &ok), Err(FaultKind::Launch));
    assert_eq!(kind([0, 1, 1], [1; 3], 0, &ok), Err(FaultKind::Launch));
    assert_eq!(kind([1; 3], [1; 3], 1 << 18, &ok), Err(FaultKind::Launch));
}

#[test]
fn texts_that_are_refused() {
    for (body, message) in [
        ("add.f32 %r1, %r2, %r3;", "only `.rn`"),
        ("add.rn.ftz.f32 %r1, %r2, %r3;", "`.ftz`"),
        ("sqrt.approx.f32 %r1, %r2;", "only `.rn`"),
        ("ex2.approx.f32 %r1, %r2;", "`ex2`"),
        ("call.uni f, (%r1);", "calls"),
        ("griddepcontrol;", "waits or launches"),
        (
            "ld.global.u32 %r1, [%d1]; griddepcontrol.wait;",
            "before `griddepcontrol.wait`",
        ),
        (
            "st.global.u32 [%d1], %r1; griddepcontrol.wait;",
            "before `griddepcontrol.wait`",
        ),
        ("getctarank.shared::cluster.u32 %r1, %r2;", "`getctarank`"),
        ("barrier.cluster;", "arrive or wait"),
        ("add.s32 %r1, %d2, %r3;", "64 bits"),
        ("add.s32 %r1, %r2;", "3 operands"),
        ("bra NOWHERE;", "no label"),
        ("mov.u32 %r1, nothing;", "unknown"),
        ("ld.global.f16 %h1, [%d1];", "no type"),
        ("cvt.rn.s32.f32 %r1, %r2;", "another rounding"),
        ("setmaxnreg.inc.sync.aligned.u32 100;", "multiple of 8"),
        ("st.param.u32 [a], %r1;", "cannot be written"),
        ("A: A:", "defined twice"),
        ("ld.global.u32 %r1, [%r2];", "no address"),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d1], 16, \
             [%r2], %h1;",
            "clusters",
        ),
        ("mov.u32 %r1, \u{e9};", "byte"),
        ("ld.global.u32 %r1, [%d1", "expected `]`"),
    ] {
        let error = Module::parse(&text(".param .u32 a", body)).unwrap_err();
        assert!(error.to_string().contains(message), "{body}: {error}");
    }
    let early =
        "griddepcontrol.launch_dependents; ld.global.nc.u32 %r1, [%d1]; griddepcontrol.wait;";
    Module::parse(&text(".param .u32 a", early)).expect("constants are read early");
    let error = Module::parse(".version 8.6\n.func f() { ret; }").unwrap_err();
    assert_eq!(error.line, 2);
}
