use super::*;
use crate::cone::cones;
use crate::schedule::Template;
use crate::schedule::face::Face;
use crate::schedule::template::families;
use crate::scheme::Precision;
use crate::testing::{Rng, maxwell};

/// A scheme of some axes, the outermost of Maxwell's equations left out.
fn scheme(axes: usize, order: u32) -> Scheme {
    let size = [[1, 1, 24], [20, 1, 24], [20, 18, 24]][axes - 1];
    let mut scheme = maxwell(order, Precision::F32, size);
    let absent = [&[Axis::OUTER, Axis::MIDDLE][..], &[Axis::MIDDLE], &[]][axes - 1];
    for axis in absent {
        scheme.grid.axes[*axis] = None;
    }
    scheme
}

fn read_back(text: &str, scheme: &Scheme, frame: &Frame) -> Template {
    let source = Source::new("--schedule", text);
    let levels = parse_schedule(&source).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    read(&source, &levels, scheme, frame).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

#[test]
fn all_members_of_families_can_be_written() {
    for axes in 1..=3 {
        for order in [2, 4] {
            let scheme = scheme(axes, order);
            let frame = Frame::new(&scheme, &cones(&scheme));
            for family in families(&scheme) {
                for (name, schedule) in family.members(&frame) {
                    let text = write(&schedule, &scheme, &frame);
                    assert!(text.is_some(), "{axes} axes: {name}");
                }
            }
        }
    }
}

#[test]
fn what_can_be_read_can_be_written() {
    let one = [
        "layerwise",
        "diamond(P = 32, TH = 16)",
        "diamond(P = 0, TH = 16)",
        "z: skewed(P = 3.25) lean -z height 5",
        "z: diamond(D = 3) slope 2.5 height 8; z: box(5)",
        "z: pyramid(base = 20) height 4",
        "pyramid(B = 0, TH = 4)",
        "box(B = 0)",
        "z: box(20); z: box(7)",
    ];
    let two = [
        "diamond(P = 16, TH = 8, Z = 64)",
        "skewed(P = 16, TH = 8)",
        "x: skewed(P = 16) lean -x height 8; z: skewed(P = 40) lean -z",
        "z: skewed(P = 16) height 8; x: diamond(P = 40)",
        "x: diamond(P = 32) height 4; z: span; z: skewed(P = 64); x: skewed(P = 4)",
        "x: diamond(P = 32) height 4; x: diamond(P = 32); z: skewed(P = 9)",
        "x: skewed(P = 8) height 4; x: box(8)",
        "x: skewed(P = 8) height 4; (x, z): box(4); x: box(2)",
        "pyramid(B = 8, TH = 4, Z = 16)",
        "z: pyramid(base = 8) height 2",
        "box(B = 8, Z = 4)",
        "x: box(9); z: span; z: box(4)",
    ];
    let three = [
        "torre(D = 2, TH = 8)",
        "torre(D = 1, TH = 8, G = 3, Z = 16)",
        "torre(W = 0, TH = 8)",
        "(x, y): diamond(W = 12) lean -x height 8",
        "(x, y): diamond(D = 2) lean +y slope 3 height 8; z: skewed(P = 9)",
        "(x, y): diamond(D = 2) lean -y height 8; z: skewed(P = 9) lean -z; (x, y): box(3)",
        "(x, y): diamond(W = 24) height 8; (x, y): diamond(W = 8) lean -x; x: diamond(P = 5)",
        "(x, y): pyramid(base = 8) height 2; z: pyramid(base = 9)",
        "(x, y, z): box(8)",
    ];
    let texts = [&one[..], &two[..], &three[..]];
    for (index, list) in texts.into_iter().enumerate() {
        for order in [2, 4] {
            let scheme = scheme(index + 1, order);
            let frame = Frame::new(&scheme, &cones(&scheme));
            for text in list {
                let schedule = read_back(text, &scheme, &frame).fixed(&frame).unwrap();
                let written = write(&schedule, &scheme, &frame);
                assert!(written.is_some(), "{text}: {schedule}");
                // The written text has whole words for people.
                assert!(written.is_some_and(|t| !t.contains("None")), "{text}");
            }
        }
    }
}

#[test]
fn directions_of_lean_and_all_sizes_are_in_the_text() {
    let scheme = scheme(3, 2);
    let frame = Frame::new(&scheme, &cones(&scheme));
    let text = "(x, y): diamond(W = 12) lean -x height 8; z: skewed(P = 9) lean -z";
    let schedule = read_back(text, &scheme, &frame).fixed(&frame).unwrap();
    assert_eq!(
        write(&schedule, &scheme, &frame).as_deref(),
        Some("(x, y): diamond(W = 12) lean -x height 8; z: skewed(P = 9) lean -z")
    );
}

/// Sizes that are no multiple of 1/64 are written in units of slopes; a schedule that cannot be written gives no text
/// with another meaning.
#[test]
fn fractions_are_written_as_they_are_or_not_at_all() {
    let scheme = scheme(3, 2);
    let frame = Frame::new(&scheme, &cones(&scheme));
    let mut rng = Rng::new(7);
    for _ in 0..200 {
        let den = rng.within(1, 70);
        let pitch = Rational::new(rng.within(1, 400), den).unwrap();
        let cuts = [[1, 1, 0], [1, -1, 0]].map(|form| Cut {
            face: frame.fitting(PerAxis(form)),
            pitch,
        });
        let level = Level { cuts: cuts.into() };
        let schedule = Schedule::Tiled(Tiling {
            height: 4,
            levels: vec![level],
        });
        let units = pitch
            .checked_div(cuts[0].face.slope * Rational::whole(2))
            .unwrap();
        let can = 64 % pitch.den() == 0 || 64 % units.den() == 0;
        assert_eq!(write(&schedule, &scheme, &frame).is_some(), can, "{pitch}");
    }
    let face = Face {
        form: PerAxis([2, 0, 0]),
        slope: Rational::whole(9),
    };
    let level = Level {
        cuts: vec![Cut {
            face,
            pitch: Rational::whole(8),
        }],
    };
    let strange = Schedule::Tiled(Tiling {
        height: 4,
        levels: vec![level],
    });
    assert_eq!(write(&strange, &scheme, &frame), None);
}

/// The members of a schedule that is written out are named by their own text: it reads as that member.
#[test]
fn names_of_levels_are_their_text() {
    let scheme = scheme(3, 4);
    let frame = Frame::new(&scheme, &cones(&scheme));
    let members = |text: &str| match read_back(text, &scheme, &frame) {
        Template::Tiled(family) => (family.given(), family.members(&frame)),
        other => panic!("{text}: {other:?}"),
    };
    for (text, given, number) in [
        (
            "(x, y): diamond(D = 2) lean -x height 16; z: skewed(W=32)",
            "(x, y): diamond(D = 2) lean -x height 16; z: skewed(W=32)",
            1,
        ),
        (
            "(x,y): torre(\n D = 1..3\n) height auto\nz: skewed(2*16); z: box(auto)",
            "(x,y): torre( D = 1 ) height 1; z: skewed(2*16); z: box(1)",
            300,
        ),
        (
            "z: span ;(x, y): diamond(12) slope 2",
            "z: span; (x, y): diamond(12) slope 2",
            4,
        ),
        (
            "(x, y): pyramid( base = 8..9 )\n\n z: pyramid(base = 4)",
            "(x, y): pyramid( base = 8 ); z: pyramid(base = 4)",
            4,
        ),
        ("(x, y): box(16..20)", "(x, y): box(16)", 2),
    ] {
        let (name, all) = members(text);
        assert_eq!(name, given);
        assert_eq!(all.len(), number, "{text}");
        for (name, schedule) in all {
            let back = members(&name).1;
            assert_eq!(back, [(name.clone(), schedule)], "{name}");
        }
    }
    let (_, all) = members("(x, y): diamond(W = 8..9) height 4; z: box(7..8)");
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names[1], "(x, y): diamond(W = 8) height 4; z: box(8)",
        "{names:?}"
    );
}
