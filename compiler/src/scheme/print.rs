//! The dump of a scheme: the text that `torre emit --stage scheme` prints and snapshots show.

use super::{Body, Boundary, Op, Scheme, Update};
use std::fmt;

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Boundary::Zero => f.write_str("zero"),
            Boundary::Periodic => f.write_str("periodic"),
            Boundary::Pec => f.write_str("pec"),
            Boundary::Pmc => f.write_str("pmc"),
            Boundary::Mirror(odd) => {
                f.write_str("odd at")?;
                for position in odd.positions() {
                    let [a, b, c] = position.0;
                    write!(f, " [{a}, {b}, {c}]")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "scheme {} {}", self.name, self.precision)?;
        for axis in self.grid.present() {
            let [lower, upper] = self.grid.boundary[axis];
            writeln!(
                f,
                "  axis {} {axis}: {} cells of {:?}, {lower} | {upper}",
                self.grid.axis_name(axis),
                self.grid.cells[axis],
                self.grid.spacing[axis],
            )?;
        }
        writeln!(f, "  dt {:?}", self.grid.dt)?;
        for id in self.component_ids() {
            let c = self.component(id);
            writeln!(
                f,
                "  {id} {} at {} time {} levels {}",
                c.name,
                self.list(c.position),
                c.time,
                c.time_levels
            )?;
        }
        for (i, m) in self.coefs.iter().enumerate() {
            writeln!(
                f,
                "  m{i} {} at {} = {}{}",
                m.name,
                self.list(m.position),
                m.value,
                match m.only_axis {
                    Some(axis) => format!(", along {}", self.grid.axis_name(axis)),
                    None => String::new(),
                }
            )?;
        }
        for (i, file) in self.files.iter().enumerate() {
            writeln!(f, "  f{i} {:?} at {}", file.path, self.list(file.position))?;
        }
        for (i, zone) in self.zones.iter().enumerate() {
            let boxes: Vec<String> = zone.boxes.iter().map(|b| self.list(*b)).collect();
            writeln!(f, "  z{i} {} in {}", zone.name, boxes.join(" and "))?;
        }
        for (i, state) in self.states.iter().enumerate() {
            writeln!(
                f,
                "  q{i} {} at {} in {}",
                state.name,
                self.list(state.position),
                state.zone
            )?;
        }
        for id in self.stage_ids() {
            writeln!(f, "  stage {id}")?;
            for update in &self.stages[id.index()].updates {
                self.print_update(f, update)?;
            }
        }
        Ok(())
    }
}

impl Scheme {
    fn list<T: fmt::Display>(&self, values: crate::lattice::PerAxis<T>) -> String {
        let parts: Vec<String> = self.grid.present().map(|a| values[a].to_string()).collect();
        format!("[{}]", parts.join(", "))
    }

    fn print_update(&self, f: &mut fmt::Formatter<'_>, update: &Update) -> fmt::Result {
        let target = self.component(update.target);
        write!(f, "    {} in {}", target.name, self.list(update.region))?;
        if let Some(mask) = update.mask {
            write!(f, " where {mask}")?;
        }
        writeln!(f)?;
        self.print_body(f, &update.body)?;
        writeln!(f, "      store {}", update.body.result)?;
        for amendment in &update.amendments {
            writeln!(f, "      in {}", amendment.zone)?;
            self.print_body(f, &amendment.body)?;
            for advance in &amendment.advances {
                writeln!(f, "      {} <- {}", advance.state, advance.value)?;
            }
            writeln!(f, "      store {}", amendment.body.result)?;
        }
        Ok(())
    }

    fn print_body(&self, f: &mut fmt::Formatter<'_>, body: &Body) -> fmt::Result {
        for (i, op) in body.ops.iter().enumerate() {
            write!(f, "      %{i} = ")?;
            match op {
                Op::Const(c) => writeln!(f, "{c:?}")?,
                Op::Read(r) => {
                    let aged = if r.age == 0 {
                        String::new()
                    } else {
                        format!("@{}", r.age)
                    };
                    let name = &self.component(r.component).name;
                    writeln!(f, "{name}{}{aged}", self.list(r.offset))?;
                }
                Op::Coef(m) => writeln!(f, "{m}")?,
                Op::Base => writeln!(f, "base")?,
                Op::State(q) => writeln!(f, "{q}")?,
                Op::Neg(a) => writeln!(f, "neg {a}")?,
                Op::Abs(a) => writeln!(f, "abs {a}")?,
                Op::Flush(a) => writeln!(f, "flush {a}")?,
                Op::Sqrt(a) => writeln!(f, "sqrt {a}")?,
                Op::Power2(a) => writeln!(f, "power2 {a}")?,
                Op::Exponent(a) => writeln!(f, "exponent {a}")?,
                Op::Add(a, b) => writeln!(f, "add {a} {b}")?,
                Op::Sub(a, b) => writeln!(f, "sub {a} {b}")?,
                Op::Mul(a, b) => writeln!(f, "mul {a} {b}")?,
                Op::Div(a, b) => writeln!(f, "div {a} {b}")?,
                Op::Fma(a, b, c) => writeln!(f, "fma {a} {b} {c}")?,
                Op::Select {
                    cmp,
                    a,
                    b,
                    then,
                    otherwise,
                } => {
                    let cmp = format!("{cmp:?}").to_lowercase();
                    writeln!(f, "select {a} {cmp} {b} ? {then} : {otherwise}")?;
                }
            }
        }
        Ok(())
    }
}
