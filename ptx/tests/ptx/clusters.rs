//! Clusters: values that blocks send each other arrive, and unordered accesses are found.

use crate::common::{PLACES, pointers, run, seed, text};
use torre_ptx::{Counts, Fault, FaultKind, Module};

/// Runs a kernel in clusters of two blocks of 64 threads. Barrier objects lie at the start of the dynamic shared
/// memory.
fn clusters(body: &str, number: u64) -> Result<(Vec<u32>, Counts), Fault> {
    let setup = "
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r10, %ctaid.x;
mad.lo.u32 %r10, %r10, 64, %r1;
mul.wide.u32 %d3, %r10, 4;
ld.param.u64 %d1, [a];
add.s64 %d1, %d1, %d3;
xor.b32 %r3, %r2, 1;
mov.u64 %d5, dynamic;
cvt.u32.u64 %r4, %d5;
mapa.shared::cluster.u32 %r5, %r4, %r3;
mul.lo.u32 %r6, %r1, 4;
add.u32 %r7, %r5, %r6;
add.u32 %r8, %r4, %r6;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r4], 128;
fence.mbarrier_init.release.cluster;
";
    let text = text(&pointers(&["a"]), &format!("{PLACES}{setup}{body}"));
    let text = text.replacen(
        ")\n{",
        ")\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n{",
        1,
    );
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&module, 4, 64, 1024, &seed(number))
}

fn passes(body: &str) {
    for number in 0..12 {
        let (words, _) = clusters(body, number).unwrap_or_else(|fault| panic!("{number}: {fault}"));
        let expected = (0..256).map(|n| if n / 64 % 2 == 0 { n % 64 + 64 } else { n % 64 });
        assert_eq!(words[..256], expected.collect::<Vec<u32>>());
    }
}

fn fails(kind: FaultKind, body: &str) {
    for number in 0..6 {
        let fault = clusters(body, number).expect_err(body);
        assert_eq!(fault.kind, kind, "{number}: {fault}");
    }
}

/// The number that a thread sends: its own, and 64 more in the second block.
const VALUE: &str = "mad.lo.u32 %r9, %r2, 64, %r1;\n";
const GATHER: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
const STORE: &str = "st.shared::cluster.u32 [%r7+16], %r9;\n";
const SHOW: &str = "ld.shared.u32 %r11, [%r8+16];\nst.global.u32 [%d1], %r11;\n";
const ARRIVE: &str = "mbarrier.arrive.shared::cluster.b64 _, [%r5];
mapa.shared::cluster.u32 %r12, %r4, %r2;
mbarrier.arrive.shared::cluster.b64 _, [%r12];
";
const ARRIVE_WIDE: &str = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
mapa.shared::cluster.u32 %r12, %r4, %r2;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
";
const WAIT: &str = "
WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra WAIT;
";
/// So that no block ends before the other one is done with it.
const END: &str = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
const SEND: &str =
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r7+16], %r9, [%r5];\n";
const EXPECT: &str = "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], 256;\n";

#[test]
fn what_blocks_store_in_each_other_is_seen_after_their_barrier() {
    passes(&format!("{VALUE}{GATHER}{STORE}{GATHER}{SHOW}"));
    fails(
        FaultKind::Race,
        &format!("{VALUE}{GATHER}{STORE}{END}{STORE}{SHOW}{END}"),
    );
    let relaxed = GATHER.replace("arrive", "arrive.relaxed");
    fails(
        FaultKind::Race,
        &format!("{VALUE}{GATHER}{STORE}{relaxed}{SHOW}{END}"),
    );
    // Without any order, the memory is not even written, or the other block has not started.
    let fault = clusters(&format!("{VALUE}{SHOW}{STORE}"), 0).expect_err("nothing is there");
    assert_eq!(fault.kind, FaultKind::UninitialisedMemory);
}

#[test]
fn what_arrives_with_a_barrier_object_is_seen_by_those_who_wait_for_it() {
    passes(&format!(
        "{VALUE}{GATHER}{EXPECT}{SEND}{ARRIVE}{WAIT}{SHOW}{END}"
    ));
    // Stores of others are not.
    fails(
        FaultKind::Race,
        &format!("{VALUE}{GATHER}{EXPECT}{SEND}{GATHER}{SHOW}{END}"),
    );
    // No thread waits for bytes that are not expected, and phases that miss them never end.
    fails(
        FaultKind::Deadlock,
        &format!("{VALUE}{GATHER}{SEND}{ARRIVE}{WAIT}{SHOW}{END}"),
    );
    // One block's object cannot count bytes that another one gets.
    let elsewhere = SEND.replace("[%r5]", "[%r4]");
    fails(
        FaultKind::BadBarrier,
        &format!("{VALUE}{GATHER}{elsewhere}{END}"),
    );
}

#[test]
fn who_arrives_at_another_block_can_announce_bytes() {
    // The sender announces the bytes: each thread its own value.
    let announce = "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r5], 4;
mapa.shared::cluster.u32 %r12, %r4, %r2;
mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r12], 0;
";
    passes(&format!("{VALUE}{GATHER}{SEND}{announce}{WAIT}{SHOW}{END}"));
    passes(&format!("{VALUE}{GATHER}{announce}{SEND}{WAIT}{SHOW}{END}"));
    let more = announce.replace("], 4;", "], 8;");
    fails(
        FaultKind::Deadlock,
        &format!("{VALUE}{GATHER}{SEND}{more}{WAIT}{SHOW}{END}"),
    );
}

#[test]
fn arrivals_with_the_scope_of_a_block_order_shared_memory_alone() {
    // Each thread reads the value that its partner in the other block has stored in global memory.
    let store = "st.global.u32 [%d1+2048], %r9;\n";
    let load = "mad.lo.u32 %r10, %r3, 64, %r1;
mov.u32 %r13, %ctaid.x;
and.b32 %r13, %r13, 2;
mad.lo.u32 %r10, %r13, 64, %r10;
mul.wide.u32 %d3, %r10, 4;
ld.param.u64 %d4, [a];
add.s64 %d4, %d4, %d3;
ld.global.u32 %r11, [%d4+2048];
st.global.u32 [%d1], %r11;
";
    passes(&format!(
        "{VALUE}{GATHER}{store}{ARRIVE_WIDE}{WAIT}{load}{END}"
    ));
    fails(
        FaultKind::Race,
        &format!("{VALUE}{GATHER}{store}{ARRIVE}{WAIT}{load}{END}"),
    );
    // Stores to the other's shared memory are seen after either.
    passes(&format!("{VALUE}{GATHER}{STORE}{ARRIVE}{WAIT}{SHOW}{END}"));
    // Earlier reads are over after either.
    let reads = load.replace("st.global.u32 [%d1], %r11;\n", "");
    let then = "st.global.u32 [%d1+2048], %r9;\nst.global.u32 [%d1], %r11;\n";
    let first = format!("{VALUE}{GATHER}{store}{GATHER}{reads}");
    passes(&format!("{first}{ARRIVE}{WAIT}{then}{END}"));
    fails(FaultKind::Race, &format!("{first}{then}{END}"));
}

#[test]
fn clusters_are_launched_whole() {
    fails(FaultKind::BadBarrier, "barrier.cluster.wait;\n");
    fails(
        FaultKind::BadBarrier,
        "barrier.cluster.arrive;\nbarrier.cluster.arrive;\n",
    );
    fails(
        FaultKind::OutOfBounds,
        "mapa.shared::cluster.u32 %r5, %r4, 2;\n",
    );
    // Threads that have ended are not waited for.
    passes(&format!(
        "{VALUE}{GATHER}{STORE}{GATHER}{SHOW}@%p1 bra OUT;\n{END}OUT:\n"
    ));
    // Nothing holds the second block until the first one has sent it something.
    let late = "setp.eq.u32 %p3, %r2, 0;\n@!%p3 bra OUT;\nmov.u32 %r20, 0;
LOOP: add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p4, %r20, 50000;\n@%p4 bra LOOP;\n";
    fails(
        FaultKind::OutOfBounds,
        &format!("{VALUE}{GATHER}{late}{STORE}OUT:\n"),
    );
    let text = text(&pointers(&["a"]), "");
    let text = text.replacen(")\n{", ")\n.reqnctapercluster 2\n{", 1);
    let module = Module::parse(&text).expect("a kernel");
    let fault = run(&module, 3, 32, 4, &seed(0)).expect_err("half a cluster");
    assert_eq!(fault.kind, FaultKind::Launch);
}
