use super::*;
use crate::output::array::View;

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
        quantity: AxisText {
            name: "E.z".into(),
            units: "V/m".into(),
        },
        scale,
    }
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
    let mut one = picture(Scale::Auto);
    let canvas = one.draw(&view).unwrap();
    // Cells of 64 pixels: the largest that is used. The swatch below the colour bar comes last.
    let cell = find(&canvas, NAN).unwrap();
    let [x, y, ..] = cell;
    assert!((0..64).all(|d| canvas.pixel(x + d, y + d) == NAN));
    assert_eq!(canvas.pixel(x + 64, y), INK);
    assert_eq!(canvas.pixel(x, y - 1), INK);
    assert_ne!(canvas.pixel(x, y + 64), INK);
    assert_ne!(canvas.pixel(x - 1, y), INK);

    // Cells three times as wide as high.
    one.across = axis("x", 3.0);
    assert_eq!(one.cell_pixels([4, 2]), [159, 53]);
    one.across = axis("x", f64::NAN);
    assert_eq!(one.cell_pixels([100, 100]), [6, 6]);
}

#[test]
fn signed_ranges_are_symmetric() {
    let range = |scale, values: &[f64]| picture(scale).range(values);
    assert_eq!(
        range(Scale::Auto, &[-1.0, 3.0, f64::NAN, f64::INFINITY]),
        (ColourMap::Diverging, -3.0, 3.0)
    );
    assert_eq!(
        range(Scale::Auto, &[1.0, 3.0]),
        (ColourMap::Sequential, 1.0, 3.0)
    );
    assert_eq!(
        range(Scale::Auto, &[0.0]),
        (ColourMap::Diverging, -1.0, 1.0)
    );
    assert_eq!(
        range(Scale::Auto, &[f64::NAN]),
        (ColourMap::Diverging, -1.0, 1.0)
    );
    assert_eq!(
        range(Scale::Auto, &[4.0]),
        (ColourMap::Sequential, 2.0, 6.0)
    );
    assert_eq!(range(Scale::Signed(Some(2.0)), &[9.0]).2, 2.0);
    assert_eq!(range(Scale::Positive(Some((2.0, 2.0))), &[9.0]).2, 3.0);
    let (_, low, high) = range(Scale::Signed(None), &[f64::MAX]);
    assert!((high - low).is_finite());
    let (_, low, high) = range(Scale::Positive(None), &[-f64::MAX, f64::MAX]);
    assert!((high - low).is_finite() && high > low);
}

#[test]
fn large_planes_are_averaged() {
    let data: Vec<f64> = (0..3000 * 5).map(|i| (i / 5) as f64).collect();
    let view = View::contiguous(&data, &[3000, 5]).unwrap();
    let shown = reduce(&view, [3000, 5]);
    assert_eq!((shown.reduce, shown.size), (3, [1000, 2]));
    assert_eq!(shown.values[..4], [1.0, 1.0, 4.0, 4.0]);
    let canvas = picture(Scale::Auto).draw(&view).unwrap();
    assert!(canvas.width() > 1000 && canvas.width() < 1300);
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
        for scale in [Scale::Auto, Scale::Signed(None), Scale::Positive(None)] {
            picture(scale).write(&path, &view).unwrap();
        }
        let mut odd = picture(Scale::Auto);
        odd.across.spacing = 0.0;
        odd.up.spacing = f64::INFINITY;
        odd.up.start = f64::NAN;
        odd.write(&path, &view).unwrap();
    }
    let empty = View::<f64>::contiguous(&[], &[0, 3]).unwrap();
    let line = View::contiguous(&wild, &[6]).unwrap();
    for refused in [
        picture(Scale::Auto).write(&path, &empty),
        picture(Scale::Auto).write(&path, &line),
    ] {
        assert!(matches!(refused.unwrap_err().cause, Cause::Shape { .. }));
    }
}
