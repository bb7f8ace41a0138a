//! From tokens to modules: directives, variables, kernels and their statements.

use std::sync::Arc;

use crate::body::{Body, Place, VariableSpace};
use crate::error::Error;
use crate::lex::{Kind, Number, Token, number, tokens};
use crate::module::{Entry, Module, Parameter, Variable};
use crate::op::{Polarity, Ty};
use crate::operand::{Guard, Operand, Sign, constant};

/// The most bytes that one variable may have.
const LARGEST_VARIABLE: u64 = 1 << 30;

/// Where a variable of the module is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linkage {
    Here,
    External,
}

/// Parses a text.
pub(crate) fn module(source: &str) -> Result<Module, Error> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        at: 0,
        variables: Vec::new(),
        shared: Vec::new(),
    };
    let text: Arc<str> = source.into();
    let mut entries: Vec<Entry> = Vec::new();
    while let Some(token) = parser.peek() {
        match token.text {
            ".version" | ".target" => {
                parser.at += 2;
                while parser.eat(",") {
                    parser.word()?;
                }
            }
            ".file" | ".loc" => parser.skip_line(),
            ".address_size" => {
                parser.next()?;
                if parser.int()? != 64 {
                    return Err(parser.error("only addresses of 64 bits are interpreted"));
                }
            }
            ".section" => parser.skip_braces()?,
            ".pragma" => parser.skip_statement()?,
            ".visible" | ".weak" | ".extern" | ".common" | ".global" | ".const" | ".shared"
            | ".entry" => {
                let linkage = parser.linkage()?;
                if parser.eat(".entry") {
                    let entry = parser.entry(&text)?;
                    if entries.iter().any(|other| other.name == entry.name) {
                        return Err(parser.error(format!("`{}` is defined twice", entry.name)));
                    }
                    entries.push(entry);
                } else {
                    parser.module_variable(linkage)?;
                }
            }
            ".func" => {
                parser.at += 1;
                return Err(parser.error("functions are not interpreted: inline them"));
            }
            other => {
                parser.at += 1;
                return Err(parser.error(format!("unexpected `{other}` outside of kernels")));
            }
        }
    }
    let variables = Arc::new(parser.variables);
    for entry in &mut entries {
        entry.variables = Arc::clone(&variables);
    }
    Ok(Module { entries })
}

/// A variable as declared.
pub(crate) struct Declaration<'a> {
    pub(crate) name: &'a str,
    pub(crate) align: u32,
    /// Nothing for `[]`.
    pub(crate) bytes: Option<u32>,
    init: Vec<u8>,
}

pub(crate) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    variables: Vec<Variable>,
    /// Shared variables of the module; kernels that use one allocate it.
    shared: Vec<Declaration<'a>>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Result<Token<'a>, Error> {
        let token = self
            .peek()
            .ok_or_else(|| self.error("the text ends too early"))?;
        self.at += 1;
        Ok(token)
    }

    fn line(&self) -> u32 {
        self.peek()
            .or(self.tokens.last().copied())
            .map_or(1, |token| token.line)
    }

    /// An error at the token that was read last.
    fn error(&self, message: impl Into<String>) -> Error {
        let line = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        Error::new(line.map_or(self.line(), |token| token.line), message)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is(text));
        self.at += usize::from(found);
        found
    }

    /// Reads `-`, if there is one.
    fn sign(&mut self) -> Sign {
        if self.eat("-") {
            Sign::Minus
        } else {
            Sign::Plus
        }
    }

    fn expect(&mut self, text: &str) -> Result<(), Error> {
        let token = self.next()?;
        if token.is(text) {
            return Ok(());
        }
        Err(self.error(format!("expected `{text}`, found `{}`", token.text)))
    }

    fn word(&mut self) -> Result<&'a str, Error> {
        let token = self.next()?;
        if token.kind == Kind::Word {
            return Ok(token.text);
        }
        Err(self.error(format!("expected a name, found `{}`", token.text)))
    }

    fn int(&mut self) -> Result<i64, Error> {
        let sign = self.sign();
        let word = self.word()?;
        match number(word) {
            Some(Number::Int(value)) => {
                let value = sign.of(value);
                i64::try_from(value)
                    .or_else(|_| u64::try_from(value).map(|value| value as i64))
                    .map_err(|_| self.error(format!("`{word}` is too large")))
            }
            _ => Err(self.error(format!("expected a whole number, found `{word}`"))),
        }
    }

    /// A whole number of 32 bits.
    fn size(&mut self) -> Result<u32, Error> {
        let value = self.int()?;
        u32::try_from(value).map_err(|_| self.error(format!("{value} is no size")))
    }

    fn skip_line(&mut self) {
        let line = self.line();
        while self.peek().is_some_and(|token| token.line == line) {
            self.at += 1;
        }
    }

    fn skip_statement(&mut self) -> Result<(), Error> {
        while !self.next()?.is(";") {}
        Ok(())
    }

    fn skip_braces(&mut self) -> Result<(), Error> {
        while !self.next()?.is("{") {}
        let mut depth = 1;
        while depth > 0 {
            let token = self.next()?;
            depth += i32::from(token.is("{")) - i32::from(token.is("}"));
        }
        Ok(())
    }

    fn linkage(&mut self) -> Result<Linkage, Error> {
        let mut linkage = Linkage::Here;
        while [".visible", ".weak", ".extern", ".common"]
            .iter()
            .any(|word| self.peek().is_some_and(|t| t.is(word)))
        {
            if self.next()?.is(".extern") {
                linkage = Linkage::External;
            }
        }
        if self.eat(".func") {
            return Err(self.error("functions are not interpreted: inline them"));
        }
        Ok(linkage)
    }

    fn module_variable(&mut self, linkage: Linkage) -> Result<(), Error> {
        let space = self.word()?;
        let variable = self.declaration()?;
        self.expect(";")?;
        match space {
            ".shared" => self.shared.push(variable),
            ".global" | ".const" => {
                let (Some(size), Linkage::Here) = (variable.bytes, linkage) else {
                    return Err(self.error(format!("`{}` is defined elsewhere", variable.name)));
                };
                let mut bytes = variable.init;
                bytes.resize(size as usize, 0);
                let constant = space == ".const";
                self.variables.push(Variable {
                    name: variable.name.to_string(),
                    bytes,
                    constant,
                });
            }
            other => return Err(self.error(format!("unexpected `{other}`"))),
        }
        Ok(())
    }

    /// `.align 16 .b8 name[4096] = {1, 2}` after its state space.
    fn declaration(&mut self) -> Result<Declaration<'a>, Error> {
        let mut align = 0;
        if self.eat(".align") {
            align = self.size()?;
            if !align.is_power_of_two() {
                return Err(self.error("an alignment is a power of two"));
            }
        }
        let word = self.word()?;
        let Some(ty) = word.strip_prefix('.').and_then(Ty::parse) else {
            return Err(self.error(format!(
                "`{word}` is no type of variables that is interpreted"
            )));
        };
        let name = self.word()?;
        let (mut count, mut open) = (1u64, false);
        while self.eat("[") {
            if self.eat("]") {
                open = true;
                continue;
            }
            count = count.saturating_mul(u64::from(self.size()?));
            self.expect("]")?;
        }
        let bytes = count.saturating_mul(u64::from(ty.bytes()));
        if bytes > LARGEST_VARIABLE {
            return Err(self.error(format!("`{name}` is too large")));
        }
        let mut init = Vec::new();
        if self.eat("=") {
            let braces = self.eat("{");
            loop {
                let sign = self.sign();
                let word = self.word()?;
                let value = constant(word, sign, ty).ok_or_else(|| {
                    self.error(format!(
                        "`{word}` is no value of `{name}` that is interpreted"
                    ))
                })?;
                init.extend_from_slice(&value.to_le_bytes()[..ty.bytes() as usize]);
                if !braces || !self.eat(",") {
                    break;
                }
            }
            if braces {
                self.expect("}")?;
            }
            if init.len() as u64 > bytes {
                return Err(self.error(format!("too many values for `{name}`")));
            }
        }
        let bytes = if open { None } else { Some(bytes as u32) };
        Ok(Declaration {
            name,
            align: align.max(ty.bytes()),
            bytes,
            init,
        })
    }

    fn entry(&mut self, source: &Arc<str>) -> Result<Entry, Error> {
        let mut body = Body::new(self.word()?, Arc::clone(source));
        if self.eat("(") && !self.eat(")") {
            loop {
                self.parameter(&mut body)?;
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        loop {
            let word = self.next()?;
            match word.text {
                "{" => break,
                ".maxntid" => body.entry.max_threads = Some(self.extents()?.iter().product()),
                ".reqntid" => body.entry.required_threads = Some(self.extents()?),
                ".minnctapersm" | ".maxnctapersm" | ".maxnreg" => {
                    self.size()?;
                }
                ".reqnctapercluster" => body.entry.cluster = self.extents()?,
                ".noreturn" | ".explicitcluster" => {}
                ".pragma" => self.skip_statement()?,
                other => return Err(self.error(format!("directive `{other}` is not interpreted"))),
            }
        }
        let mut depth = 1;
        while depth > 0 {
            if self.eat("{") {
                depth += 1;
                body.open();
            } else if self.eat("}") {
                depth -= 1;
                body.close();
            } else {
                self.statement(&mut body)?;
            }
        }
        body.finish()
    }

    fn extents(&mut self) -> Result<[u32; 3], Error> {
        let mut extents = [1; 3];
        extents[0] = self.size()?;
        for extent in &mut extents[1..] {
            if !self.eat(",") {
                break;
            }
            *extent = self.size()?;
        }
        if extents
            .iter()
            .try_fold(1u32, |product, extent| product.checked_mul(*extent))
            .is_none()
        {
            return Err(self.error("too many threads"));
        }
        Ok(extents)
    }

    fn parameter(&mut self, body: &mut Body<'a>) -> Result<(), Error> {
        self.expect(".param")?;
        let mut align = 1;
        if self.eat(".align") {
            align = self.size()?.max(1);
        }
        let word = self.word()?;
        let Some(ty) = word.strip_prefix('.').and_then(Ty::parse) else {
            return Err(self.error(format!(
                "`{word}` is no type of parameters that is interpreted"
            )));
        };
        // The target of a pointer is not checked: buffers know their bounds.
        while self.peek().is_some_and(|token| token.text.starts_with('.')) {
            if self.word()? == ".align" {
                self.size()?;
            }
        }
        let name = self.word()?;
        let mut count = 1;
        if self.eat("[") {
            count = self.size()?;
            self.expect("]")?;
        }
        let align = align.max(ty.bytes());
        let end = body
            .entry
            .params
            .last()
            .map_or(0, |last| last.offset + last.bytes);
        let bytes = count.saturating_mul(ty.bytes());
        if bytes > 1 << 15 || !align.is_power_of_two() {
            return Err(self
                .error("a parameter has at most 32 KiB and an alignment that is a power of two"));
        }
        let offset = end.next_multiple_of(align);
        body.entry.params.push(Parameter { offset, bytes });
        body.place(name, Place::Param(offset))
            .map_err(|message| self.error(message))
    }

    /// A declaration, a label or an instruction.
    fn statement(&mut self, body: &mut Body<'a>) -> Result<(), Error> {
        let token = self.next()?;
        match token.text {
            ";" => Ok(()),
            ".reg" => self.registers(body),
            ".shared" | ".local" => {
                let variable = self.declaration()?;
                self.expect(";")?;
                let space = match token.text {
                    ".local" => VariableSpace::Local,
                    _ => VariableSpace::Shared,
                };
                body.variable(&variable, space)
                    .map_err(|message| self.error(message))
            }
            ".extern" => {
                self.expect(".shared")?;
                let variable = self.declaration()?;
                self.expect(";")?;
                body.variable(&variable, VariableSpace::Shared)
                    .map_err(|message| self.error(message))
            }
            ".loc" | ".file" => {
                self.at -= 1;
                self.skip_line();
                Ok(())
            }
            ".pragma" => self.skip_statement(),
            "@" => {
                let polarity = match self.eat("!") {
                    true => Polarity::Negated,
                    false => Polarity::Plain,
                };
                let predicate = self.word()?;
                let guard = Guard {
                    predicate,
                    polarity,
                };
                let opcode = self.next()?;
                self.instruction(body, opcode, Some(guard))
            }
            other if token.kind == Kind::Word && !other.starts_with('.') => {
                if self.eat(":") {
                    if self.eat(".branchtargets") {
                        let labels = self.labels()?;
                        return body
                            .table(other, labels)
                            .map_err(|message| self.error(message));
                    }
                    return body.label(other).map_err(|message| self.error(message));
                }
                self.instruction(body, token, None)
            }
            other => Err(self.error(format!("unexpected `{other}` in a kernel"))),
        }
    }

    fn labels(&mut self) -> Result<Vec<&'a str>, Error> {
        let mut labels = vec![self.word()?];
        while self.eat(",") {
            labels.push(self.word()?);
        }
        self.expect(";")?;
        Ok(labels)
    }

    /// `.reg .b32 %r<38>;` or `.reg .pred p, q;`
    fn registers(&mut self, body: &mut Body<'a>) -> Result<(), Error> {
        let word = self.word()?;
        let Some(ty) = word.strip_prefix('.').and_then(Ty::parse) else {
            return Err(self.error(format!(
                "`{word}` is no type of registers that is interpreted"
            )));
        };
        loop {
            let name = self.word()?;
            let declared = if self.eat("<") {
                let count = self.size()?;
                self.expect(">")?;
                body.registers(name, count, ty)
            } else {
                body.register(name, ty)
            };
            declared.map_err(|message| self.error(message))?;
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")
    }

    fn instruction(
        &mut self,
        body: &mut Body<'a>,
        opcode: Token<'a>,
        guard: Option<Guard<'a>>,
    ) -> Result<(), Error> {
        let mut operands = Vec::new();
        while !self.eat(";") {
            operands.push(self.operand()?);
            if !self.eat(",") {
                self.expect(";")?;
                break;
            }
        }
        for shared in &self.shared {
            for operand in &operands {
                if let Operand::Word(name) | Operand::Memory(name, _) = operand
                    && *name == shared.name
                {
                    body.module_shared(shared)
                        .map_err(|message| Error::new(opcode.line, message))?;
                }
            }
        }
        for (index, variable) in self.variables.iter().enumerate() {
            body.module_variable(index as u32, &operands, &variable.name);
        }
        body.instruction(opcode.text, opcode.line, guard, &operands)
            .map_err(|message| Error::new(opcode.line, message))
    }

    fn operand(&mut self) -> Result<Operand<'a>, Error> {
        if self.eat("{") {
            let mut list = Vec::new();
            loop {
                list.push(self.operand()?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect("}")?;
            return Ok(Operand::List(list));
        }
        if self.eat("[") {
            let base = self.word()?;
            let mut offset = 0;
            if self.eat("+") || self.peek().is_some_and(|token| token.is("-")) {
                offset = self.int()?;
            }
            if self.eat(",") {
                return Err(self.error("addresses in tensors are not interpreted"));
            }
            self.expect("]")?;
            return Ok(Operand::Memory(base, offset));
        }
        if self.eat("-") {
            return Ok(Operand::Negative(self.word()?));
        }
        if self.eat("!") {
            return Ok(Operand::Not(self.word()?));
        }
        if self.eat("(") {
            return Err(self.error("calls are not interpreted: inline functions"));
        }
        let word = self.word()?;
        if self.eat("|") {
            return Ok(Operand::Pair(word, self.word()?));
        }
        if self.peek().is_some_and(|token| token.is("+")) {
            return Err(self.error("sums of addresses are interpreted only in brackets"));
        }
        Ok(Operand::Word(word))
    }
}
