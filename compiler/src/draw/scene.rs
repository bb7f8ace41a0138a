//! A scene of two axes and time in parallel projection: camera, flat sides with light, floor and axes.

use crate::svg::{FAINT, Frame, GREY, INK, Label, Point, Style, Svg, fill, minus, mix, stroke};

/// x, y in cells, then time in stages.
pub type ScenePoint = [f64; 3];

/// Turns the scene: degrees about the time axis, so that x runs to the right and y away from the viewer; and how far
/// the viewer looks down on it.
const TURN: f64 = 24.0;
const TILT: f64 = 26.0;

/// Around the scene, in pixels.
const MARGIN: Point = [58.0, 44.0];

/// Unit vectors of the page in the scene: to the right, up, and away from the viewer.
fn directions() -> [ScenePoint; 3] {
    let (sin, cos) = TURN.to_radians().sin_cos();
    let (down, flat) = TILT.to_radians().sin_cos();
    [
        [cos, sin, 0.0],
        [-sin * down, cos * down, flat],
        [-sin * flat, cos * flat, -down],
    ]
}

fn dot(a: ScenePoint, b: ScenePoint) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Parallel projection onto the page.
pub struct Camera {
    pub scale: f64,
    /// Cells per stage on the page.
    stage: f64,
    origin: Point,
}

impl Camera {
    pub fn page(&self, place: ScenePoint) -> Point {
        let [right, up, _] = directions();
        let place = self.stretched(place);
        [
            self.origin[0] + self.scale * dot(right, place),
            self.origin[1] - self.scale * dot(up, place),
        ]
    }

    /// The direction to the viewer, as a change of place and time.
    pub fn towards(&self) -> ScenePoint {
        let [_, _, [x, y, t]] = directions();
        [-x, -y, -t / self.stage]
    }

    /// With time in cells.
    fn stretched(&self, [x, y, t]: ScenePoint) -> ScenePoint {
        [x, y, t * self.stage]
    }
}

/// A flat side of a convex solid.
pub struct Side {
    corners: Vec<ScenePoint>,
    /// Outwards, of length 1, with time in cells.
    normal: ScenePoint,
}

impl Side {
    /// The side with these corners of a solid that has `inside` inside.
    pub fn new(corners: Vec<ScenePoint>, inside: ScenePoint, camera: &Camera) -> Side {
        let minus = |a: ScenePoint, b: ScenePoint| [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
        let [a, b, c] = [0, 1, 2].map(|i| camera.stretched(corners[i % corners.len()]));
        let (u, v) = (minus(b, a), minus(c, a));
        let cross = [
            u[1] * v[2] - u[2] * v[1],
            u[2] * v[0] - u[0] * v[2],
            u[0] * v[1] - u[1] * v[0],
        ];
        let outwards = dot(cross, minus(a, camera.stretched(inside))).signum();
        let length = dot(cross, cross).sqrt().max(1e-12);
        Side {
            corners,
            normal: cross.map(|c| c * outwards / length),
        }
    }

    /// Seen from outside.
    pub fn is_front(&self) -> bool {
        dot(directions()[2], self.normal) < -1e-9
    }

    /// Brightness, 0 to 1: the light comes from the upper left, over the viewer's shoulder.
    fn light(&self) -> f64 {
        0.5 + 0.5 * dot([-0.62, -0.38, 0.69], self.normal)
    }

    pub fn draw(&self, svg: &mut Svg, camera: &Camera, colour: &str, opacity: f64) {
        let points: Vec<Point> = self.corners.iter().map(|&p| camera.page(p)).collect();
        let shade = shade(colour, self.light());
        let edge = edge(colour);
        svg.polygon(&points, fill(&shade).opacity(opacity).outline(&edge, 1.1));
    }
}

/// A colour between its darker and its paler form.
fn shade(colour: &str, light: f64) -> String {
    mix(colour, |c| {
        let (dark, bright) = (0.62 * c + 10.0, 0.42 * c + 148.0);
        dark + (bright - dark) * light
    })
}

/// The colour of the edges of a solid.
pub fn edge(colour: &str) -> String {
    mix(colour, |c| 0.55 * c)
}

/// A box around the scene.
pub struct Bounds {
    lo: ScenePoint,
    hi: ScenePoint,
}

impl Bounds {
    pub fn around<'a>(points: impl Iterator<Item = &'a ScenePoint> + Clone) -> Bounds {
        let lo = |i: usize| points.clone().map(|p| p[i]).fold(f64::MAX, f64::min);
        let hi = |i: usize| points.clone().map(|p| p[i]).fold(f64::MIN, f64::max);
        if points.clone().next().is_none() {
            return Bounds {
                lo: [-1.0, -1.0, 0.0],
                hi: [1.0; 3],
            };
        }
        Bounds {
            lo: [lo(0).floor() - 1.0, lo(1).floor() - 1.0, lo(2)],
            hi: [hi(0).ceil() + 1.0, hi(1).ceil() + 1.0, hi(2)],
        }
    }

    /// The camera that shows the floor, the time axis and `points`, and the size of the page.
    pub fn camera(&self, points: &[ScenePoint]) -> (Camera, Point) {
        let ([left, near, first], [right, far, last]) = (self.lo, self.hi);
        let wide = (right - left).max(far - near);
        let stage = (0.66 * wide / (last - first).max(1.0)).clamp(0.3, 4.0);
        let mut seen = points.to_vec();
        seen.extend([left, right].map(|x| [x, near, first]));
        seen.extend([left, right].map(|x| [x, far, first]));
        seen.push([left, near, last]);
        let mut camera = Camera {
            scale: 1.0,
            stage,
            origin: [0.0; 2],
        };
        let at: Vec<Point> = seen.iter().map(|&p| camera.page(p)).collect();
        let lo = |i: usize| at.iter().map(|p| p[i]).fold(f64::MAX, f64::min);
        let hi = |i: usize| at.iter().map(|p| p[i]).fold(f64::MIN, f64::max);
        let (w, h) = ((hi(0) - lo(0)).max(1.0), (hi(1) - lo(1)).max(1.0));
        let scale = (660.0 / w).min(440.0 / h);
        camera.scale = scale;
        camera.origin = [MARGIN[0] - scale * lo(0), MARGIN[1] - scale * lo(1)];
        let size = [scale * w + 2.0 * MARGIN[0], scale * h + 2.0 * MARGIN[1]];
        (camera, size)
    }

    /// The floor, with a line per cell.
    pub fn floor(&self, svg: &mut Svg, camera: &Camera) {
        let (lo, hi) = (self.lo, self.hi);
        let at = |x: f64, y: f64| camera.page([x, y, lo[2]]);
        let corners = [
            at(lo[0], lo[1]),
            at(hi[0], lo[1]),
            at(hi[0], hi[1]),
            at(lo[0], hi[1]),
        ];
        svg.polygon(&corners, fill("#fafbfc").outline(GREY, 0.8));
        for x in lo[0].ceil() as i64..=hi[0] as i64 {
            svg.line(at(x as f64, lo[1]), at(x as f64, hi[1]), stroke(FAINT, 0.7));
        }
        for y in lo[1].ceil() as i64..=hi[1] as i64 {
            svg.line(at(lo[0], y as f64), at(hi[0], y as f64), stroke(FAINT, 0.7));
        }
    }

    /// Numbers along the near edges of the floor, and time upwards at its left corner.
    pub fn axes(&self, svg: &mut Svg, camera: &Camera, names: [&str; 2]) {
        let ([left, near, first], [right, far, last]) = (self.lo, self.hi);
        let label = |anchor: &'static str| Label {
            size: 11.5,
            anchor,
            ..Label::default()
        };
        let name = |anchor: &'static str| Label {
            anchor,
            bold: true,
            ..Label::default()
        };
        let tick: Style = stroke(INK, 1.0);
        let numbers = |lo: f64, hi: f64, room: f64| {
            let step = Frame::spacing([lo, hi], (hi - lo) * camera.scale, room);
            (lo.ceil() as i64..=hi.floor() as i64).filter(move |n| n.rem_euclid(step) == 0)
        };
        for x in numbers(left, right, 30.0) {
            let [a, b] = camera.page([x as f64, near, first]);
            svg.line([a, b], [a, b + 5.0], tick);
            svg.text([a, b + 18.0], &minus(x), label("middle"));
        }
        let [a, b] = camera.page([(left + right) / 2.0, near, first]);
        svg.text([a - 6.0, b + 38.0], names[0], name("middle"));
        for y in numbers(near, far, 40.0) {
            let [a, b] = camera.page([right, y as f64, first]);
            svg.line([a, b], [a + 5.0, b], tick);
            svg.text([a + 9.0, b + 5.0], &minus(y), label("start"));
        }
        let [a, b] = camera.page([right, (near + far) / 2.0, first]);
        svg.text([a + 34.0, b + 10.0], names[1], name("start"));
        let foot = camera.page([left, near, first]);
        let head = camera.page([left, near, last]);
        svg.arrow(foot, [head[0], head[1] - 16.0], INK, 1.0);
        let step = Frame::spacing([first, last], foot[1] - head[1], 18.0);
        for k in (first.ceil() as i64..=last as i64).filter(|k| k.rem_euclid(step) == 0) {
            let [a, b] = camera.page([left, near, k as f64]);
            svg.line([a, b], [a - 5.0, b], tick);
            svg.text([a - 9.0, b + 4.0], &minus(k), label("end"));
        }
        svg.text([head[0], head[1] - 22.0], "stage", name("middle"));
    }
}
