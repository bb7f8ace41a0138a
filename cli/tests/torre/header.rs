//! A C program with built kernels computes the same bits as `torre run`.

use crate::support::*;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Runs a built calculation and writes all newest values, component by component, in C order.
const MAIN: &str = r#"
#include "NAME.h"
#include <stdio.h>
FILES
int main(int argc, char **argv) {
  torre_NAME run;
  FILE *out = fopen(argv[1], "wb");
  if (argc < 2 || !out) return 2;
  LOAD
  if (torre_NAME_init(&runARGUMENT)) return 1;
  torre_NAME_run(&run, torre_NAME_STEPS);
  for (int c = 0; c < torre_NAME_COMPONENTS; ++c)
    for (int64_t x = 0; x < torre_NAME_extent[c][0]; ++x)
      for (int64_t y = 0; y < torre_NAME_extent[c][1]; ++y)
        for (int64_t z = 0; z < torre_NAME_extent[c][2]; ++z) {
          torre_NAME_real v = torre_NAME_get(&run, c, x, y, z);
          if (fwrite(&v, sizeof v, 1, out) != 1) return 3;
        }
  torre_NAME_free(&run);
  return fclose(out);
}
"#;

pub fn has_cc() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok();
    if !found {
        println!("skipped: no C compiler");
    }
    found
}

/// C that reads the doubles of the `.npy` files of a program.
fn loader(files: &[String]) -> (String, String) {
    let mut functions = String::from("#include <stdlib.h>\n");
    let mut calls = String::new();
    if files.is_empty() {
        return (functions, calls);
    }
    functions.push_str(
        "static const double *load(const char *path) {
  FILE *f = fopen(path, \"rb\");
  unsigned char head[10];
  if (!f || fread(head, 1, 10, f) != 10) exit(4);
  long start = 10 + head[8] + 256 * head[9];
  fseek(f, 0, SEEK_END);
  long count = (ftell(f) - start) / 4;
  float *values = malloc(count * 4);
  double *doubles = malloc(count * 8);
  fseek(f, start, SEEK_SET);
  if (fread(values, 4, count, f) != (size_t)count) exit(5);
  for (long i = 0; i < count; ++i) doubles[i] = values[i];
  fclose(f);
  return doubles;
}\n",
    );
    let list: Vec<String> = files.iter().map(|f| format!("load({f:?})")).collect();
    let _ = write!(calls, "const double *files[] = {{{}}};", list.join(", "));
    (functions, calls)
}

fn compare(name: &str, source: &Path, problem: &str, folder: &Path, precision: &str) {
    compare_steps(name, source, problem, folder, precision, 7);
}

fn compare_steps(
    name: &str,
    source: &Path,
    problem: &str,
    folder: &Path,
    precision: &str,
    steps: u64,
) {
    let built = folder.join(format!("{name}-{precision}"));
    let options = format!("--set steps={steps} --precision {precision}");
    succeed(
        &format!("build {{0}} --quiet {options} -o {{1}}"),
        &[source, &built],
    );
    let description: serde_json::Value =
        serde_json::from_slice(&std::fs::read(built.join(format!("{problem}.json"))).unwrap())
            .unwrap();
    assert_eq!(description["problem"], problem);
    let header = std::fs::read_to_string(built.join(format!("{problem}.h"))).unwrap();
    let files: Vec<String> = header
        .lines()
        .filter_map(|line| line.trim().strip_prefix("files["))
        .map(|rest| {
            let path = rest
                .split("]: ")
                .nth(1)
                .unwrap()
                .split(", ")
                .next()
                .unwrap();
            folder.join(path).display().to_string()
        })
        .collect();
    let (functions, load) = loader(&files);
    let argument = if files.is_empty() { "" } else { ", files" };
    let text = MAIN
        .replace("NAME", problem)
        .replace("FILES", &functions)
        .replace("LOAD", &load)
        .replace("ARGUMENT", argument);
    let main = built.join("main.c");
    std::fs::write(&main, text).unwrap();
    let program = built.join("main");
    let output = Command::new("cc")
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(&main)
        .arg(built.join(format!("{problem}.o")))
        .arg("-lm")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let values = built.join("values");
    let status = Command::new(&program).arg(&values).status().unwrap();
    assert!(status.success(), "{name}: {status}");
    let out = built.join("out");
    succeed(
        &format!("run {{0}} --quiet {options} --save-final --out {{1}}"),
        &[source, &out],
    );
    let mut expected = Vec::new();
    for component in description["components"].as_array().unwrap() {
        let file = format!("fields/{}.npy", component["name"].as_str().unwrap());
        let bytes = std::fs::read(out.join(file)).unwrap();
        expected.extend_from_slice(npy_values(&bytes));
    }
    let found = std::fs::read(&values).unwrap();
    assert_eq!(found.len(), expected.len(), "{name}");
    let differing = found.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(
        differing, None,
        "{name} in {precision}: first differing byte"
    );
}

#[test]
fn c_programs_compute_the_same_bits() {
    if !has_cc() || !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in examples() {
        let text = text.replace("(70, 32, 32)", "(60, 20, 18)");
        let source = place_example(folder.path(), &name, &text);
        let problem = text
            .lines()
            .find_map(|line| line.strip_prefix("problem "))
            .unwrap()
            .trim_end_matches([' ', '{']);
        if text.contains("incident ") {
            let out = folder.path().join(&name);
            let error = fail(1, "build {0} --out {1}", &[&source, &out]);
            assert!(
                error.contains("E0809") && error.contains("no incident fields"),
                "{error}"
            );
            continue;
        }
        compare(&name, &source, problem, folder.path(), "f32");
        compare(&name, &source, problem, folder.path(), "f64");
    }
}

/// Layers on all sides that meet in edges and corners, in bands along the last axis and wide ones, and a medium with
/// memory in a ball.
const ZONED: &str = "
use std::maxwell::maxwell_te

def memory(E, body, dt) {
  state J in body
  J@next = 0.98 * J + 0.1 * dt * E
  J@next
}
scheme body_te : maxwell_te {
  region body = nowhere
  step {
    E += dt * [d(Hz, y) - memory(E.x, body, dt), -d(Hz, x) - memory(E.y, body, dt)]
  }
}
scheme waves {
  axes x, y, z
  param dt = 0.4
  field v : vector on faces at 1/2
  field p : scalar on cells
  step {
    v -= dt * [d(p, x), d(p, y), d(p, z)]
    p -= dt * (d(v.x, x) + d(v.y, y) + d(v.z, z))
  }
}
scheme line {
  axes x
  param dt = 0.5
  field v : scalar on nodes at 1/2
  field p : scalar on cells
  step {
    v -= dt * d(p, x, 4)
    p -= dt * d(v, x, 4)
  }
}
problem corners {
  scheme waves
  domain 21 x 18 x 43
  boundary x: cpml(5) | cpml(3, strength = 2), y: pec | cpml(6), z: cpml(4)
  source p at (6, 5, 5) += sin(0.4 * t)
  steps 40
}
problem wide {
  scheme waves
  domain 14 x 16 x 90
  boundary x: periodic, y: cpml(4), z: cpml(40) | even
  init p = exp(-((x - 7)^2 + (y - 8)^2 + (z - 38)^2) / 4)
  steps 40
}
problem ball {
  scheme body_te
  domain 34 x 30
  boundary x: cpml(6), y: odd | cpml(8)
  region body = (x - 15)^2 + (y - 12)^2 < 40
  source Hz at (9, 9) += sin(0.4 * t)
  steps 40
}
problem string {
  scheme line
  domain 60
  boundary x: cpml(8) | cpml(9)
  source p at (12) += sin(0.4 * t)
  steps 40
}
";

/// Mirrors at upper ends, beyond which a value on the plane reads half a cell: no ghosts lie there but in the place of
/// a last value that other components have.
#[test]
fn mirrors_at_upper_ends_become_c() {
    if !has_llvm() || !has_cc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("x", "[d(c, x)]", "12"),
        ("x, z", "[d(c, x), d(c, z)]", "5 x 12"),
        ("x, y, z", "[d(c, x), d(c, y), d(c, z)]", "5 x 4 x 11"),
    ];
    for (n, (axes, gradient, domain)) in cases.into_iter().enumerate() {
        let name = format!("mirrors{n}");
        let source = folder.path().join(format!("{name}.torre"));
        let text = format!(
            "scheme s {{
  axes {axes}
  field c : scalar on cells
  field g : vector on faces at 1/2
  step {{
    c = 0.9 * c
    g += 0.3 * {gradient}
  }}
}}
problem {name} {{
  scheme s
  domain {domain}
  boundary all: even
  init c = sin(1 + 0.3 * x) + cos({last})
  steps 7
}}
",
            last = axes.split(", ").last().unwrap(),
        );
        std::fs::write(&source, text).unwrap();
        compare(&name, &source, &name, folder.path(), "f32");
        compare(&name, &source, &name, folder.path(), "f64");
    }
}

#[test]
fn layers_and_states_become_c() {
    if !has_cc() || !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (problem, _) in ZONED
        .split("problem ")
        .skip(1)
        .filter_map(|p| p.split_once(' '))
    {
        let others =
            |part: &&str| part.starts_with(&format!("{problem} ")) || !part.contains("\n  domain");
        let text: Vec<&str> = ZONED.split("problem ").filter(others).collect();
        let source = folder.path().join(format!("{problem}.torre"));
        std::fs::write(&source, text.join("problem ")).unwrap();
        for precision in ["f32", "f64"] {
            compare_steps(problem, &source, problem, folder.path(), precision, 40);
        }
        let description = folder.path().join(format!("{problem}-f32/{problem}.json"));
        let description: serde_json::Value =
            serde_json::from_slice(&std::fs::read(description).unwrap()).unwrap();
        let states = description["states"].as_array().unwrap();
        assert!(
            states.len() > 1 && states[0]["boxes"][0]["first"].is_u64(),
            "{states:?}"
        );
    }
}

/// The example of the README, smaller.
#[test]
fn the_first_example_becomes_c() {
    if !has_cc() || !has_llvm() {
        return;
    }
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, text) = readme.split_once("```torre\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let text = text
        .replace("128 x 128 x 128", "48 x 20 x 18")
        .replace("(32, 64, 64)", "(13, 10, 9)")
        .replace("(96, 64, 64)", "(36, 10, 9)")
        .replace("z = 64", "z = 9");
    assert!(text.contains("cpml(10)"));
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("pulse.torre");
    std::fs::write(&source, text).unwrap();
    compare_steps("pulse", &source, "pulse", folder.path(), "f32", 60);
}

/// Expressions that the host computes beyond arithmetic: tables, files in expressions, regions and branches.
const BODY: &str = "
scheme heat {
  axes x, y
  param h = 0.5
  region body = nowhere
  coef k on cells = 0.02
  field u : scalar on cells
  step {
    where body { u += k * (d2(u, x) + d2(u, y)) } else { u = 0.9 * u }
  }
}
problem warm {
  scheme heat
  domain 20 x 16
  region body = (x - lx/2)^2 + table(\"edge.csv\", y, column = \"bulge\") < 9
  coef k = 0.02 + 0.01 * file(\"k.npy\")
  init u = table(\"edge.csv\", x + y, outside = -1) + 0.25 * file(\"k.npy\")
  source u in body, x = 3..12 += table(\"edge.csv\") * x
  steps 7
}
";

#[test]
fn tables_and_files_in_expressions_become_c() {
    if !has_cc() || !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("warm.torre");
    std::fs::write(&source, BODY).unwrap();
    let edge = "t, value, bulge\n0, 1, 0\n0.75, 2.5, 1\n3, -1, 3\n8, 0.1, 0.3\n";
    std::fs::write(folder.path().join("edge.csv"), edge).unwrap();
    let values: Vec<f32> = (0..20 * 16)
        .map(|i| (i * 37 % 101) as f32 / 101.0)
        .collect();
    std::fs::write(folder.path().join("k.npy"), npy_of_f32("(20, 16)", &values)).unwrap();
    for precision in ["f32", "f64"] {
        compare("warm", &source, "warm", folder.path(), precision);
    }
    succeed("run {0} --verify --quiet", &[&source]);
}

/// Fields with names that the header has for itself, or that differ in signs that C does not take, and two problems
/// whose names differ in capital letters.
const COLLIDING: &str = "
scheme crowd {
  axes x, y
  param dt = 0.1
  field E : vector on nodes
  field E_x : scalar on nodes
  field init : scalar on nodes
  field STEPS : scalar on nodes
  field source0 : scalar on nodes
  field s0_p0_u3 : scalar on nodes
  field s0_p0_u3_ : scalar on nodes
  step {
    allow W0301
    E += dt * [d2(E.x, x), d2(E.y, y)]
    E_x += dt * E.x
    init += dt * d2(E_x, x)
    STEPS += dt * init
    source0 += dt * d2(STEPS, y)
    s0_p0_u3 += dt * source0
    s0_p0_u3_ += dt * s0_p0_u3
  }
}
problem crowded {
  scheme crowd
  domain 9 x 7
  init E.x = x + y
  init E.y = file(\"a*/values.npy\")
  source E.x at (3, 4) += sin(t)
  steps 7
}
problem Crowded {
  scheme crowd
  domain 9 x 7
  steps 7
}
";

#[test]
fn names_of_programs_collide_with_nothing_in_c() {
    if !has_cc() || !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("crowded.torre");
    std::fs::write(&source, COLLIDING).unwrap();
    let values: Vec<f32> = (0..63).map(|i| i as f32).collect();
    let bytes = npy_of_f32("(9, 7)", &values);
    // The second one is how the header's comment writes the first.
    for name in ["a*", "a* "] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("values.npy"), &bytes).unwrap();
    }
    let options = "--problem Crowded --quiet";
    let built = folder.path().join("crowded-f32");
    succeed(
        &format!("build {{0}} {options} -o {{1}}"),
        &[&source, &built],
    );
    let one = std::fs::read_to_string(&source).unwrap();
    let (one, _) = one.split_once("problem Crowded").unwrap();
    std::fs::write(&source, one).unwrap();
    compare("crowded", &source, "crowded", folder.path(), "f32");
    // Both headers in one program.
    let main = built.join("both.c");
    let text = "#include \"crowded.h\"\n#include \"Crowded.h\"
int main(void) { return torre_crowded_E_x == torre_Crowded_E_x_; }\n";
    std::fs::write(&main, text).unwrap();
    let output = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only"])
        .arg(&main)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = std::fs::read_to_string(built.join("crowded.json")).unwrap();
    let description: serde_json::Value = serde_json::from_str(&text).unwrap();
    let constants: Vec<&str> = description["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["constant"].as_str().unwrap())
        .collect();
    assert_eq!(
        constants[..3],
        [
            "torre_crowded_E_x",
            "torre_crowded_E_y",
            "torre_crowded_E_x_"
        ]
    );
}

#[test]
fn code_for_other_processors_is_built_without_them() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let targets = [
        ("x86-64-v2", "x86_64"),
        ("x86-64-v3", "x86_64"),
        ("sapphirerapids", "x86_64"),
        ("aarch64", "aarch64"),
        ("neoverse-n1", "aarch64"),
        ("riscv64", "riscv64"),
        ("riscv64v", "riscv64"),
    ];
    for (target, architecture) in targets {
        succeed(
            &format!("build examples/01-wave1d.torre --quiet --target {target} -o {{0}}"),
            &[folder.path()],
        );
        let text = std::fs::read_to_string(folder.path().join("pluck.json")).unwrap();
        let description: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(description["target"], target);
        let triple = description["triple"].as_str().unwrap();
        assert_eq!(triple.split('-').next(), Some(architecture));
    }
    let asm = succeed(
        "emit examples/08-maxwell42.torre --stage asm --target x86-64-v3",
        &[],
    );
    assert!(asm.contains("vfmadd") && asm.contains("ymm") && !asm.contains("zmm"));
    let asm = succeed(
        "emit examples/08-maxwell42.torre --stage asm --target aarch64",
        &[],
    );
    assert!(asm.contains("fmla\tv") && asm.contains("ext\tv"), "{asm}");
    for foreign in ["aarch64", "riscv64"] {
        if foreign != std::env::consts::ARCH {
            let run = format!("run examples/01-wave1d.torre --backend llvm --target {foreign}");
            let error = fail(3, &run, &[]);
            assert!(
                error.contains("E0805") && error.contains(foreign),
                "{error}"
            );
        }
    }
}
