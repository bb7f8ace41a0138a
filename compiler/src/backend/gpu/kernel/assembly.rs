//! Instructions that LLVM has no names for, or that hide values from it and from the assembler.

use super::{Kernel, list};
use crate::backend::gpu::ir::{Operand, Type};
use crate::scheme::Precision;

/// An instruction as text: `code` names results, then arguments `$0`, `$1` and so on; `constraints` are LLVM's for
/// them (`=f,l`).
#[derive(Clone, Copy)]
pub(super) struct Instruction<'a> {
    pub code: &'a str,
    pub constraints: &'a str,
}

impl Kernel<'_> {
    /// A word or a pointer to shared memory, as if it were another one each time: values that are computed from it are
    /// computed anew, and not kept.
    pub fn again(&mut self, word: Operand) -> Operand {
        self.assembly("mov.b32 $0, $1;", "=r,r", &[word.ty], &[word])[0]
    }

    /// A number that is computed here: LLVM moves neither it nor its operands to the place of its use.
    pub fn here(&mut self, value: Operand) -> Operand {
        let Type::Real {
            precision,
            lanes: 1,
        } = value.ty
        else {
            return value;
        };
        let (code, constraints) = match precision {
            Precision::F32 => ("mov.b32 $0, $1;", "=f,f"),
            Precision::F64 => ("mov.b64 $0, $1;", "=d,d"),
        };
        self.assembly(code, constraints, &[value.ty], &[value])[0]
    }

    /// A zero that neither LLVM nor the assembler knows to be one. Zeros of odd and of even numbers are different ones
    /// to them: starts have blocks along the first axis alone.
    pub fn unknown_zero(&mut self, number: usize) -> Operand {
        let axis = ['z', 'y'][number % 2];
        let code = format!("mov.u32 $0, %ctaid.{axis};");
        self.assembly(&code, "=r", &[Type::I32], &[])[0]
    }

    /// An instruction that LLVM has no name for, with side effects. `constraints` are LLVM's: results, then arguments
    /// (`=f,l`); `code` names them `$0`, `$1` and so on.
    pub fn assembly(
        &mut self,
        code: &str,
        constraints: &str,
        results: &[Type],
        args: &[Operand],
    ) -> Vec<Operand> {
        let instruction = Instruction { code, constraints };
        self.asm("asm sideeffect", instruction, results, args)
    }

    /// One without side effects, which may be moved, shared or left out.
    pub fn pure_assembly(
        &mut self,
        code: &str,
        constraints: &str,
        results: &[Type],
        args: &[Operand],
    ) -> Vec<Operand> {
        let instruction = Instruction { code, constraints };
        self.asm("asm", instruction, results, args)
    }

    fn asm(
        &mut self,
        keyword: &str,
        Instruction { code, constraints }: Instruction<'_>,
        results: &[Type],
        args: &[Operand],
    ) -> Vec<Operand> {
        let types: Vec<String> = results.iter().map(Type::to_string).collect();
        let ty = match results {
            [] => "void".to_owned(),
            [one] => one.to_string(),
            _ => format!("{{ {} }}", types.join(", ")),
        };
        let args = list(args);
        let call = format!("call {ty} {keyword} \"{code}\", \"{constraints}\"({args})");
        match results {
            [] => {
                self.line(format_args!("{call}"));
                Vec::new()
            }
            [one] => vec![self.result(*one, format_args!("{call}"))],
            _ => {
                let all = self.fresh(results[0]);
                self.line(format_args!("{all} = {call}"));
                results
                    .iter()
                    .enumerate()
                    .map(|(i, one)| self.result(*one, format_args!("extractvalue {ty} {all}, {i}")))
                    .collect()
            }
        }
    }
}
