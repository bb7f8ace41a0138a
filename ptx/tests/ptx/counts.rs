//! Counts of launches, for patterns of access with known answers.

use crate::common::{PLACES, module, pointers, run, seed};
use torre_ptx::Counts;

fn counts(threads: u32, body: &str) -> Counts {
    let module = module(&pointers(&["a"]), &format!("{PLACES}{body}"));
    run(&module, 1, threads, 4096, &seed(0))
        .unwrap_or_else(|fault| panic!("{fault}"))
        .1
}

/// A read of global memory where lane t reads at `stride` t + `offset` bytes.
fn sectors(stride: u32, offset: u32, instruction: &str) -> u64 {
    let body = format!(
        "ld.param.u64 %d6, [a];\nmul.wide.u32 %d7, %r1, {stride};\nadd.s64 %d6, %d6, %d7;\n\
         {instruction}, [%d6+{offset}];"
    );
    counts(32, &body).global_loads.pieces
}

#[test]
fn sectors_of_global_memory() {
    let word = "ld.global.u32 %r2";
    assert_eq!(sectors(4, 0, word), 4);
    assert_eq!(sectors(4, 4, word), 5);
    assert_eq!(sectors(8, 0, word), 8);
    assert_eq!(sectors(0, 0, word), 1);
    assert_eq!(sectors(128, 0, word), 32);
    assert_eq!(sectors(8, 8, "ld.global.u64 %d2"), 9);
    assert_eq!(sectors(16, 0, "ld.global.v4.u32 {%r2, %r3, %r4, %r5}"), 16);
    // Lanes that go backwards touch the same sectors.
    let back = "ld.param.u64 %d6, [a];\nsub.s32 %r2, 31, %r1;\nmul.wide.u32 %d7, %r2, 4;\nadd.s64 %d6, %d6, \
        %d7;\nld.global.u32 %r2, [%d6];";
    assert_eq!(counts(32, back).global_loads.pieces, 4);
}

#[test]
fn conflicts_of_banks() {
    let store = |stride: u32, instruction: &str| {
        let body = format!(
            "mul.wide.u32 %d4, %r1, {stride};\nmov.u64 %d5, dynamic;\nadd.s64 %d4, %d4, %d5;\n{instruction};"
        );
        let counts = counts(32, &body).shared_stores;
        (counts.pieces, counts.ideal)
    };
    let word = "st.shared.u32 [%d4], %r1";
    assert_eq!(store(4, word), (1, 1));
    assert_eq!(store(8, word), (2, 1));
    assert_eq!(store(12, word), (1, 1));
    assert_eq!(store(64, word), (16, 1));
    assert_eq!(store(128, word), (32, 1));
    assert_eq!(store(8, "st.shared.u64 [%d4], %d1"), (2, 2));
    assert_eq!(
        store(16, "st.shared.v4.u32 [%d4], {%r1, %r1, %r1, %r1}"),
        (4, 4)
    );
    assert_eq!(store(16, "st.shared.u64 [%d4], %d1"), (4, 2));
    // All lanes read one word: one pass.
    let body = "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [dynamic], 1;\nbar.sync 0;\nld.shared.u32 %r2, [dynamic];";
    assert_eq!(counts(32, body).shared_loads.pieces, 1);
}

#[test]
fn instructions_by_opcode() {
    let body = "setp.lt.u32 %p1, %r1, 8;\n@%p1 add.s32 %r2, %r1, 1;\n@!%p1 bra END;\nmul.lo.s32 %r3, %r2, \
        %r2;\nEND:\nbar.sync 0;";
    let counts = counts(64, body);
    let number = |opcode: &str| {
        let executed = counts.opcode(opcode);
        (executed.warps, executed.threads)
    };
    assert_eq!(number("add.s32"), (2, 8));
    assert_eq!(number("mul.lo.s32"), (1, 8));
    assert_eq!(number("bra"), (2, 56));
    assert_eq!((counts.divergences, counts.barriers), (1, 1));
    let sum = counts
        .opcodes
        .values()
        .map(|executed| executed.threads)
        .sum::<u64>();
    assert_eq!(counts.instructions.threads, sum);
}

/// A block that polls while another one computes does so seldom, and sees the value in the end.
#[test]
fn polls_that_read_the_same_are_few() {
    let body = "ld.param.u64 %d6, [a];\nmov.u32 %r5, %ctaid.x;\nsetp.eq.u32 %p1, %r5, 0;\nmov.u32 %r6, 0;\n\
                @!%p1 bra POLL;\n\
                WORK:\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, 20000;\n@%p2 bra WORK;\n\
                st.release.gpu.global.u32 [%d6+400], 1;\nbra END;\n\
                POLL:\nld.acquire.gpu.global.u32 %r6, [%d6+400];\nsetp.eq.u32 %p3, %r6, 0;\n@%p3 bra POLL;\nEND:";
    let module = module(&pointers(&["a"]), &format!("{PLACES}{body}"));
    // Turns of at most 64 instructions are some 1,900 rounds.
    let (words, counts) =
        run(&module, 2, 1, 4096, &seed(4)).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(words[100], 1);
    assert!((2..400).contains(&counts.polls), "{}", counts.polls);
}

/// A turn ends where a strong load comes around again, and not at the first.
#[test]
fn strong_loads_end_turns_where_they_come_around() {
    let load = "ld.volatile.global.u32 %r5, [%d1];\n";
    assert_eq!(counts(32, &load.repeat(5)).polls, 0);
    let twice = format!(
        "mov.u32 %r6, 0;\nLOOK:\n{load}add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, 2;\n@%p1 bra LOOK;"
    );
    assert_eq!(counts(32, &twice).polls, 1);
}
