//! C programs with headers: values that they set, and headers with names in common.

use crate::header::has_cc;
use crate::support::*;
use std::path::Path;
use std::process::Command;

/// Compiles a C program in a folder: the messages of the compiler, and whether it succeeded.
fn compiled(folder: &Path, text: &str, objects: &[&str]) -> (String, bool) {
    compiled_by("cc", folder, text, objects)
}

fn compiled_by(compiler: &str, folder: &Path, text: &str, objects: &[&str]) -> (String, bool) {
    let main = folder.join("main.c");
    std::fs::write(&main, text).unwrap();
    let output = Command::new(compiler)
        .current_dir(folder)
        .args([
            "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", "main", "main.c",
        ])
        .args(objects)
        .arg("-lm")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (error, output.status.success())
}

const CHAINS: &str = "
scheme s {
  axes x, y
  param dt = 0.25
  field p : scalar on nodes
  field v : { x on [1/2, 0] } at 1/2
  step {
    v.x -= dt * d(p, x)
    p -= dt * d(v.x, x)
  }
}
problem a { scheme s; domain 8 x 8; boundary all: pec; steps 3 }
problem a_run { scheme s; domain 8 x 8; boundary all: pec; steps 3 }
problem a_p { scheme s; domain 8 x 8; boundary all: pec; steps 3 }
problem a_other { scheme s; domain 8 x 8; boundary all: pec; steps 3 }
";

/// `torre_a_run` is a function of one problem and a type of another one.
#[test]
fn headers_with_names_in_common_are_refused_in_words() {
    if !has_llvm() || !has_cc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("chains.torre");
    std::fs::write(&source, CHAINS).unwrap();
    for problem in ["a", "a_run", "a_p", "a_other"] {
        let build = format!("build {{0}} --problem {problem} --quiet -o {{1}}");
        succeed(&build, &[&source, folder.path()]);
    }
    let both = |first: &str, second: &str| {
        let text = format!(
            "#include \"{first}.h\"\n#include \"{second}.h\"\n#include \"{first}.h\"\nint main(void) {{ return 0; }}\n"
        );
        let objects = [format!("{first}.o"), format!("{second}.o")];
        compiled(folder.path(), &text, &[&objects[0], &objects[1]])
    };
    for other in ["a_run", "a_p"] {
        for (first, second) in [("a", other), (other, "a")] {
            let (error, success) = both(first, second);
            let names = format!("names of problem {second} are those of another one");
            assert!(!success && error.contains(&names), "{error}");
        }
    }
    for (first, second) in [("a", "a_other"), ("a_run", "a_p")] {
        let (error, success) = both(first, second);
        assert!(success, "{error}");
    }
}

#[test]
fn values_that_the_boundary_holds_at_0_are_not_set() {
    if !has_llvm() || !has_cc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("chains.torre");
    std::fs::write(&source, CHAINS).unwrap();
    succeed(
        "build {0} --problem a --quiet -o {1}",
        &[&source, folder.path()],
    );
    let text = "#include \"a.h\"
int main(void) {
  torre_a run;
  if (torre_a_init(&run)) return 1;
  torre_a_set(&run, torre_a_p, 0, 0, 3, 100);
  torre_a_set(&run, torre_a_p, 3, 0, 0, 100);
  torre_a_set(&run, torre_a_p, 4, 0, 4, 100);
  if (torre_a_get(&run, torre_a_p, 0, 0, 3) != 0) return 2;
  if (torre_a_get(&run, torre_a_p, 3, 0, 0) != 0) return 3;
  if (torre_a_get(&run, torre_a_p, 4, 0, 4) != 100) return 4;
  torre_a_free(&run);
  return 0;
}
";
    let (error, success) = compiled(folder.path(), text, &["a.o"]);
    assert!(success, "{error}");
    let status = Command::new(folder.path().join("main")).status().unwrap();
    assert!(status.success(), "{status}");
}

const ROWS: &str = "
scheme s {
  axes x, y, z
  param dt = 0.25
  field live : scalar on nodes
  field v : vector on edges at 1/2
  step {
    v -= dt * [d(live, x), d(live, y), d(live, z)]
    live -= dt * (d(v.x, x) + d(v.y, y) + d(v.z, z))
  }
}
problem q { scheme s; domain 5 x 4 x 6; boundary SIDES; steps 4 }
";

/// A box of rows that is written as a whole is as if each value of it were set;
/// a component may have a name of the header.
#[test]
fn rows_with_ghosts_are_as_values_that_are_set() {
    if !has_llvm() || !has_cc() {
        return;
    }
    let text = "#include \"q.h\"
static torre_q_real at(int c, int64_t x, int64_t y, int64_t z) {
  return (torre_q_real)(1 + c + 3 * x + 0.5 * y - z * z);
}
int main(void) {
  torre_q one, two;
  if (torre_q_init(&one) || torre_q_init(&two)) return 1;
  for (int c = 0; c < torre_q_COMPONENTS; ++c) {
    const int64_t *n = torre_q_extent[c];
    int64_t row = torre_q_newest(&two, c);
    for (int64_t x = 0; x < n[0]; ++x) for (int64_t y = 0; y < n[1]; ++y) for (int64_t z = 0; z < n[2]; ++z) {
      torre_q_set(&one, c, x, y, z, at(c, x, y, z));
      torre_q_row(&two, row, x, y)[z] = at(c, x, y, z);
    }
    torre_q_ghosts(&two, c, row, 0, n[0], 0, n[1], 0, n[2]);
  }
  for (int64_t i = 0; i < torre_q_ELEMENTS; ++i) if (one.values[i] != two.values[i]) return 2;
  torre_q_run(&one, torre_q_STEPS);
  torre_q_run(&two, torre_q_STEPS);
  for (int64_t i = 0; i < torre_q_ELEMENTS; ++i) if (one.values[i] != two.values[i]) return 3;
  torre_q_free(&one);
  torre_q_free(&two);
  return 0;
}
";
    for sides in [
        "all: odd",
        "x: odd, y: even, z: periodic",
        "x: even, y: odd, z: even",
        "x: odd | even, y: even | odd, z: odd",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("rows.torre");
        std::fs::write(&source, ROWS.replace("SIDES", sides)).unwrap();
        succeed("build {0} --quiet -o {1}", &[&source, folder.path()]);
        let (error, success) = compiled(folder.path(), text, &["q.o"]);
        assert!(success, "{sides}: {error}");
        let status = Command::new(folder.path().join("main")).status().unwrap();
        assert!(status.success(), "{sides}: {status}");
    }
}

#[test]
fn unstable_steps_are_built_on_demand_alone() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("chains.torre");
    std::fs::write(&source, CHAINS).unwrap();
    let build = "build {0} --problem a --set dt=1.5 -o {1}";
    let refused = fail(1, build, &[&source, folder.path()]);
    assert!(refused.contains("E0815"), "{refused}");
    assert!(!folder.path().join("a.o").exists());
    succeed(
        &format!("{build} --allow-unstable"),
        &[&source, folder.path()],
    );
    assert!(folder.path().join("a.o").exists());
}

const FILES: &str = "
scheme s {
  axes x
  param dt = 0.1
  field u : scalar on cells
  step { u = 0.5 * u }
}
problem driven {
  scheme s
  domain 4
  boundary x: periodic
  region r on cells = file(\"a.npy\") > 0.5
  source u at (1) += sin(t)
  source u in r += 0.01 * t
  source u += file(\"a.npy\") * t
  steps 4
}
";

/// The calls in the comment at the head of a header are C, with the files that functions take.
#[test]
fn the_example_of_a_header_with_files_compiles() {
    if !has_llvm() || !has_cc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("driven.torre");
    std::fs::write(&source, FILES).unwrap();
    let array = npy_of_f32("(4,)", &[0.0, 0.25, 0.75, 1.0]);
    std::fs::write(folder.path().join("a.npy"), array).unwrap();
    succeed("build {0} --quiet -o {1}", &[&source, folder.path()]);
    let header = std::fs::read_to_string(folder.path().join("driven.h")).unwrap();
    let example = header.split("*/").next().unwrap();
    let calls: Vec<&str> = example
        .lines()
        .filter(|line| line.trim().ends_with(';') || line.contains("..."))
        .collect();
    assert_eq!(calls.len(), 5, "{example}");
    let calls = calls.join("\n");
    let calls = calls
        .replace("... torre", "(void)torre")
        .replace(" ...", ";");
    let text = format!(
        "#include \"driven.h\"\nint main(void) {{\n  static const double a[4];\n  const double *files[] = {{a}};\n  \
         const int64_t x = 0, y = 0, z = 1;\n{calls}\n  return 0;\n}}\n"
    );
    let (error, succeeded) = compiled(folder.path(), &text, &["driven.o"]);
    assert!(succeeded, "{text}{error}");
}

const STARTS: &str = "
scheme zeros {
  axes x
  param dt = 1
  field u : scalar on cells
  field w : scalar on cells
  step {
    w = 1 / u[-1]
    u = u
  }
}
problem mirrored { scheme zeros; domain 8; boundary x: pmc; steps 1 }

scheme turned {
  axes x
  param dt = 0.43299999999999994
  field q : scalar on cells levels 2
  step { q = q@prev }
}
problem timed { scheme turned; domain 4; boundary x: periodic; init q = tanh(abs(t)) + 0 * x; steps 1 }
";

/// Ghosts of values without start values are ghosts of zeros, and the start time goes through functions of the system's
/// library: a compiler may round them otherwise.
#[test]
fn a_built_program_starts_with_the_values_of_a_run() {
    if !has_llvm() || !has_cc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("starts.torre");
    std::fs::write(&source, STARTS).unwrap();
    for problem in ["mirrored", "timed"] {
        let build = format!("build {{0}} --problem {problem} --precision f64 --quiet -o {{1}}");
        succeed(&build, &[&source, folder.path()]);
    }
    let text = "#include \"mirrored.h\"
#include \"timed.h\"
int main(void) {
  torre_mirrored run;
  torre_timed other;
  volatile double time = 0.43299999999999994;
  double w, q;
  if (torre_mirrored_init(&run) || torre_timed_init(&other)) return 1;
  torre_mirrored_run(&run, 1);
  torre_timed_run(&other, 1);
  w = torre_mirrored_get(&run, torre_mirrored_w, 0, 0, 0);
  q = torre_timed_get(&other, torre_timed_q, 0, 0, 1);
  if (!(w < 0)) return 2;
  if (q != tanh(time)) return 3;
  torre_mirrored_free(&run);
  torre_timed_free(&other);
  return 0;
}
";
    let (error, success) = compiled(folder.path(), text, &["-O2", "mirrored.o", "timed.o"]);
    assert!(success, "{error}");
    let status = Command::new(folder.path().join("main")).status().unwrap();
    assert!(status.success(), "{status}");
}

/// The layout and the arithmetic of kernels are in a header, too, so an object of another build would compute other
/// values or write elsewhere.
#[test]
fn a_header_links_with_the_object_of_its_build_only() {
    if !has_llvm() || !has_cc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("chains.torre");
    std::fs::write(&source, CHAINS).unwrap();
    let builds = [
        ("one", ""),
        ("same", ""),
        ("double", "--precision f64"),
        ("wide", "--set domain=8x40"),
        ("brief", "--set dt=0.125"),
    ];
    for (name, options) in builds {
        let build = format!("build {{0}} --problem a --quiet {options} -o {{1}}");
        succeed(&build, &[&source, &folder.path().join(name)]);
    }
    let [one, same] = ["one", "same"].map(|name| files(&folder.path().join(name)));
    assert_same_files(&one, &same, "equal builds");
    let text = |header: &str, function: &str| {
        format!(
            "#include \"{header}/a.h\"
double {function}(void);
double {function}(void) {{
  torre_a run;
  if (torre_a_init(&run)) return -1;
  torre_a_set(&run, torre_a_p, 4, 0, 4, 1);
  torre_a_run(&run, 1);
  return (double)torre_a_get(&run, torre_a_p, 4, 0, 4);
}}\n"
        )
    };
    let main = |header| text(header, "value") + "int main(void) { return value() < 0; }\n";
    for (header, _) in builds {
        for (object, _) in builds {
            let object_file = format!("{object}/a.o");
            let (error, success) = compiled(folder.path(), &main(header), &[&object_file]);
            let equal =
                header == object || [header, object].iter().all(|n| ["one", "same"].contains(n));
            assert_eq!(success, equal, "{header} {object}: {error}");
            assert!(equal || error.contains("torre_a_"), "{error}");
        }
    }
    let both = "#include \"one/a.h\"\n#include \"same/a.h\"\nint main(void) { return 0; }\n";
    let (error, success) = compiled(folder.path(), both, &["one/a.o"]);
    assert!(success, "{error}");
    for other in ["double", "wide", "brief"] {
        let (error, success) = compiled(folder.path(), &both.replace("same", other), &["one/a.o"]);
        let words = "two different headers of a problem a";
        assert!(!success && error.contains(words), "{error}");
    }
    // Each build in a file of its own.
    std::fs::write(folder.path().join("other.c"), text("brief", "brief")).unwrap();
    let calls =
        "double brief(void);\nint main(void) { return !(value() < brief() && brief() < 1); }\n";
    let objects = ["other.c", "one/a.o", "brief/a.o"];
    let (error, success) = compiled(folder.path(), &(text("one", "value") + calls), &objects);
    assert!(success, "{error}");
    let status = Command::new(folder.path().join("main")).status().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_note_tells_of_a_header_named_like_one_of_c() {
    if !has_llvm() || !has_cc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("chains.torre");
    let built = folder.path().join("built");
    for (name, is_told) in [("string", true), ("Math", true), ("strung", false)] {
        let text = CHAINS.replace("problem a {", &format!("problem {name} {{"));
        std::fs::write(&source, text).unwrap();
        let command = format!("build {{0}} --problem {name} -o {{1}}");
        let output = run(&command, &[&source, &built]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let note = format!("C has a header `{name}.h`, too");
        assert_eq!(error.contains(&note), is_told, "{error}");
        assert_eq!(error.contains("-iquote"), is_told, "{error}");
    }
    let text = "#include \"string.h\"\nint main(void) { torre_string run; return torre_string_init(&run); }\n";
    let objects = ["-iquote", "built", "built/string.o"];
    let (error, success) = compiled(folder.path(), text, &objects);
    assert!(success, "{error}");
}

/// Clang knows other functions for powers of 2 and 10, and takes 256 brackets within each other.
#[test]
fn clang_makes_the_start_values_of_a_run() {
    if !has_llvm() || Command::new("clang").arg("--version").output().is_err() {
        println!("skipped: no clang");
        return;
    }
    let chain = |term: &str, sign: &str, count| vec![term; count].join(sign);
    let starts = [
        "2^(x / 1701)".to_owned(),
        "10^(x / 1701) + x^0.5".to_owned(),
        chain("exp(-(x - 0.25)^2)", " + ", 252),
        chain("(1 + 0.001 * x)", " * ", 250),
        format!("f(x) + {}", chain("sin(x)", " - ", 200)),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (n, start) in starts.iter().enumerate() {
        let source = folder.path().join(format!("starts{n}.torre"));
        let function = chain("cos(x)", " + ", 200);
        let text = format!(
            "def f(x) {{ {function} }}
scheme s {{ axes x; field u : scalar on cells; step {{ allow W0301; u = u }} }}
problem a {{ scheme s; domain 3000; boundary x: periodic; init u = {start}; source u at (3) += 0 * f(x); steps 1 }}\n"
        );
        std::fs::write(&source, text).unwrap();
        let out = folder.path().join(format!("out{n}"));
        succeed(
            "build {0} --precision f64 --quiet -o {1}",
            &[&source, folder.path()],
        );
        let run = "run {0} --precision f64 --quiet --save-final --out {1}";
        succeed(run, &[&source, &out]);
        let main = "#include \"a.h\"
#include <stdio.h>
int main(void) {
  torre_a run;
  FILE *out = fopen(\"values\", \"wb\");
  if (!out || torre_a_init(&run)) return 1;
  torre_a_run(&run, 1);
  fwrite(torre_a_row(&run, torre_a_newest(&run, torre_a_u), 0, 0), 8, 3000, out);
  torre_a_free(&run);
  return fclose(out);
}\n";
        let (error, success) = compiled_by("clang", folder.path(), main, &["-O2", "a.o"]);
        assert!(success, "{start}: {error}");
        let mut program = Command::new(folder.path().join("main"));
        let status = program.current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{status}");
        let found = std::fs::read(folder.path().join("values")).unwrap();
        let run = std::fs::read(out.join("fields/u.npy")).unwrap();
        assert!(found == npy_values(&run), "{start}");
    }
}

#[test]
fn coefficients_at_several_places_have_their_formulas_in_the_description() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("medium.torre");
    let text = "
scheme s {
  axes x, y
  coef b on cells = sin(0.4 * x) * cos(0.3 * y)
  field e : scalar on cells
  step { e += 0.1 * (b * d2(e, x) + b[-1, 0] * e[-1, 0]) }
}
problem medium { scheme s; domain 9 x 8; boundary all: periodic; steps 1 }
";
    std::fs::write(&source, text).unwrap();
    succeed(
        "build {0} --allow-unstable --quiet -o {1}",
        &[&source, folder.path()],
    );
    let text = std::fs::read_to_string(folder.path().join("medium.json")).unwrap();
    let description: serde_json::Value = serde_json::from_str(&text).unwrap();
    let coefficients = description["coefficients"].as_array().unwrap();
    let values: Vec<&str> = (coefficients.iter())
        .map(|c| c["value"].as_str().unwrap())
        .collect();
    assert_eq!(values.len(), 2, "{values:?}");
    for place in ["sin((0.4 * x))", "sin((0.4 * x[-1]))"] {
        let of_place = values.iter().filter(|value| value.contains(place));
        assert_eq!(of_place.count(), 1, "{values:?}");
    }
    let position = serde_json::json!([0.5, 0.0, 0.5]);
    assert!(coefficients.iter().all(|c| c["position"] == position));
}
