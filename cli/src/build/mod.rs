//! `torre build`: kernels for other programs: an object, a C header, a description in JSON.

mod arithmetic;
mod calls;
mod expr;
mod header;
mod names;
mod tables;

use crate::args;
use crate::codes;
use crate::failure::Failure;
use crate::input::{self, Input};
use crate::provenance::hex;
use crate::render::Voice;
use crate::report::domain;
use crate::stability::Subject;
use crate::write;
use header::Header;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use torre_compiler::backend::llvm::cpu::{Shape, emit};
use torre_compiler::backend::llvm::library::{self as llvm, Cpu, Library, Options, Target};
use torre_compiler::kernel::layerwise_kernels;
use torre_compiler::kernel::record_width;
use torre_compiler::lattice::PerAxis;
use torre_compiler::layout::Layout;
use torre_compiler::resolve::Resolved;
use torre_compiler::scheme::{Coef, CoefId, Scheme, StateId};
use torre_grammar::diag::Diagnostic;
use torre_runtime::files::LoadedFiles;
use torre_runtime::host::{StartValues, check_start_values};
use torre_runtime::program::{self, CompileError, TargetChoice};
use torre_runtime::simulation::SetupError;

/// The prefix of all names, in the IR too. Built ones go on with the problem's name, so that several fit into one
/// program.
const PREFIX: &str = "torre";

/// Bytes of the hash that marks a build.
const MARK: usize = 8;

/// Headers of C and of POSIX that programs or other headers include, without their endings.
const HEADERS_OF_C: &str = "aio alloca assert complex cpio ctype dirent dlfcn endian errno fcntl features fenv \
    float fmtmsg fnmatch ftw getopt glob grp iconv inttypes iso646 langinfo libgen limits locale malloc math \
    memory monetary mqueue ndbm netdb nl_types poll pthread pwd regex sched search semaphore setjmp signal spawn \
    stdalign stdarg stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string strings \
    syslog tar termios tgmath threads time trace uchar ulimit unistd utime utmpx values wait wchar wctype wordexp";

pub fn build(args: &args::Build, voice: &Voice) -> Result<(), Failure> {
    let input = Input::read_of_any_size(&args.subject, voice)?;
    let (scheme, problem) = (&input.resolved.scheme, &input.resolved.problem);
    if !problem.incidents.is_empty() {
        return Err(Diagnostic::error(
            codes::OPTIONS,
            format!(
                "`torre build` takes no incident fields, such as `{}`: Torre itself computes the wave before a step, \
                 and the faces of its box",
                problem.incidents[0].name
            ),
        )
        .hint("a source on the cells of a plane radiates into both directions from C, too; or use `torre run`")
        .into());
    }
    let name = &problem.name;
    let file = |extension: &str| args.output.join(format!("{name}.{extension}"));
    let [object_file, header_file, description_file] = ["o", "h", "json"].map(file);
    for written in [&object_file, &header_file, &description_file] {
        input::spare(written, &args.subject)?;
        write::spare_results(written)?;
    }
    check_start(args, &input, voice)?;
    let layout = Layout::new(scheme).map_err(SetupError::from)?;
    let set = layerwise_kernels(scheme, layout);
    let library = Library::open().map_err(CompileError::from)?;
    let (cpu, _) = program::target(library, &args.target)?;
    let target = match &args.target {
        TargetChoice::Host => &cpu.target.cpu,
        TargetChoice::Named(name) => name,
    };
    let mut header = Header {
        scheme,
        problem,
        tables: tables::tables(scheme, problem),
        set: &set,
        prefix: &format!("{PREFIX}_{name}"),
        components: names::of_components(scheme, &set),
        target,
        build: String::new(),
    };
    let ir = emit(scheme, &set, Shape::of(&cpu, scheme.precision));
    header.build = mark(&header, &ir, &cpu.target, library);
    let ir = ir.replace(&format!("@{PREFIX}_"), &format!("@{}_", header.symbols()));
    let object =
        llvm::compile(library, &ir, &cpu.target, &Options::CPU).map_err(CompileError::from)?;
    let description = describe(&header, &cpu, library);
    write::file(&object_file, object.bytes())?;
    write::file(&header_file, header.print().as_bytes())?;
    write::file(&description_file, format!("{description:#}\n").as_bytes())?;
    if is_header_of_c(name) {
        voice.note(format_args!(
            "note: C has a header `{name}.h`, too, which `-I {0}` hides: compile with `-iquote {0}`, or call the \
             problem otherwise",
            args.output.display(),
        ));
    }
    voice.note(format_args!(
        "{}: {name}.o, {name}.h and {name}.json for {target}",
        args.output.display(),
    ));
    Ok(())
}

/// Refuses an unstable step and start values that are not finite, as a run does. Where values of arrays cannot be read,
/// a note says that neither is known.
fn check_start(args: &args::Build, input: &Input, voice: &Voice) -> Result<(), Failure> {
    match LoadedFiles::load(&input.world, &input.resolved.scheme) {
        Ok(files) => {
            if let Some(warning) = Subject::new(input, &files).announce(voice, args.unstable)? {
                voice.show(&warning.into());
            }
            let Resolved {
                scheme, problem, ..
            } = &input.resolved;
            if check_start_values(scheme, problem, &files)? == StartValues::Unknown {
                voice.note(format_args!(
                    "{}: start values are not looked at: there are too many",
                    problem.name
                ));
            }
        }
        Err(error) => {
            let name = &input.resolved.problem.name;
            voice.note(format_args!(
                "{name}: stability and start values are not known: {error}"
            ));
        }
    }
    Ok(())
}

/// The mark of a build: the same for equal headers and objects, and another one for all others.
fn mark(header: &Header<'_>, ir: &str, target: &Target, library: &Library) -> String {
    let Target {
        triple,
        cpu,
        features,
    } = target;
    let compiler = format!("{triple} {cpu} {features} {}", library.version());
    let mut hash = Sha256::new();
    for text in [&header.print(), ir, &compiler] {
        hash.update(text);
        hash.update([0]);
    }
    hex(hash.finalize().into_iter().take(MARK))
}

/// Whether C or POSIX has a header of this name; some file systems take small and capital letters as equal.
fn is_header_of_c(name: &str) -> bool {
    HEADERS_OF_C
        .split_whitespace()
        .any(|header| header.eq_ignore_ascii_case(name))
}

fn list<T: Copy>(values: PerAxis<T>) -> Vec<T> {
    values.0.to_vec()
}

fn describe(header: &Header<'_>, cpu: &Cpu, library: &Library) -> Value {
    let Header {
        scheme,
        problem,
        set,
        ..
    } = header;
    let layout = &set.layout;
    json!({
        "torre": env!("CARGO_PKG_VERSION"),
        "scheme": scheme.name,
        "problem": problem.name,
        "build": header.build,
        "domain": domain(scheme),
        "steps": problem.steps,
        "precision": scheme.precision.to_string(),
        "dt": scheme.grid.dt,
        "spacing": list(scheme.grid.spacing),
        "target": header.target,
        "triple": cpu.target.triple,
        "vector_bits": cpu.vector_bits,
        "llvm": library.version().to_string(),
        "signature_in_zones": "void kernel(void *base, const int64_t *runs, int64_t count, int64_t lo, int64_t hi)",
        "numbers_of_a_run_in_zones": record_width(layout),
        "signature": "void kernel(void *base, const struct { int64_t offset, groups; } *runs, int64_t count, \
            int64_t lo, int64_t hi)",
        "layout": {
            "element_bytes": layout.element_bytes,
            "elements": layout.elements,
            "alignment": torre_compiler::layout::ALIGNMENT,
            "origin": layout.origin,
            "row_stride": layout.row_stride,
            "stride": list(layout.stride),
            "rows": layout.rows,
        },
        "components": components(header),
        "coefficients": coefficients(scheme, layout),
        "states": states(scheme, layout),
        "phases": scheme.phases(),
        "kernels": kernels(header),
    })
}

fn components(header: &Header<'_>) -> Vec<Value> {
    let Header { scheme, set, .. } = header;
    scheme
        .component_ids()
        .map(|id| {
            let c = scheme.component(id);
            json!({
                "name": c.name,
                "constant": format!("{}_{}", header.prefix, header.components[id.index()]),
                "position": list(c.position.map(|h| h.as_f64())),
                "time": c.time.as_f64(),
                "time_levels": c.time_levels,
                "extent": list(scheme.extent(id).map(|i| i.hi)),
                "first_row": set.layout.row(id, 0).0,
            })
        })
        .collect()
}

fn coefficients(scheme: &Scheme, layout: &Layout) -> Vec<Value> {
    scheme
        .coefs
        .iter()
        .enumerate()
        .map(|(i, coef)| {
            let id = CoefId(i as u32);
            let mut fields = match coef.only_axis {
                None => json!({"row": layout.coef_row(id).0}),
                Some(axis) => json!({
                    "axis": axis.index(),
                    "first": layout.axis_coef_element(axis, id, 0),
                    "stride": layout.axis_coefs[axis].stride,
                }),
            };
            fields["name"] = json!(coef.name);
            fields["position"] = json!(list(coef.position.map(|h| h.as_f64())));
            fields["value"] = json!(formula(scheme, coef));
            fields
        })
        .collect()
}

/// The expression of a coefficient, with the program's names of axes: `x[-1]` is the position a cell below.
fn formula(scheme: &Scheme, coef: &Coef) -> String {
    let grid = &scheme.grid;
    grid.present().fold(coef.value.to_string(), |text, axis| {
        text.replace(&format!("pos.{axis}"), grid.axis_name(axis))
    })
}

fn states(scheme: &Scheme, layout: &Layout) -> Vec<Value> {
    (scheme.states.iter().zip((0..).map(StateId)))
        .map(|(state, id)| {
            let own = &layout.zones[state.zone.index()];
            let boxes: Vec<Value> = (own.boxes.iter())
                .map(|b| {
                    let first = b.region.map(|range| range.lo);
                    json!({
                        "from": list(first),
                        "to": list(b.region.map(|range| range.hi)),
                        "first": layout.state_element(state.zone, id, first),
                    })
                })
                .collect();
            json!({
                "name": state.name,
                "position": list(state.position.map(|h| h.as_f64())),
                "zone": scheme.zones[state.zone.index()].name,
                "stride": [own.plane, own.group, 1],
                "boxes": boxes,
            })
        })
        .collect()
}

fn kernels(header: &Header<'_>) -> Vec<Value> {
    let Header { scheme, set, .. } = header;
    set.kernels
        .iter()
        .map(|kernel| {
            let targets: Vec<&str> = kernel
                .updates(scheme)
                .map(|u| scheme.component(u.target).name.as_str())
                .collect();
            json!({
                "symbol": header.symbol(kernel),
                "stage": kernel.stage.0,
                "phase": kernel.phase,
                "advances": targets,
                "zones": kernel.zones.iter().map(|zone| &scheme.zones[zone.index()].name).collect::<Vec<_>>(),
            })
        })
        .collect()
}
