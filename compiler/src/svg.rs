//! Writes SVG: shapes, text, and axes with ticks.

use std::fmt::Write;

/// Colours that people with any colour vision can tell apart (M. Okabe, K. Ito: Color Universal Design, 2008).
pub const PALETTE: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
];
pub const INK: &str = "#1a1a1a";
pub const GREY: &str = "#8a8f98";
pub const FAINT: &str = "#dfe3e8";
/// The tile that a picture is about.
pub const TILE: &str = "#fbe3a2";
pub const TILE_EDGE: &str = "#8a6d1d";

const FONT: &str = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif";

/// A place on the page, in pixels from its upper left corner.
pub type Point = [f64; 2];

#[derive(Clone, Copy, Debug)]
pub struct Style<'a> {
    pub fill: &'a str,
    pub fill_opacity: f64,
    pub stroke: &'a str,
    pub width: f64,
    pub dash: &'a str,
}

pub fn fill(colour: &str) -> Style<'_> {
    Style {
        fill: colour,
        fill_opacity: 1.0,
        stroke: "none",
        width: 0.0,
        dash: "",
    }
}

pub fn stroke(colour: &str, width: f64) -> Style<'_> {
    Style {
        fill: "none",
        stroke: colour,
        width,
        ..fill(colour)
    }
}

impl<'a> Style<'a> {
    pub fn opacity(self, fill_opacity: f64) -> Self {
        Style {
            fill_opacity,
            ..self
        }
    }

    pub fn outline(self, stroke: &'a str, width: f64) -> Self {
        Style {
            stroke,
            width,
            ..self
        }
    }

    pub fn dashed(self, dash: &'a str) -> Self {
        Style { dash, ..self }
    }

    fn attributes(&self) -> String {
        let mut text = format!("fill=\"{}\"", self.fill);
        if self.fill != "none" && self.fill_opacity < 1.0 {
            let _ = write!(text, " fill-opacity=\"{}\"", number(self.fill_opacity));
        }
        if self.stroke != "none" {
            let width = number(self.width);
            let _ = write!(text, " stroke=\"{}\" stroke-width=\"{width}\"", self.stroke);
        }
        if !self.dash.is_empty() {
            let _ = write!(text, " stroke-dasharray=\"{}\"", self.dash);
        }
        text
    }
}

/// How the marks of different positions look, so that colour is not needed to tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Circle,
    Square,
    Diamond,
    Triangle,
}

impl Mark {
    pub const ALL: [Mark; 4] = [Mark::Circle, Mark::Square, Mark::Diamond, Mark::Triangle];
}

/// How text is placed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Label<'a> {
    /// In pixels; 0 is the usual 13.
    pub size: f64,
    /// `start`, `middle` or `end`; empty is `start`.
    pub anchor: &'a str,
    pub bold: bool,
    pub colour: &'a str,
    /// Degrees, clockwise.
    pub turn: f64,
}

pub struct Svg {
    size: Point,
    body: String,
    clips: usize,
}

impl Svg {
    pub fn new(width: f64, height: f64) -> Svg {
        let mut svg = Svg {
            size: [width, height],
            body: String::new(),
            clips: 0,
        };
        svg.rect([0.0, 0.0], [width, height], fill("#ffffff"));
        svg
    }

    /// The whole document.
    pub fn finish(self, description: &str) -> String {
        let [width, height] = self.size.map(number);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{FONT}\" stroke-linecap=\"round\" \
             stroke-linejoin=\"round\">\n\
             <title>{}</title>\n{}</svg>\n",
            escape(description),
            self.body
        )
    }

    pub fn rect(&mut self, [x, y]: Point, [w, h]: Point, style: Style) {
        let (x, y, w, h) = (number(x), number(y), number(w), number(h));
        let paint = style.attributes();
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" {paint}/>"
        );
    }

    pub fn line(&mut self, from: Point, to: Point, style: Style) {
        let [[a, b], [c, d]] = [from, to].map(|p| p.map(number));
        let paint = style.attributes();
        let _ = writeln!(self.body, "<path d=\"M{a} {b}L{c} {d}\" {paint}/>");
    }

    /// A line with a head at its end.
    pub fn arrow(&mut self, from: Point, to: Point, colour: &str, width: f64) {
        let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
        let length = dx.hypot(dy);
        if length < 1.0 {
            return;
        }
        let (ux, uy) = (dx / length, dy / length);
        let head = (2.5 + 2.6 * width).min(length);
        let base = [to[0] - head * ux, to[1] - head * uy];
        let half = 0.42 * head;
        self.line(from, base, stroke(colour, width));
        let left = [base[0] - half * uy, base[1] + half * ux];
        let right = [base[0] + half * uy, base[1] - half * ux];
        self.polygon(&[to, left, right], fill(colour));
    }

    pub fn polygon(&mut self, points: &[Point], style: Style) {
        let texts = points.iter().map(|p| p.map(number).join(" "));
        let path = texts.collect::<Vec<_>>().join("L");
        let paint = style.attributes();
        let _ = writeln!(self.body, "<path d=\"M{path}Z\" {paint}/>");
    }

    /// An open line through some points.
    pub fn polyline(&mut self, points: &[Point], style: Style) {
        let texts = points.iter().map(|p| p.map(number).join(" "));
        let path = texts.collect::<Vec<_>>().join("L");
        let paint = style.attributes();
        let _ = writeln!(self.body, "<path d=\"M{path}\" {paint}/>");
    }

    /// A mark of about the same area for every shape; `r` is the radius of the circle.
    pub fn mark(&mut self, mark: Mark, [x, y]: Point, r: f64, style: Style) {
        let paint = style.attributes();
        match mark {
            Mark::Circle => {
                let (x, y, r) = (number(x), number(y), number(r));
                let _ = writeln!(
                    self.body,
                    "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {paint}/>"
                );
            }
            Mark::Square => {
                let a = 0.88 * r;
                self.rect([x - a, y - a], [2.0 * a, 2.0 * a], style);
            }
            Mark::Diamond => {
                let a = 1.25 * r;
                let points = [[x - a, y], [x, y - a], [x + a, y], [x, y + a]];
                self.polygon(&points, style);
            }
            Mark::Triangle => {
                let a = 1.2 * r;
                let points = [[x - a, y + 0.8 * a], [x, y - 1.1 * a], [x + a, y + 0.8 * a]];
                self.polygon(&points, style);
            }
        }
    }

    pub fn text(&mut self, [x, y]: Point, text: &str, label: Label) {
        let (x, y) = (number(x), number(y));
        let size = number(if label.size == 0.0 { 13.0 } else { label.size });
        let or = |s: &str, other: &'static str| {
            if s.is_empty() {
                other.into()
            } else {
                s.to_string()
            }
        };
        let anchor = or(label.anchor, "start");
        let colour = or(label.colour, INK);
        let weight = if label.bold {
            " font-weight=\"600\""
        } else {
            ""
        };
        let turn = if label.turn == 0.0 {
            String::new()
        } else {
            format!(" transform=\"rotate({} {x} {y})\"", number(label.turn))
        };
        let text = escape(text);
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
             fill=\"{colour}\"{weight}{turn}>{text}</text>"
        );
    }

    /// Drawings until `unclip` show within a rectangle only.
    pub fn clip(&mut self, corner: Point, size: Point) {
        let n = self.clips;
        self.clips += 1;
        let _ = writeln!(self.body, "<clipPath id=\"clip{n}\">");
        self.rect(corner, size, fill(INK));
        let _ = writeln!(self.body, "</clipPath>\n<g clip-path=\"url(#clip{n})\">");
    }

    pub fn unclip(&mut self) {
        self.body.push_str("</g>\n");
    }
}

/// A rectangle of the page with coordinates in it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub corner: Point,
    pub size: Point,
    /// The coordinates of the left and right sides, and of the bottom and top.
    pub x: [f64; 2],
    pub y: [f64; 2],
}

impl Frame {
    pub fn place(&self, x: f64, y: f64) -> Point {
        let along = |v: f64, [lo, hi]: [f64; 2]| (v - lo) / (hi - lo);
        [
            self.corner[0] + along(x, self.x) * self.size[0],
            self.corner[1] + (1.0 - along(y, self.y)) * self.size[1],
        ]
    }

    pub fn clip(&self, svg: &mut Svg) {
        svg.clip(self.corner, self.size);
    }

    pub fn border(&self, svg: &mut Svg) {
        svg.rect(self.corner, self.size, stroke(INK, 1.0));
    }

    /// The whole multiples of `step` in a range.
    fn ticks([lo, hi]: [f64; 2], step: i64) -> impl Iterator<Item = i64> {
        let step = step.max(1);
        let (first, last) = (lo.ceil() as i64, hi.floor() as i64);
        (first..=last).filter(move |n| n.rem_euclid(step) == 0)
    }

    /// A step between labels that leaves them `room` pixels.
    pub fn spacing([lo, hi]: [f64; 2], pixels: f64, room: f64) -> i64 {
        let fits = |step: &i64| *step as f64 * pixels / (hi - lo) >= room;
        let mut steps = (0..18).flat_map(|e| [1, 2, 5].map(|m| m * 10i64.pow(e)));
        steps.find(fits).unwrap_or(i64::MAX)
    }

    /// Ticks and numbers along the bottom.
    pub fn bottom_axis(&self, svg: &mut Svg, title: &str) {
        let step = Frame::spacing(self.x, self.size[0], 31.0);
        let base = self.corner[1] + self.size[1];
        for n in Frame::ticks(self.x, 1) {
            let [x, _] = self.place(n as f64, 0.0);
            let major = n.rem_euclid(step) == 0;
            let length = if major { 6.0 } else { 3.0 };
            svg.line([x, base], [x, base + length], stroke(INK, 1.0));
            if major {
                let label = Label {
                    anchor: "middle",
                    size: 12.0,
                    ..Label::default()
                };
                svg.text([x, base + 19.0], &minus(n), label);
            }
        }
        let middle = self.corner[0] + self.size[0] / 2.0;
        let label = Label {
            anchor: "middle",
            ..Label::default()
        };
        svg.text([middle, base + 38.0], title, label);
    }

    /// Ticks and numbers along the left.
    pub fn left_axis(&self, svg: &mut Svg, title: &str) {
        let step = Frame::spacing(self.y, self.size[1], 16.0);
        let base = self.corner[0];
        for n in Frame::ticks(self.y, step) {
            let [_, y] = self.place(0.0, n as f64);
            svg.line([base, y], [base - 6.0, y], stroke(INK, 1.0));
            let label = Label {
                anchor: "end",
                size: 12.0,
                ..Label::default()
            };
            svg.text([base - 10.0, y + 4.0], &minus(n), label);
        }
        let middle = self.corner[1] + self.size[1] / 2.0;
        let label = Label {
            anchor: "middle",
            turn: -90.0,
            ..Label::default()
        };
        svg.text([base - 38.0, middle], title, label);
    }
}

/// A colour moved towards white: 0 leaves it, 1 is white.
pub fn pale(colour: &str, part: f64) -> String {
    mix(colour, |c| c + (255.0 - c) * part)
}

/// A colour with every channel (0 to 255) changed.
pub fn mix(colour: &str, f: impl Fn(f64) -> f64) -> String {
    let channel = |i: usize| {
        let hex = colour.get(i..i + 2).unwrap_or("80");
        let c = u8::from_str_radix(hex, 16).unwrap_or(128);
        f(f64::from(c)).clamp(0.0, 255.0).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(1), channel(3), channel(5))
}

/// A number with a true minus sign.
pub fn minus(n: i64) -> String {
    if n < 0 {
        format!("\u{2212}{}", n.unsigned_abs())
    } else {
        n.to_string()
    }
}

/// Two decimals at most.
fn number(v: f64) -> String {
    let rounded = (v * 100.0).round() / 100.0;
    // No negative zero.
    format!("{}", rounded + 0.0)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
