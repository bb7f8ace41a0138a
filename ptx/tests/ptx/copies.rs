//! Barrier objects and asynchronous copies: their effects, and the faults of threads that do not wait.

use crate::common::{PLACES, launch, module, pointers, run, seed};
use torre_ptx::{Counts, Device, Fault, FaultKind};

/// Runs on 256 words that hold their numbers, in a block of `threads`.
fn numbers(body: &str, threads: u32, seed_number: u64) -> Result<(Vec<u32>, Counts), Fault> {
    let module = module(
        &pointers(&["a"]),
        &format!("{PLACES}ld.param.u64 %d6, [a];\nmov.u64 %d7, dynamic;\n{body}"),
    );
    let mut device = Device::new();
    let words: Vec<u32> = (0..256).collect();
    let buffer = device.upload(&words);
    let counts = launch(
        &mut device,
        &module,
        1,
        threads,
        &[buffer],
        &seed(seed_number),
    )?;
    Ok((device.download(buffer), counts))
}

fn passes(body: &str, threads: u32) -> (Vec<u32>, Counts) {
    let mut last = None;
    for seed in 0..12 {
        let result = numbers(body, threads, seed);
        let result = result.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{body}"));
        last.get_or_insert(result);
    }
    last.expect("twelve seeds")
}

fn fails(kinds: &[FaultKind], body: &str, threads: u32) {
    for seed in 0..6 {
        match numbers(body, threads, seed) {
            Ok(_) => panic!("seed {seed}: no fault\n{body}"),
            Err(fault) => assert!(kinds.contains(&fault.kind), "seed {seed}: {fault}\n{body}"),
        }
    }
}

/// Each thread copies its word to shared memory and reads its neighbour's.
const ELEMENTS: &str = "cp.async.ca.shared.global [%d2], [%d1], 4;\ncp.async.commit_group;\ncp.async.wait_group 0;\n\
                        bar.sync 0;\nxor.b32 %r3, %r1, 1;\nmul.wide.u32 %d8, %r3, 4;\nadd.s64 %d8, %d8, %d7;\n\
                        ld.shared.u32 %r4, [%d8];\nst.global.u32 [%d1+512], %r4;";

#[test]
fn copies_of_elements() {
    let (words, counts) = passes(ELEMENTS, 64);
    assert!((0..64).all(|i| words[128 + i] == i as u32 ^ 1));
    assert_eq!((counts.copied_in, counts.copies), (256, 64));
    fails(
        &[FaultKind::AsyncPending],
        &ELEMENTS.replace("cp.async.wait_group 0;\n", ""),
        64,
    );
    fails(
        &[FaultKind::AsyncPending],
        &ELEMENTS.replace("wait_group 0", "wait_group 1"),
        64,
    );
    fails(
        &[FaultKind::Race, FaultKind::UninitialisedMemory],
        &ELEMENTS
            .replace("bar.sync 0;\n", "bar.warp.sync -1;\n")
            .replace(", 1;\nmul", ", 32;\nmul"),
        64,
    );
    // The oldest group has arrived, the newest may not have.
    let two = "cp.async.ca.shared.global [%d2], [%d1], 4;\ncp.async.commit_group;\n\
               cp.async.ca.shared.global [%d2+256], [%d1+256], 4;\ncp.async.commit_group;\n\
               cp.async.wait_group 1;\nld.shared.u32 %r4, [%d2+OFF];\nst.global.u32 [%d1+512], %r4;";
    passes(&two.replace("OFF", "0"), 64);
    fails(&[FaultKind::AsyncPending], &two.replace("OFF", "256"), 64);
    passes(
        &two.replace("OFF", "256")
            .replace("wait_group 1", "wait_all"),
        64,
    );
    // The source must not change before the copy has been waited for.
    fails(
        &[FaultKind::Race],
        &ELEMENTS.replace(
            "cp.async.commit_group;\n",
            "cp.async.commit_group;\nbar.sync 0;\nxor.b32 %r3, \
    %r1, 32;\nmul.wide.u32 %d8, %r3, 4;\nadd.s64 %d8, %d8, %d6;\nst.global.u32 [%d8], 0;\n",
        ),
        64,
    );
    // Bytes beyond the bytes that are read become zero.
    let short = "shl.b32 %r2, %r1, 4;\nmul.wide.u32 %d8, %r2, 1;\nadd.s64 %d9, %d8, %d6;\nadd.s64 %d8, %d8, %d7;\n\
                 cp.async.cg.shared.global [%d8], [%d9], 16, 8;\ncp.async.wait_all;\n\
                 ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%d8];\nst.global.v4.u32 [%d9+512], {%r4, %r5, %r6, %r7};";
    let (words, _) = passes(short, 8);
    assert_eq!(words[128..136], [0, 1, 0, 0, 4, 5, 0, 0]);
    // Where nothing is read, it may lie anywhere; a byte of it must not.
    let wild = "[%d9+1048576], 16, ";
    let none = short.replace("[%d9], 16, 8", &format!("{wild}0"));
    let (words, _) = passes(&none, 8);
    assert_eq!(words[128..136], [0; 8]);
    let some = short.replace("[%d9], 16, 8", &format!("{wild}4"));
    fails(&[FaultKind::OutOfBounds], &some, 8);
}

/// The same, but the copies arrive at a barrier object by themselves.
const BUNDLES: &str = "
.shared .align 8 .b64 full;
setp.ne.u32 %p1, %r1, 0;
@!%p1 mbarrier.init.shared::cta.b64 [full], 64;
bar.sync 0;
cp.async.ca.shared.global [%d2], [%d1], 4;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
@!%p2 bra WAIT;
xor.b32 %r3, %r1, 33;
mul.wide.u32 %d8, %r3, 4;
add.s64 %d9, %d8, %d6;
add.s64 %d8, %d8, %d7;
ld.shared.u32 %r4, [%d8];
st.global.u32 [%d1+512], %r4;
";

#[test]
fn copies_arrive_at_barrier_objects() {
    let (words, counts) = passes(BUNDLES, 64);
    assert!((0..64).all(|i| words[128 + i] == i as u32 ^ 33));
    assert_eq!((counts.copied_in, counts.copies), (256, 64));
    let arrive = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full];\n";
    let wait = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;\n@!%p2 bra WAIT;\n";
    // No thread has asked for the arrival of later copies.
    let later = BUNDLES
        .replace("], 4;\n", "], 4;\nLATER")
        .replace(arrive, "");
    let later = later.replace("LATER", arrive);
    passes(&later, 64);
    let copy = "cp.async.ca.shared.global [%d2], [%d1], 4;\n";
    let turned = BUNDLES
        .replace(copy, "")
        .replace(arrive, &format!("{arrive}{copy}"));
    fails(&[FaultKind::AsyncPending], &turned, 64);
    fails(&[FaultKind::Deadlock], &BUNDLES.replace(arrive, ""), 64);
    fails(
        &[
            FaultKind::AsyncPending,
            FaultKind::UninitialisedMemory,
            FaultKind::Race,
        ],
        &BUNDLES.replace(wait, ""),
        64,
    );
    // The source may change when the copies have arrived, not before.
    let change = "xor.b32 %r3, %r1, 33;\nmul.wide.u32 %d8, %r3, 4;\nadd.s64 %d9, %d8, %d6;\nst.global.u32 [%d9], 7;\n";
    passes(&BUNDLES.replace(wait, &format!("{wait}{change}")), 64);
    fails(
        &[FaultKind::Race],
        &BUNDLES.replace(arrive, &format!("{arrive}{change}")),
        64,
    );
}

/// One thread brings 512 bytes, all wait for them; then all sum two words, and one thread sends 256 bytes back.
const BULK: &str = "
.shared .align 8 .b64 full;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared::cta.b64 [full], 1;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [dynamic], [%d6], 512, [full];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r4, [%d2];
ld.shared.u32 %r5, [%d2+256];
add.s32 %r6, %r4, %r5;
st.shared.u32 [%d2], %r6;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p1 bra END;
cp.async.bulk.global.shared::cta.bulk_group [%d6+512], [dynamic], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
";

#[test]
fn bulk_copies() {
    let (words, counts) = passes(BULK, 64);
    assert!((0..64).all(|i| words[128 + i] == 2 * i as u32 + 64));
    assert_eq!(
        (counts.copied_in, counts.copied_out, counts.phases),
        (512, 256, 1)
    );
    // Read without waiting; waited for the wrong phase; fewer bytes than arrive; more than arrive.
    fails(
        &[
            FaultKind::AsyncPending,
            FaultKind::Race,
            FaultKind::UninitialisedMemory,
        ],
        &BULK.replace("@!%p2 bra WAIT;\n", ""),
        64,
    );
    fails(
        &[
            FaultKind::AsyncPending,
            FaultKind::Race,
            FaultKind::UninitialisedMemory,
        ],
        &BULK.replace("[full], 0;\n@!", "[full], 1;\n@!"),
        64,
    );
    fails(
        &[FaultKind::Deadlock],
        &BULK.replace("[full], 512", "[full], 528"),
        64,
    );
    // Without the barrier, others use the object before it is made.
    let missing = BULK.replacen("bar.sync 0;\n", "", 1);
    let found = (0..6).filter(|seed| numbers(&missing, 64, *seed).is_err());
    assert_eq!(found.count(), 6);
    // Shared memory is written or sent while the other happens.
    fails(
        &[FaultKind::Race],
        &BULK.replace("bar.sync 0;\n@%p1 bra END", "@%p1 bra END"),
        64,
    );
    fails(
        &[FaultKind::AsyncPending],
        &BULK.replace("cp.async.bulk.wait_group 0;\n", "st.shared.u32 [%d2], 0;\n"),
        64,
    );
    fails(
        &[FaultKind::AsyncPending],
        &BULK.replace("cp.async.bulk.wait_group 0;\n", ""),
        64,
    );
    passes(
        &BULK.replace(
            "wait_group 0;\n",
            "wait_group.read 0;\nst.shared.u32 [%d2], 0;\n",
        ),
        64,
    );
    fails(
        &[FaultKind::AsyncPending],
        &BULK.replace(
            "wait_group 0;\n",
            "wait_group.read 0;\nld.global.u32 %r9, [%d6+512];\n",
        ),
        64,
    );
    // Writes of threads are copied without a proxy fence, of the writers or of the one that issues the copy.
    let fence = "fence.proxy.async.shared::cta;\n";
    fails(&[FaultKind::ProxyFence], &BULK.replace(fence, ""), 64);
    let late = BULK.replace(fence, "").replace(
        "cp.async.bulk.global",
        "fence.proxy.async;\ncp.async.bulk.global",
    );
    passes(&late, 64);
    fails(
        &[FaultKind::ProxyFence],
        &BULK.replace(
            "@%p1 bra WAIT;\nmb",
            "st.shared.u32 [%d2+256], 0;\nbar.sync 0;\n@%p1 bra WAIT;\nmb",
        ),
        64,
    );
    // Sizes and objects.
    fails(
        &[FaultKind::Misaligned],
        &BULK.replace(", 512, [full]", ", 500, [full]"),
        64,
    );
    fails(
        &[FaultKind::BadBarrier],
        &BULK.replace("mbarrier.init.shared::cta.b64 [full], 1;\n", ""),
        64,
    );
    fails(
        &[FaultKind::BadBarrier],
        &BULK.replace("WAIT:\nmb", "WAIT:\nld.shared.u32 %r9, [full];\nmb"),
        64,
    );
    fails(
        &[FaultKind::BadBarrier],
        &BULK.replace(
            "[full], 512;\n",
            "[full], 512;\nmbarrier.arrive.shared::cta.b64 %d9, [full];\n",
        ),
        64,
    );
}

/// A producer thread in the second warp fills a ring of two places of 128 bytes four times; the first warp adds up.
const RING: &str = "
.shared .align 8 .b64 full[2];
.shared .align 8 .b64 empty[2];
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [full+8], 1;
mbarrier.init.shared.b64 [empty], 32;
mbarrier.init.shared.b64 [empty+8], 32;
READY:
bar.sync 0;
setp.lt.u32 %p1, %r1, 32;
mov.u32 %r10, 0;
mov.u32 %r20, 0;
mov.u64 %d10, full;
mov.u64 %d11, empty;
@%p1 bra CONSUME;
setp.ne.u32 %p1, %r1, 32;
@%p1 bra END;
PRODUCE:
and.b32 %r11, %r10, 1;
shr.u32 %r12, %r10, 1;
xor.b32 %r13, %r12, 1;
and.b32 %r13, %r13, 1;
mul.wide.u32 %d12, %r11, 8;
add.s64 %d13, %d12, %d10;
add.s64 %d14, %d12, %d11;
FREE:
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [%d14], %r13;
@!%p2 bra FREE;
mul.wide.u32 %d15, %r11, 128;
add.s64 %d15, %d15, %d7;
mul.wide.u32 %d16, %r10, 128;
add.s64 %d16, %d16, %d6;
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%d13], 128;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%d15], [%d16], 128, [%d13];
add.s32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 4;
@%p3 bra PRODUCE;
bra END;
CONSUME:
and.b32 %r11, %r10, 1;
shr.u32 %r12, %r10, 1;
and.b32 %r13, %r12, 1;
mul.wide.u32 %d12, %r11, 8;
add.s64 %d13, %d12, %d10;
add.s64 %d14, %d12, %d11;
{
.reg .pred done;
AGAIN:
mbarrier.try_wait.parity.shared::cta.b64 done, [%d13], %r13;
@done bra DONE;
bra AGAIN;
DONE:
}
mul.wide.u32 %d15, %r11, 128;
add.s64 %d15, %d15, %d2;
ld.shared.u32 %r14, [%d15];
add.s32 %r20, %r20, %r14;
mbarrier.arrive.shared::cta.b64 _, [%d14];
add.s32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 4;
@%p3 bra CONSUME;
st.global.u32 [%d1+512], %r20;
END:
";

#[test]
fn a_ring_of_bulk_copies() {
    let (words, counts) = passes(RING, 64);
    assert!((0..32).all(|i| words[128 + i] == 4 * i as u32 + 192));
    assert_eq!(counts.copied_in, 512);
    // The producer does not wait for room, or waits for less than all.
    let found = |body: &str| {
        (0..12)
            .filter(|seed| numbers(body, 64, *seed).is_err())
            .count()
    };
    assert_eq!(found(&RING.replace("@!%p2 bra FREE;\n", "")), 12);
    let early = RING
        .replace("mbarrier.arrive.shared::cta.b64 _, [%d14];\n", "")
        .replace(
            "mul.wide.u32 %d15, %r11, \
        128;\nadd.s64 %d15, %d15, %d2",
            "mbarrier.arrive.shared::cta.b64 _, [%d14];\nmul.wide.u32 %d15, %r11, \
        128;\nadd.s64 %d15, %d15, %d2",
        );
    assert!(found(&early) > 6, "{}", found(&early));
}

#[test]
fn tokens_and_phases() {
    let body = ".shared .align 8 .b64 object;
mov.u64 %d10, object;
setp.ne.u32 %p1, %r1, 0;
@!%p1 mbarrier.init.shared.b64 [%d10], 64;
bar.sync 0;
st.shared.u32 [%d2], %r1;
mbarrier.arrive.shared.b64 %d11, [%d10];
WAIT:
mbarrier.test_wait.shared.b64 %p2, [%d10], %d11;
@%p2 bra GO;
nanosleep.u32 20;
bra WAIT;
GO:
xor.b32 %r3, %r1, 63;
mul.wide.u32 %d8, %r3, 4;
add.s64 %d8, %d8, %d7;
ld.shared.u32 %r4, [%d8];
st.global.u32 [%d1], %r4;
bar.sync 0;
@!%p1 mbarrier.inval.shared.b64 [%d10];
bar.sync 0;
st.shared.u32 [%d10], 1;";
    let body = body.replace("st.shared.u32 [%d10], 1;", "@!%p1 st.shared.u32 [%d10], 1;");
    let (words, _) = passes(&body, 64);
    assert!((0..64).all(|i| words[i] == 63 - i as u32));
    fails(
        &[FaultKind::BadBarrier],
        &body.replace("@!%p1 mbarrier.inval.shared.b64 [%d10];\n", ""),
        64,
    );
    fails(
        &[FaultKind::BadBarrier, FaultKind::Race],
        &body.replace("[%d10], 64", "[%d10], 63"),
        64,
    );
    fails(
        &[FaultKind::Deadlock],
        &body.replace("[%d10], 64", "[%d10], 65"),
        64,
    );
}

#[test]
fn lanes_exchange_values() {
    let shuffle = |text: &str, rust: &dyn Fn(u32) -> u32| {
        let module = module(
            &pointers(&["a"]),
            &format!("{PLACES}{text}\nst.global.u32 [%d1], %r2;"),
        );
        for number in 0..4 {
            let (words, _) = run(&module, 1, 32, 32, &seed(number))
                .unwrap_or_else(|fault| panic!("{text}: {fault}"));
            assert!(
                (0..32).all(|lane| words[lane as usize] == rust(lane)),
                "{text}: {words:?}"
            );
        }
    };
    shuffle("shfl.sync.down.b32 %r2, %r1, 3, 31, -1;", &|lane| {
        if lane < 29 { lane + 3 } else { lane }
    });
    shuffle("shfl.sync.up.b32 %r2, %r1, 3, 0, -1;", &|lane| {
        if lane < 3 { lane } else { lane - 3 }
    });
    shuffle("shfl.sync.bfly.b32 %r2, %r1, 5, 31, -1;", &|lane| lane ^ 5);
    shuffle("shfl.sync.idx.b32 %r2, %r1, 7, 31, -1;", &|_| 7);
    // Segments of eight lanes: 24 in bits 8 to 12 keeps the lane's upper bits.
    shuffle("shfl.sync.idx.b32 %r2, %r1, 9, 0x1807, -1;", &|lane| {
        (lane & 24) + 1
    });
    shuffle(
        "shfl.sync.down.b32 %r2|%p1, %r1, 4, 0x1807, -1;\n@!%p1 mov.u32 %r2, 99;",
        &|lane| {
            if lane % 8 < 4 { lane + 4 } else { 99 }
        },
    );
    shuffle(
        "setp.lt.u32 %p1, %r1, 5;\nvote.sync.ballot.b32 %r2, %p1, -1;",
        &|_| 31,
    );
    shuffle(
        "setp.lt.u32 %p1, %r1, 5;\nvote.sync.all.pred %p2, !%p1, -1;\nselp.u32 %r2, 1, 0, %p2;",
        &|_| 0,
    );
    shuffle(
        "setp.lt.u32 %p1, %r1, 5;\nvote.sync.any.pred %p2, %p1, -1;\nselp.u32 %r2, 1, 0, %p2;",
        &|_| 1,
    );
    shuffle("redux.sync.add.s32 %r2, %r1, -1;", &|_| 496);
    shuffle(
        "elect.sync %r3|%p1, -1;\nselp.u32 %r2, 1, 0, %p1;",
        &|lane| u32::from(lane == 0),
    );
    // Half of the lanes at a time, on ways that part.
    shuffle(
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra LOW;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffff0000;\nbra \
         END;\nLOW:\nshfl.sync.bfly.b32 %r2, %r1, 2, 31, 0xffff;\nEND:",
        &|lane| {
            if lane < 16 { lane ^ 2 } else { lane ^ 1 }
        },
    );
}

#[test]
fn atomic_operations() {
    let body = "ld.param.u64 %d6, [a];
atom.global.add.u32 %r2, [%d6], 2;
red.global.max.s32 [%d6+4], %r1;
red.global.min.s32 [%d6+8], -5;
atom.global.inc.u32 %r3, [%d6+12], 9;
atom.global.cas.b32 %r4, [%d6+16], %r1, 77;
red.global.or.b32 [%d6+20], %r1;
atom.relaxed.gpu.global.exch.b32 %r5, [%d6+24], 3;
red.global.add.f32 [%d6+28], 0f3F800000;
cvt.u64.u32 %d8, %r1;
red.global.add.u64 [%d6+32], %d8;";
    let module = module(&pointers(&["a"]), &format!("{PLACES}{body}"));
    for number in 0..4 {
        let (words, counts) = run(&module, 2, 64, 10, &seed(number)).unwrap();
        assert_eq!(
            words[..7],
            [256, 63, -5i32 as u32, 8, 77, 63, 3],
            "seed {number}"
        );
        assert_eq!(f32::from_bits(words[7]), 128.0);
        assert_eq!(words[8], 64 * 63);
        assert_eq!(counts.global_atomics.accesses, 4 * 9);
    }
}
