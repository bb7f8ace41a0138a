//! The syntax of modules, each parsed once.

use std::cell::RefCell;
use std::rc::Rc;
use torre_grammar::ast::Ast;
use torre_grammar::diag::Diagnostics;
use torre_grammar::source::Source;

/// The syntax of modules, for programs that are resolved several times.
#[derive(Debug, Default)]
pub struct Parsed(RefCell<Vec<(Source, Rc<Ast>)>>);

thread_local! {
    /// The syntax of modules of the standard library that this thread has met.
    static STANDARD: Parsed = Parsed::default();
}

impl Parsed {
    /// The syntax of a module: of the standard library for all programs of this thread, else for this program.
    pub fn module(&self, source: &Source) -> Result<Rc<Ast>, Diagnostics> {
        if source.name().starts_with("std::") {
            return STANDARD.with(|standard| standard.ast(source));
        }
        self.ast(source)
    }

    /// The syntax of a text, parsed now if it was not before.
    fn ast(&self, source: &Source) -> Result<Rc<Ast>, Diagnostics> {
        let is_same = |s: &Source| s.name() == source.name() && s.text() == source.text();
        let known = self.0.borrow().iter().find(|(s, _)| is_same(s)).cloned();
        if let Some((_, ast)) = known {
            return Ok(ast);
        }
        let ast = Rc::new(torre_grammar::parse(source)?);
        self.0.borrow_mut().push((source.clone(), ast.clone()));
        Ok(ast)
    }
}
