//! Expected rates of an H200, beside rates that were measured there.

use super::DevicePlanner;
use crate::gpu::DeviceModel;
use crate::world::FileWorld;
use std::path::Path;
use torre_compiler::backend::gpu::Gpu;
use torre_compiler::cone::Rational;
use torre_compiler::driver::load;
use torre_compiler::patch::{CoefPlace, Shape};
use torre_compiler::problem::Problem;
use torre_compiler::resolve::Options;
use torre_compiler::schedule::template::Size;
use torre_compiler::schedule::{Schedule, Template, template};
use torre_compiler::scheme::{Precision, Scheme};
use torre_compiler::tower::block::{Division, WARP};
use torre_grammar::source::Source;

/// Measured rates may differ from the expected ones by this factor.
const WITHIN: f64 = 1.25;

/// A program with a name and a precision.
struct Case {
    scheme: Scheme,
    problem: Problem,
}

impl Case {
    fn planner<'a>(&'a self, model: &'a DeviceModel) -> DevicePlanner<'a> {
        DevicePlanner::new(&self.scheme, &self.problem, model).expect("it can be addressed")
    }

    /// The case of a line of [`LAYERWISE`], [`PYRAMIDS`], [`TOWERS`] or [`MEDIA`], and the words behind it.
    fn of(line: &str) -> (Case, Vec<&str>) {
        let mut words = line.split_whitespace();
        let [name, precision, cells] = [(); 3].map(|()| words.next().expect("a word"));
        let precision = match precision {
            "f32" => Precision::F32,
            _ => Precision::F64,
        };
        let (name, boundary) = name.split_once(',').unwrap_or((name, "zero"));
        let text = match name.split_once('>') {
            Some((medium, first)) => text_of_medium(medium, first, boundary),
            None => text_of(name, boundary),
        };
        let world = FileWorld::beside(Path::new("."));
        let source = Source::new("measured.torre", text);
        let options = Options {
            precision,
            overrides: vec![("domain".to_owned(), cells.to_owned())],
            ..Options::default()
        };
        let resolved = load(&world, &source, &options);
        let resolved = resolved.unwrap_or_else(|error| panic!("{line}: {error:?}"));
        let problem = Problem {
            steps: 1 << 20,
            ..Problem::default()
        };
        let case = Case {
            scheme: resolved.scheme,
            problem,
        };
        (case, words.collect())
    }
}

/// The text of a program, by the name of its scheme with the order behind it.
fn text_of(name: &str, boundary: &str) -> String {
    let (scheme, order) = name.split_at(name.len() - 1);
    let eps = "coef eps = 1.5 + sin(0.01 * x)";
    let rock = "coef rho = 2 + sin(x)\n  coef mu = 4 + sin(x)\n  coef lambda = 6 + sin(x)";
    let (used, axes, coefs) = match scheme {
        "te" => ("maxwell::maxwell_te", 2, eps),
        "open" => ("maxwell::maxwell_te", 2, ""),
        "tm" => ("maxwell::maxwell_tm", 2, eps),
        "fdtd" => ("maxwell::maxwell", 3, ""),
        "media" => ("maxwell::maxwell_media", 3, eps),
        "elastic" => ("elastic::elastic_2d", 2, rock),
        "rock" => ("elastic::elastic", 3, rock),
        "line" => ("wave::wave_1d", 1, ""),
        "wave" => ("wave::wave", 3, "coef c = 0.6 + x/9999"),
        "heat" => ("laplacian::laplacian", 2, ""),
        "cube" => ("laplacian::laplacian", 3, ""),
        other => panic!("no scheme {other}"),
    };
    let names = ["x", "x, y", "x, y, z"][axes - 1];
    let heat = format!(
        "scheme laplacian_heat {{
  axes {names}
  field T : scalar on nodes
  step {{
    allow W0301
    T += 0.1 * laplacian(T, {order})
  }}
}}
"
    );
    let (own, asked) = match used {
        "laplacian::laplacian" => (heat.as_str(), "laplacian_heat".to_owned()),
        "wave::wave_1d" => ("", "wave_1d".to_owned()),
        used => {
            let (_, name) = used.split_once("::").expect("a scheme in a file");
            ("", format!("{name} {{ order = {order} }}"))
        }
    };
    let domain = ["8", "8 x 8", "8 x 8 x 8"][axes - 1];
    let boundary = match boundary.contains(':') {
        true => boundary.to_owned(),
        false => format!("all: {boundary}"),
    };
    format!(
        "use std::{used}
{own}problem measured {{
  scheme {asked}
  domain {domain}
  boundary {boundary}
  {coefs}
  steps 1
}}
"
    )
}

/// The text of a program for waves in a medium where `x` is beyond `first`: the states of some kinds of media follow
/// fields there.
fn text_of_medium(medium: &str, first: &str, boundary: &str) -> String {
    let (states, components) = match medium {
        "lorentz" => (LORENTZ, "xyz"),
        "single" => (LORENTZ, "z"),
        "plain" => (
            "state J in body
  J@next = 0.9 * J + 0.1 * E",
            "xyz",
        ),
        "chain" => (
            "state J in body
  state P in body
  state Q in body
  state R in body
  J@next = 0.9 * J + 0.1 * P
  P@next = 0.8 * P + 0.1 * Q
  Q@next = 0.7 * Q + 0.1 * R
  R@next = 0.8 * R + 0.1 * E",
            "xyz",
        ),
        other => panic!("no medium {other}"),
    };
    let of = |name: char| match components.contains(name) {
        true => format!("medium(E.{name}, body, dt)"),
        false => "0".to_owned(),
    };
    let currents = ['x', 'y', 'z'].map(of).join(", ");
    format!(
        "use std::maxwell::maxwell42
use std::curl::curl
def medium(E, body, dt) {{
  {states}
  J@next
}}
scheme dispersive : maxwell42 {{
  region body = x > {first}
  step {{ E += dt * (curl(H, order) - [{currents}]) }}
}}
problem measured {{
  scheme dispersive
  domain 8 x 8 x 8
  boundary all: {boundary}
  steps 1
}}
"
    )
}

/// Bound charges: two states, and a quotient.
const LORENTZ: &str = "state J in body
  state P in body
  J@next = ((1 - 0.005*dt) * J + dt * (0.04 * E - 0.09 * P)) / (1 + 0.005*dt)
  P@next = P + dt * J@next";

/// Rates that differ from the expected ones by more than [`WITHIN`], of lines that end with the measured one in 1e9
/// cell-steps per second, and the root of the mean square of the logarithms.
fn compare(lines: &str, expected: impl Fn(&DeviceModel, &Case, &[&str]) -> f64) {
    compare_on(&h200(), lines, expected);
}

fn h200() -> DeviceModel {
    DeviceModel::usual(Gpu::named("sm_90a").expect("a GPU")).expect("a usual GPU")
}

/// An H100, whose copies run at 3.01 TB/s.
fn h100() -> DeviceModel {
    let mut model = h200();
    model.copy_rate = 3.012e12;
    model.facts.l2 = 50 << 20;
    model
}

fn compare_on(
    model: &DeviceModel,
    lines: &str,
    expected: impl Fn(&DeviceModel, &Case, &[&str]) -> f64,
) {
    let mut far = Vec::new();
    let (mut sum, mut count) = (0.0, 0.0);
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let (case, words) = Case::of(line);
        let (rate, words) = words.split_last().expect("a rate");
        let rate: f64 = rate.parse().expect("a number");
        let expected = expected(model, &case, words) / 1e9;
        let ratio = rate / expected;
        println!("{line}: expected {expected:.1}, {ratio:.2}");
        sum += ratio.ln().powi(2);
        count += 1.0;
        if !(1.0 / WITHIN..WITHIN).contains(&ratio) {
            far.push(format!("{line}: expected {expected:.1}, {ratio:.2}"));
        }
    }
    println!("root of the mean square {:.3}", f64::sqrt(sum / count));
    assert!(far.is_empty(), "{far:#?}");
}

/// Layerwise runs on several H200: scheme and order, ends, precision, and rates of some grids.
const LAYERWISE: &str = "
fdtd2,periodic f32 32x32x32 2.3 48x48x48 8.57 64x64x64 17.58 80x80x80 28.06 96x96x96 41.2 128x128x128 34.89
fdtd2,periodic f32 160x160x160 38.8 192x192x192 42.87 256x256x256 47.06
fdtd4,periodic f32 32x32x32 2.71 48x48x48 7.16 64x64x64 14.52 80x80x80 21.29 96x96x96 29.19 128x128x128 29.91
fdtd4,periodic f32 160x160x160 31.72 192x192x192 36.87 256x256x256 43.18
cube2,periodic f32 32x32x32 5.52 48x48x48 16.16 64x64x64 40.7 80x80x80 71.02 96x96x96 114.1 128x128x128 191.4
cube2,periodic f32 160x160x160 166.5 192x192x192 174.9 256x256x256 218.9
fdtd2 f32 32x32x32 5.26 64x64x64 29.65 96x96x96 63.38 128x128x128 45.94 192x192x192 48.67 256x256x256 50.8
fdtd4 f32 32x32x32 5 64x64x64 22.51 96x96x96 48.43 128x128x128 39.58 192x192x192 45.31 256x256x256 49.78
fdtd4 f32 512x512x256 53.3 512x512x512 53.7 1024x1024x200 46.2 768x768x768 52.8 1024x1024x500 52.0 1536x1536x256 51.2
fdtd2,pec f32 32x32x32 1.46 64x64x64 9.63 96x96x96 31.2 128x128x128 30.55 192x192x192 41.8 256x256x256 47.21
fdtd2,periodic f64 48x48x48 8.79 64x64x64 15.4 96x96x96 19.16 128x128x128 21.38 160x160x160 23.21 192x192x192 24.09
fdtd4,periodic f64 48x48x48 7.03 64x64x64 12.29 96x96x96 15.32 128x128x128 18.97 160x160x160 20.41
cube2,periodic f64 64x64x64 40.63 128x128x128 110.2 160x160x160 102.6 192x192x192 118.4
cube2 f32 64x64x64 63.97 128x128x128 350 160x160x160 366.1 192x192x192 338.9 256x256x256 385.7
heat2 f32 256x256 21.23 512x512 82.25 768x768 181.9 1024x1024 258.2 1536x1536 421.2 2048x2048 472.9 3072x3072 397.2
heat2 f32 4096x4096 407.1 8192x8192 436.59 16384x16384 456.08
te2 f32 256x256 10.65 512x512 41.61 768x768 68.94 1024x1024 98.92 1536x1536 99.22 2048x2048 86.87 3072x3072 84.76
te2 f32 4096x4096 85.3 8192x8192 90.02
te4 f32 256x256 11.09 512x512 40.03 768x768 63.41 1024x1024 86.36 1536x1536 91.37 2048x2048 81.29 3072x3072 81.12
te4 f32 8192x8192 88.17
tm2 f32 512x512 43.24 768x768 72.8 1024x1024 101.7 1536x1536 119.5 2048x2048 89.72 8192x8192 95.03
elastic4 f32 256x256 9.49 512x512 32.78 768x768 42.22 1024x1024 44.41 1536x1536 42.51 2048x2048 45.1 3072x3072 45.7
elastic4 f32 8192x8192 48.66
open2,cpml(10) f32 256x256 2.22 512x512 9.42 768x768 18.89 1024x1024 35.61 1536x1536 64.97 2048x2048 65.9
heat2 f64 256x256 22.11 512x512 82.79 768x768 148.8 1024x1024 188.2 1536x1536 226.2 2048x2048 210.1 3072x3072 205.4
heat2 f64 4096x4096 213.4
te2 f64 256x256 10.8 512x512 36.35 768x768 53.61 1024x1024 52.5 1536x1536 43.14 2048x2048 42.37 3072x3072 43
te2 f64 4096x4096 44.16 8192x8192 45.59
te4 f64 256x256 11.04 512x512 31.06 768x768 50.56 1024x1024 49.79 1536x1536 42.14 2048x2048 40.53 3072x3072 42.28
tm2 f64 512x512 35.56 768x768 58.55 1024x1024 65.7 1536x1536 45.83 2048x2048 44.61
elastic4 f64 256x256 8.13 512x512 20.65 768x768 23.8 1024x1024 20.93 1536x1536 22.49 2048x2048 22.8 3072x3072 23.5
open2,cpml(10) f64 256x256 2.06 512x512 8.39 768x768 17.69 1024x1024 32.1 1536x1536 34.53 2048x2048 37.33
line2 f32 1048576 260.1 4194304 452.5 16777216 323.3 33554432 336.5
line2 f64 4194304 154.1 16777216 169.2
wave8 f32 64x64x64 46.25 96x96x96 118.5 128x128x128 148.3 192x192x192 148.5 256x256x256 181.3 1024x1024x200 171
wave8 f32 1536x1536x128 197 1024x1024x512 202 1536x1536x256 194
fdtd4,x:periodic f32 48x48x48 8.27 64x64x64 15.4 96x96x96 37.08 128x128x128 33.58 192x192x192 41.86
fdtd4,y:periodic f32 48x48x48 8.26 64x64x64 16.04 96x96x96 37.26 128x128x128 33.24 192x192x192 41.64
fdtd4,z:periodic f32 48x48x48 11.06 64x64x64 21.91 96x96x96 37.13 128x128x128 35.33 192x192x192 39.99
fdtd4 f64 64x64x64 18.22 96x96x96 21.17 128x128x128 22.54 192x192x192 25.11 1024x1024x256 25.6 1536x1536x128 25.0
fdtd2,pec f64 64x64x64 10.59 128x128x128 19.71
heat4 f32 512x512 72.15 1024x1024 226.76 8192x8192 416.16
heat4 f64 512x512 57.61 1024x1024 170.83
fdtd4,pec f32 1536x1536x256 47.7
fdtd4,pec f64 1536x1536x128 23.8
media4 f32 1536x1536x256 45.3
media4 f64 1536x1536x128 21.7
wave2 f32 1024x1024x512 243
rock4 f32 1024x1024x128 27.7 1024x1024x256 27.5
";

#[test]
fn layerwise_runs_take_the_time_that_is_expected() {
    let mut lines = String::new();
    for line in LAYERWISE.lines() {
        let mut words = line.split_whitespace();
        let (name, precision) = (words.next(), words.next());
        let rates: Vec<&str> = words.collect();
        for rate in rates.chunks(2) {
            let words = name
                .into_iter()
                .chain(precision)
                .chain(rate.iter().copied());
            lines.extend(words.flat_map(|word| [word, " "]));
            lines.push('\n');
        }
    }
    compare(&lines, |model, case, _| {
        super::layerwise(&case.scheme, model).prediction.rate
    });
}

/// Pyramids: lines with the scheme, precision, cells, the shape as warps, lines and cells of a patch, blocks of a
/// multiprocessor, steps, `s` where coefficients lie in shared memory and `a` where rows have the same slots, and the
/// rate. Where tiles stay some are of an H100, whose multiprocessors are alike.
const PYRAMIDS: &str = include_str!("pyramids.txt");

#[test]
fn pyramids_take_the_time_that_is_expected() {
    compare(PYRAMIDS, |model, case, words| {
        // `s`: coefficients in shared memory; `a`: slots are used again.
        let (text, reuses_slots) = match words[0].strip_suffix('a') {
            Some(text) => (text, true),
            None => (words[0], false),
        };
        let (asked, place) = match text.strip_suffix('s') {
            Some(asked) => (asked, CoefPlace::Shared),
            None => (text, CoefPlace::Registers),
        };
        let numbers: Vec<i64> = asked
            .split(',')
            .map(|n| n.parse().expect("a number"))
            .collect();
        let [warps, lines, cells, blocks, height] = numbers[..] else {
            panic!("a shape");
        };
        let shape = Shape {
            blocks: blocks as u32,
            reuses_slots,
            ..Shape::of_lines(warps, [lines, cells], place)
        };
        let planner = case.planner(model);
        let (_, prediction) = planner.shaped(shape, height as u64).expect("pyramids");
        prediction.rate
    });
}

/// Tiles of elastic waves stay on 1024^2 cells, as rows have the same slots one after the other; other tiles that stay
/// have enough shared memory without, and larger grids do not stay.
#[test]
fn slots_are_used_again_where_tiles_stay_only_then() {
    let model = h200();
    let expected = [
        (512, [true, false]),
        (1024, [true, true]),
        (2048, [false; 2]),
    ];
    for (cells, [stays, again]) in expected {
        let (case, _) = Case::of(&format!("elastic4 f32 {cells}x{cells}"));
        let planner = case.planner(&model);
        let best = &planner.usual_patches()[0];
        let Schedule::Pyramids(pyramid) = &best.schedule else {
            panic!("pyramids");
        };
        let (plan, _) = planner.patch_plan(pyramid).expect("pyramids");
        let program = &plan.program;
        let found = [program.stays.is_some(), program.shape.reuses_slots];
        assert_eq!(found, [stays, again], "{cells}: {program}");
        let most = u64::from(model.gpu.shared_per_block);
        assert!(plan.shared_bytes <= most, "{}", plan.shared_bytes);
        // Slots of their own would not do.
        let shape = Shape {
            reuses_slots: false,
            ..plan.program.shape
        };
        let (other, _) = planner.shaped(shape, pyramid.height).expect("pyramids");
        assert_eq!(again, other.shared_bytes > most, "{}", other.shared_bytes);
    }
}

/// A tile of 52 cells a thread needs one register more than there are, and is a fifth faster than others.
#[test]
fn few_values_of_a_thread_may_be_kept_in_memory() {
    let (case, _) = Case::of("te4 f32 1024x1024");
    let model = h200();
    let planner = case.planner(&model);
    let Schedule::Pyramids(pyramid) = &planner.usual_patches()[0].schedule else {
        panic!("pyramids");
    };
    let (plan, _) = planner.patch_plan(pyramid).expect("pyramids");
    let shape = Shape::of_lines(8, [13, 4], CoefPlace::Shared);
    assert_eq!(plan.program.shape, shape, "{}", plan.program);
    assert_eq!([plan.pyramid.height, plan.registers], [4, 255]);
}

/// Around a ring the last base goes on beyond the ring's end, and other tiles need cells there of the bases below: rims
/// are wider by as much in all tiles. Bases of 74 lines would have rims of 39.
#[test]
fn bases_around_a_ring_make_rims_hardly_wider() {
    let (case, _) = Case::of("elastic4,periodic f32 1000x1008");
    let model = h200();
    let planner = case.planner(&model);
    let shape = Shape {
        reuses_slots: true,
        ..Shape::of_lines(8, [10, 4], CoefPlace::Shared)
    };
    let (plan, _) = planner.shaped(shape, 1).expect("pyramids");
    let [outer, _, inner] = plan.program.along.each_ref().map(|along| along.base);
    assert_eq!([outer, inner], [72, 112], "{}", plan.program);
    let staying = plan.program.stays.as_ref().expect("tiles that stay");
    let widest = staying.rims.iter().flat_map(|rim| rim[0]).max();
    assert!(widest.is_some_and(|cells| cells <= 8 + 3), "{widest:?}");
}

/// Towers: the same with their size and the height of time blocks.
const TOWERS: &str = "
fdtd2,periodic f32 64x64x64 2 16 23.0
fdtd2,periodic f32 80x80x80 2 32 40.9
fdtd2,periodic f32 80x80x80 2 16 34.6
fdtd2,periodic f32 80x80x80 1 32 16.3
fdtd2,periodic f32 96x96x96 3 32 58.1
fdtd2,periodic f32 96x96x96 2 32 57.0
fdtd2,periodic f32 96x96x96 2 16 47.1
fdtd2,pec f32 64x64x64 2 128 39.0
fdtd2,pec f32 64x64x64 1 128 16.5
fdtd2,pec f32 64x64x64 1 64 15.5
fdtd4 f32 128x128x128 2 32 85.6
fdtd4 f32 256x256x256 2 16 150.3
fdtd4 f32 512x512x256 2 16 151.7
fdtd4 f32 512x512x512 2 16 141
fdtd4 f32 768x768x768 2 16 134
fdtd4 f32 1024x1024x200 2 16 146.8
fdtd4 f32 1024x1024x256 2 16 156.7
fdtd4 f32 1024x1024x500 2 16 137.1
fdtd4 f32 1024x1024x1000 2 16 133.3
fdtd4 f32 1536x1536x256 2 16 157.8
fdtd4 f64 1536x1536x128 2 16 79.5
fdtd4 f64 1024x1024x256 2 16 69.6
fdtd4 f64 1024x1024x500 2 8 62
media4 f32 1536x1536x256 2 12 124.5
wave2 f32 1024x1024x512 3 64 1005
wave8 f32 1024x1024x200 1 32 264
wave8 f32 1536x1536x200 1 32 270
fdtd4,pec f32 1536x1536x256 2 8 121.9
fdtd4,pec f64 1536x1536x128 2 8 57.1
fdtd4 f32 1024x1024x256 2 1 54.02
fdtd4 f32 1024x1024x256 2 2 100.04
fdtd4 f32 1024x1024x256 2 3 122.16
fdtd4 f32 1024x1024x256 2 4 131.98
fdtd4 f32 512x512x256 2 1 53.84
fdtd4 f32 512x512x256 2 2 97.41
fdtd4 f32 512x512x256 2 4 127.26
fdtd4 f32 256x256x256 2 1 52.30
fdtd4 f32 256x256x256 2 2 94.33
fdtd4 f32 512x512x512 2 1 53.75
fdtd4 f32 512x512x512 2 2 89.67
fdtd4 f32 512x512x512 2 4 120.28
fdtd4 f64 1024x1024x128 2 1 27.85
fdtd4 f64 1024x1024x128 2 2 51.69
fdtd4 f64 1024x1024x128 2 4 67.60
fdtd2 f32 512x512x256 4 1 45.60
fdtd2 f32 512x512x256 4 2 84.08
media4 f32 1024x1024x256 2 1 44.33
media4 f32 1024x1024x256 2 2 83.20
media4 f32 1024x1024x256 2 4 106.93
fdtd4,pec f32 512x512x256 2 1 45.90
fdtd4,pec f32 512x512x256 2 2 79.65
fdtd4,pec f32 512x512x256 2 4 95.16
";

#[test]
fn towers_take_the_time_that_is_expected() {
    let unit = |planner: &DevicePlanner| template::tower_unit(&planner.planner.frame);
    compare(TOWERS, |model, case, words| {
        towers(model, case, unit, words)
    });
}

/// The expected rate of towers, by their size in some unit and the height of time blocks, and by how lines are divided.
fn towers(
    model: &DeviceModel,
    case: &Case,
    unit: impl Fn(&DevicePlanner) -> Rational,
    words: &[&str],
) -> f64 {
    let mut planner = case.planner(model);
    planner.division = words.get(2).map(|word| division(word));
    let [size, height] = [("D", words[0]), ("TH", words[1])]
        .map(|(name, n)| Size::of(name, &[n.parse().expect("a number")]));
    let family = Template::Tiled(template::towers(size, unit(&planner), height));
    let choices = planner.choices(&family).expect("towers");
    choices[0].prediction.rate
}

fn division(text: &str) -> Division {
    let (kind, number) = text.split_at(1);
    let number: u32 = number.parse().expect("a number");
    match kind {
        "z" => Division::ZBlocks(number / WARP as u32),
        _ => Division::Shared(number),
    }
}

/// Layers and media that many rows meet, on an H100: towers by their width in cells and the height of time blocks, or
/// layerwise.
const MEDIA: &str = "
lorentz>9999 f32 768x768x256 3 8 79.5
lorentz>9999 f32 768x768x256 4 8 106
lorentz>9999 f32 768x768x256 6 8 128
lorentz>384 f32 768x768x256 3 8 52.2
lorentz>384 f32 768x768x256 4 8 62.4
lorentz>384 f32 768x768x256 6 8 57.1
lorentz>-9 f32 768x768x256 3 8 35.7
lorentz>-9 f32 768x768x256 4 8 41.1
lorentz>-9 f32 768x768x256 6 8 34.4
lorentz>9999,cpml(8) f32 768x768x256 4 8 79.2
lorentz>720,cpml(8) f32 768x768x256 4 8 67.2
lorentz>576,cpml(8) f32 768x768x256 4 8 51.6
lorentz>384,cpml(8) f32 768x768x256 4 8 41.2
lorentz>-9,cpml(8) f32 768x768x256 4 8 33.3
lorentz>9999,cpml(8) f32 768x768x256 6 8 61.5
lorentz>-9,cpml(8) f32 768x768x256 6 8 25.4
lorentz>-9 f32 512x512x256 4 8 42.2
plain>-9 f32 512x512x256 4 8 66.5
chain>-9 f32 512x512x256 4 8 24.6
single>-9 f32 512x512x256 4 8 75.3
lorentz>-9 f32 512x512x256 6 8 35.2
plain>-9 f32 512x512x256 6 8 57.9
chain>-9 f32 512x512x256 6 8 21.4
single>-9 f32 512x512x256 6 8 70.0
lorentz>256,cpml(8) f32 512x512x256 3 8 34.4
lorentz>256,cpml(8) f32 512x512x256 4 8 38.0
lorentz>256,cpml(8) f32 512x512x256 6 8 20.8
lorentz>9999,cpml(8) f32 512x512x256 layerwise 27.8
lorentz>256,cpml(8) f32 512x512x256 layerwise 18.1
lorentz>-9,cpml(8) f32 512x512x256 layerwise 13.4
";

/// The same on an H200.
const LARGE_MEDIA: &str = "
lorentz>384,cpml(8) f32 768x768x256 3 8 39.4
lorentz>384,cpml(8) f32 768x768x256 4 8 45.3
lorentz>384,cpml(8) f32 768x768x256 6 8 30.1
lorentz>384,cpml(8) f64 768x768x256 3 8 21.7
lorentz>384,cpml(8) f64 768x768x256 4 8 21.3
lorentz>9999,cpml(8) f32 768x768x256 4 8 85.1
fdtd4,cpml(10) f32 768x768x768 4 8 90.7
fdtd4,cpml(10) f32 512x512x512 4 8 69.9
fdtd4,cpml(10) f32 512x512x512 6 8 61.6
fdtd4,cpml(10) f32 256x256x256 4 8 65.7
fdtd4,cpml(10) f32 256x256x256 6 8 46.4
fdtd4,cpml(10) f64 768x768x768 4 8 41.3
lorentz>9999,cpml(8) f32 768x768x256 layerwise 40.2
lorentz>384,cpml(8) f32 768x768x256 layerwise 25.4
lorentz>384,cpml(8) f64 768x768x256 layerwise 13.7
fdtd4,cpml(10) f32 768x768x768 layerwise 41.3
fdtd4,cpml(10) f32 512x512x512 layerwise 38.0
fdtd4,cpml(10) f64 768x768x768 layerwise 21.8
fdtd2,cpml(10) f32 768x768x768 layerwise 45.5
";

/// Towers whose lines are divided in some way, on an H200: their width in cells and the height of time blocks, then
/// values of z blocks (`z`) or blocks of a cluster (`s`).
const DIVIDED: &str = include_str!("divided.txt");

#[test]
fn divided_lines_take_the_time_that_is_expected() {
    compare(DIVIDED, |model, case, words| {
        towers(model, case, |_| Rational::whole(1), words)
    });
}

#[test]
fn media_take_the_time_that_is_expected() {
    let rate = |model: &DeviceModel, case: &Case, words: &[&str]| match words[0] {
        "layerwise" => super::layerwise(&case.scheme, model).prediction.rate,
        _ => towers(model, case, |_| Rational::whole(1), words),
    };
    compare_on(&h100(), MEDIA, rate);
    compare_on(&h200(), LARGE_MEDIA, rate);
}
