//! From the text of a schedule to a template: the meaning of the words.
//!
//! | text | meaning |
//! |---|---|
//! | `layerwise`, `auto` | as they say |
//! | `torre(D = 2, TH = 64, G = 1, Z = 0)` | [`torre`] with pitch W = 2 s D, s the slope of x + y; or `W = 8` itself |
//! | `diamond(P = 32, TH = 16, Z = 0)`, `skewed(...)` | [`diamond`], [`skewed`]; 1-D: along the axis |
//! | `(x, y): diamond(D = 2)` or `(W = 8)` | faces x + y and x - y, leaning up the first axis or as `lean` says |
//! | `x: diamond(P = 32)` | faces x and -x |
//! | `x: skewed(P = 32)` | face x, or -x with `lean -x` |
//! | `(x, y): pyramid(base = 64)` | overlapped tiles with a base of this many cells along each axis; the only level |
//! | `(x, y): box(16)` | boxes of this many cells in each stage; inside of tiles or of other boxes, or outermost |
//! | `pyramid(B = 64, TH = 8, Z = 0)`, `box(B = 16, Z = 0)` | along all axes, with Z cells along the last, 0: lines |
//! | `z: span` | not cut |
//!
//! Clauses: `height n` (once), `slope s` (checked, in cells per stage; default: derived), `lean +x`, and the words
//! `parallel`, `sequential` and `vector`, which state properties that the level has anyway, and are checked. An axis
//! that is named again starts an inner level. Sizes are numbers, `auto`, or ranges `a..b` to choose from.

mod choices;
mod named;
mod once;
mod title;
mod write;

pub use write::write;

use super::template::{OpenCut, Parts, Size, Template, TiledTemplate, Title};
use crate::cone::{Form, Rational, axis_form};
use crate::lattice::{Axis, PerAxis};
use crate::schedule::Frame;
use crate::scheme::Scheme;
use torre_grammar::ast;
use torre_grammar::diag::{Code, Diagnostic, Diagnostics};
use torre_grammar::source::{Source, Span};

/// A schedule that does not fit the scheme, or whose words have no meaning.
const BAD_SCHEDULE: Code = Code("E0851");

struct Reader<'a> {
    source: &'a Source,
    scheme: &'a Scheme,
    frame: &'a Frame,
}

type Result<T> = std::result::Result<T, Diagnostic>;

/// Steps that a time block is high, at most: pyramids, and towers and tables of a GPU, are planned step by step, while
/// the rate of a tile hardly rises behind some hundred steps.
const MOST_STEPS: i64 = 1 << 14;

/// Steps that pyramids try: redundant work grows with them.
const PYRAMID_HEIGHTS: [i64; 4] = [2, 4, 8, 16];

/// Levels as they are read.
#[derive(Default)]
struct Draft {
    sizes: Vec<Size>,
    height: Option<usize>,
    levels: Vec<DraftLevel>,
    /// Where the text leaves sizes open, with their indices.
    open: Vec<(Span, usize)>,
}

#[derive(Default)]
struct DraftLevel {
    cuts: Vec<OpenCut>,
    boxes: PerAxis<Option<usize>>,
    pyramids: PerAxis<Option<usize>>,
    /// The first shapes that are none with faces.
    first_box: Option<Span>,
    first_pyramid: Option<Span>,
}

/// The clauses of a level that say how its faces lie.
#[derive(Default)]
struct Clauses {
    /// In cells per stage.
    slope: Option<Rational>,
    lean: Option<Lean>,
}

/// The axis along which a tile leans, up (1) or down (-1).
#[derive(Clone, Copy)]
struct Lean {
    along: Axis,
    sign: i32,
}

/// Reads a schedule for a scheme.
pub fn read(
    source: &Source,
    schedule: &ast::Schedule,
    scheme: &Scheme,
    frame: &Frame,
) -> std::result::Result<Template, Diagnostics> {
    let reader = Reader {
        source,
        scheme,
        frame,
    };
    let template = reader.schedule(schedule)?;
    reader.few(&template, schedule)?;
    Ok(template)
}

/// The value of an expression of numbers.
fn number(e: &ast::Expr) -> Option<f64> {
    use ast::{BinaryOp, ExprKind, UnaryOp};
    match &e.node {
        ExprKind::Number(n) => Some(*n),
        ExprKind::Unary(UnaryOp::Neg, a) => Some(-number(a)?),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (number(a)?, number(b)?);
            match op {
                BinaryOp::Add => Some(a + b),
                BinaryOp::Sub => Some(a - b),
                BinaryOp::Mul => Some(a * b),
                BinaryOp::Div => Some(a / b),
                BinaryOp::Pow => Some(a.powf(b)),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Reader<'_> {
    fn error(&self, span: Span, message: impl Into<String>, label: &str) -> Diagnostic {
        Diagnostic::error(BAD_SCHEDULE, message).at(self.source, span, label)
    }

    fn schedule(&self, schedule: &ast::Schedule) -> Result<Template> {
        if let [only] = schedule.levels.as_slice() {
            let level = &only.kind.node;
            if level.axes.is_empty() {
                return self.named(level);
            }
        }
        let mut out = Draft {
            levels: vec![DraftLevel::default()],
            ..Draft::default()
        };
        let mut used: Vec<Axis> = Vec::new();
        for statement in &schedule.levels {
            let level = &statement.kind.node;
            self.once(level)?;
            let axes = self.axes(level)?;
            if axes.iter().any(|a| used.contains(a)) {
                used.clear();
                out.levels.push(DraftLevel::default());
            }
            used.extend(&axes);
            self.level(level, &axes, &mut out)?;
        }
        out.levels.retain(|l| !l.is_empty());
        if out.levels.is_empty() {
            return match out.height {
                None => Ok(Template::Layerwise),
                Some(_) => Err(self.error(
                    schedule.name.span,
                    "this schedule cuts no axis",
                    "a height, but no faces",
                )),
            };
        }
        let parts = self.parts(&out)?;
        let heights: &[i64] = match parts {
            Parts::Tiles(_) => &[4, 8, 16, 32],
            Parts::Pyramids(_) => &PYRAMID_HEIGHTS,
            Parts::Boxes(_) => &[],
        };
        if out.height.is_none() && !heights.is_empty() {
            out.height = Some(out.sizes.len());
            out.sizes.push(Size::of("height", heights));
        }
        Ok(Template::Tiled(TiledTemplate {
            // A schedule of the command line is named after the option.
            title: match schedule.name.node.starts_with("--") {
                true => self.written_out(schedule, &out),
                false => Title::Name(schedule.name.node.clone()),
            },
            sizes: out.sizes,
            height: out.height,
            parts,
        }))
    }

    /// Which kind of tiles the levels together are.
    fn parts(&self, draft: &Draft) -> Result<Parts> {
        let levels = &draft.levels;
        if let Some(span) = levels.iter().find_map(|l| l.first_pyramid) {
            let [only] = levels.as_slice() else {
                return Err(self.error(
                    span,
                    "a pyramid holds no other level",
                    "has to be the only level",
                ));
            };
            if !only.cuts.is_empty() || only.first_box.is_some() {
                return Err(self
                    .error(
                        span,
                        "pyramids do not combine with other shapes",
                        "not with those of other axes",
                    )
                    .hint("`span` leaves an axis whole"));
            }
            return Ok(Parts::Pyramids(only.pyramids));
        }
        if levels[0].cuts.is_empty() {
            // Boxes outside: one stage high, and so is all in them.
            let inner = levels.iter().find(|l| !l.cuts.is_empty());
            if let (Some(_), Some(span)) = (inner, levels[0].first_box) {
                return Err(self
                    .error(
                        span,
                        "a box is one stage high and holds no tiles",
                        "holds levels with faces",
                    )
                    .hint("tiles may hold boxes"));
            }
            if let (Some(_), Some(span)) = (draft.height, levels[0].first_box) {
                return Err(self.error(span, "a box is one stage high", "a height is given"));
            }
            return Ok(Parts::Boxes(levels.iter().map(|l| l.boxes).collect()));
        }
        let mut all = Vec::new();
        for level in levels {
            if !level.cuts.is_empty() {
                all.push(level.cuts.clone());
            }
            if level.first_box.is_some() {
                // One stage after the other, then boxes; these may move from stage to stage as faces do.
                all.push(vec![OpenCut {
                    form: PerAxis::splat(0),
                    slope: Some(Rational::ONE),
                    factor: Rational::ONE,
                    sizes: Vec::new(),
                }]);
                let cut = |(axis, size): (Axis, &Option<usize>)| {
                    Some(OpenCut {
                        form: axis_form(axis, 1),
                        slope: None,
                        factor: Rational::ONE,
                        sizes: vec![(*size)?],
                    })
                };
                all.push(level.boxes.iter().filter_map(cut).collect());
            }
        }
        Ok(Parts::Tiles(all))
    }

    /// The values of a size are whole numbers.
    fn whole(&self, size: &Size, span: Span) -> Result<()> {
        match size.values.iter().all(|v| v.den() == 1) {
            true => Ok(()),
            false => {
                let message = format!("`{}` is a whole number of cells or steps", size.name);
                Err(self.error(span, message, "here"))
            }
        }
    }

    /// The height of time blocks, in whole steps and bounded.
    fn steps(&self, name: &str, value: &ast::ScheduleValue, span: Span) -> Result<Size> {
        let given = match value {
            ast::ScheduleValue::Expr(e) => vec![e],
            ast::ScheduleValue::Auto => Vec::new(),
            ast::ScheduleValue::Range(a, b) => vec![a, b],
        };
        for e in given {
            if let Some(n) = number(e).filter(|n| *n > MOST_STEPS as f64) {
                let message = format!(
                    "time blocks are at most {MOST_STEPS} steps high, and this height is {n}"
                );
                return Err(self.error(e.span, message, "too high"));
            }
        }
        let size = self.size(name, value, span)?;
        let whole = |h: &Rational| h.den() == 1 && *h >= Rational::ONE;
        if !size.values.iter().all(whole) {
            let message = "a height is a whole number of steps, at least 1";
            return Err(self.error(span, message, "here"));
        }
        Ok(size)
    }

    fn axes(&self, level: &ast::ScheduleLevel) -> Result<Vec<Axis>> {
        let span = level.shape.name.span;
        if level.axes.is_empty() {
            let message = format!("`{}` stands among levels with axes", level.shape.name.node);
            return Err(self.error(span, message, "which axes does it cut?"));
        }
        level.axes.iter().map(|name| self.axis(name)).collect()
    }

    fn axis(&self, name: &ast::Name) -> Result<Axis> {
        let grid = &self.scheme.grid;
        let found = grid.present().find(|a| grid.axis_name(*a) == name.node);
        found.ok_or_else(|| {
            let names: Vec<&str> = grid.present().map(|a| grid.axis_name(a)).collect();
            // Axes of the scheme along which the domain has no extent are not among those of the grid.
            let message = format!("the domain has no axis `{}`", name.node);
            self.error(name.span, message, "no axis of the domain")
                .hint(format!("its axes are {}", names.join(", ")))
        })
    }

    fn size(&self, name: &str, value: &ast::ScheduleValue, span: Span) -> Result<Size> {
        let rational = |e: &ast::Expr| {
            let bad = |why: &str| self.error(e.span, format!("`{name}` {why}"), "here");
            let n = number(e).ok_or_else(|| bad("must be a number"))?;
            // Sizes are multiples of 1/64 cell below a million: exact, and small enough for exact arithmetic.
            let scaled = n * 64.0;
            if !(0.0..=64e6).contains(&scaled) || scaled != scaled.trunc() {
                return Err(bad("must be a multiple of 1/64 from 0 to 1,000,000"));
            }
            Rational::new(scaled as i64, 64).ok_or_else(|| bad("is out of range"))
        };
        let values = match value {
            ast::ScheduleValue::Expr(e) => vec![rational(e)?],
            ast::ScheduleValue::Auto => [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
                .map(Rational::whole)
                .to_vec(),
            ast::ScheduleValue::Range(a, b) => {
                let (lo, hi) = (rational(a)?, rational(b)?);
                let mut values = Vec::new();
                let mut v = lo;
                // Steps of a quarter keep wide ranges short; small values are tried one by one.
                while v <= hi && values.len() < 64 {
                    values.push(v);
                    let step = if v < Rational::whole(8) {
                        Rational::ONE
                    } else {
                        Rational::whole((v.floor() / 4).max(1))
                    };
                    v = v + step;
                }
                if values.is_empty() {
                    return Err(self.error(
                        span,
                        format!("the range of `{name}` is empty"),
                        "lower end above upper end",
                    ));
                }
                values
            }
        };
        Ok(Size {
            name: name.to_string(),
            values,
            is_given: true,
        })
    }

    fn level(&self, level: &ast::ScheduleLevel, axes: &[Axis], out: &mut Draft) -> Result<()> {
        let clauses = self.clauses(level, axes, out)?;
        let shape = &level.shape.name;
        match shape.node.as_str() {
            "span" if level.shape.args.is_empty() => Ok(()),
            "box" | "pyramid" => {
                let slope = clauses.slope.map(|_| "slope");
                if let Some(word) = slope.or(clauses.lean.map(|_| "lean")) {
                    let message = format!("`{word}` says nothing about a `{}`", shape.node);
                    return Err(self.error(
                        shape.span,
                        message,
                        "has upright sides, or derived ones",
                    ));
                }
                self.block(level, axes, out)
            }
            _ => self.faces(level, axes, &clauses, out),
        }
    }

    /// The clauses of a level. A height goes to the draft.
    fn clauses(
        &self,
        level: &ast::ScheduleLevel,
        axes: &[Axis],
        out: &mut Draft,
    ) -> Result<Clauses> {
        let mut clauses = Clauses::default();
        for clause in &level.clauses {
            match clause {
                ast::ScheduleClause::Lean { positive, axis } => {
                    let along = self.axis(axis)?;
                    if !axes.contains(&along) {
                        return Err(self.error(
                            axis.span,
                            "a tile leans along one of its own axes",
                            "not an axis of this level",
                        ));
                    }
                    clauses.lean = Some(Lean {
                        along,
                        sign: if *positive { 1 } else { -1 },
                    });
                }
                ast::ScheduleClause::Word { word, value } => match (word.node.as_str(), value) {
                    ("height", Some(value)) => self.height(word.span, value, out)?,
                    ("slope", Some(value)) => {
                        let size = self.size("slope", value, word.span)?;
                        let [one] = size.values.as_slice() else {
                            return Err(self.error(
                                word.span,
                                "a slope is one number, in cells per stage",
                                "here",
                            ));
                        };
                        clauses.slope = Some(*one);
                    }
                    (_, Some(_)) => return Err(self.unknown_clause(word)),
                    (_, None) => self.property(word, axes, out)?,
                },
            }
        }
        Ok(clauses)
    }

    /// The clause `height`.
    fn height(&self, span: Span, value: &ast::ScheduleValue, out: &mut Draft) -> Result<()> {
        if out.height.is_some() {
            return Err(self.error(
                span,
                "the height is given twice",
                "all levels share one height",
            ));
        }
        let size = self.steps("height", value, span)?;
        out.height = Some(out.sizes.len());
        self.add(size, value, span, out);
        Ok(())
    }

    /// A clause of one word, which states a property that the level has anyway.
    fn property(&self, word: &ast::Name, axes: &[Axis], out: &Draft) -> Result<()> {
        let outermost = out.levels.len() == 1;
        match word.node.as_str() {
            "parallel" if outermost => Ok(()),
            "parallel" => Err(self.error(
                word.span,
                "only the outermost level runs on several threads",
                "an inner level",
            )),
            "sequential" if !outermost => Ok(()),
            "sequential" => Err(self.error(
                word.span,
                "the outermost level runs on all threads",
                "use `--threads 1` for one",
            )),
            "vector" if axes == [Axis::INNER] => Ok(()),
            "vector" => {
                let name = self.scheme.grid.axis_name(Axis::INNER);
                let message = format!("vectors run along `{name}`");
                Err(self.error(word.span, message, "not along this axis"))
            }
            _ => Err(self.unknown_clause(word)),
        }
    }

    fn unknown_clause(&self, word: &ast::Name) -> Diagnostic {
        let message = format!("`{}` says nothing here", word.node);
        self.error(word.span, message, "unknown clause")
            .hint("height n, slope s, lean +x, parallel, sequential, vector")
    }

    /// A shape made of faces, with one pitch for all of them.
    fn faces(
        &self,
        level: &ast::ScheduleLevel,
        axes: &[Axis],
        clauses: &Clauses,
        out: &mut Draft,
    ) -> Result<()> {
        let shape = &level.shape.name;
        let forms = self.forms(shape, axes, clauses.lean)?;
        let [arg] = level.shape.args.as_slice() else {
            return Err(self.error(
                shape.span,
                format!("`{}` needs one size", shape.node),
                "as in `diamond(D = 2)` or `skewed(P = 32)`",
            ));
        };
        let size_name = arg.name.as_ref().map_or("P", |n| n.node.as_str());
        let span = arg.name.as_ref().map_or(shape.span, |n| n.span);
        let size = self.size(size_name, &arg.value, span)?;
        if size.values.iter().any(|v| *v <= Rational::ZERO) {
            return Err(self.error(span, format!("`{size_name}` must be positive"), "here"));
        }
        let slope = clauses.slope;
        let factor = match size_name {
            "P" | "W" => Rational::ONE,
            "D" => {
                let of = |form: &Form| slope.unwrap_or_else(|| self.frame.slope(*form));
                let steepest = forms.iter().map(of).max().unwrap_or(Rational::ONE);
                steepest * Rational::whole(2)
            }
            _ => {
                let message = format!("`{}` has no size `{size_name}`", shape.node);
                return Err(self.error(span, message, "unknown size").hint(
                    "P or W: the pitch of the faces in cells; D: the pitch in units of 2 s",
                ));
            }
        };
        let index = self.add(size, &arg.value, span, out);
        if let Some(level) = out.levels.last_mut() {
            level.cuts.extend(forms.into_iter().map(|form| OpenCut {
                form,
                slope,
                factor,
                sizes: vec![index],
            }));
        }
        Ok(())
    }

    /// The forms of a shape's faces.
    fn forms(&self, shape: &ast::Name, axes: &[Axis], lean: Option<Lean>) -> Result<Vec<Form>> {
        let sign = |axis: Axis| lean.filter(|l| l.along == axis).map_or(1, |l| l.sign);
        match (shape.node.as_str(), axes) {
            ("skewed", [a]) => Ok(vec![axis_form(*a, sign(*a))]),
            ("diamond", [a]) => Ok(vec![axis_form(*a, 1), axis_form(*a, -1)]),
            ("diamond" | "torre", [a, b]) if ![a, b].contains(&&Axis::INNER) => {
                let Lean { along, sign } = lean.unwrap_or(Lean { along: *a, sign: 1 });
                let across = if along == *a { *b } else { *a };
                let form = |by: i32| {
                    let mut form = axis_form(across, by);
                    form[along] = sign;
                    form
                };
                Ok(vec![form(1), form(-1)])
            }
            ("diamond" | "torre" | "skewed", _) => {
                let message = format!("`{}` does not fit these axes", shape.node);
                let vector = self.scheme.grid.axis_name(Axis::INNER);
                Err(self.error(shape.span, message, "not for these axes").hint(format!(
                    "skewed cuts one axis, diamond one, or two of which neither is the inner axis `{vector}`"
                )))
            }
            _ => {
                let message = format!("there is no shape `{}`", shape.node);
                Err(self.error(shape.span, message, "unknown shape").hint(
                    "span, skewed(P = ...), diamond(P = ...) for one axis, diamond(D = ...) or diamond(W = ...) for \
                     two, pyramid(base = ...), box(...)",
                ))
            }
        }
    }

    /// A box or a pyramid: one size for all axes.
    fn block(&self, level: &ast::ScheduleLevel, axes: &[Axis], out: &mut Draft) -> Result<()> {
        let shape = &level.shape.name;
        let pyramid = shape.node == "pyramid";
        let [arg] = level.shape.args.as_slice() else {
            return Err(self.error(
                shape.span,
                format!("`{}` needs one size", shape.node),
                "as in `pyramid(base = 64)` or `box(16)`",
            ));
        };
        let own = if pyramid { "base" } else { "W" };
        let name = arg.name.as_ref().map_or(own, |n| n.node.as_str());
        let span = arg.name.as_ref().map_or(shape.span, |n| n.span);
        if name != own {
            return Err(self
                .error(
                    span,
                    format!("`{}` has no size `{name}`", shape.node),
                    "unknown size",
                )
                .hint(format!("`{own}`: its extent along each axis, in cells")));
        }
        let size = self.size(name, &arg.value, span)?;
        self.whole(&size, span)?;
        if size.values.iter().any(|v| *v < Rational::ONE) {
            return Err(self.error(span, format!("`{name}` must be positive"), "here"));
        }
        let index = self.add(size, &arg.value, span, out);
        if let Some(draft) = out.levels.last_mut() {
            let (sizes, first) = match pyramid {
                true => (&mut draft.pyramids, &mut draft.first_pyramid),
                false => (&mut draft.boxes, &mut draft.first_box),
            };
            axes.iter().for_each(|&axis| sizes[axis] = Some(index));
            first.get_or_insert(shape.span);
        }
        Ok(())
    }
}

impl DraftLevel {
    fn is_empty(&self) -> bool {
        self.cuts.is_empty() && self.first_box.is_none() && self.first_pyramid.is_none()
    }
}
