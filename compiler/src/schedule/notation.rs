//! From the text of a schedule to a template: what the words mean.
//!
//! | text | meaning |
//! |---|---|
//! | `layerwise`, `auto` | as they say |
//! | `torre(D = 2, TH = 64, G = 1, Z = 0)` | [`torre`] with period W = 2 s D, s the slope of x + y; or `W = 8` itself |
//! | `diamond(P = 32, TH = 16, Z = 0)`, `skewed(...)` | [`diamond`], [`skewed`]; 1-D: along the axis |
//! | `(x, y): diamond(D = 2)` or `(W = 8)` | faces x + y and x - y, leaning up the first axis or as `lean` says |
//! | `x: diamond(P = 32)` | faces x and -x |
//! | `x: skewed(P = 32)` | face x, or -x with `lean -x` |
//! | `z: span` | not cut |
//!
//! Clauses: `height n` (once), `slope s` (checked, in cells per stage; default: derived), `lean +x`, and the words `parallel`, `sequential`
//! and `vector`, which state what the level does anyway and are checked. An axis that is named again starts an inner level. Sizes are numbers, `auto`, or
//! ranges `a..b` to choose from.

use super::template::{self, OpenCut, Size, Template, TiledTemplate};
use crate::cone::{Form, Rational, axis_form};
use crate::lattice::{Axis, PerAxis};
use crate::schedule::Frame;
use crate::scheme::Scheme;
use torre_grammar::ast;
use torre_grammar::diag::{Code, Diagnostic, Diagnostics};
use torre_grammar::source::{Source, Span};

/// A schedule that does not fit the scheme, or whose words have no meaning.
pub const BAD_SCHEDULE: Code = Code("E0851");

struct Reader<'a> {
    source: &'a Source,
    scheme: &'a Scheme,
    frame: &'a Frame,
}

type Result<T> = std::result::Result<T, Diagnostic>;

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
    reader.schedule(schedule).map_err(Diagnostics::from)
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
        let span = schedule.name.span;
        if let [only] = schedule.levels.as_slice() {
            let level = &only.kind.node;
            if level.axes.is_empty() {
                return self.named(level);
            }
        }
        let mut out = TiledTemplate {
            // A schedule of the command line is named after the option.
            name: match schedule.name.node.strip_prefix("--") {
                Some(_) => "tiles".to_string(),
                None => schedule.name.node.clone(),
            },
            sizes: Vec::new(),
            height: usize::MAX,
            levels: vec![Vec::new()],
        };
        let mut used: Vec<Axis> = Vec::new();
        for statement in &schedule.levels {
            let level = &statement.kind.node;
            let axes = self.axes(level)?;
            if axes.iter().any(|a| used.contains(a)) {
                used.clear();
                out.levels.push(Vec::new());
            }
            used.extend(&axes);
            self.level(level, &axes, &mut out)?;
        }
        if out.height == usize::MAX {
            let cuts = out.levels.iter().any(|l| !l.is_empty());
            if !cuts {
                return Ok(Template::Layerwise);
            }
            out.height = out.sizes.len();
            out.sizes.push(Size {
                name: "height".to_string(),
                values: [4, 8, 16, 32].map(Rational::whole).to_vec(),
            });
        }
        out.levels.retain(|l| !l.is_empty());
        if out.levels.is_empty() {
            return Err(self.error(span, "this schedule cuts no axis", "a height, but no faces"));
        }
        Ok(Template::Tiled(out))
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
            let message = format!("scheme `{}` has no axis `{}`", self.scheme.name, name.node);
            self.error(name.span, message, "unknown axis")
                .hint(format!("its axes are {}", names.join(", ")))
        })
    }

    /// A shape of the library, with all its axes.
    fn named(&self, level: &ast::ScheduleLevel) -> Result<Template> {
        let name = &level.shape.name;
        let dimensions = self.scheme.grid.dimensions();
        let allowed: &[&str] = match (name.node.as_str(), dimensions) {
            ("layerwise" | "auto", _) => &[],
            ("torre", 3) => &["D", "W", "G", "TH", "Z"],
            ("diamond" | "skewed", 2) => &["P", "TH", "Z"],
            ("diamond", 1) => &["P", "TH"],
            ("torre" | "diamond" | "skewed", _) => {
                let count = ["no axes", "one axis", "two axes", "three axes"][dimensions.min(3)];
                let message = format!("`{}` is no shape for {count}", name.node);
                return Err(self.error(name.span, message, "this scheme needs another shape").hint(
                    "torre is for three axes, diamond for one or two, skewed for two; or write levels, as in `x: skewed(P = 32) height 16`",
                ));
            }
            _ => {
                let message = format!("there is no schedule `{}`", name.node);
                return Err(self.error(name.span, message, "unknown schedule").hint(
                    "layerwise, auto, torre, diamond, skewed, the name of a schedule block, or levels such as `(x, y): diamond(D = 2) height 16`",
                ));
            }
        };
        let mut given: Vec<(String, Size)> = Vec::new();
        for arg in &level.shape.args {
            let Some(arg_name) = &arg.name else {
                return Err(self.error(
                    name.span,
                    "sizes need their names",
                    "as in `torre(D = 2, TH = 64)`",
                ));
            };
            if !allowed.contains(&arg_name.node.as_str()) {
                let message = format!("`{}` has no size `{}`", name.node, arg_name.node);
                return Err(self
                    .error(arg_name.span, message, "unknown size")
                    .hint(format!("its sizes are {}", allowed.join(", "))));
            }
            let size = self.size(&arg_name.node, &arg.value, arg_name.span)?;
            given.push((arg_name.node.clone(), size));
        }
        if let Some(clause) = level.clauses.first() {
            let span = match clause {
                ast::ScheduleClause::Lean { axis, .. } => axis.span,
                ast::ScheduleClause::Word { word, .. } => word.span,
            };
            return Err(self
                .error(
                    span,
                    format!("`{}` takes no clauses", name.node),
                    "not here",
                )
                .hint("sizes go into the parentheses, as in `torre(D = 2, TH = 64)`"));
        }
        let take = |want: &str| {
            given
                .iter()
                .find(|(n, _)| n == want)
                .map(|(_, s)| s.clone())
        };
        let or = |want: &str, values: &[i64]| {
            take(want).unwrap_or_else(|| Size {
                name: want.to_string(),
                values: values.iter().map(|v| Rational::whole(*v)).collect(),
            })
        };
        let heights = [4, 8, 16, 32];
        let any = given.is_empty();
        Ok(match (name.node.as_str(), dimensions) {
            ("layerwise", _) => Template::Layerwise,
            ("auto", _) => Template::Auto,
            ("torre", _) => {
                let width = match (take("D"), take("W")) {
                    (Some(_), Some(_)) => {
                        return Err(self.error(
                            name.span,
                            "both D and W are given",
                            "W = 2 s D: one of them is enough",
                        ));
                    }
                    (Some(d), None) => self.widths(d)?,
                    (None, Some(w)) => w,
                    (None, None) => or("W", &[4, 6, 8, 12, 16, 24]),
                };
                let groups: &[i64] = if any { &[1, 2, 3, 4, 6] } else { &[1] };
                let blocks: &[i64] = if any { &[0, 64, 128, 256] } else { &[0] };
                Template::Tiled(template::torre(
                    width,
                    or("G", groups),
                    or("TH", &heights),
                    or("Z", blocks),
                ))
            }
            ("diamond", 1) => Template::Tiled(template::line(
                or("P", &[1024, 4096, 16384]),
                or("TH", &[8, 32, 128]),
            )),
            (shape, _) => {
                let blocks: &[i64] = if any { &[0, 512, 1024] } else { &[0] };
                let make = if shape == "diamond" {
                    template::diamond
                } else {
                    template::skewed
                };
                Template::Tiled(make(
                    or("P", &[8, 16, 32, 64]),
                    or("TH", &heights),
                    or("Z", blocks),
                ))
            }
        })
    }

    /// Widths 2 s D for given D, with s the slope of x + y.
    fn widths(&self, d: Size) -> Result<Size> {
        let slope = self.frame.slope(PerAxis([1, 1, 0]));
        let values = d
            .values
            .iter()
            .map(|d| *d * slope * Rational::whole(2))
            .collect();
        Ok(Size {
            name: "W".to_string(),
            values,
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
                // Doubling keeps wide ranges short; small ones are tried one by one.
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
        })
    }

    fn level(
        &self,
        level: &ast::ScheduleLevel,
        axes: &[Axis],
        out: &mut TiledTemplate,
    ) -> Result<()> {
        let mut slope = None;
        let mut lean: Option<(Axis, i32)> = None;
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
                    lean = Some((along, if *positive { 1 } else { -1 }));
                }
                ast::ScheduleClause::Word { word, value } => match (word.node.as_str(), value) {
                    ("height", Some(v)) if out.height == usize::MAX => {
                        out.height = out.sizes.len();
                        let size = self.size("height", v, word.span)?;
                        let whole = |h: &Rational| h.den() == 1 && *h >= Rational::ONE;
                        if !size.values.iter().all(whole) {
                            return Err(self.error(
                                word.span,
                                "a height is a whole number of steps, at least 1",
                                "here",
                            ));
                        }
                        out.sizes.push(size);
                    }
                    ("height", Some(_)) => {
                        return Err(self.error(
                            word.span,
                            "the height is given twice",
                            "all levels share one height",
                        ));
                    }
                    ("slope", Some(v)) => {
                        let size = self.size("slope", v, word.span)?;
                        match size.values.as_slice() {
                            [one] => slope = Some(*one),
                            _ => {
                                return Err(self.error(
                                    word.span,
                                    "a slope is one number, in cells per stage",
                                    "here",
                                ));
                            }
                        }
                    }
                    ("parallel", None) if out.levels.len() == 1 => {}
                    ("parallel", None) => {
                        return Err(self.error(
                            word.span,
                            "only the outermost level runs on several threads",
                            "an inner level",
                        ));
                    }
                    ("sequential", None) if out.levels.len() > 1 => {}
                    ("sequential", None) => {
                        return Err(self.error(
                            word.span,
                            "the outermost level runs on all threads",
                            "use `--threads 1` for one",
                        ));
                    }
                    ("vector", None) if axes == [Axis::VECTOR] => {}
                    ("vector", None) => {
                        let name = self.scheme.grid.axis_name(Axis::VECTOR);
                        return Err(self.error(
                            word.span,
                            format!("vectors run along `{name}`"),
                            "not along this axis",
                        ));
                    }
                    _ => {
                        return Err(self
                            .error(
                                word.span,
                                format!("`{}` says nothing here", word.node),
                                "unknown clause",
                            )
                            .hint("height n, slope s, lean +x, parallel, sequential, vector"));
                    }
                },
            }
        }
        let shape = &level.shape.name;
        let sign = |axis: Axis| lean.map_or(1, |(a, s)| if a == axis { s } else { 1 });
        let forms: Vec<Form> = match (shape.node.as_str(), axes) {
            ("span", _) if level.shape.args.is_empty() => return Ok(()),
            ("skewed", [a]) => vec![axis_form(*a, sign(*a))],
            ("diamond", [a]) => vec![axis_form(*a, 1), axis_form(*a, -1)],
            ("diamond" | "torre", [a, b]) if ![a, b].contains(&&Axis::VECTOR) => {
                let (lean_axis, s) = lean.unwrap_or((*a, 1));
                let other = if lean_axis == *a { *b } else { *a };
                [1, -1]
                    .map(|t| {
                        PerAxis::from_fn(|x| {
                            if x == lean_axis {
                                s
                            } else if x == other {
                                t
                            } else {
                                0
                            }
                        })
                    })
                    .to_vec()
            }
            ("diamond" | "torre" | "skewed", _) => {
                let message = format!("`{}` does not fit these axes", shape.node);
                let vector = self.scheme.grid.axis_name(Axis::VECTOR);
                return Err(self.error(shape.span, message, "not for these axes").hint(format!(
                    "skewed cuts one axis, diamond one, or two of which neither is the vector axis `{vector}`"
                )));
            }
            _ => {
                return Err(self.error(shape.span, format!("there is no shape `{}`", shape.node), "unknown shape")
                    .hint("span, skewed(P = ...), diamond(P = ...) for one axis, diamond(D = ...) or diamond(W = ...) for two"));
            }
        };
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
        let factor = match size_name {
            "P" | "W" => Rational::ONE,
            "D" => {
                let of = |form: &Form| slope.unwrap_or_else(|| self.frame.slope(*form));
                let steepest = forms.iter().map(of).max().unwrap_or(Rational::ONE);
                steepest * Rational::whole(2)
            }
            _ => {
                return Err(self
                    .error(
                        span,
                        format!("`{}` has no size `{size_name}`", shape.node),
                        "unknown size",
                    )
                    .hint(
                        "P or W: the period of the faces in cells; D: the period in units of 2 s",
                    ));
            }
        };
        let index = out.sizes.len();
        out.sizes.push(size);
        if let Some(cuts) = out.levels.last_mut() {
            cuts.extend(forms.into_iter().map(|form| OpenCut {
                form,
                slope,
                factor,
                sizes: vec![index],
            }));
        }
        Ok(())
    }
}
