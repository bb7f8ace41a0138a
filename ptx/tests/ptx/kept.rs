//! The state of memory and registers is kept in several ways; faults are found in each.

use crate::faults::{expect, passes};
use torre_ptx::FaultKind;

/// Some warps read words, many times; the last of four writes them.
fn reads_and_a_write(read: &str, times: u32, readers: u32, before_write: &str) -> String {
    format!(
        "shr.u32 %r3, %r1, 5;\nsetp.lt.u32 %p1, %r3, {readers};\nsetp.eq.u32 %p2, %r3, 3;\nand.b32 %r4, %r1, 31;\n\
         mul.wide.u32 %d4, %r4, 4;\nld.param.u64 %d5, [a];\nadd.s64 %d6, %d5, %d4;\nmov.u32 %r5, {times};\n\
         @!%p1 bra MEET;\nAGAIN:\n{read}\nadd.s32 %r5, %r5, -1;\nsetp.ne.u32 %p3, %r5, 0;\n@%p3 bra AGAIN;\nMEET:\n\
         {before_write}@%p2 st.global.u32 [%d6], %r1;\n"
    )
}

#[test]
fn reads_before_the_first_write() {
    let reads = [
        "ld.global.u32 %r2, [%d6];",
        "ld.global.u32 %r2, [%d5];",
        "ld.global.nc.u32 %r2, [%d6];",
        "ld.global.nc.u32 %r2, [%d5];",
        "ld.global.v2.u32 {%r2, %r6}, [%d5];",
    ];
    for read in reads {
        for (times, readers) in [(1, 1), (1, 3), (700, 1), (700, 3)] {
            let text = |before: &str| reads_and_a_write(read, times, readers, before);
            passes(1, 128, &text("bar.sync 0;\n"));
            // Reads of written memory through the read-only path are a fault of their own.
            if !read.contains(".nc") {
                expect(FaultKind::Race, "global", 1, 128, &text(""));
            }
        }
    }
}

#[test]
fn reads_between_writes() {
    let round = |before_write: &str| {
        let read = "ld.global.u32 %r2, [%d6];";
        reads_and_a_write(read, 2, 3, before_write)
    };
    let first = round("bar.sync 0;\n") + "bar.sync 0;\n";
    let second = |before_write: &str| {
        let text = round(before_write).replace("AGAIN", "ONCE_MORE");
        first.clone() + &text.replace("MEET", "MEET_AGAIN")
    };
    passes(1, 128, &second("bar.sync 0;\n"));
    let fault = expect(FaultKind::Race, "global", 1, 128, &second(""));
    assert!(fault.line > 30, "{fault}");
}

/// A barrier orders the warps that take part alone.
#[test]
fn barriers_of_some_warps() {
    let text = |reader: u32| {
        let back = 128 * reader;
        format!(
            "shr.u32 %r3, %r1, 5;\nsetp.eq.u32 %p1, %r3, 0;\nsetp.eq.u32 %p2, %r3, 1;\nsetp.eq.u32 %p3, %r3, \
             {reader};\n\
             or.pred %p4, %p1, %p2;\n@%p1 st.global.u32 [%d1], %r1;\n@%p4 bar.sync 1, 64;\n\
             @%p3 ld.global.u32 %r2, [%d1+-{back}];\n"
        )
    };
    passes(1, 96, &text(1));
    expect(FaultKind::Race, "global.u32", 1, 96, &text(2));
}

/// Registers whose values are needed at different places share rows; one that only some lanes have written is found.
#[test]
fn registers_that_one_of_two_ways_writes() {
    let ways = |other: &str| {
        format!(
            "setp.lt.u32 %p1, %r1, 5;\nmov.u32 %r7, 7;\n@%p1 bra OTHER;\nadd.s32 %r9, %r7, 1;\nbra MEET;\nOTHER:\n\
             mov.u32 %r8, 2;\nadd.s32 %r10, %r8, %r8;\n{other}MEET:\nadd.s32 %r2, %r1, %r9;\n"
        )
    };
    passes(1, 32, &ways("mov.u32 %r9, %r10;\n"));
    let fault = expect(
        FaultKind::UninitialisedRegister,
        "%r2, %r1",
        1,
        32,
        &ways(""),
    );
    assert_eq!(fault.thread, [0, 0, 0]);
    assert!(fault.to_string().contains("`%r9`"), "{fault}");
    let other = "@%p1 mov.u32 %r9, %r10;\n";
    expect(
        FaultKind::UninitialisedRegister,
        "%r2, %r1",
        1,
        32,
        &ways(&other.replace("@", "@!")),
    );
}
