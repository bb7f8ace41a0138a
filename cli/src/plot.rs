//! `torre plot`: the results of a run, drawn again; and how `torre run` draws them.

use crate::args::{self, PictureArgs};
use crate::codes;
use crate::failure::{Exit, Failure};
use crate::input::Input;
use crate::interrupt;
use crate::render::Voice;
use torre_compiler::lattice::Axis;
use torre_compiler::problem::Problem;
use torre_compiler::scheme::{Precision, Scheme};
use torre_grammar::diag::Diagnostic;
use torre_runtime::files::LoadedFiles;
use torre_runtime::output::claim::Claim;
use torre_runtime::output::picture::Scale;
use torre_runtime::run::owner::{Begun, Found, Owner};
use torre_runtime::run::{Outputs, Pictures, Range, VolumeFormat, Wanted, checkpoint};
use torre_runtime::simulation::Value;

pub fn plot(args: &args::Plot, voice: &Voice) -> Result<(), Failure> {
    interrupt::end_tidily();
    let input = Input::read_of_any_size(&args.subject, voice)?;
    match input.resolved.scheme.precision {
        Precision::F32 => draw::<f32>(args, voice, &input),
        Precision::F64 => draw::<f64>(args, voice, &input),
    }
}

fn draw<T: Value>(args: &args::Plot, voice: &Voice, input: &Input) -> Result<(), Failure> {
    let (scheme, problem) = (&input.resolved.scheme, &input.resolved.problem);
    let pictures = pictures(&args.pictures, scheme, problem)?;
    let folder = args.out.as_path();
    let nothing = || {
        let message = format!(
            "`{}` has no arrays of slices, volumes or spectra that could be drawn",
            folder.display()
        );
        Failure::new(Exit::Program, Diagnostic::error(codes::UNREADABLE, message))
    };
    if Owner::find(folder) == Found::Nothing {
        return Err(nothing());
    }
    let name = args.subject.file.file_name().unwrap_or_default();
    let claim = Claim::take(folder, &name.to_string_lossy())?;
    let files = LoadedFiles::load(&input.world, scheme)?;
    let wanted = Wanted {
        format: VolumeFormat::Npy,
        // Frames of step 0 are drawn where there are any.
        save_initial: true,
        save_final: false,
        keep_volumes: true,
        pictures,
    };
    let outputs = Outputs::create(folder, wanted)?.claimed(&claim);
    let identity = checkpoint::identity::<T>(scheme, problem, &files);
    let own = outputs.owner(&identity, problem);
    // Which outputs were written, and in which format, does not matter here.
    own.check(folder, Begun::Resumed).map_err(|error| {
        Diagnostic::error(codes::OTHER_RESULTS, error.to_string()).hint(
            "name the program, `--problem`, `--set` and `--precision` of the run that wrote them",
        )
    })?;
    match outputs.draw_again(scheme, problem, &files)? {
        0 => Err(nothing()),
        n => {
            let plural = if n == 1 { "" } else { "s" };
            voice.note(format_args!(
                "{n} picture{plural} in `{}`",
                folder.display()
            ));
            Ok(())
        }
    }
}

/// How pictures are to be drawn, as the command line says it.
pub fn pictures(
    args: &PictureArgs,
    scheme: &Scheme,
    problem: &Problem,
) -> Result<Pictures, Failure> {
    let names = names(scheme, problem);
    let mut ranges: Vec<Range> = Vec::new();
    for text in &args.range {
        let own = range(text, &names)?;
        if ranges.iter().any(|other| other.of == own.of) {
            let message = format!("`{}` has two ranges", own.of);
            let diagnostic = Diagnostic::error(codes::RANGE, message);
            let hint = "give one `--range` for each component and for each output";
            return Err(Failure::new(Exit::Usage, diagnostic.hint(hint)));
        }
        ranges.push(own);
    }
    Ok(Pictures {
        ranges,
        movies: args.movie,
        down: downward(args.down.as_deref(), scheme)?,
    })
}

/// The axis of a name, which is to point downward.
pub fn downward(name: Option<&str>, scheme: &Scheme) -> Result<Option<Axis>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let grid = &scheme.grid;
    match grid.present().find(|a| grid.axis_name(*a) == name) {
        Some(axis) => Ok(Some(axis)),
        None => Err(Failure::usage(format!("the scheme has no axis `{name}`"))),
    }
}

/// The names for which ranges can be given: outputs, and the fields that they show.
fn names(scheme: &Scheme, problem: &Problem) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for output in problem.frames() {
        names.push(output.quantity(scheme).to_owned());
        names.push(output.name.clone());
    }
    for (_, output, _) in problem.spectra() {
        names.push(format!("spectra/{}", output.quantity(scheme)));
        names.push(format!("spectra/{}", output.name));
    }
    for output in &problem.statics {
        names.push(output.name.split('-').next().unwrap_or("").to_owned());
        names.push(output.name.clone());
    }
    names.sort();
    names.dedup();
    names
}

/// `E.z=-1..1`.
fn range(text: &str, names: &[String]) -> Result<Range, Failure> {
    let wrong = |message: String, hint: String| {
        let diagnostic = Diagnostic::error(codes::RANGE, message).hint(hint);
        Err(Failure::new(Exit::Usage, diagnostic))
    };
    let parts = text.rsplit_once('=').and_then(|(name, range)| {
        let (low, high) = range.split_once("..")?;
        let number = |text: &str| text.trim().parse::<f64>().ok();
        Some((name.trim(), number(low)?, number(high)?))
    });
    let Some((of, low, high)) = parts else {
        return wrong(
            format!("`{text}` is no range of values"),
            "write `NAME=LOW..HIGH`, such as `E.z=-0.5..0.5`".to_owned(),
        );
    };
    let Some(scale) = Scale::between(low, high) else {
        return wrong(
            format!("the range of `{of}` does not go from a number up to a larger one"),
            "write the lower end first; the ends are of moderate size, and apart from each other"
                .to_owned(),
        );
    };
    if !names.iter().any(|name| name == of) {
        let known = match names {
            [] => "the problem has no slices, volumes or spectra, whose pictures have ranges"
                .to_owned(),
            _ => format!("there are {}", names.join(", ")),
        };
        return wrong(format!("no output is called `{of}` or shows it"), known);
    }
    let of = of.to_owned();
    Ok(Range { of, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_a_known_name_and_go_upward() {
        let names = ["E.z".to_owned(), "E.z-z64".to_owned()];
        let found = range(" E.z-z64 = -2e-3 .. 1", &names).unwrap();
        assert_eq!(found.of, "E.z-z64");
        assert_eq!((found.scale.low, found.scale.high), (-2e-3, 1.0));
        for wrong in [
            "E.z",
            "E.z=",
            "E.z=1",
            "E.z=1..",
            "E.z=a..b",
            "E.z=1..1",
            "E.z=2..1",
            "E.z=nan..1",
            "E.z=0..inf",
            "E.y=0..1",
            "=0..1",
            "",
        ] {
            let failure = range(wrong, &names).unwrap_err();
            assert_eq!(failure.diagnostics.0[0].code, codes::RANGE, "{wrong}");
        }
    }
}
