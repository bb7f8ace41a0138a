//! The pictures of the book.

use super::*;
use torre_compiler::draw::{
    Cut, Footprint, Overlap, Section, Solid, Subject, footprint, section, solid,
};
use torre_compiler::layout::Layout;
use torre_compiler::patch::{CoefPlace, PatchProgram, Shape, picture};
use torre_compiler::schedule::Pyramid;
use torre_compiler::tile::PyramidProgram;

fn cut(cones: &Cones, form: [i32; 3], pitch: i64) -> Cut {
    Cut {
        face: Face::fitting(cones, PerAxis(form)),
        pitch: Rational::whole(pitch),
        leads: Vec::new(),
    }
}

/// Every picture of the chapter on cones, by file name.
fn pictures() -> Vec<(&'static str, String)> {
    let maxwell = maxwell(4, Boundary::Zero);
    let mut wave = wave([false, false, true], 2);
    wave.grid.axes[Axis::INNER] = Some("x".to_string());
    let ours = cones(&maxwell);
    let of_wave = cones(&wave);
    let towers = vec![cut(&ours, [1, 1, 0], 6), cut(&ours, [1, -1, 0], 6)];
    let view = |component: u32, axis: Axis, steps: u32, later: u32, cuts: Vec<Cut>| Section {
        component: ComponentId(component),
        axis,
        steps,
        later,
        cuts,
        overlap: None,
        whole: false,
        stressed: None,
    };
    let (x, y, z) = (Axis::OUTER, Axis::MIDDLE, Axis::INNER);
    let diamonds = vec![cut(&of_wave, [0, 0, 1], 8), cut(&of_wave, [0, 0, -1], 8)];
    // Time blocks of 4 steps.
    let time_block = Cut {
        face: Face {
            form: PerAxis::splat(0),
            slope: -Rational::ONE,
        },
        pitch: Rational::whole(4),
        leads: Vec::new(),
    };
    let skewed = vec![cut(&of_wave, [0, 0, 1], 6), time_block];
    let base = PerAxis([None, None, Some(6)]);
    let program = PyramidProgram::new(&wave, &Pyramid { height: 4, base }).expect("a small size");
    let pyramids = Section {
        overlap: Some(Overlap {
            base: 6,
            stages: program.profile(&wave, z),
        }),
        whole: true,
        ..view(0, z, 8, 1, vec![])
    };
    let boxes = Section {
        overlap: Some(Overlap {
            base: 6,
            stages: vec![[0; 2]],
        }),
        whole: true,
        ..view(0, z, 5, 1, vec![])
    };
    let skewed = Section {
        whole: true,
        ..view(0, z, 8, 1, skewed)
    };
    let cone = Solid {
        axes: [x, y],
        subject: Subject::Cone {
            component: ComponentId(2),
            steps: 3,
        },
    };
    let column = Solid {
        axes: [x, y],
        subject: Subject::Towers {
            cuts: towers.clone(),
            tiles: vec![
                vec![0, 0],
                vec![-1, 1],
                vec![1, -1],
                vec![-1, 0],
                vec![0, -1],
            ],
            stages: 0..8,
        },
    };
    let panels = Footprint {
        axes: [x, y],
        cuts: towers.clone(),
        tile: vec![0, 0],
        stages: 0..4,
    };
    vec![
        (
            "cone-maxwell42.svg",
            section(&maxwell, &ours, &view(2, x, 3, 0, vec![])),
        ),
        (
            "cone-towers.svg",
            section(&maxwell, &ours, &view(2, x, 4, 2, towers)),
        ),
        (
            "cone-wave.svg",
            section(&wave, &of_wave, &view(0, z, 7, 4, diamonds)),
        ),
        ("tiles-skewed.svg", section(&wave, &of_wave, &skewed)),
        ("tiles-pyramids.svg", section(&wave, &of_wave, &pyramids)),
        ("tiles-boxes.svg", section(&wave, &of_wave, &boxes)),
        ("tower-footprint.svg", footprint(&maxwell, &panels)),
        ("cone-solid.svg", solid(&maxwell, &ours, &cone)),
        ("tower-solid.svg", solid(&maxwell, &ours, &column)),
        ("patch-tile.svg", patches()),
    ]
}

/// The tile of a wave with two axes on a GPU.
fn patches() -> String {
    let mut scheme = wave([true, false, true], 2);
    for (axis, name) in [(Axis::OUTER, "x"), (Axis::INNER, "y")] {
        scheme.grid.axes[axis] = Some(name.to_string());
        scheme.grid.cells[axis] = 1024;
    }
    let layout = Layout::for_gpu(&scheme).expect("a small scheme");
    let shape = Shape {
        blocks: 2,
        ..Shape::of_lines(8, [8, 4], CoefPlace::Registers)
    };
    let pyramid = Pyramid {
        height: 8,
        base: PerAxis([Some(48), None, Some(112)]),
    };
    let program = PatchProgram::new(&scheme, &layout, &pyramid, shape).expect("a wide tile");
    picture(&scheme, &layout, &program)
}

/// The pictures are stored beside the text that shows them; `UPDATE_PICTURES=1 cargo test -p torre-compiler pictures`
/// draws them anew.
#[test]
fn the_books_pictures() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/pictures");
    let update = std::env::var_os("UPDATE_PICTURES").is_some();
    for (name, drawn) in pictures() {
        let path = format!("{folder}/{name}");
        if update {
            std::fs::write(&path, &drawn).expect("the folder exists");
        }
        let stored = std::fs::read_to_string(&path).expect("the picture is stored");
        assert!(stored == drawn, "{name} is out of date");
    }
}

#[test]
fn the_books_table() {
    let mut scheme = wave([false, false, true], 2);
    scheme.grid.axes[Axis::INNER] = Some("x".to_string());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/cones.md");
    let book = std::fs::read_to_string(path).expect("the chapter is stored");
    let table = cones(&scheme).to_string();
    assert!(book.contains(&format!("```text\n{table}```\n")), "{table}");
}

#[test]
fn pictures_are_well_formed() {
    for (name, text) in pictures() {
        let mut open = Vec::new();
        for tag in text.split('<').skip(1) {
            let word = tag.split([' ', '>', '/']).find(|w| !w.is_empty());
            let word = word.expect("a name");
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(word), "{name}");
            } else if !tag.contains("/>") {
                open.push(word);
            }
        }
        assert!(open.is_empty(), "{name}");
        for broken in ["NaN", "\"inf", "-inf", "Linf", "Minf"] {
            assert!(!text.contains(broken), "{name}");
        }
    }
}

#[test]
fn a_whole_tile_and_its_past_are_drawn() {
    for (name, text) in pictures() {
        if !name.starts_with("tiles-") {
            continue;
        }
        assert!(text.contains("<title>a tile of wave"), "{name}");
        // The stressed tile lies within the frame, all of it.
        let attribute = |tag: &str, name: &str| -> f64 {
            let value = tag
                .split(&format!(" {name}=\""))
                .nth(1)
                .expect("an attribute");
            value
                .split('"')
                .next()
                .expect("its end")
                .parse()
                .expect("a number")
        };
        let clip = text.split("<clipPath").nth(1).expect("a frame");
        let clip = clip.split("<rect").nth(1).expect("its sides");
        let (left, top) = (attribute(clip, "x"), attribute(clip, "y"));
        let (right, bottom) = (
            left + attribute(clip, "width"),
            top + attribute(clip, "height"),
        );
        let tiles: Vec<&str> = text
            .split('<')
            .filter(|tag| tag.starts_with("path ") && tag.contains("#fbe3a2"))
            .collect();
        assert_eq!(tiles.len(), 1, "{name}");
        let points = tiles[0].split(" d=\"M").nth(1).expect("points");
        let points = points.split("Z\"").next().expect("their end");
        for point in points.split('L') {
            let (x, y) = point.split_once(' ').expect("two numbers");
            let (x, y): (f64, f64) = (x.parse().expect("x"), y.parse().expect("y"));
            assert!(left <= x && x <= right, "{name} {x}");
            assert!(top <= y && y <= bottom, "{name} {y}");
        }
    }
}

#[test]
fn odd_pictures_stay_small() {
    // Nothing to compute, and tiles too fine to see.
    let empty = scheme(
        "a < b & c",
        [true; 3],
        Boundary::Zero,
        &[("u", [0; 3], 1)],
        vec![],
    );
    let none = cones(&empty);
    let fine = Cut {
        face: Face::fitting(&none, PerAxis([1, 0, 0])),
        pitch: rational(1, 1_000_000_000),
        leads: Vec::new(),
    };
    let seen = Section {
        component: ComponentId(0),
        axis: Axis::OUTER,
        steps: 2,
        later: 0,
        cuts: vec![fine.clone()],
        overlap: None,
        whole: true,
        stressed: None,
    };
    let text = section(&empty, &none, &seen);
    assert!(text.len() < 100_000);
    assert!(text.contains("a &lt; b &amp; c"));
    let axes = [Axis::OUTER, Axis::MIDDLE];
    let panels = Footprint {
        axes,
        cuts: vec![fine.clone(), fine.clone()],
        tile: vec![0, 0],
        stages: 0..2,
    };
    assert!(footprint(&empty, &panels).len() < 1_000_000);
    for subject in [
        Subject::Cone {
            component: ComponentId(0),
            steps: 3,
        },
        Subject::Towers {
            cuts: vec![fine],
            tiles: vec![],
            stages: 0..0,
        },
    ] {
        let text = solid(&empty, &none, &Solid { axes, subject });
        assert!(!text.contains("NaN"));
    }
}
