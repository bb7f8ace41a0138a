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

fn has_cc() -> bool {
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
    let built = folder.join(format!("{name}-{precision}"));
    let options = format!("--set steps=7 --precision {precision}");
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
        compare(&name, &source, problem, folder.path(), "f32");
        compare(&name, &source, problem, folder.path(), "f64");
    }
}

#[test]
fn code_for_other_processors_is_built_without_them() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for target in ["x86-64-v2", "x86-64-v3", "sapphirerapids"] {
        succeed(
            &format!("build examples/01-wave1d.torre --quiet --target {target} -o {{0}}"),
            &[folder.path()],
        );
        let text = std::fs::read_to_string(folder.path().join("pluck.json")).unwrap();
        let description: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(description["target"], target);
    }
    let asm = succeed(
        "emit examples/08-maxwell42.torre --stage asm --target x86-64-v3",
        &[],
    );
    assert!(asm.contains("vfmadd") && asm.contains("ymm") && !asm.contains("zmm"));
}
