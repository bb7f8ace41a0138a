//! From a schedule to text that reads as the same schedule.

use super::read;
use crate::cone::{Form, Rational};
use crate::lattice::{Axis, PerAxis};
use crate::schedule::{Boxes, Cut, Frame, Level, Pyramid, Schedule, Tiling};
use crate::scheme::Scheme;
use torre_grammar::parse_schedule;
use torre_grammar::source::Source;

/// The levels of a schedule, with all sizes and the directions of lean, as `--schedule` takes them. `None` where the
/// notation has no words for it, which is so for no schedule that was read or that a family has.
pub fn write(schedule: &Schedule, scheme: &Scheme, frame: &Frame) -> Option<String> {
    let writer = Writer { scheme, frame };
    let text = match schedule {
        Schedule::Layerwise => "layerwise".to_owned(),
        Schedule::Tiled(tiling) => writer.tiling(tiling)?,
        Schedule::Pyramids(pyramid) => writer.pyramid(pyramid)?,
        Schedule::Boxes(boxes) => writer.boxes(boxes)?,
    };
    let source = Source::new("--schedule", &text);
    let back = read(&source, &parse_schedule(&source).ok()?, scheme, frame).ok()?;
    (back.fixed(frame).as_ref() == Some(schedule)).then_some(text)
}

struct Writer<'a> {
    scheme: &'a Scheme,
    frame: &'a Frame,
}

/// The faces of tiles along the axes of one statement.
enum Faces {
    /// One axis, one direction.
    Skewed(Axis, i32),
    /// One axis, both directions.
    Line(Axis),
    /// Leans along the first axis.
    Tower { lean: Axis, sign: i32, other: Axis },
}

impl Writer<'_> {
    fn name(&self, axis: Axis) -> &str {
        self.scheme.grid.axis_name(axis)
    }

    fn tiling(&self, tiling: &Tiling) -> Option<String> {
        let mut lines: Vec<String> = Vec::new();
        if tiling.levels.is_empty() {
            let shape = match self.scheme.grid.dimensions() {
                3 => "torre(W = 0",
                _ => "diamond(P = 0",
            };
            return Some(format!("{shape}, TH = {})", tiling.height));
        }
        let mut in_boxes = false;
        for (number, level) in tiling.levels.iter().enumerate() {
            // The cut between stages comes with the first level of boxes.
            let is_stage = matches!(&level.cuts[..], [only] if only.face.form == PerAxis::splat(0));
            if is_stage {
                in_boxes = true;
                if number + 1 == tiling.levels.len() {
                    lines.push(self.boxes_as_outside(tiling)?);
                }
                continue;
            }
            match in_boxes {
                true => self.box_level(level, &mut lines)?,
                false => self.level(level, &mut lines)?,
            }
        }
        let first = lines.first_mut()?;
        first.push_str(&format!(" height {}", tiling.height));
        Some(lines.join("; "))
    }

    /// Boxes that add nothing but the cut between stages, as tiles have their faces.
    fn boxes_as_outside(&self, tiling: &Tiling) -> Option<String> {
        let cuts = tiling.levels.iter().flat_map(|level| &level.cuts);
        let mut found = cuts.filter_map(|cut| Some((self.box_axis(cut)?, cut.pitch)));
        found.find_map(|(axis, pitch)| Some(format!("{}: box({})", self.name(axis), size(pitch)?)))
    }

    /// The axis of a cut that could be one of boxes.
    fn box_axis(&self, cut: &Cut) -> Option<Axis> {
        let axis = Axis::ALL.into_iter().find(|a| cut.face.form[*a] != 0)?;
        let form = PerAxis::from_fn(|a| i32::from(a == axis));
        (cut.face == self.frame.fitting(form)).then_some(axis)
    }

    fn box_level(&self, level: &Level, lines: &mut Vec<String>) -> Option<()> {
        let mut used = Vec::new();
        for cut in &level.cuts {
            let axis = self.box_axis(cut)?;
            lines.push(format!("{}: box({})", self.name(axis), size(cut.pitch)?));
            used.push(axis);
        }
        self.spans(&used, lines);
        Some(())
    }

    fn level(&self, level: &Level, lines: &mut Vec<String>) -> Option<()> {
        let mut used = Vec::new();
        let mut cuts = &level.cuts[..];
        while let [first, rest @ ..] = cuts {
            let pair = rest.first().filter(|next| next.pitch == first.pitch);
            let pair = pair.and_then(|next| Some((next, double(first.face.form, next.face.form)?)));
            let (own, shape) = match pair {
                Some((_, shape)) => (&cuts[..2], shape),
                None => (&cuts[..1], single(first.face.form)?),
            };
            lines.push(self.statement(own, &shape)?);
            match shape {
                Faces::Skewed(axis, _) | Faces::Line(axis) => used.push(axis),
                Faces::Tower { lean, other, .. } => used.extend([lean, other]),
            }
            cuts = &cuts[own.len()..];
        }
        self.spans(&used, lines);
        Some(())
    }

    fn statement(&self, cuts: &[Cut], shape: &Faces) -> Option<String> {
        let first = cuts.first()?;
        let own = |cut: &Cut| cut.face.slope == self.frame.slope(cut.face.form);
        let slope = match cuts.iter().all(own) {
            true => None,
            false => Some(first.face.slope),
        };
        if slope.is_some_and(|slope| cuts.iter().any(|cut| cut.face.slope != slope)) {
            return None;
        }
        let plus = |sign: i32| if sign < 0 { '-' } else { '+' };
        let is_tower = matches!(shape, Faces::Tower { .. });
        let sizes = match size(first.pitch) {
            Some(pitch) if is_tower => format!("W = {pitch}"),
            Some(pitch) => format!("P = {pitch}"),
            // The pitch is no multiple of 1/64, but the size in units of twice the slope is.
            None => {
                let steepest = cuts.iter().map(|cut| cut.face.slope).max()?;
                let unit = steepest * Rational::whole(2);
                format!("D = {}", size(first.pitch.checked_div(unit)?)?)
            }
        };
        let mut text = match *shape {
            Faces::Skewed(axis, sign) => {
                let name = self.name(axis);
                format!("{name}: skewed({sizes}) lean {}{name}", plus(sign))
            }
            Faces::Line(axis) => format!("{}: diamond({sizes})", self.name(axis)),
            Faces::Tower { lean, sign, other } => {
                let [lean, other] = [lean, other].map(|axis| self.name(axis));
                format!(
                    "({lean}, {other}): diamond({sizes}) lean {}{lean}",
                    plus(sign)
                )
            }
        };
        if let Some(slope) = slope {
            text.push_str(&format!(" slope {}", size(slope)?));
        }
        Some(text)
    }

    /// The axes that a level leaves whole, so that the next statement begins a level.
    fn spans(&self, used: &[Axis], lines: &mut Vec<String>) {
        let whole = self.scheme.grid.present().filter(|a| !used.contains(a));
        lines.extend(whole.map(|axis| format!("{}: span", self.name(axis))));
    }

    fn pyramid(&self, pyramid: &Pyramid) -> Option<String> {
        let mut lines = self.blocks("pyramid(base = ", &pyramid.base)?;
        match lines.first_mut() {
            Some(first) => first.push_str(&format!(" height {}", pyramid.height)),
            None => lines.push(format!("pyramid(B = 0, TH = {})", pyramid.height)),
        }
        Some(lines.join("; "))
    }

    fn boxes(&self, boxes: &Boxes) -> Option<String> {
        let mut lines = Vec::new();
        for level in &boxes.levels {
            lines.extend(self.blocks("box(", level)?);
            let used: Vec<Axis> = Axis::ALL
                .into_iter()
                .filter(|a| level[*a].is_some())
                .collect();
            if !used.is_empty() {
                self.spans(&used, &mut lines);
            }
        }
        if lines.is_empty() {
            lines.push("box(B = 0)".to_owned());
        }
        Some(lines.join("; "))
    }

    /// A statement for each axis that is cut.
    fn blocks(&self, head: &str, sizes: &PerAxis<Option<i64>>) -> Option<Vec<String>> {
        let cut = |axis| Some((self.name(axis), sizes[axis]?));
        let cuts = Axis::ALL.into_iter().filter_map(cut);
        cuts.map(|(name, n)| Some(format!("{name}: {head}{})", size(Rational::whole(n))?)))
            .collect()
    }
}

/// The shape of a single face.
fn single(form: Form) -> Option<Faces> {
    let axis = Axis::ALL.into_iter().find(|a| form[*a] != 0)?;
    let alone = Axis::ALL.into_iter().all(|a| a == axis || form[a] == 0);
    (alone && form[axis].abs() == 1).then_some(Faces::Skewed(axis, form[axis]))
}

/// The shape of two faces.
fn double(first: Form, second: Form) -> Option<Faces> {
    let cut = |axis: &Axis| first[*axis] != 0 || second[*axis] != 0;
    let axes: Vec<Axis> = Axis::ALL.into_iter().filter(cut).collect();
    let signs = |axis: Axis| (first[axis], second[axis]);
    match axes[..] {
        [axis] if signs(axis) == (1, -1) => Some(Faces::Line(axis)),
        [a, b] => {
            let towers = [(a, b), (b, a)].into_iter();
            towers
                .filter(|(lean, other)| {
                    signs(*other) == (1, -1) && matches!(signs(*lean), (1, 1) | (-1, -1))
                })
                .map(|(lean, other)| Faces::Tower {
                    lean,
                    sign: first[lean],
                    other,
                })
                .next()
        }
        _ => None,
    }
}

/// A size that the notation can have: multiples of 1/64 below a million.
fn size(value: Rational) -> Option<String> {
    let fits =
        64 % value.den() == 0 && value >= Rational::ZERO && value <= Rational::whole(1_000_000);
    fits.then(|| value.as_f64().to_string())
}

#[cfg(test)]
mod tests;
