use super::*;
use crate::output::array::View;
use crate::output::picture::Spread;
use crate::output::picture::colour::ColourMap;

fn axis(name: &str, spacing: f64) -> PictureAxis {
    PictureAxis {
        text: AxisText {
            name: name.into(),
            units: "m".into(),
        },
        start: 0.0,
        spacing,
    }
}

fn picture(scale: Scale) -> SlicePicture {
    SlicePicture {
        title: "E.z at z = 128".into(),
        subtitle: "step 20".into(),
        across: axis("x", 1.0),
        up: axis("y", 1.0),
        downward: false,
        true_shape: true,
        quantity: Some(AxisText {
            name: "E.z".into(),
            units: "V/m".into(),
        }),
        scale,
        edges: Vec::new(),
        room: 0,
    }
}

fn unit() -> Scale {
    Scale::between(-1.0, 1.0).unwrap()
}

/// Corner and size of the image: the frame is found from the first colour of a cell.
fn find(canvas: &Canvas, colour: Rgb) -> Option<[usize; 4]> {
    let all = (0..canvas.height()).flat_map(|y| (0..canvas.width()).map(move |x| (x, y)));
    let hits: Vec<_> = all.filter(|&(x, y)| canvas.pixel(x, y) == colour).collect();
    let (x0, y0) = *hits.first()?;
    let (x1, y1) = *hits.last()?;
    Some([x0, y0, x1 + 1 - x0, y1 + 1 - y0])
}

#[test]
fn the_first_axis_runs_right_and_the_second_up() {
    // One NaN in the corner (x = 3, y = 1) of 4 x 2 cells: right and at the top.
    let mut data = [1f32; 8];
    data[3 * 2 + 1] = f32::NAN;
    let view = View::contiguous(&data, &[4, 2]).unwrap();
    let mut one = picture(unit());
    let canvas = one.draw(&view).unwrap().canvas;
    // Cells of 64 pixels: the largest that is used. The swatch below the colour bar comes last.
    let cell = find(&canvas, NAN).unwrap();
    let [x, y, ..] = cell;
    assert!((0..64).all(|d| canvas.pixel(x + d, y + d) == NAN));
    assert_eq!(canvas.pixel(x + 64, y), INK);
    assert_eq!(canvas.pixel(x, y - 1), INK);
    let red = ColourMap::Diverging.colour(1.0);
    assert_eq!(canvas.pixel(x, y + 64), red);
    assert_eq!(canvas.pixel(x - 1, y), red);

    one.downward = true;
    let down = one.draw(&view).unwrap();
    let [left, below] = [x, y + 64];
    assert_eq!(find(&down.canvas, NAN).unwrap()[..2], [left, below]);
    assert_eq!(down.place([0.0, -0.5]).1, y as f32);
    one.downward = false;

    // Cells three times as wide as high.
    one.across = axis("x", 3.0);
    assert_eq!(one.cell_pixels([4, 2], [1, 1]), [159, 53]);
    one.across = axis("x", f64::NAN);
    assert_eq!(one.cell_pixels([100, 100], [1, 1]), [6, 6]);
    // Time has no true shape.
    one.true_shape = false;
    assert_eq!(one.cell_pixels([100, 1000], [1, 1]), [6, 1]);
    assert_eq!(one.cell_pixels([100, 1], [1, 1]), [6, 120]);
    // Long cells: more of the shorter side make a block.
    one.true_shape = true;
    for (across, cells, size) in [
        (20.0, [50, 1280], [1000, 1280]),
        (1.0, [2560, 640], [1280, 320]),
    ] {
        one.across = axis("x", across);
        let zeros = vec![0f32; cells[0] * cells[1]];
        let view = View::contiguous(&zeros, &cells).unwrap();
        assert_eq!(one.draw(&view).unwrap().size, size);
    }
    // A plane without a quantity has no colour bar.
    one.across = axis("x", 1.0);
    one.true_shape = true;
    one.quantity = None;
    assert!(one.draw(&view).unwrap().canvas.width() < canvas.width());
}

#[test]
fn edges_lie_between_cells() {
    let data = [0f32; 8];
    let view = View::contiguous(&data, &[4, 2]).unwrap();
    let white = ColourMap::Diverging.colour(0.0);
    let mut one = picture(unit());
    let plain = one.draw(&view).unwrap();
    // Between the cells 1 and 2 along x, beside the upper row.
    one.edges = vec![Edge {
        from: [1.5, 0.5],
        to: [1.5, 1.5],
    }];
    let marked = one.draw(&view).unwrap();
    let [left, top] = marked.corner;
    assert_eq!((marked.corner, marked.size), (plain.corner, plain.size));
    assert_eq!(marked.size, [256, 128]);
    for y in 0..128 {
        for x in 0..256 {
            let changed = marked.canvas.pixel(left + x, top + y) != white;
            assert_eq!(changed, x == 128 && y < 64, "{x} {y}");
        }
    }
    assert_eq!(
        marked.place([-0.5, -0.5]),
        (left as f32, (top + 128) as f32)
    );
}

#[test]
fn pictures_of_different_steps_have_one_size() {
    let data = [0f32; 4];
    let view = View::contiguous(&data, &[2, 2]).unwrap();
    let mut one = picture(unit());
    one.subtitle = "step 100000, time 1".into();
    one.room = 300;
    let first = one.draw(&view).unwrap().canvas;
    one.subtitle = "step 1".into();
    let second = one.draw(&view).unwrap().canvas;
    assert_eq!(
        (first.width(), first.height()),
        (second.width(), second.height())
    );
    assert_ne!(first, second);
}

#[test]
fn large_planes_are_averaged() {
    let data: Vec<f64> = (0..3000 * 5).map(|i| (i / 5) as f64).collect();
    let view = View::contiguous(&data, &[3000, 5]).unwrap();
    let mut one = picture(Scale::between(0.0, 3000.0).unwrap());
    let shown = one.reduced(&view, [3000, 5]);
    assert_eq!((shown.block, shown.size), ([3, 3], [1000, 2]));
    assert_eq!(shown.values[..4], [1.0, 1.0, 4.0, 4.0]);
    let canvas = one.draw(&view).unwrap().canvas;
    assert!(canvas.width() > 1000 && canvas.width() < 1300);
    one.true_shape = false;
    let shown = one.reduced(&view, [3000, 5]);
    assert_eq!((shown.block, shown.size), ([3, 1], [1000, 5]));
}

#[test]
fn odd_values_and_shapes_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    let wild = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        -f64::MAX,
        5e-324,
    ];
    for shape in [[1, 6], [6, 1], [2, 3]] {
        let view = View::contiguous(&wild, &shape).unwrap();
        let spread = Spread::of(wild).unwrap();
        for scale in [spread.inner_scale(), spread.whole_scale(), unit()] {
            picture(scale).write(&path, &view).unwrap();
        }
        let mut odd = picture(unit());
        odd.across.spacing = 0.0;
        odd.up.spacing = f64::INFINITY;
        odd.up.start = f64::NAN;
        let far = [f64::NAN, f64::INFINITY];
        odd.edges = vec![Edge { from: far, to: far }];
        odd.write(&path, &view).unwrap();
    }
    let empty = View::<f64>::contiguous(&[], &[0, 3]).unwrap();
    let line = View::contiguous(&wild, &[6]).unwrap();
    for refused in [
        picture(unit()).write(&path, &empty),
        picture(unit()).write(&path, &line),
    ] {
        assert!(matches!(refused.unwrap_err().cause, Cause::Shape { .. }));
    }
}
