//! Tower programs of whole programs: the text of a file with directives in, the printed program out.
//!
//! A file in `towers/` begins with directives: `// towers of: SCHEDULE`, and perhaps `// z blocks of N warp`. With
//! `// refused: REASON` there is no program for that reason; without, the program is that of the snapshot with the
//! file's name.

use crate::support::*;
use std::path::PathBuf;
use torre_compiler::cone::cones;
use torre_compiler::ghost::reads_ghosts_of_zeros;
use torre_compiler::layout::Layout;
use torre_compiler::resolve::{Options, resolve};
use torre_compiler::schedule::{Frame, Schedule, Template, notation};
use torre_compiler::scheme::Scheme;
use torre_compiler::tile::lower;
use torre_compiler::tower::block::{self, Division};
use torre_compiler::tower::{Printed, TowerProgram, verify};
use torre_grammar::ast::ItemKind;
use torre_grammar::parse_schedule;
use torre_grammar::source::Source;

/// The value of a directive at the top of a file.
fn directive<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let comments = text.lines().map_while(|line| line.strip_prefix("// "));
    let mut values = comments.filter_map(|line| line.strip_prefix(name));
    values.next().map(str::trim)
}

/// The printed program of towers, or why there is none.
fn towers(scheme: &Scheme, schedule: &str, division: Division) -> Result<String, String> {
    let layout = Layout::for_gpu(scheme).expect("a small grid");
    let frame = Frame::new(scheme, &cones(scheme)).opened();
    let source = Source::new("schedule", schedule);
    let written = parse_schedule(&source).unwrap_or_else(|d| panic!("{}", show(&d)));
    let template = notation::read(&source, &written, scheme, &frame);
    let template = template.unwrap_or_else(|d| panic!("{}", show(&d)));
    let Template::Tiled(template) = template else {
        panic!("{schedule} is no tiling");
    };
    let (_, closed) = template.members(&frame).swap_remove(0);
    let Schedule::Tiled(tiling) = closed else {
        panic!("{schedule} has no faces");
    };
    let tiles = lower(scheme, &frame, &tiling).unwrap_or_else(|e| panic!("{schedule}: {e}"));
    let options = block::Options {
        division,
        ..block::Options::default()
    };
    let program = TowerProgram::new(scheme, &layout, &tiles, &[], options);
    let program = program.map_err(|reason| reason.to_string())?;
    verify(scheme, &layout, &program).expect("the program keeps its rules");
    let printed = Printed {
        scheme,
        layout: &layout,
        program: &program,
    };
    Ok(printed.to_string())
}

#[test]
fn programs_are_those_of_the_snapshots() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/resolve/towers");
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
        let text = std::fs::read_to_string(&path).expect("a text");
        let schedule = directive(&text, "towers of:").unwrap_or_else(|| panic!("{name}"));
        let warps = directive(&text, "z blocks of");
        let warps = warps.map(|n| n.trim_end_matches(" warp").parse().expect("a number"));
        let division = warps.map_or(Division::Shared(1), Division::ZBlocks);
        let found = towers(&resolved(&text).scheme, schedule, division);
        match (directive(&text, "refused:"), found) {
            (None, Ok(program)) => insta::assert_snapshot!(name, program),
            (expected, found) => {
                assert_eq!(found.err().as_deref(), expected, "{name}");
            }
        }
    }
}

/// Which zeros keep a scheme from towers depends on its reads and ends; schemes of the library have such reads at no
/// ends.
#[test]
fn no_scheme_of_the_library_reads_ghosts_of_zeros() {
    let ends = ["zero", "pec", "pmc | zero", "periodic"];
    let mut looked = 0;
    for (module, text) in MODULES {
        let source = Source::new(*module, *text);
        let ast = torre_grammar::parse(&source).unwrap_or_else(|d| panic!("{}", show(&d)));
        for item in ast.items {
            let ItemKind::Scheme(scheme) = item.kind else {
                continue;
            };
            let name = scheme.name.node;
            let sides = |x, y, z| format!("boundary x: {x}, y: {y}, z: {z}; ");
            let problem = |sides: &str| {
                format!(
                    "use std::{module}::{name}\nproblem p {{ scheme {name}; domain 16 x 16 x 16; {sides}steps 1 }}"
                )
            };
            let scheme_of = |text: &str| {
                let source = Source::new("test.torre", text);
                let ast = torre_grammar::parse(&source).unwrap_or_else(|d| panic!("{}", show(&d)));
                resolve(&TestWorld::default(), &source, &ast, &Options::default())
            };
            if scheme_of(&problem("")).is_err() {
                // It has fewer axes.
                continue;
            }
            for [x, y] in ends.iter().flat_map(|x| ends.map(|y| [x, y])) {
                for z in ends {
                    let found = scheme_of(&problem(&sides(x, y, z)));
                    let found = found.unwrap_or_else(|d| panic!("{name}: {}", show(&d)));
                    assert!(
                        !reads_ghosts_of_zeros(&found.scheme),
                        "{name}: {x}, {y}, {z}"
                    );
                    looked += 1;
                }
            }
        }
    }
    assert!(looked >= 5 * 64, "{looked}");
}
