//! Names of a program in C, where they are not free: names of components could collide with each other and with
//! definitions of a header, and any name could end a comment.

use std::fmt::{Result, Write};
use torre_compiler::kernel::KernelSet;
use torre_compiler::scheme::Scheme;

/// Names that a header defines, behind its prefix.
const TAKEN: [&str; 33] = [
    "COMPONENTS",
    "ELEMENTS",
    "ORIGIN",
    "ROW_STRIDE",
    "STEPS",
    "STRIDE_X",
    "STRIDE_Y",
    "STRIDE_Z",
    "extent",
    "file",
    "first_row",
    "free",
    "get",
    "ghosts",
    "groups",
    "held",
    "init",
    "list",
    "live",
    "max",
    "min",
    "mul",
    "newest",
    "pow",
    "real",
    "row",
    "run",
    "set",
    "start",
    "step",
    "table",
    "time_levels",
    "updates",
];

/// Names that a header defines with a number behind them.
const NUMBERED: [&str; 2] = ["source", "table"];

/// The name of each component: `E_z` for `E.z`, with `_` behind it where that means something else already.
pub fn of_components(scheme: &Scheme, set: &KernelSet) -> Vec<String> {
    let mut taken: Vec<String> = TAKEN.map(str::to_owned).into();
    taken.extend(set.kernels.iter().map(ToString::to_string));
    let mut names = Vec::new();
    for component in &scheme.components {
        let mut name = component.name.replace('.', "_");
        while taken.contains(&name) || is_numbered(&name) {
            name.push('_');
        }
        taken.push(name.clone());
        names.push(name);
    }
    names
}

fn is_numbered(name: &str) -> bool {
    let ends = NUMBERED.iter().filter_map(|start| name.strip_prefix(start));
    ends.into_iter()
        .any(|end| !end.is_empty() && end.bytes().all(|b| b.is_ascii_digit()))
}

/// Text that cannot end a comment.
pub fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace('\n', " ")
}

/// Stops a compiler where the header of another problem has a name of this one: with components and functions of their
/// own, both `p` and `p_run` have `torre_p_run`. The header of another build of one problem has all of its names.
/// `more` are the names of components, kernels, sources and tables.
pub fn refuse_clashes(
    prefix: &str,
    problem: &str,
    more: impl IntoIterator<Item = String>,
    out: &mut String,
) -> Result {
    let mut macros = vec![format!("TORRE_NAME_{prefix}")];
    let defined = TAKEN.map(str::to_owned).into_iter().chain(more);
    macros.extend(defined.map(|name| format!("TORRE_NAME_{prefix}_{name}")));
    let tests: Vec<String> = macros.iter().map(|m| format!("defined {m}")).collect();
    writeln!(
        out,
        "/* The names of this header: one that has some of them, too, is refused. */\n\
         #ifdef TORRE_PROBLEM_{problem}\n\
         #error \"two different headers of a problem {problem}: include each build in a file of its own\"\n\
         #elif {}",
        tests.join(" || \\\n  ")
    )?;
    writeln!(
        out,
        "#error \"names of problem {problem} are those of another one: call one of them otherwise\"\n#endif"
    )?;
    writeln!(out, "#define TORRE_PROBLEM_{problem}")?;
    for name in macros {
        writeln!(out, "#define {name}")?;
    }
    writeln!(out)
}
