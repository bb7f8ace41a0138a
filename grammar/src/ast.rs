//! The syntax tree: the program as written, names unresolved, every node with its span.
//!
//! Equality ignores spans, so that `parse(print(ast)) == ast` states that the formatter is the parser's inverse.

use crate::source::Spanned;

pub type Name = Spanned<String>;

#[derive(Clone, Debug, PartialEq)]
pub struct Ast {
    pub items: Vec<Item>,
    /// Comments after the last item.
    pub end: Comments,
}

/// An item with the comment lines right above it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub comments: Comments,
    pub kind: ItemKind,
}

/// Comments are kept so that the formatter loses nothing. Text without the `//` and one space; a bare `//` is `" "`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comments {
    /// Whole-line comments before the node; an empty string is a blank line.
    pub before: Vec<String>,
    /// The comment behind the node, on its last line; of a block, behind its opening brace. In an `end`, behind the
    /// closing brace.
    pub trailing: Option<String>,
    /// The comments inside of the node, in their order; of a block, inside of its head.
    pub inside: Vec<Inside>,
}

/// A comment between the words of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Inside {
    /// How many names, numbers and strings of the node stand before it.
    pub words: usize,
    /// How many brackets close between the last of them and the comment, but for parentheses around operands.
    pub closed: usize,
    pub stand: Stand,
    pub beside: Option<Bracket>,
    pub text: String,
}

/// Where a comment stands in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// It is all of the line.
    Alone,
    /// Behind a part of the node.
    Behind,
}

/// A bracket next to a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bracket {
    /// It opens right before the comment.
    Open,
    /// It closes right behind it.
    Close,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    Use(Use),
    Const { name: Name, value: Expr },
    Def(Def),
    Layer(Layer),
    Scheme(Scheme),
    Problem(Problem),
    Schedule(Schedule),
}

/// `use a::b::{c, d}`: `path` is `a::b`, `names` the last part.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    pub path: Vec<Name>,
    pub names: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Def {
    pub name: Name,
    pub params: Vec<Param>,
    /// Lines of the block form before its value; empty for `def f(..) = expr`.
    pub lines: Vec<Stmt<DefLine>>,
    pub body: Expr,
    /// Comments of the body's line in the block form.
    pub body_comments: Comments,
    /// Comments after the body, before the closing brace of the block form.
    pub end: Comments,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DefLine {
    /// `require n > 0`: a condition on the parameters, before all other lines.
    Require(Expr),
    Let(Let),
    /// Values that are kept from step to step, in a region.
    State {
        names: Vec<Name>,
        region: Option<Expr>,
    },
    /// The next value of a state.
    Next {
        name: Name,
        value: Expr,
    },
}

/// `layer name(cells, ..) : wall { .. }`: the difference along an axis in a layer before a side.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub def: Def,
    /// The kind of the side behind the layer.
    pub wall: Name,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: Name,
    pub default: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Let {
    pub name: Name,
    pub value: Expr,
}

/// A line of a block with its comments.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt<T> {
    pub comments: Comments,
    pub kind: Spanned<T>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Scheme {
    pub name: Name,
    /// `: std::maxwell::maxwell`: the scheme that it is derived from.
    pub base: Option<Vec<Name>>,
    pub body: Vec<Stmt<SchemeStmt>>,
    /// Comments after the last statement, before the closing brace.
    pub end: Comments,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SchemeStmt {
    Axes(Vec<Name>),
    Param {
        name: Name,
        value: Expr,
    },
    Const {
        name: Name,
        value: Expr,
    },
    Field(Field),
    Coef(Coef),
    Region(Region),
    /// `boundary free: S odd`: a kind of side, with the fields that are odd or even about it.
    Side {
        name: Name,
        parities: Vec<SideParity>,
    },
    Step {
        body: Vec<Stmt<StepStmt>>,
        end: Comments,
    },
    /// `allow W0402`: warnings that are not wanted in the block.
    Allow(Vec<Name>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: Name,
    pub shape: Shape,
    /// Absent for named components.
    pub position: Option<Spanned<Position>>,
    /// `at expr`
    pub time: Option<Expr>,
    /// `levels expr`
    pub levels: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Scalar,
    Vector,
    Tensor,
    Named(Vec<(Name, Spanned<Position>)>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Position {
    Nodes,
    Edges,
    Faces,
    Cells,
    Explicit(Vec<Expr>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Coef {
    pub name: Name,
    pub shape: Option<Spanned<Shape>>,
    pub position: Option<Spanned<Position>>,
    pub value: Expr,
}

/// `region disc = (x - 5)^2 + y^2 < 4`: a named condition on the place.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub name: Name,
    /// `on cells`
    pub position: Option<Spanned<Position>>,
    pub condition: Expr,
}

/// `v.x odd`
#[derive(Clone, Debug, PartialEq)]
pub struct SideParity {
    pub field: Name,
    pub component: Option<Name>,
    pub odd: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StepStmt {
    Update {
        target: Target,
        op: UpdateOp,
        value: Expr,
    },
    Let(Let),
    /// `where`, any number of `else where`, and perhaps `else`.
    Where(Vec<Branch>),
    /// As in schemes.
    Allow(Vec<Name>),
}

/// `where c { ... }`, `else where c { ... }`, `else { ... }`
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Comments around `else`; comments of the first branch are the statement's.
    pub comments: Comments,
    /// Absent: `else`
    pub condition: Option<Expr>,
    pub body: Vec<Stmt<StepStmt>>,
    pub end: Comments,
}

/// `E`, `E.x`, `u@next`.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// `psi of E.z`: a state that the updates of `E.z` keep; in probes and outputs.
    pub state: Option<Name>,
    pub field: Name,
    pub component: Option<Name>,
    pub level: Option<Spanned<Level>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Next,
    Prev,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateOp {
    Set,
    Add,
    Sub,
}

pub type Expr = Spanned<ExprKind>;

/// Whether an operation stands in parentheses of its own, which belong to its place.
pub fn in_parentheses(value: &Expr) -> bool {
    match &value.node {
        ExprKind::Binary(_, left, _) => value.span.start < left.span.start,
        _ => false,
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// Text of the literal is not kept; the formatter prints the shortest text that reads back as this value.
    Number(f64),
    /// `"wave.csv"`
    Text(String),
    Name(String),
    /// `a::b::c` where a module's item is named in full.
    Path(Vec<Name>),
    /// `e.x`
    Member(Box<Expr>, Name),
    /// `e@prev`, `e@next`
    Level(Box<Expr>, Level),
    /// `e[o1, o2, o3]`: a raw read.
    Offset(Box<Expr>, Vec<Expr>),
    /// `[a, b, c]`
    List(Vec<Expr>),
    Call {
        callee: Box<Expr>,
        args: Vec<Arg>,
    },
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    If {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    pub name: Option<Name>,
    pub value: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Neg,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    And,
    Or,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub name: Name,
    pub body: Vec<Stmt<ProblemStmt>>,
    pub end: Comments,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProblemStmt {
    Scheme {
        path: Vec<Name>,
        params: Vec<(Name, Expr)>,
    },
    Const {
        name: Name,
        value: Expr,
    },
    /// One expression per axis.
    Domain(Vec<Expr>),
    /// As in schemes.
    Allow(Vec<Name>),
    Boundary(Vec<BoundaryClause>),
    Region(Region),
    Coef {
        name: Name,
        component: Option<Name>,
        value: Expr,
    },
    Init {
        target: Target,
        value: Expr,
    },
    Source {
        target: Target,
        place: Place,
        op: UpdateOp,
        value: Expr,
    },
    /// `incident wave { direction (1, 2); drive p = ricker(t, f0 = 0.02) }`
    Incident {
        name: Name,
        lines: Vec<Stmt<IncidentLine>>,
        end: Comments,
    },
    /// `total x = 20..80, y = 20..80 from wave`
    Total {
        ranges: Vec<Ends>,
        from: Name,
    },
    Probe {
        targets: Vec<Target>,
        place: Place,
        name: Option<Name>,
        every: Option<Expr>,
    },
    /// `record energy = sum(E.x^2 + E.y^2) in disc every 10`
    Record {
        name: Name,
        value: Expr,
        within: Vec<Within>,
        every: Option<Expr>,
    },
    Slice {
        targets: Vec<Target>,
        plane: Plane,
        within: Vec<Within>,
        every: Option<Expr>,
    },
    Volume {
        targets: Vec<Target>,
        within: Vec<Within>,
        every: Option<Expr>,
    },
    /// `output spectrum E.z z = 64 in x = 20..80 for f = [0.02, 0.03] every 5`; without a plane that of a box.
    Spectrum {
        targets: Vec<Target>,
        plane: Option<Plane>,
        within: Vec<Within>,
        frequencies: Expr,
        every: Option<Expr>,
    },
    Steps(Steps),
}

/// A line of an incident field.
#[derive(Clone, Debug, PartialEq)]
pub enum IncidentLine {
    /// `direction (1, 2)`
    Direction(Vec<Expr>),
    /// `drive E.z = sin(t)`: the drive that makes the plane wave.
    Drive { target: Target, value: Expr },
    /// `E.z = sin(t - x)`: the field itself.
    Given { target: Target, value: Expr },
}

/// `x = 20..80`: the ends of a box along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    pub axis: Name,
    pub from: Expr,
    pub to: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Steps {
    /// `steps 100`
    Count(Expr),
    /// `steps until 2.5`
    Until(Expr),
}

/// The plane of a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    pub axis: Name,
    pub at: Expr,
    /// `at z = 3.05`, a length, rather than `z = 128`, a cell index.
    pub is_length: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BoundaryClause {
    pub axis: Name,
    pub lower: BoundaryKind,
    /// Absent: the same on both sides.
    pub upper: Option<BoundaryKind>,
}

/// `pec`, `cpml(10)`: a name, with arguments if any.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundaryKind {
    pub name: Name,
    pub args: Vec<Arg>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// `at (i, j, k)`: cell indices.
    At(Vec<Expr>),
    /// `at x = 3.05, y = 1`: lengths; axes left out are whole.
    Near(Vec<(Name, Expr)>),
    /// `in x = a..b, y = c, disc`: the intersection of all of these.
    In(Vec<Within>),
    /// `where cond`
    Where(Expr),
    /// Everywhere.
    All,
}

/// A part of `in`.
#[derive(Clone, Debug, PartialEq)]
pub enum Within {
    /// `x = a..b` or the plane `x = a`, in cell indices.
    Range {
        axis: Name,
        from: Expr,
        to: Option<Expr>,
    },
    /// A condition on the place.
    Region(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub name: Name,
    /// `for scheme`
    pub scheme: Option<Name>,
    pub levels: Vec<Stmt<ScheduleLevel>>,
    pub end: Comments,
}

/// `(x, y): diamond(D = 2) lean +x height 64 parallel`
///
/// The meaning of the words is the schedule stage's; here they are a shape with arguments and a list of clauses.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleLevel {
    /// Empty where the shape names all of them itself, as in `torre(D = 2)`.
    pub axes: Vec<Name>,
    /// `diamond(D = 2)`
    pub shape: ScheduleTerm,
    /// `lean +x`, `height 64`, `parallel`, `slope 1.5`, in order.
    pub clauses: Vec<ScheduleClause>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleTerm {
    pub name: Name,
    pub args: Vec<ScheduleArg>,
}

/// `D = 2`, `auto`, `D = 2..8`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleArg {
    pub name: Option<Name>,
    pub value: ScheduleValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleValue {
    Expr(Expr),
    Auto,
    Range(Expr, Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleClause {
    /// `lean +x` / `lean -x`: true if towards the positive side.
    Lean { positive: bool, axis: Name },
    /// A word with an optional value: `height 64`, `parallel`.
    Word {
        word: Name,
        value: Option<ScheduleValue>,
    },
}
