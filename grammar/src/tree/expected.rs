//! The expectations of the grammar, in the user's terms.

use super::Rule;
use pest::error::{Error, ErrorVariant, InputLocation};

/// Where and why the grammar did not match.
pub(crate) struct Failure {
    /// A byte of the source.
    pub at: usize,
    /// Texts that could have stood there, the most telling first.
    pub expected: Vec<&'static str>,
    pub wants: Wants,
}

/// The conditions of hints.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wants {
    pub item: bool,
    pub scheme_stmt: bool,
    pub step_stmt: bool,
    pub problem_stmt: bool,
    pub name: bool,
    pub operator: bool,
    pub expr: bool,
    pub brace: bool,
    pub end: bool,
    pub level_word: bool,
    pub position: bool,
    pub sign: bool,
    pub tuple: bool,
    pub on: bool,
    pub equals: bool,
    /// `=`, `+=` or `-=`
    pub updates: bool,
    pub clause: bool,
    pub def_body: bool,
    /// The stack ran out: the nesting is too deep for this thread.
    pub stack: bool,
}

impl Failure {
    pub fn new(error: &Error<Rule>, base: usize) -> Self {
        let (InputLocation::Pos(at) | InputLocation::Span((at, _))) = error.location;
        let mut failure = Self {
            at: base + at,
            expected: Vec::new(),
            wants: Wants::default(),
        };
        let ErrorVariant::ParsingError { positives, .. } = &error.variant else {
            failure.wants.stack = true;
            return failure;
        };
        let mut found: Vec<(usize, &'static str)> = Vec::new();
        for rule in positives {
            failure.wants.note(*rule);
            if let Some(term) = describe(*rule)
                && !found.contains(&term)
            {
                found.push(term);
            }
        }
        if failure.wants.operator {
            // Where an operator fits, these fit too, and do not help.
            found.retain(|(_, term)| !matches!(*term, "`::`" | "`(`" | "`[`"));
        }
        let all = found.clone();
        found.retain(|(_, term)| !all.iter().any(|(_, other)| is_part(term, other)));
        found.sort_unstable();
        failure.expected = found.into_iter().map(|(_, text)| text).collect();
        failure
    }
}

/// Whether another list of tokens has all tokens of a list, and more.
fn is_part(list: &str, other: &str) -> bool {
    let is_list = |text: &str| text.starts_with('`');
    let (own, others) = (tokens(list), tokens(other));
    is_list(list)
        && is_list(other)
        && own.len() < others.len()
        && own.iter().all(|token| others.contains(token))
}

/// The tokens that a text names.
fn tokens(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

impl Wants {
    fn note(&mut self, rule: Rule) {
        match rule {
            Rule::item_text => self.item = true,
            Rule::use_item
            | Rule::const_item
            | Rule::def_item
            | Rule::layer_item
            | Rule::problem_item => self.item = true,
            Rule::scheme_stmt => self.scheme_stmt = true,
            Rule::step_line => self.step_stmt = true,
            Rule::problem_stmt => self.problem_stmt = true,
            Rule::name
            | Rule::term_name
            | Rule::target
            | Rule::component
            | Rule::setting
            | Rule::ends_of
            | Rule::def_param => self.name = true,
            Rule::op | Rule::member | Rule::level | Rule::offset | Rule::call => {
                self.operator = true
            }
            Rule::expr
            | Rule::operand
            | Rule::path
            | Rule::number
            | Rule::list
            | Rule::paren
            | Rule::arg => self.expr = true,
            Rule::lbrace
            | Rule::scheme_block
            | Rule::step_block
            | Rule::problem_block
            | Rule::incident_block
            | Rule::schedule_block => self.brace = true,
            Rule::eol | Rule::EOI => self.end = true,
            Rule::level_word => self.level_word = true,
            Rule::position => self.position = true,
            Rule::sign => self.sign = true,
            Rule::tuple | Rule::lparen => self.tuple = true,
            Rule::kw_on => self.on = true,
            Rule::eq => self.equals = true,
            Rule::update_op => self.updates = true,
            Rule::lean | Rule::word_clause | Rule::kw_lean => self.clause = true,
            Rule::def_body
            | Rule::require_stmt
            | Rule::let_stmt
            | Rule::state_stmt
            | Rule::kw_let => self.def_body = true,
            _ => {}
        }
    }
}

/// Tokens that say nothing beyond the rule that they stand in.
pub(super) fn is_punctuation(rule: Rule) -> bool {
    use Rule::*;
    matches!(
        rule,
        eol | lparen
            | rparen
            | lbrack
            | rbrack
            | lbrace
            | rbrace
            | comma
            | colon
            | scope
            | dot
            | dotdot
            | eq
            | bar
            | at
            | times
            | sign
            | kw_scheme
            | kw_problem
            | kw_schedule
            | kw_def
            | kw_const
            | kw_use
            | kw_axes
            | kw_param
            | kw_field
            | kw_coef
            | kw_step
            | kw_let
            | kw_where
            | kw_if
            | kw_then
            | kw_else
            | kw_on
            | kw_at
            | kw_levels
            | kw_domain
            | kw_boundary
            | kw_init
            | kw_source
            | kw_probe
            | kw_record
            | kw_output
            | kw_slice
            | kw_volume
            | kw_spectrum
            | kw_f
            | kw_steps
            | kw_in
            | kw_as
            | kw_every
            | kw_region
            | kw_until
            | kw_state
            | kw_require
            | kw_layer
            | kw_next
            | kw_incident
            | kw_direction
            | kw_drive
            | kw_total
            | kw_from
            | kw_of
            | kw_for
            | kw_lean
            | kw_auto
            | kw_allow
            | EOI
    )
}

/// A rule in the user's terms, and its place in an enumeration. `None` for a rule that is never worth a mention.
fn describe(rule: Rule) -> Option<(usize, &'static str)> {
    use Rule::*;
    Some(match rule {
        item_text | use_item | const_item | def_item | layer_item | scheme_item | problem_item
        | schedule_item => (
            0,
            "`use`, `const`, `def`, `layer`, `scheme`, `problem` or `schedule`",
        ),
        scheme_stmt | axes_stmt | param_stmt | field_stmt | coef_stmt | region_stmt | side_stmt
        | step_stmt => (
            1,
            "a statement of a scheme (`axes`, `param`, `const`, `field`, `coef`, `region`, `boundary` or `step`)",
        ),
        step_line | where_stmt | update => (2, "an update, `let` or `where`"),
        problem_stmt | use_scheme | domain_stmt | boundary_stmt | problem_coef | init_stmt
        | source_stmt | incident_stmt | total_stmt | probe_stmt | record_stmt | slice_stmt
        | volume_stmt | spectrum_stmt | steps_stmt => (
            3,
            "a statement of a problem (`scheme`, `domain`, `boundary`, `region`, `coef`, `const`, `init`, `source`, \
             `incident`, `total`, `probe`, `record`, `output` or `steps`)",
        ),
        schedule_level | level_axes | schedule_text => {
            (4, "a level, such as `(x, y): diamond(D = 2)`")
        }
        incident_line | direction_line | drive_line | given_line => {
            (14, "`direction`, `drive` or a field")
        }
        require_stmt | let_stmt | state_stmt | next_stmt => (5, "`let` or `state`"),
        wall => (10, "a name"),
        kw_next => (13, "`prev` or `next`"),
        def_body => (6, "the value of the definition"),
        term | term_name => (7, "a tile's shape, such as `diamond(D = 2)` or `span`"),
        expr | expr_text | operand | number | string | list | paren | path | if_expr | arg
        | term_value | term_arg => (8, "an expression"),
        target | targets | parity => (9, "a field"),
        name | component | setting | def_param | clause | interval | coordinate | plane
        | ends_of | arg_name | side => (10, "a name"),
        plain_shape | named_shape => (
            11,
            "a shape (`scalar`, `vector`, `tensor` or `{ a on nodes, ... }`)",
        ),
        position | position_word => (
            12,
            "a position (`nodes`, `edges`, `faces`, `cells` or `[1/2, 0, 0]`)",
        ),
        level_word => (13, "`prev` or `next`"),
        op | prefix => (15, "an operator"),
        update_op => (16, "`=`, `+=` or `-=`"),
        eq | def_value => (17, "`=`"),
        colon | coef_shape | derived => (19, "`:`"),
        scope => (20, "`::`"),
        dotdot => (21, "`..`"),
        times => (22, "`x`"),
        bar => (23, "`|`"),
        sign => (24, "`+` or `-`"),
        lparen | tuple | def_params | term_args => (25, "`(`"),
        lbrack => (26, "`[`"),
        comma => (27, "`,`"),
        rparen => (28, "`)`"),
        rbrack => (29, "`]`"),
        kw_then => (30, "`then`"),
        kw_else | else_where | else_block => (31, "`else`"),
        kw_on | coef_on => (32, "`on`"),
        kw_at | place_at | place_near | plane_near | field_time => (33, "`at`"),
        kw_in | place_in | within | state_in => (34, "`in`"),
        place_where => (35, "`where`"),
        kw_slice | kw_volume | kw_spectrum => (36, "`slice`, `volume` or `spectrum`"),
        kw_levels | field_levels => (37, "`levels`"),
        kw_as | probe_name => (38, "`as`"),
        kw_every | every => (39, "`every`"),
        kw_for | schedule_for | frequencies => (40, "`for`"),
        kw_from => (47, "`from`"),
        kw_f => (48, "`f`, the frequencies"),
        parity_word => (45, "`odd` or `even`"),
        kw_until | until => (46, "`until`"),
        lean | kw_lean | word_clause => (41, "`lean`, `height` or the like"),
        lbrace | scheme_block | step_block | problem_block | schedule_block | def_block
        | settings | use_list | incident_block => (42, "`{`"),
        eol | EOI => (43, "the end of the line"),
        rbrace => (44, "`}`"),
        _ => return None,
    })
}
