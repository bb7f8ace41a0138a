//! Pictures of runs: planes and lines, one range for all frames, outlines, animations, and the picture of a set-up.

use crate::support::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use torre_compiler::driver::load;
use torre_compiler::lattice::PerAxis;
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::scheme::FileId;
use torre_compiler::statics::Files;
use torre_grammar::source::Source;
use torre_runtime::output::claim::{Claim, LOCK};
use torre_runtime::run::{Outputs, Pictures, VolumeFormat, Wanted};
use torre_runtime::world::FileWorld;

/// Halves in each step; a ramp along x, steeper in a box of another medium.
const DECAY: &str = "
scheme decay {
  axes x, y
  coef k on cells = 1
  field T : scalar on cells
  step { T -= 0.5 * k * T }
}
problem cooling {
  scheme decay
  domain 12 x 6
  region box = x > 2 and x < 4
  coef   k = if x < 8 then 1 else 0.9
  init   T = x + 0.5
  probe  T at (3, 2) as near
  output volume T every 1
  output slice T y = 3 every 2
  output slice k y = 3
  steps  4
}
";

fn program(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("cooling.torre");
    std::fs::write(&path, text).unwrap();
    path
}

type Rgb = [u8; 3];

const INK: Rgb = [38, 40, 46];

/// A picture that was read back.
struct Picture {
    width: usize,
    height: usize,
    /// Of one frame, or of each frame of an animation.
    frames: Vec<Vec<u8>>,
}

impl Picture {
    fn read(bytes: &[u8]) -> Self {
        let decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        let mut reader = decoder.read_info().unwrap();
        let animation = reader.info().animation_control();
        let count = animation.map_or(1, |a| a.num_frames);
        let mut frames = Vec::new();
        for _ in 0..count {
            let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut bytes).unwrap();
            frames.push(bytes);
        }
        Self {
            width: reader.info().width as usize,
            height: reader.info().height as usize,
            frames,
        }
    }

    fn pixel(&self, x: usize, y: usize) -> Rgb {
        let at = 3 * (y * self.width + x);
        self.frames[0][at..at + 3].try_into().unwrap()
    }

    /// The corner and the sides of the first rectangle that a frame surrounds.
    fn plane(&self) -> [usize; 4] {
        for y in 0..self.height {
            let dark = |x: usize| self.pixel(x, y) == INK;
            let Some(left) = (0..self.width).find(|&x| dark(x)) else {
                continue;
            };
            let width = (left..self.width).take_while(|&x| dark(x)).count();
            if width > 60 {
                let height = (y..self.height)
                    .take_while(|&y| self.pixel(left, y) == INK)
                    .count();
                return [left + 1, y + 1, width - 2, height - 2];
            }
        }
        panic!("no plane");
    }

    /// The colour in the middle of a cell.
    fn cell(&self, [x, y]: [usize; 2], [nx, ny]: [usize; 2]) -> Rgb {
        let [left, top, width, height] = self.plane();
        let (px, py) = (width / nx, height / ny);
        self.pixel(left + x * px + px / 2, top + (ny - 1 - y) * py + py / 2)
    }

    fn colours(&self) -> BTreeSet<Rgb> {
        let pixels = self.frames[0].chunks_exact(3);
        pixels.map(|p| p.try_into().unwrap()).collect()
    }
}

#[test]
fn planes_and_lines_have_pictures_with_one_range() {
    let folder = tempfile::tempdir().unwrap();
    let text = DECAY.replace("coef   k = if x < 8 then 1 else 0.9\n", "coef   k = 1\n");
    let (source, out) = (program(folder.path(), &text), folder.path().join("out"));
    succeed(
        "run {0} --backend interp --quiet --out {1}",
        &[&source, &out],
    );
    let found = files(&out);
    let pictures: Vec<&str> = found
        .keys()
        .filter(|name| name.ends_with("png"))
        .map(String::as_str)
        .collect();
    let expected = [
        "probes.png",
        "slices/T-y3-00000002.png",
        "slices/T-y3-00000004.png",
        "slices/T-y3.png",
        "slices/k-y3-00000000.png",
        "volumes/T-00000001.png",
        "volumes/T-00000002.png",
        "volumes/T-00000003.png",
        "volumes/T-00000004.png",
    ];
    assert_eq!(pictures, expected);
    // The values of cell x are (x + 1) / 2^step, so equal ones are in cell 2 x + 1 one step later.
    let picture = |step: u64| Picture::read(&found[&format!("volumes/T-{step:08}.png")]);
    let (first, second) = (picture(1), picture(2));
    let cells = [12, 6];
    let mut seen = BTreeSet::new();
    for (x, y) in [(0, 0), (1, 5), (2, 3), (3, 2), (4, 1), (5, 4)] {
        let colour = first.cell([x, y], cells);
        assert_eq!(colour, second.cell([2 * x + 1, y], cells), "{x}");
        seen.insert(colour);
    }
    assert_eq!(seen.len(), 6);
    assert_ne!(first.cell([11, 0], cells), second.cell([11, 0], cells));
}

#[test]
fn media_and_regions_have_outlines() {
    let folder = tempfile::tempdir().unwrap();
    let picture = |text: &str, name: &str| {
        let (source, out) = (program(folder.path(), text), folder.path().join(name));
        let options = "run {0} --backend interp --quiet --range T=0..12 --out {1}";
        succeed(options, &[&source, &out]);
        Picture::read(&files(&out)["volumes/T-00000001.png"])
    };
    let plain = DECAY
        .replace("if x < 8 then 1 else 0.9", "1")
        .replace("x > 2 and x < 4", "nowhere");
    let (with, without) = (picture(DECAY, "with"), picture(&plain, "without"));
    let [left, top, width, height] = with.plane();
    assert_eq!(with.plane(), without.plane());
    // Columns of pixels at the same height that differ, where both have the same values.
    let line = |y: usize| -> Vec<usize> {
        let row = top + y;
        let own = |x: &usize| with.pixel(left + x, row) != without.pixel(left + x, row);
        (0..width * 2 / 3).filter(own).collect()
    };
    let cell = width / 12;
    // The region has the cells 2 and 3.
    assert_eq!(line(height / 2 + 3), [2 * cell, 4 * cell]);
    assert_eq!(line(5), line(height - 5));
    // In the column after it begins the other medium.
    let border = left + 8 * cell;
    assert_ne!(with.pixel(border, top + 9), without.pixel(border, top + 9));
}

#[test]
fn ranges_and_animations_come_from_a_run_or_later() {
    let folder = tempfile::tempdir().unwrap();
    let source = program(folder.path(), DECAY);
    let [at_once, later] = ["at-once", "later"].map(|name| folder.path().join(name));
    let how = "--movie --range T=-3..9 --range T-y3=0..20";
    let run = "run {0} --backend interp --quiet --save-initial";
    succeed(&format!("{run} {how} --out {{1}}"), &[&source, &at_once]);
    succeed(&format!("{run} --out {{1}}"), &[&source, &later]);
    let before = results(&later);
    assert!(!before.contains_key("volumes/T.apng"));
    succeed(
        &format!("plot {{0}} --quiet --out {{1}} {how}"),
        &[&source, &later],
    );
    assert_same_files(&results(&at_once), &results(&later), "drawn later");
    let found = files(&later);
    let still = |step: u64| Picture::read(&found[&format!("volumes/T-{step:08}.png")]);
    let movie = Picture::read(&found["volumes/T.apng"]);
    assert_eq!(movie.frames.len(), 5);
    for (step, frame) in movie.frames.iter().enumerate() {
        let still = still(step as u64);
        let [x, y, ..] = still.plane();
        let bar = 3 * (y * movie.width + x)..;
        assert!(movie.width >= still.width && movie.height == still.height);
        let row = 3 * (y * still.width + x)..;
        assert_eq!(frame[bar][..60], still.frames[0][row][..60], "{step}");
    }
    assert_eq!(Picture::read(&found["slices/T-y3.apng"]).frames.len(), 3);
    // Both signs in one measure: 0 is white, and nothing is as blue as 9 is red.
    let colours = still(4).colours();
    assert!(!colours.contains(&[0, 190, 90]));
    // As it was, with the range of the values.
    succeed("plot {0} --quiet --out {1}", &[&source, &later]);
    let again = results(&later);
    for (name, bytes) in before {
        assert!(again[&name] == bytes, "{name}");
    }
}

/// As stores do: all frames in the folder, also of the runs before, which had other steps.
#[test]
fn animations_have_the_frames_of_the_runs_before() {
    let folder = tempfile::tempdir().unwrap();
    let source = program(folder.path(), DECAY);
    let path = |name: &str| folder.path().join(name);
    let (out, state, plotted) = (path("out"), path("state"), path("plotted"));
    let run = "run {0} --backend cranelift --quiet --out {1} --range T-y3=0..20";
    let first = format!("{run} --save-initial --set steps=2 --checkpoint {{2}}");
    succeed(&first, &[&source, &out, &state]);
    succeed(&first, &[&source, &plotted, &state]);
    // The frames of the slice are 0 and 2, and then 3 and 4; those of the volume are 0, 1, 2, and 4.
    let other = DECAY.replace("T every 1", "T every 2");
    let other = program(
        folder.path(),
        &other.replace("y = 3 every 2", "y = 3 every 1"),
    );
    let resume = format!("{run} --resume {{2}}");
    succeed(&format!("{resume} --movie"), &[&other, &out, &state]);
    let found = files(&out);
    for (name, frames) in [("volumes/T.apng", 4), ("slices/T-y3.apng", 4)] {
        assert_eq!(Picture::read(&found[name]).frames.len(), frames, "{name}");
    }
    // Rows of the steps 0 to 4; at step 1 there is the frame before it.
    let rows = Picture::read(&found["slices/T-y3.png"]);
    let row = |y: usize| [1, 3, 5, 8].map(|x| rows.cell([x, y], [12, 5]));
    assert_eq!(row(0), row(1));
    let all: BTreeSet<[Rgb; 4]> = (0..5).map(row).collect();
    assert_eq!(all.len(), 4);
    // The same as drawn later.
    succeed(&resume, &[&other, &plotted, &state]);
    let plot = "plot {0} --quiet --out {1} --movie --range T-y3=0..20";
    succeed(plot, &[&other, &plotted]);
    assert_same_files(&results(&out), &results(&plotted), "drawn later");
}

#[test]
fn wrong_ranges_and_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = program(folder.path(), DECAY);
    let out = folder.path().join("out");
    for wrong in ["T=1..0", "T=0..inf", "T", "T=0-1", "u=0..1", "T=0..0"] {
        for command in ["run {0} --backend interp", "plot {0}"] {
            let arguments = format!("{command} --out {{1}} --range {wrong}");
            let error = fail(2, &arguments, &[&source, &out]);
            assert!(error.contains("E0820"), "{wrong}: {error}");
            assert!(
                wrong != "u=0..1" || error.contains("T, T-y3, k, k-y3"),
                "{error}"
            );
        }
        assert!(!out.join("volumes").exists());
    }
    for twice in [
        "--range T=0..1 --range T=0..2",
        "--range T-y3=0..1 --range T=0..1 --range T-y3=0..1",
    ] {
        let arguments = format!("run {{0}} --backend interp --out {{1}} {twice}");
        let error = fail(2, &arguments, &[&source, &out]);
        assert!(
            error.contains("E0820") && error.contains("two ranges"),
            "{error}"
        );
    }
    fail(2, "run {0} --movie", &[&source]);
    let error = fail(2, "plot {0} --out {1} --down w", &[&source, &out]);
    assert!(error.contains("no axis `w`"), "{error}");
    let nowhere = folder.path().join("nowhere");
    let error = fail(1, "plot {0} --out {1}", &[&source, &nowhere]);
    assert!(error.contains("E0801") && !nowhere.exists(), "{error}");
    succeed(
        "run {0} --backend interp --quiet --out {1}",
        &[&source, &out],
    );
    let other = folder.path().join("other.torre");
    std::fs::write(&other, DECAY.replace("0.5 * k", "0.4 * k")).unwrap();
    let error = fail(1, "plot {0} --out {1}", &[&other, &out]);
    assert!(
        error.contains("E0812") && !error.contains("--overwrite"),
        "{error}"
    );
}

/// Files of a plot that loses its lock once it has drawn a picture.
struct Removing {
    drawn: PathBuf,
    lock: PathBuf,
}

impl Files for Removing {
    fn value(&self, _: FileId, _: PerAxis<i64>) -> f64 {
        if std::fs::metadata(&self.drawn).unwrap().len() > 0 {
            _ = std::fs::remove_file(&self.lock);
        }
        1.0
    }
}

/// Another run may have the folder then.
#[test]
fn a_plot_whose_lock_is_removed_draws_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("k.npy"), npy_of_f32("(12, 6)", &[1.0; 72])).unwrap();
    let text = DECAY
        .replace("if x < 8 then 1 else 0.9", "file(\"k.npy\")")
        .replace("slice k y = 3", "slice k x = 2\n  output slice k y = 3");
    let (source, out) = (program(folder.path(), &text), path("out"));
    succeed(
        "run {0} --backend interp --quiet --out {1}",
        &[&source, &out],
    );
    let pictures = ["k-x2-00000000", "k-y3-00000000", "T-y3"];
    let [first, others @ ..] = pictures.map(|name| out.join(format!("slices/{name}.png")));
    for picture in others.iter().chain([&first]) {
        assert!(picture.exists(), "{}", picture.display());
        std::fs::write(picture, "").unwrap();
    }
    let text = std::fs::read_to_string(&source).unwrap();
    let resolved = load(
        &FileWorld::beside(&source),
        &Source::new("p.torre", text),
        &Options::default(),
    );
    let Resolved {
        scheme, problem, ..
    } = resolved.unwrap();
    let claim = Claim::take(&out, "p.torre").unwrap();
    let wanted = Wanted {
        format: VolumeFormat::Npy,
        save_initial: true,
        save_final: false,
        keep_volumes: true,
        pictures: Pictures::default(),
    };
    let outputs = Outputs::create(&out, wanted).unwrap().claimed(&claim);
    let files = Removing {
        drawn: first.clone(),
        lock: out.join(LOCK),
    };
    let error = outputs.draw_again(&scheme, &problem, &files).unwrap_err();
    assert!(error.to_string().contains("removed"), "{error}");
    let length = |picture: &PathBuf| std::fs::metadata(picture).unwrap().len();
    assert!(length(&first) > 0);
    assert!(others.iter().all(|picture| length(picture) == 0));
}

#[test]
fn a_set_up_has_a_picture() {
    const SOURCE: Rgb = [213, 94, 0];
    const PROBE: Rgb = [0, 114, 178];
    const OUTPUT: Rgb = [0, 158, 115];
    let folder = tempfile::tempdir().unwrap();
    let drawn = |text: &str| {
        let source = program(folder.path(), text);
        let picture = folder.path().join("setup.png");
        succeed("check {0} --quiet --picture {1}", &[&source, &picture]);
        Picture::read(&std::fs::read(&picture).unwrap())
    };
    let plane = drawn(DECAY);
    let colours = plane.colours();
    assert!(colours.contains(&PROBE) && colours.contains(&OUTPUT));
    assert!(!colours.contains(&SOURCE));
    // The media are told apart by colour, and the region by a line within one of them.
    // Thick lines at the ends cover the frame.
    let [left, top, width, _] = plane.plane();
    let row = top + 20;
    let at = |cell: usize| plane.pixel(left + cell * width / 12 + width / 40, row);
    assert!(at(0) == at(3) && at(3) == at(6) && at(9) == at(11) && at(6) != at(9));
    let sources = DECAY.replace(
        "  probe  T",
        "  source T in x = 1..4, y = 1..3 += t\n  source T where x > 9 += t\n  probe T",
    );
    let with = drawn(&sources);
    assert!(with.colours().contains(&SOURCE));
    let line = "
use std::wave::wave
problem line {
  scheme wave
  domain 40
  source u at (9) += t
  probe u at (20)
  steps 2
}
";
    let line = drawn(line);
    assert!(line.colours().contains(&SOURCE) && line.colours().contains(&PROBE));
    let cube = "
use std::wave::wave
problem cube {
  scheme wave
  domain 20 x 16 x 12
  boundary all: periodic
  source u at (9, 8, 6) += t
  output slice u z = 3 every 1
  steps 2
}
";
    let cube = drawn(cube);
    let colours = cube.colours();
    assert!(colours.contains(&SOURCE) && colours.contains(&OUTPUT));
    // Three planes side by side.
    assert!(cube.width > 2 * cube.height);
    // A problem that has an error has no picture.
    let source = program(folder.path(), &DECAY.replace("x + 0.5", "x + q"));
    let picture = folder.path().join("none.png");
    fail(1, "check {0} --picture {1}", &[&source, &picture]);
    assert!(!picture.exists());
}
