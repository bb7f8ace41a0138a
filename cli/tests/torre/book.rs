//! Blocks of code outside of the chapters with tests of their own: parts of programs, each completed here to a whole
//! one, the commands of the chapter on schedules, and the C program.

use crate::support::*;
use crate::tutorial::shell;
use std::path::Path;
use std::process::Command;

fn chapter(name: &str) -> String {
    std::fs::read_to_string(root().join("docs/src").join(name)).unwrap()
}

/// The blocks of a chapter in a language.
fn blocks(name: &str, language: &str) -> Vec<String> {
    let text = chapter(name);
    let start = format!("```{language}\n");
    let inside = text.split(&start).skip(1);
    inside
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

/// A program of a part of one: a scheme that uses it, or a problem.
fn completed(part: &str) -> String {
    let scheme = |fields: &str, step: &str, boundary: &str| {
        format!(
            "{part}
scheme whole {{
  axes x, y, z
  param dt = 0.1
  {fields}
  step {{
    allow W0301
    {step}
  }}
}}
problem parts {{
  scheme   whole
  domain   20 x 20 x 20
  boundary {boundary}
  steps    3
}}
"
        )
    };
    let problem = |used: &str, scheme: &str, domain: &str| {
        format!(
            "{used}{part}\nproblem parts {{\n  scheme {scheme}\n  domain {domain}\n  steps 32\n}}\n"
        )
    };
    if part.contains("problem ") {
        part.to_owned()
    } else if part.contains("def curl") {
        scheme(
            "field E : vector on edges; field H : vector on faces at 1/2; field u : scalar on nodes",
            "H -= dt * curl(E); E += dt * curl(H); u += dt * laplacian(u)",
            "all: periodic",
        )
    } else if part.contains("def grad") {
        let fields = "field p : scalar on cells; field v : vector on faces at 1/2";
        scheme(fields, "v -= dt * grad(p); p = 0.5 * p", "all: periodic")
    } else if part.contains("def stretched") {
        let fields = "field p : scalar on cells; field v : scalar on [0, 1/2, 1/2] at 1/2";
        let step = "v -= dt * stretched(p, x); p -= dt * d(v, x)";
        scheme(fields, step, "x: cpml(5)")
    } else if part.contains("scheme plasma") {
        problem("", "plasma", "20 x 20 x 20")
    } else if part.contains("schedule ") && part.contains("use ") {
        problem("", "maxwell42", "60 x 60 x 300")
    } else if part.contains("schedule ") {
        let used = "use std::maxwell::maxwell42\n";
        problem(used, "maxwell42", "60 x 60 x 300")
    } else {
        panic!("a part of a kind that has no program here:\n{part}");
    }
}

fn written(folder: &Path, text: &str) -> std::path::PathBuf {
    let path = folder.join("book.torre");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn parts_of_programs_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = 0;
    for name in [
        "introduction.md",
        "language.md",
        "layers.md",
        "schedules.md",
    ] {
        for block in blocks(name, "torre") {
            // Whole programs of other chapters have tests of their own.
            if block.contains("problem ") && name != "introduction.md" {
                continue;
            }
            let program = completed(&block);
            let source = written(folder.path(), &program);
            let report = run("check {0} --report json", &[&source]);
            let text = String::from_utf8_lossy(&report.stdout);
            let messages: serde_json::Value = serde_json::from_str(&text).unwrap();
            let others = messages.as_array().unwrap().iter();
            let others: Vec<_> = others.filter(|m| m["severity"] != "note").collect();
            assert!(others.is_empty(), "{name}: {others:?}\n{program}");
            parts += 1;
        }
    }
    assert!(parts >= 8, "{parts}");
}

#[test]
fn schedules_of_the_chapter_are_legal_but_for_the_one_that_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for block in blocks("schedules.md", "torre") {
        let source = written(folder.path(), &completed(&block));
        let names = block
            .lines()
            .filter_map(|line| line.strip_prefix("schedule "));
        for name in names.map(|rest| rest.split(' ').next().unwrap()) {
            let arguments = format!("plan {{0}} --backend cranelift --threads 1 --schedule {name}");
            if name == "steep" {
                assert!(fail(1, &arguments, &[&source]).contains("E0852"));
            } else {
                succeed(&arguments, &[&source]);
            }
            count += 1;
        }
    }
    assert!(count >= 6, "{count}");
}

/// The commands in the chapter on diagnostics, each with its message; the last one of a section has its code.
#[test]
fn commands_of_the_chapter_on_diagnostics_fail_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let string = blocks("introduction.md", "torre").remove(0);
    std::fs::write(at.join("string.torre"), string).unwrap();
    let pulse = "use std::maxwell::maxwell42
problem pulse { scheme maxwell42; domain 256 x 256 x 256; steps 100 }
";
    std::fs::write(at.join("pulse.torre"), pulse).unwrap();
    let text = chapter("diagnostics.md");
    let mut commands = 0;
    for section in text.split("\n### ").skip(1) {
        let code = section.split(':').next().unwrap();
        let Some((_, block)) = section.split_once("```text\n") else {
            continue;
        };
        let block = block.split("```").next().unwrap();
        // Lines of a program, and a command that needs a GPU.
        if !block.starts_with("$ ")
            || block.contains("/scratch")
            || (block.contains("TORRE_LLVM") && !has_llvm())
        {
            continue;
        }
        let mut said = String::new();
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    said = shell(at, command).0;
                    commands += 1;
                }
                None => {
                    // Hashes, and errors of the system, differ.
                    let cut = line.find(": No such").or(line.find(" (5"));
                    let message = &line[..cut.unwrap_or(line.len())];
                    assert!(
                        said.contains(message),
                        "{code}: `{message}` is not in\n{said}"
                    );
                }
            }
        }
        assert!(said.contains(code), "{code} is not in\n{said}");
    }
    assert!(commands >= 20, "{commands}");
}

/// Towers and tiles in plans for GPUs that are named. Expected rates are left out: they come from fits that may be
/// renewed.
#[test]
fn plans_for_gpus_have_the_shapes_of_the_book() {
    const SHAPES: [&str; 7] = [
        "tower ",
        "threads ",
        "shared ",
        "kept ",
        "variant ",
        "pyramids ",
        "zones ",
    ];
    let folder = tempfile::tempdir().unwrap();
    let fdtd = |boundary: &str, domain: &str| {
        format!(
            "use std::maxwell::maxwell42
problem pulse {{ scheme maxwell42; domain {domain}; boundary all: {boundary}; steps 1000 }}
"
        )
    };
    let waves = std::fs::read_to_string(root().join("bench/planar/layers.torre")).unwrap();
    let cases = [
        (
            "gpu.md",
            fdtd("zero", "1536 x 1536 x 256"),
            "--schedule torre(D=2,TH=16)",
        ),
        (
            "layers.md",
            fdtd("cpml(10)", "768 x 768 x 256"),
            "--schedule torre(W=4,TH=12)",
        ),
        ("planar.md", waves, "--set domain=4096x4096"),
    ];
    for (name, program, options) in cases {
        let source = written(folder.path(), &program);
        let arguments = format!("plan {{0}} --backend cuda --target sm_90 {options}");
        let plan = succeed(&arguments, &[&source]);
        let plans = blocks(name, "text");
        let plans = plans.iter().filter(|block| block.contains("$ torre plan"));
        let lines = plans.flat_map(|block| block.lines());
        let shapes: Vec<_> = lines
            .filter(|line| SHAPES.iter().any(|s| line.trim_start().starts_with(s)))
            .collect();
        assert!(shapes.len() >= 2, "{name}");
        for line in shapes {
            assert!(
                plan.lines().any(|l| l == line),
                "{name}: `{line}` is not in\n{plan}"
            );
        }
    }
}

/// The C program of the chapter on running, with the README's problem, by compilers that look closely.
#[test]
fn the_c_program_of_the_book_compiles_and_runs() {
    let cc = Command::new("cc").arg("--version").output();
    if cc.is_err() || !has_llvm() {
        println!("skipped: no C compiler or no LLVM");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let program = readme
        .split("```torre\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let source = written(folder.path(), program);
    let built = folder.path().join("built");
    succeed(
        "build {0} --set steps=2 --out {1} --quiet",
        &[&source, &built],
    );
    let block = blocks("running.md", "c").remove(0);
    let (include, body) = block.split_once('\n').unwrap();
    let text = format!("{include}\nint main(void) {{\n{body}\nreturn v != 0.0;\n}}\n");
    let main = folder.path().join("main.c");
    std::fs::write(&main, text).unwrap();
    let program = folder.path().join("program");
    let object = built.join("pulse.o");
    let strict = [
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        "-Wconversion",
        "-Wshadow",
    ];
    let compiled = Command::new("cc")
        .args(strict)
        .arg("-I")
        .arg(&built)
        .args([&main, &object])
        .arg("-o")
        .arg(&program)
        .arg("-lm")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    // Nothing has come to the place in two steps.
    assert!(Command::new(&program).status().unwrap().success());
}
