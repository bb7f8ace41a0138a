//! The tables that `torre cone` prints and snapshots show.

use super::{Cones, Dependence, Form, Kind, Site, Via};
use crate::lattice::{Axis, HalfIndex, PerAxis};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Flow => "flow",
            Kind::Anti => "anti",
            Kind::Output => "output",
        })
    }
}

impl fmt::Display for Cones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.stages == 1 { "" } else { "s" };
        let Cones { scheme, stages, .. } = self;
        writeln!(f, "cones of {scheme}: {stages} stage{plural} per step")?;
        for kind in [Kind::Flow, Kind::Anti, Kind::Output] {
            self.print_kind(f, kind)?;
        }
        self.print_slopes(f)
    }
}

/// The dependences of one line: all that differ in `space` only.
type Group = (Site, Site, i64, PerAxis<Via>);

impl Cones {
    /// The axes that exist.
    fn present(&self) -> impl Iterator<Item = Axis> + '_ {
        Axis::ALL.into_iter().filter(|&a| self.axes[a].is_some())
    }

    fn axis_name(&self, axis: Axis) -> &str {
        self.axes[axis].as_deref().unwrap_or("")
    }

    /// A component's name and the number of a stage: `E.x/1`.
    fn site_name(&self, site: Site) -> String {
        let name = self.components.get(site.component.index());
        format!("{}/{}", name.map_or("?", String::as_str), site.stage.0)
    }

    /// A form as people write it: `x - y`, `-x`, `2 x + z`.
    pub fn form_name(&self, form: Form) -> String {
        let mut text = String::new();
        for axis in self.present().filter(|&a| form[a] != 0) {
            let n = form[axis];
            let sign = match (text.is_empty(), n < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            text.push_str(sign);
            if n.unsigned_abs() != 1 {
                text.push_str(&format!("{} ", n.unsigned_abs()));
            }
            text.push_str(self.axis_name(axis));
        }
        if text.is_empty() { "0".into() } else { text }
    }

    /// A dependence in words.
    pub fn describe(&self, d: &Dependence) -> String {
        let name = |site: Site| {
            let name = self.components.get(site.component.index());
            name.map_or("?", String::as_str)
        };
        let (from, to) = (name(d.from), name(d.to));
        let ago = match d.stages {
            1 => "1 stage".to_string(),
            n => format!("{n} stages"),
        };
        let at = |sign: i64| {
            let parts = self.present().map(|a| {
                let h = HalfIndex(sign * d.space[a].0);
                let plus = if h.0 > 0 { "+" } else { "" };
                format!("{plus}{h}")
            });
            format!("[{}]", parts.collect::<Vec<_>>().join(", "))
        };
        match d.kind {
            Kind::Flow => format!("{to} reads {from} at {} from {ago} before", at(-1)),
            Kind::Anti => format!(
                "{from} reads {to} at {}, which is overwritten {ago} later",
                at(1)
            ),
            Kind::Output => format!("{from} is overwritten {ago} later"),
        }
    }

    fn print_kind(&self, f: &mut fmt::Formatter<'_>, kind: Kind) -> fmt::Result {
        let mut groups: BTreeMap<Group, BTreeSet<PerAxis<HalfIndex>>> = BTreeMap::new();
        for d in self.local().filter(|d| d.kind == kind) {
            let group = groups.entry((d.from, d.to, d.stages, d.via)).or_default();
            group.insert(d.space);
        }
        let (earlier, later) = match kind {
            Kind::Flow => ("computed by", "read by"),
            Kind::Anti => ("read by", "overwritten by"),
            Kind::Output => ("computed by", "overwritten by"),
        };
        let head = [earlier, later, "stages", "vectors, in cells"];
        let rows = groups.iter().map(|((from, to, stages, via), spaces)| {
            let mut vectors = self.compress(spaces);
            for (axis, _) in via.iter().filter(|(_, v)| **v == Via::Mirror) {
                vectors.push_str(&format!(" (mirrored along {})", self.axis_name(axis)));
            }
            [
                self.site_name(*from),
                self.site_name(*to),
                stages.to_string(),
                vectors,
            ]
        });
        writeln!(f, "\n{kind}")?;
        table(f, head, rows.collect())
    }

    /// A set of displacements: displacements along one axis by axis, the others in brackets, or as a box if there are
    /// many.
    fn compress(&self, spaces: &BTreeSet<PerAxis<HalfIndex>>) -> String {
        let mut parts = Vec::new();
        let count = |p: &PerAxis<HalfIndex>| p.0.iter().filter(|h| h.0 != 0).count();
        if spaces.iter().any(|p| count(p) == 0) {
            parts.push("0".to_string());
        }
        for axis in self.present() {
            let on: BTreeSet<i64> = spaces
                .iter()
                .filter(|p| count(p) == 1 && p[axis].0 != 0)
                .map(|p| p[axis].0)
                .collect();
            if !on.is_empty() {
                parts.push(format!("{} {}", self.axis_name(axis), signed(&on)));
            }
        }
        let off: Vec<_> = spaces.iter().filter(|p| count(p) > 1).collect();
        if off.len() <= 8 {
            for p in off {
                let list: Vec<String> = self.present().map(|a| p[a].to_string()).collect();
                parts.push(format!("[{}]", list.join(", ")));
            }
        } else {
            let ranges: Vec<String> = self
                .present()
                .map(|a| {
                    let along = || off.iter().map(|p| p[a]);
                    let (lo, hi) = (along().min(), along().max());
                    format!("{}..={}", lo.unwrap_or_default(), hi.unwrap_or_default())
                })
                .collect();
            parts.push(format!("{} in [{}]", off.len(), ranges.join(", ")));
        }
        parts.join(", ")
    }

    fn print_slopes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes: Vec<Axis> = self.present().collect();
        let mut forms: Vec<Form> = Vec::new();
        for &a in &axes {
            for sign in [1, -1] {
                forms.push(super::axis_form(a, sign));
            }
        }
        if let [first, second, ..] = axes[..] {
            for (p, q) in [(1, 1), (1, -1), (-1, 1), (-1, -1)] {
                let mut form = Form::default();
                form[first] = p;
                form[second] = q;
                forms.push(form);
            }
        }
        let rows = forms.iter().map(|&form| {
            [
                self.form_name(form),
                self.slope(form).to_string(),
                self.slope_per_step(form).to_string(),
                self.speed(form).to_string(),
            ]
        });
        writeln!(f, "\nslopes, in cells")?;
        let head = ["along", "per stage", "per step", "influence per step"];
        table(f, head, rows.collect())?;
        let symmetric = if self.is_symmetric() { "" } else { "not " };
        writeln!(f, "\nthe cone is {symmetric}symmetric")?;
        let wraps = self.wraps();
        for axis in self.present().filter(|&a| wraps[a]) {
            let name = self.axis_name(axis);
            writeln!(f, "reads at the ends of {name} go around the domain")?;
        }
        Ok(())
    }
}

/// Columns from the left, two spaces apart.
fn table(f: &mut fmt::Formatter<'_>, head: [&str; 4], rows: Vec<[String; 4]>) -> fmt::Result {
    let rows: Vec<_> = [head.map(str::to_string)].into_iter().chain(rows).collect();
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    for row in &rows {
        let cells = row.iter().enumerate();
        let line: Vec<String> = cells.map(|(i, c)| format!("{c:0$}", width(i))).collect();
        writeln!(f, "  {}", line.join("  ").trim_end())?;
    }
    Ok(())
}

/// Half cells in ascending order of size; a pair of opposite ones as `±`.
fn signed(values: &BTreeSet<i64>) -> String {
    let sizes: BTreeSet<i64> = values.iter().map(|v| v.abs()).collect();
    let texts = sizes.iter().map(|&n| {
        let sign = match (values.contains(&n), values.contains(&-n)) {
            (true, true) => "±",
            (true, false) => "+",
            _ => "-",
        };
        format!("{sign}{}", HalfIndex(n))
    });
    texts.collect::<Vec<_>>().join(" ")
}
