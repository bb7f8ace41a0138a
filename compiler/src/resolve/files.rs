//! Values from files: arrays with one value per cell index, and tables.

use super::codes;
use super::files_read::{Site, Unfit};
use super::graph::{NodeId, TableId};
use super::report::{Outcome, Place, Reported};
use super::resolver::Resolver;
use super::value::{Items, Kind, Operand, Scope, Typed, Value};
use crate::lattice::Position;
use crate::scheme::StaticFile;
use crate::table::{Column, Table};
use torre_grammar::ast::{Arg, Expr};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Source;

/// The most tables of a file.
const TABLES: usize = 256;

impl Resolver<'_> {
    /// Evaluates an expression at the positions of a target's components. If it names arrays, each component gets the
    /// value at its own position; otherwise there is one value for all.
    pub fn operand_at(
        &mut self,
        scope: &Scope,
        expr: &Expr,
        kind: Kind,
        sites: &[Site],
    ) -> Outcome<Operand> {
        let before = self.files.arrays;
        let outer = std::mem::take(&mut self.files.site);
        let around = std::mem::replace(&mut self.files.sites, sites.to_vec());
        let waiting = (sites.len() > 1).then(Vec::new);
        let waiting = std::mem::replace(&mut self.files.unfit, waiting);
        self.files.site = sites.first().cloned().unwrap_or_default();
        let first = self.operand(scope, expr);
        let mut each = Vec::new();
        if self.files.arrays != before && sites.len() > 1 {
            for site in sites {
                self.files.site = site.clone();
                each.push(self.operand(scope, expr));
            }
        }
        self.files.site = outer;
        self.files.sites = around;
        let unfit = std::mem::replace(&mut self.files.unfit, waiting).unwrap_or_default();
        if first.is_err() || each.iter().any(Result::is_err) {
            return self.refuse_unfit(unfit, |_| true).and(Err(Reported));
        }
        let first = first?;
        if each.is_empty() {
            return Ok(first);
        }
        let mut items = Vec::new();
        for (i, operand) in each.into_iter().enumerate() {
            let operand = operand?;
            let Items { items: list, .. } = self.scalars(operand.value, &operand.place)?;
            match (list.as_slice(), list.get(i)) {
                ([one], _) | (_, Some(one)) => items.push(*one),
                // The shape does not fit; the error is reported where its use is known.
                _ => return Ok(first),
            }
        }
        let used = items.iter().map(|item| self.graph.unfit_under(item.node));
        let used: Vec<StaticFile> = used.flatten().collect();
        self.refuse_unfit(unfit, |array| used.contains(array))?;
        Ok(Operand {
            value: kind.with(items),
            place: first.place,
        })
    }

    /// Refuses some of the arrays that do not fit.
    fn refuse_unfit(
        &mut self,
        unfit: Vec<Unfit>,
        is_refused: impl Fn(&StaticFile) -> bool,
    ) -> Outcome<()> {
        let mut found = Ok(());
        for Unfit {
            array,
            fault,
            inlined,
        } in unfit
        {
            if is_refused(&array) {
                let around = std::mem::replace(&mut self.inlined, inlined);
                found = self.fail(fault);
                self.inlined = around;
            }
        }
        found
    }

    /// The items of a list. Where it has one for each component of the target, each is evaluated at the position of its
    /// own.
    pub fn items<'e>(
        &mut self,
        scope: &Scope,
        items: impl ExactSizeIterator<Item = &'e Expr>,
    ) -> Vec<Outcome<Operand>> {
        let sites = std::mem::take(&mut self.files.sites);
        let site = self.files.site.clone();
        let is_each = sites.len() == items.len();
        let mut found = Vec::new();
        for (i, item) in items.enumerate() {
            if is_each {
                self.files.site = sites[i].clone();
            }
            found.push(self.operand(scope, item));
        }
        (self.files.site, self.files.sites) = (site, sites);
        found
    }

    /// `file("eps.npy")`: one value per cell index, at the position of its use.
    pub fn call_file(&mut self, scope: &Scope, args: &[Arg], place: &Place) -> Outcome<Value> {
        let slots = self.arguments(scope, "file", &["name"], args, place)?;
        let Some(arg) = slots.first().copied().flatten() else {
            return self.missing_argument("file", "name", place);
        };
        let (path, at) = self.text(scope, &arg.value)?;
        self.files.arrays += 1;
        let position = match self.files.site.clone() {
            Site::At(position) => position,
            Site::Unplaced(name) => {
                let d = self
                    .error(
                        codes::FILE_POSITION,
                        format!("`{name}` needs a position for its values from a file"),
                        &at,
                    )
                    .hint("declare it `on nodes`, `on cells` or at another position");
                return self.fail(d);
            }
            Site::Nowhere => {
                let d = self
                    .error(
                        codes::FILE_POSITION,
                        "values from a file have no position here",
                        &at,
                    )
                    .hint("read them into a coefficient: `coef name on cells = file(...)`");
                return self.fail(d);
            }
        };
        let node = match self.fault_of_array(&at, &path, position)? {
            None => self.graph.file(&path, position),
            Some(fault) => self.unfit(fault, &path, position)?,
        };
        Ok(Value::Scalar(Typed {
            node,
            position: Some(position),
        }))
    }

    /// A node for an array that does not fit, if its value may be one that is not used.
    fn unfit(&mut self, fault: Diagnostic, path: &str, position: Position) -> Outcome<NodeId> {
        let Some(unfit) = &mut self.files.unfit else {
            return self.fail(fault);
        };
        let array = StaticFile {
            path: path.to_owned(),
            position,
        };
        if unfit.iter().all(|known| known.array != array) {
            unfit.push(Unfit {
                array,
                fault,
                inlined: self.inlined.clone(),
            });
        }
        Ok(self.graph.unfit_file(path, position))
    }

    /// `table("wave.csv", x)`: linear between the lines of a file; without an argument a function of time.
    pub fn call_table(&mut self, scope: &Scope, args: &[Arg], place: &Place) -> Outcome<Value> {
        let params = ["name", "at", "column", "outside"];
        let slots = self.arguments(scope, "table", &params, args, place)?;
        let [name, at, column, outside] = slots.as_slice() else {
            return self.missing_argument("table", "name", place);
        };
        let Some(name) = name else {
            return self.missing_argument("table", "name", place);
        };
        let (path, of) = self.text(scope, &name.value)?;
        let argument = match at {
            Some(arg) => {
                let operand = self.operand(scope, &arg.value)?;
                let at = operand.place.clone();
                let found = self.one_scalar(operand, "the argument of a table")?;
                if self.graph.is_dynamic(found.node) {
                    return self.not_on_fields("table", &at);
                }
                found
            }
            None => Typed {
                node: self.graph.time(),
                position: None,
            },
        };
        let column = match column {
            Some(arg) => self.column(scope, &arg.value)?,
            None => Column::Number(2),
        };
        let outside = match outside {
            Some(arg) => Some(self.number(scope, &arg.value)?),
            None => None,
        };
        let table = self.table(&path, &column, outside, &of)?;
        Ok(Value::Scalar(Typed {
            node: self.graph.table(table, argument.node),
            position: argument.position,
        }))
    }

    /// The second column or a later one, by number or by name.
    fn column(&mut self, scope: &Scope, expr: &Expr) -> Outcome<Column> {
        let operand = self.operand(scope, expr)?;
        if let Value::Text(name) = &operand.value {
            return Ok(Column::Named(name.to_string()));
        }
        let n = self.integer(scope, expr)?;
        match usize::try_from(n) {
            Ok(n) if n >= 2 => Ok(Column::Number(n)),
            _ => {
                let message = "the values of a table are in its second column or a later one";
                let mut d = self.error(codes::ARGUMENTS, message, &operand.place);
                d.labels[0].text = format!("this is {n}");
                self.fail(d)
            }
        }
    }

    fn table(
        &mut self,
        path: &str,
        column: &Column,
        outside: Option<f64>,
        place: &Place,
    ) -> Outcome<TableId> {
        let key = (path.to_string(), format!("{column:?} {outside:?}"));
        if let Some(&known) = self.files.tables.get(&key) {
            return Ok(known);
        }
        if self.files.tables.len() >= TABLES {
            let message = format!("a program has up to {TABLES} tables");
            let d = self.error(codes::TOO_COMPLEX, message, place);
            return self.fail(d);
        }
        let text = match self.files.texts.get(path) {
            Some(text) => text.clone(),
            None => match self.world.table(&place.source, path) {
                Ok(text) => Source::new(path, text),
                Err(reason) => {
                    let message = format!("`{path}` cannot be read: {reason}");
                    let d = self.error(codes::UNREADABLE, message, place);
                    return self.fail(d);
                }
            },
        };
        self.files.texts.insert(path.to_string(), text.clone());
        // Reading a long text is work like any other.
        self.graph.spend(text.text().len() / 64);
        match Table::read(path, text.text(), column, outside) {
            Ok(table) => {
                let id = self.graph.table_id(table);
                self.files.tables.insert(key, id);
                Ok(id)
            }
            Err(fault) => {
                let message = format!("`{path}` is no table: {}", fault.0);
                let d = self.error(codes::NO_TABLE, message, place).hint(
                    "a table has lines of numbers with commas between them, the first rising",
                );
                self.fail(d)
            }
        }
    }

    /// A text that is known now, and where it is written.
    fn text(&mut self, scope: &Scope, expr: &Expr) -> Outcome<(String, Place)> {
        let operand = self.operand(scope, expr)?;
        match operand.value {
            Value::Text(text) => Ok((text.to_string(), operand.place)),
            _ => {
                let d = self
                    .error(
                        codes::ARGUMENTS,
                        "the name of a file is needed here",
                        &operand.place,
                    )
                    .hint("names stand in double quotes: `\"wave.csv\"`");
                self.fail(d)
            }
        }
    }

    /// The fault of an array that does not have one value for each index of a component at `position`.
    fn fault_of_array(
        &mut self,
        place: &Place,
        path: &str,
        position: Position,
    ) -> Outcome<Option<Diagnostic>> {
        let info = match self.world.array(&place.source, path) {
            Ok(info) => info,
            Err(reason) => {
                let d = self.error(
                    codes::UNREADABLE,
                    format!("`{path}` cannot be read: {reason}"),
                    place,
                );
                return self.fail(d);
            }
        };
        let kind: String = info
            .dtype
            .chars()
            .skip_while(|c| "<>|=".contains(*c))
            .collect();
        const READABLE: [&str; 12] = [
            "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1",
        ];
        if !READABLE.contains(&kind.as_str()) {
            let d = self
                .error(
                    codes::FILE_TYPE,
                    format!("`{path}` holds values of type `{}`", info.dtype),
                    place,
                )
                .hint(
                    "values are real numbers: convert with `.astype(\"f4\")` or `.astype(\"f8\")`",
                );
            return self.fail(d);
        }
        let Some(grid) = &self.frame.grid else {
            return Ok(None);
        };
        let extent = grid.extent(position);
        let expected: Vec<u64> = grid.present().map(|a| extent[a].len() as u64).collect();
        if self.frame.has_domain && info.shape != expected {
            let list = |shape: &[u64]| {
                let parts: Vec<String> = shape.iter().map(u64::to_string).collect();
                match parts[..] {
                    [] => "of a single number".to_owned(),
                    _ => parts.join(" x "),
                }
            };
            let d = self
                .error(
                    codes::FILE_SHAPE,
                    format!(
                        "`{path}` has the shape {}, but {} is needed",
                        list(&info.shape),
                        list(&expected)
                    ),
                    place,
                )
                .hint("one value per cell index, in the order of the axes");
            return Ok(Some(d));
        }
        Ok(None)
    }
}
