//! Writes one kernel, instruction by instruction.
//!
//! A kernel is a list of blocks. A block is begun by [`Kernel::place`] and ended by a jump; a block without one gets a
//! jump to the next. Values that change are [`Variable`]s: LLVM turns them into registers, so loops need no phi nodes.
//! No floating-point operation carries flags, so the bits are the bits of the operations as written.

mod assembly;
mod barriers;
mod numbers;
mod predicated;
mod warp;

pub use barriers::Wait;

use super::feature::Feature;
use super::ir::{Kind, Launch, Module, Operand, Space, Type};
use std::fmt::Write;

/// A kernel that is being written.
pub struct Kernel<'m> {
    module: &'m mut Module,
    head: String,
    variables: String,
    body: String,
    values: u32,
    labels: u32,
    /// Whether the current block has no jump at its end yet.
    open: bool,
    params: Vec<Type>,
}

/// The beginning of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(u32);

/// A place for values that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    ty: Type,
    number: u32,
}

/// The kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As it comes.
    Plain,
    /// No thread writes this memory while the kernel runs, so the read may use the texture path and move across stores.
    ReadOnly,
    /// Others read and write it meanwhile: never moved, never kept.
    Volatile,
}

/// Integer operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOp {
    Add,
    Sub,
    Mul,
    /// Unsigned quotient.
    Div,
    /// Unsigned remainder.
    Rem,
    And,
    Or,
    Xor,
    /// Towards higher bits.
    Left,
    /// Towards lower bits, copies of the highest one from above.
    RightSigned,
    /// Towards lower bits, zeros from above.
    Right,
    /// The smaller one, as signed numbers.
    Min,
    /// The larger one, as signed numbers.
    Max,
}

/// Comparisons of integers, as signed numbers but for `Below`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntCmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Less, as unsigned numbers.
    Below,
}

/// A special register of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Its number in the block along an axis (0 to 2).
    Thread(usize),
    /// The number of its block along an axis.
    Block(usize),
    /// The number of blocks along an axis.
    Blocks(usize),
    /// Its number in the warp.
    Lane,
    /// The number of its multiprocessor.
    Multiprocessor,
}

impl Module {
    /// Starts a kernel; [`Kernel::finish`] adds it to the module.
    pub fn kernel(&mut self, symbol: &str, params: &[Type], launch: Launch) -> Kernel<'_> {
        Kernel::new(self, symbol, params, launch)
    }
}

impl<'m> Kernel<'m> {
    pub(super) fn new(
        module: &'m mut Module,
        symbol: &str,
        params: &[Type],
        launch: Launch,
    ) -> Kernel<'m> {
        let list: Vec<String> = params
            .iter()
            .enumerate()
            .map(|(i, ty)| match ty {
                Type::Pointer(_) => format!("{ty} noundef align 16 %p{i}"),
                _ => format!("{ty} noundef %p{i}"),
            })
            .collect();
        let [x, y, z] = launch.threads;
        let mut attributes = format!("nounwind \"nvvm.reqntid\"=\"{x},{y},{z}\"");
        for (name, value) in [
            ("nvvm.minctasm", launch.blocks),
            ("nvvm.maxnreg", launch.registers),
        ] {
            if value > 0 {
                attributes.push_str(&format!(" \"{name}\"=\"{value}\""));
            }
        }
        if launch.cluster > 0 {
            module.need(Feature::Cluster);
            attributes.push_str(&format!(" \"nvvm.cluster_dim\"=\"{},1,1\"", launch.cluster));
        }
        Kernel {
            module,
            head: format!(
                "define ptx_kernel void @{symbol}({}) {attributes} {{\nentry:\n",
                list.join(", ")
            ),
            variables: String::new(),
            body: String::new(),
            values: 0,
            labels: 0,
            open: true,
            params: params.to_vec(),
        }
    }

    /// Ends the kernel and adds it to its module.
    pub fn finish(mut self) {
        self.exit();
        self.module.push_kernel(&self.head);
        self.module.push_kernel(&self.variables);
        self.module.push_kernel(&self.body);
        self.module.push_kernel("}\n");
    }

    /// A parameter by its number.
    pub fn param(&self, number: usize) -> Operand {
        Operand {
            ty: self.params[number],
            kind: Kind::Param(number as u32),
        }
    }

    /// Notes that the kernel needs something that not every GPU has.
    pub fn need(&mut self, feature: Feature) {
        self.module.need(feature);
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        if !self.open {
            // Code behind a jump is never reached, but it needs a block.
            let label = self.label();
            self.place(label);
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "  {text}");
    }

    fn fresh(&mut self, ty: Type) -> Operand {
        self.values += 1;
        let kind = Kind::Local(self.values - 1);
        Operand { ty, kind }
    }

    fn result(&mut self, ty: Type, text: std::fmt::Arguments<'_>) -> Operand {
        let to = self.fresh(ty);
        self.line(format_args!("{to} = {text}"));
        to
    }

    // Control.

    /// A label to jump to, to be placed once.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Begins the block of a label.
    pub fn place(&mut self, label: Label) {
        if self.open {
            let _ = writeln!(self.body, "  br label %l{}", label.0);
        }
        let _ = writeln!(self.body, "l{}:", label.0);
        self.open = true;
    }

    /// Jumps.
    pub fn jump(&mut self, to: Label) {
        self.line(format_args!("br label %l{}", to.0));
        self.open = false;
    }

    /// Jumps to one label or the other.
    pub fn branch(&mut self, condition: Operand, then: Label, otherwise: Label) {
        self.line(format_args!(
            "br i1 {condition}, label %l{}, label %l{}",
            then.0, otherwise.0
        ));
        self.open = false;
    }

    /// Ends the thread.
    pub fn exit(&mut self) {
        if self.open {
            self.line(format_args!("ret void"));
            self.open = false;
        }
    }

    /// Ends the threads for which a condition holds.
    pub fn exit_if(&mut self, condition: Operand) {
        let (out, on) = (self.label(), self.label());
        self.branch(condition, out, on);
        self.place(out);
        self.exit();
        self.place(on);
    }

    /// Code that runs only where a condition holds.
    pub fn when(&mut self, condition: Operand, body: impl FnOnce(&mut Self)) {
        let (then, after) = (self.label(), self.label());
        self.branch(condition, then, after);
        self.place(then);
        body(self);
        self.place(after);
    }

    /// The code of one function where a condition holds, and of another one elsewhere.
    pub fn either(
        &mut self,
        condition: Operand,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        let (yes, no, after) = (self.label(), self.label(), self.label());
        self.branch(condition, yes, no);
        self.place(yes);
        then(self);
        self.jump(after);
        self.place(no);
        otherwise(self);
        self.place(after);
    }

    /// Code that runs for each integer `from, from + step, ...` below `until`; `unroll` copies of it should follow each
    /// other.
    pub fn repeat(
        &mut self,
        from: Operand,
        until: Operand,
        step: Operand,
        unroll: Option<u32>,
        body: impl FnOnce(&mut Self, Operand),
    ) {
        let counter = self.variable(from.ty);
        self.set(counter, from);
        let (test, inside, after) = (self.label(), self.label(), self.label());
        self.place(test);
        let i = self.get(counter);
        let more = self.compare(IntCmp::Lt, i, until);
        self.branch(more, inside, after);
        self.place(inside);
        body(self, i);
        let next = self.int(IntOp::Add, i, step);
        self.set(counter, next);
        self.go_back(test, unroll);
        self.place(after);
    }

    /// The end of a loop: back to its test.
    fn go_back(&mut self, test: Label, unroll: Option<u32>) {
        let again = match unroll {
            None => String::new(),
            Some(count) => {
                let node = self
                    .module
                    .metadata(|n| format!("distinct !{{!{n}, !{}}}", n + 1));
                let text = match count {
                    0 | 1 => "!{!\"llvm.loop.unroll.disable\"}".to_owned(),
                    count => format!("!{{!\"llvm.loop.unroll.count\", i32 {count}}}"),
                };
                self.module.metadata(|_| text);
                format!(", !llvm.loop !{node}")
            }
        };
        self.line(format_args!("br label %l{}{again}", test.0));
        self.open = false;
    }

    // Variables.

    /// A variable without a value.
    pub fn variable(&mut self, ty: Type) -> Variable {
        self.values += 1;
        let number = self.values - 1;
        let _ = writeln!(self.variables, "  %v{number} = alloca {ty}");
        Variable { ty, number }
    }

    /// A variable with a value.
    pub fn variable_of(&mut self, value: Operand) -> Variable {
        let variable = self.variable(value.ty);
        self.set(variable, value);
        variable
    }

    pub fn get(&mut self, variable: Variable) -> Operand {
        let Variable { ty, number } = variable;
        self.result(ty, format_args!("load {ty}, ptr %v{number}"))
    }

    pub fn set(&mut self, variable: Variable, value: Operand) {
        debug_assert_eq!(variable.ty, value.ty);
        self.line(format_args!(
            "store {}, ptr %v{}",
            value.typed(),
            variable.number
        ));
    }

    // Integers, truth values and pointers.

    /// A special register of the thread, in 32 bits.
    pub fn special(&mut self, special: Special) -> Operand {
        let axis = |i: usize| ["x", "y", "z"][i.min(2)];
        let name = match special {
            Special::Thread(i) => format!("tid.{}", axis(i)),
            Special::Block(i) => format!("ctaid.{}", axis(i)),
            Special::Blocks(i) => format!("nctaid.{}", axis(i)),
            Special::Lane => "laneid".to_owned(),
            Special::Multiprocessor => "smid".to_owned(),
        };
        let name = format!("llvm.nvvm.read.ptx.sreg.{name}");
        self.value_of(&name, Type::I32, &[])
    }

    pub fn int(&mut self, op: IntOp, a: Operand, b: Operand) -> Operand {
        debug_assert_eq!(a.ty, b.ty);
        let ty = a.ty;
        let name = match op {
            IntOp::Add => "add",
            IntOp::Sub => "sub",
            IntOp::Mul => "mul",
            IntOp::Div => "udiv",
            IntOp::Rem => "urem",
            IntOp::RightSigned => "ashr",
            IntOp::And => "and",
            IntOp::Or => "or",
            IntOp::Xor => "xor",
            IntOp::Left => "shl",
            IntOp::Right => "lshr",
            IntOp::Min | IntOp::Max => {
                let name = if op == IntOp::Min { "smin" } else { "smax" };
                return self.value_of(&format!("llvm.{name}.{}", ty.suffix()), ty, &[a, b]);
            }
        };
        self.result(ty, format_args!("{name} {ty} {a}, {b}"))
    }

    pub fn compare(&mut self, cmp: IntCmp, a: Operand, b: Operand) -> Operand {
        debug_assert_eq!(a.ty, b.ty);
        let name = match cmp {
            IntCmp::Eq => "eq",
            IntCmp::Ne => "ne",
            IntCmp::Lt => "slt",
            IntCmp::Le => "sle",
            IntCmp::Gt => "sgt",
            IntCmp::Ge => "sge",
            IntCmp::Below => "ult",
        };
        self.result(Type::I1, format_args!("icmp {name} {} {a}, {b}", a.ty))
    }

    /// The wider or narrower integer of the same value, as a signed number.
    pub fn resize(&mut self, a: Operand, ty: Type) -> Operand {
        let (Type::Int(from), Type::Int(to)) = (a.ty, ty) else {
            return a;
        };
        let name = match from.cmp(&to) {
            std::cmp::Ordering::Less => "sext",
            std::cmp::Ordering::Greater => "trunc",
            std::cmp::Ordering::Equal => return a,
        };
        self.result(ty, format_args!("{name} {} to {ty}", a.typed()))
    }

    /// One of two values of the same type.
    pub fn choose(&mut self, condition: Operand, then: Operand, otherwise: Operand) -> Operand {
        self.result(
            then.ty,
            format_args!(
                "select i1 {condition}, {}, {}",
                then.typed(),
                otherwise.typed()
            ),
        )
    }

    /// A pointer some bytes farther.
    pub fn offset(&mut self, pointer: Operand, bytes: i64) -> Operand {
        match bytes {
            0 => pointer,
            _ => self.advance(pointer, Operand::i64(bytes), 1),
        }
    }

    /// A pointer `bytes` bytes farther; `bytes` is a word of 32 bits.
    pub fn advance_by_word(&mut self, pointer: Operand, bytes: Operand) -> Operand {
        let bytes = self.resize(bytes, Type::I64);
        self.advance(pointer, bytes, 1)
    }

    /// A pointer `index * scale` bytes farther, for an index of 64 bits.
    pub fn advance(&mut self, pointer: Operand, index: Operand, scale: u32) -> Operand {
        let element = match scale {
            1 => "i8".to_owned(),
            n => format!("[{n} x i8]"),
        };
        self.result(
            pointer.ty,
            format_args!(
                "getelementptr {element}, {}, {}",
                pointer.typed(),
                index.typed()
            ),
        )
    }

    /// The same place as a pointer into another space.
    pub fn cast(&mut self, pointer: Operand, space: Space) -> Operand {
        let ty = Type::Pointer(space);
        self.result(
            ty,
            format_args!("addrspacecast {} to {ty}", pointer.typed()),
        )
    }

    // Memory.

    /// The value at an address that is a multiple of `align` bytes.
    pub fn load(&mut self, ty: Type, from: Operand, align: u32, access: Access) -> Operand {
        let (word, note) = match access {
            Access::Plain => ("", ""),
            Access::ReadOnly => ("", ", !invariant.load !0"),
            Access::Volatile => ("volatile ", ""),
        };
        self.result(
            ty,
            format_args!("load {word}{ty}, {}, align {align}{note}", from.typed()),
        )
    }

    /// A number from global memory where a condition holds, else 0. It takes no jump, so such loads are under way
    /// together.
    pub fn load_if(&mut self, condition: Operand, ty: Type, from: Operand) -> Operand {
        let (name, zero, register) = match ty.bytes() {
            4 => ("f32", "0f00000000", "f"),
            _ => ("f64", "0d0000000000000000", "d"),
        };
        let flag = self.choose(condition, Operand::i32(1), Operand::i32(0));
        let code = format!(
            "{{ .reg .pred %has; setp.ne.u32 %has, $2, 0; mov.{name} $0, {zero}; @%has ld.global.{name} $0, [$1]; }}"
        );
        let constraints = format!("={register},l,r,~{{memory}}");
        self.assembly(&code, &constraints, &[ty], &[from, flag])[0]
    }

    /// Stores a number in global memory where a condition holds, without a jump.
    pub fn store_if(&mut self, condition: Operand, value: Operand, to: Operand) {
        let (name, register) = match value.ty.bytes() {
            4 => ("f32", "f"),
            _ => ("f64", "d"),
        };
        let flag = self.choose(condition, Operand::i32(1), Operand::i32(0));
        let code = format!(
            "{{ .reg .pred %has; setp.ne.u32 %has, $2, 0; @%has st.global.{name} [$0], $1; }}"
        );
        let constraints = format!("l,{register},r,~{{memory}}");
        self.assembly(&code, &constraints, &[], &[to, value, flag]);
    }

    /// Starts copying 16 bytes from global memory to shared memory where a condition holds, without a jump; zeros where
    /// `there` does not hold.
    pub fn copy_if(
        &mut self,
        condition: Operand,
        from: Operand,
        to: Operand,
        there: Option<Operand>,
    ) {
        let flag = self.choose(condition, Operand::i32(1), Operand::i32(0));
        let bytes = match there {
            Some(there) => self.choose(there, Operand::i32(16), Operand::i32(0)),
            None => Operand::i32(16),
        };
        let code = "{ .reg .pred %has; setp.ne.u32 %has, $2, 0; @%has cp.async.cg.shared.global [$1], [$0], 16, $3; }";
        let args = [from, to, flag, bytes];
        self.assembly(code, "l,r,r,rn,~{memory}", &[], &args);
    }

    /// Starts copying 8 bytes from global memory to shared memory where a condition holds, without a jump.
    pub fn copy_wave_if(&mut self, condition: Operand, from: Operand, to: Operand) {
        let flag = self.choose(condition, Operand::i32(1), Operand::i32(0));
        let code = "{ .reg .pred %has; setp.ne.u32 %has, $2, 0; @%has cp.async.ca.shared.global [$1], [$0], 8; }";
        self.assembly(code, "l,r,r,~{memory}", &[], &[from, to, flag]);
    }

    /// Prefetches the line of the cache at an address of global memory, where a condition holds.
    pub fn prefetch_if(&mut self, condition: Operand, from: Operand) {
        let flag = self.choose(condition, Operand::i32(1), Operand::i32(0));
        let code = "{ .reg .pred %has; setp.ne.u32 %has, $1, 0; @%has prefetch.global.L1 [$0]; }";
        self.assembly(code, "l,r", &[], &[from, flag]);
    }

    pub fn store(&mut self, value: Operand, to: Operand, align: u32, access: Access) {
        let word = match access {
            Access::Volatile => "volatile ",
            Access::Plain | Access::ReadOnly => "",
        };
        self.line(format_args!(
            "store {word}{}, {}, align {align}",
            value.typed(),
            to.typed()
        ));
    }

    // Intrinsics and assembly.

    /// Calls an intrinsic that gives a value.
    pub fn value_of(&mut self, name: &str, ty: Type, args: &[Operand]) -> Operand {
        let call = self.call_text(&ty.to_string(), name, args);
        self.result(ty, format_args!("{call}"))
    }

    /// Calls an intrinsic that gives none.
    pub fn call(&mut self, name: &str, args: &[Operand]) {
        let call = self.call_text("void", name, args);
        self.line(format_args!("{call}"));
    }

    fn call_text(&mut self, ty: &str, name: &str, args: &[Operand]) -> String {
        let types: Vec<String> = args.iter().map(|a| a.ty.to_string()).collect();
        self.module
            .declare(format!("declare {ty} @{name}({})", types.join(", ")));
        format!("call {ty} @{name}({})", list(args))
    }
}

/// Operands with their types.
fn list(args: &[Operand]) -> String {
    let args: Vec<String> = args.iter().map(|a| a.typed()).collect();
    args.join(", ")
}
