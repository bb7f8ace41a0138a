//! Kernels for processors that this machine need not have give the same bits, in an emulator of programs.
//!
//! The emulated program has no C library: it reads memory from standard input, calls kernels one after the
//! other, and writes the memory to standard output. All of it is LLVM IR; the linker is that of the Rust toolchain.

use crate::kernels::{Call, applied, kernel_set, whole};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use torre_compiler::backend::interp::Interp;
use torre_compiler::backend::llvm::cpu::{Shape, emit};
use torre_compiler::backend::llvm::library::{Cpu, Library, Object, Options, compile};
use torre_compiler::backend::rows::RowProgram;
use torre_compiler::elementary;
use torre_compiler::host::HostUnary;
use torre_compiler::kernel::{KernelSet, record_width};
use torre_compiler::scheme::{Precision, Scheme};
use torre_compiler::testing::{
    Limits, Memory, Rng, add_random_zones, elasticity, maxwell, random_kernels, random_scheme,
};

/// How a program asks the kernel of the operating system for something.
struct Calls {
    /// The instruction with its constraints: result, number of the call, three arguments, registers that it overwrites.
    instruction: &'static str,
    read: i64,
    write: i64,
    exit: i64,
}

const AARCH64: Calls = Calls {
    instruction: r#"asm sideeffect "svc #0", "={x0},{x8},{x0},{x1},{x2},~{memory}""#,
    read: 63,
    write: 64,
    exit: 93,
};

const RISCV: Calls = Calls {
    instruction: r#"asm sideeffect "ecall", "={a0},{a7},{a0},{a1},{a2},~{memory}""#,
    ..AARCH64
};

const X86: Calls = Calls {
    instruction: r#"asm sideeffect "syscall", "={rax},{rax},{rdi},{rsi},{rdx},~{rcx},~{r11},~{memory}""#,
    read: 0,
    write: 1,
    exit: 60,
};

/// A processor and its emulator.
struct Emulated {
    target: &'static str,
    emulator: &'static str,
    processor: &'static str,
    calls: Calls,
}

const EMULATED: [Emulated; 4] = [
    Emulated {
        target: "aarch64",
        emulator: "qemu-aarch64",
        processor: "cortex-a72",
        calls: AARCH64,
    },
    Emulated {
        target: "riscv64",
        emulator: "qemu-riscv64",
        processor: "rv64",
        calls: RISCV,
    },
    Emulated {
        target: "riscv64v",
        emulator: "qemu-riscv64",
        processor: "rv64,v=true,vlen=128",
        calls: RISCV,
    },
    // No AVX-512.
    Emulated {
        target: "x86-64-v3",
        emulator: "qemu-x86_64",
        processor: "Haswell",
        calls: X86,
    },
];

/// Kernels with the memory that they run on, and the calls.
struct Job {
    scheme: Scheme,
    set: KernelSet,
    memory: Memory,
    calls: Vec<Call>,
}

impl Job {
    fn new(scheme: Scheme, set: KernelSet, rng: &mut Rng, special: u64) -> Job {
        let mut memory = Memory::new(&set.layout);
        memory.fill(rng, special);
        let calls = (0..set.kernels.len()).flat_map(|index| [index; 4]);
        let calls = calls.map(|index| Call::random(&scheme, &set, index, rng));
        Job {
            calls: calls.collect(),
            scheme,
            set,
            memory,
        }
    }

    fn expected(&self) -> Memory {
        let interp = Interp::new(&self.scheme, &self.set);
        let mut memory = self.memory.clone();
        for call in &self.calls {
            call.run(&interp, &mut memory);
        }
        memory
    }
}

/// Kernels of all kinds: ghosts at ends, zones, functions, comparisons of special values.
fn jobs() -> Vec<Job> {
    let mut rng = Rng::new(11);
    let mut jobs = Vec::new();
    for precision in [Precision::F32, Precision::F64] {
        let mut functions = maxwell(2, precision, [2, 3, 33]);
        functions.stages.truncate(1);
        let own = [HostUnary::Exp, HostUnary::Sin, HostUnary::Round];
        for (update, op) in functions.stages[0].updates.iter_mut().zip(own) {
            update.body = applied(&elementary::function(op, precision).expect("a function"));
        }
        let known = [
            maxwell(4, precision, [5, 4, 70]),
            elasticity(precision, [4, 5, 40]),
            functions,
        ];
        for scheme in known {
            let set = whole(&scheme);
            jobs.push(Job::new(scheme, set, &mut rng, 20));
        }
    }
    let limits = Limits {
        dimensions: 3,
        components: 4,
        stages: 2,
        ops: 16,
        length: 50,
        width: 5,
        reach: 9,
    };
    for _ in 0..4 {
        let mut scheme = random_scheme(&mut rng, &limits);
        add_random_zones(&mut rng, &limits, &mut scheme);
        let set = kernel_set(&scheme, random_kernels(&mut rng, &scheme));
        jobs.push(Job::new(scheme, set, &mut rng, 9));
    }
    jobs
}

/// The program that runs all jobs.
fn program(jobs: &[Job], calls: &Calls) -> String {
    let Calls {
        instruction,
        read,
        write,
        exit,
    } = calls;
    // Without this the stack of a new process is not where functions expect it on x86-64.
    let mut main = String::from("define void @_start() alignstack(16) {\n");
    let mut all = String::new();
    let transfer = |out: &mut String, n: usize, number, file| {
        let size = jobs[n].memory.bytes().len();
        let _ = writeln!(
            out,
            "  call void @transfer(i64 {number}, i64 {file}, ptr @memory{n}, i64 {size})"
        );
    };
    for (n, job) in jobs.iter().enumerate() {
        let size = job.memory.bytes().len();
        let _ = writeln!(
            all,
            "@memory{n} = internal global [{size} x i8] zeroinitializer, align 64"
        );
        for symbol in symbols(n, job) {
            let _ = writeln!(all, "declare void @{symbol}(ptr, ptr, i64, i64, i64)");
        }
        transfer(&mut main, n, *read, 0);
    }
    for (n, job) in jobs.iter().enumerate() {
        let symbols = symbols(n, job);
        for (c, call) in job.calls.iter().enumerate() {
            let at = call.element * job.set.layout.element_bytes as i64;
            let _ = writeln!(
                main,
                "  %base{n}.{c} = getelementptr i8, ptr @memory{n}, i64 {at}"
            );
            for (p, part) in call.parts.iter().enumerate() {
                let (numbers, count): (Vec<i64>, usize) = match part.zones.is_empty() {
                    true => {
                        let runs = part.runs.iter().flat_map(|r| [r.offset, r.groups]);
                        (runs.collect(), part.runs.len())
                    }
                    false => {
                        let width = record_width(&job.set.layout);
                        (part.records.clone(), part.records.len() / width)
                    }
                };
                let texts: Vec<String> = numbers.iter().map(|n| format!("i64 {n}")).collect();
                let _ = writeln!(
                    all,
                    "@runs{n}.{c}.{p} = internal constant [{} x i64] [{}]",
                    numbers.len(),
                    texts.join(", ")
                );
                let _ = writeln!(
                    main,
                    "  call void @{}(ptr %base{n}.{c}, ptr @runs{n}.{c}.{p}, i64 {count}, i64 {}, i64 {})",
                    symbols[call.kernel], part.range.lo, part.range.hi
                );
            }
        }
    }
    for n in 0..jobs.len() {
        transfer(&mut main, n, *write, 1);
    }
    let _ = writeln!(
        all,
        "define internal void @transfer(i64 %number, i64 %file, ptr %from, i64 %count) noinline {{
entry:
  br label %more
more:
  %at = phi ptr [ %from, %entry ], [ %at.next, %some ]
  %left = phi i64 [ %count, %entry ], [ %left.next, %some ]
  %done = call i64 {instruction}(i64 %number, i64 %file, ptr %at, i64 %left)
  %any = icmp sgt i64 %done, 0
  br i1 %any, label %some, label %fail
some:
  %at.next = getelementptr i8, ptr %at, i64 %done
  %left.next = sub i64 %left, %done
  %again = icmp sgt i64 %left.next, 0
  br i1 %again, label %more, label %end
fail:
  call i64 {instruction}(i64 {exit}, i64 1, ptr null, i64 0)
  unreachable
end:
  ret void
}}
{main}  call i64 {instruction}(i64 {exit}, i64 0, ptr null, i64 0)
  unreachable
}}"
    );
    all
}

/// The names of a job's kernels, which differ from the names of other jobs.
fn symbols(n: usize, job: &Job) -> Vec<String> {
    RowProgram::all(&job.scheme, &job.set)
        .map(|p| p.symbol.replace("torre_", &format!("torre{n}_")))
        .collect()
}

/// The linker of the Rust toolchain.
fn linker() -> Option<PathBuf> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir"])
        .output()
        .ok()?;
    let folder = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    Some(folder.parent()?.join("bin/rust-lld")).filter(|path| path.exists())
}

/// An emulator under one of the names that systems give it.
fn emulator(name: &str) -> Option<String> {
    [name.to_owned(), format!("{name}-static")]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
}

/// Compiles and links a program with all kernels.
fn build(
    library: &'static Library,
    jobs: &[Job],
    emulated: &Emulated,
    linker: &Path,
    folder: &Path,
) -> PathBuf {
    let cpu = Cpu::named(emulated.target).expect("a known name");
    let make = |ir: &str| -> Object {
        compile(library, ir, &cpu.target, &Options::CPU).unwrap_or_else(|e| panic!("{e}\n{ir}"))
    };
    let kernels = jobs.iter().enumerate().map(|(n, job)| {
        let ir = emit(&job.scheme, &job.set, Shape::of(&cpu, job.scheme.precision));
        make(&ir.replace("@torre_", &format!("@torre{n}_")))
    });
    let objects = kernels.chain([make(&program(jobs, &emulated.calls))]);
    let executable = folder.join(emulated.target);
    let mut link = Command::new(linker);
    link.args(["-flavor", "gnu", "--no-relax", "-o"])
        .arg(&executable);
    for (n, object) in objects.enumerate() {
        let path = folder.join(format!("{}-{n}.o", emulated.target));
        std::fs::write(&path, object.bytes()).expect("an object");
        link.arg(path);
    }
    let output = link.output().expect("a linker");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    executable
}

#[test]
fn emulated_processors_give_the_same_bits() {
    let library = Library::open().unwrap_or_else(|error| panic!("{error}"));
    let Some(linker) = linker() else {
        return println!("skipped: the toolchain has no rust-lld");
    };
    let jobs = jobs();
    let expected: Vec<Memory> = jobs.iter().map(Job::expected).collect();
    let mut changed = jobs
        .iter()
        .zip(&expected)
        .filter(|(job, e)| job.memory.difference(e).is_some());
    assert!(changed.nth(jobs.len() / 2).is_some());
    let input: Vec<u8> = jobs.iter().flat_map(|job| job.memory.bytes()).collect();
    let folder = tempfile::tempdir().expect("a folder");
    for emulated in &EMULATED {
        let executable = build(library, &jobs, emulated, &linker, folder.path());
        let Some(emulator) = emulator(emulated.emulator) else {
            println!(
                "skipped: code for {} is not run, as there is no {}",
                emulated.target, emulated.emulator
            );
            continue;
        };
        let mut child = Command::new(emulator)
            .args(["-cpu", emulated.processor])
            .arg(executable)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("an emulator");
        let mut stdin = child.stdin.take().expect("a pipe");
        // All is read before anything is written.
        stdin.write_all(&input).expect("a program that reads");
        drop(stdin);
        let output = child.wait_with_output().expect("a program that ends");
        assert!(
            output.status.success(),
            "{}: {}",
            emulated.target,
            output.status
        );
        assert_eq!(output.stdout.len(), input.len(), "{}", emulated.target);
        let mut rest = &output.stdout[..];
        for (job, expected) in jobs.iter().zip(&expected) {
            let (own, others) = rest.split_at(expected.bytes().len());
            rest = others;
            let mut found = job.memory.clone();
            found.set_bytes(own);
            assert_eq!(
                found.difference(expected),
                None,
                "{}: {}",
                emulated.target,
                job.scheme
            );
        }
    }
}
