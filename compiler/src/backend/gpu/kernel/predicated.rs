//! Accesses to memory where a condition holds, without a jump.

use super::Kernel;
use crate::backend::gpu::ir::{Operand, Type};

/// A pointer, and bytes that an instruction adds to it.
struct Displaced {
    pointer: Operand,
    by: i64,
}

impl Kernel<'_> {
    /// Numbers that follow each other in global memory where a condition holds, else the given numbers. It takes no
    /// jump, so such loads are under way together. They have 16 bytes together, or fewer, and are aligned to that size.
    /// They lie `by` bytes behind `from`.
    pub fn load_over(
        &mut self,
        condition: Operand,
        from: Operand,
        by: i64,
        otherwise: &[Operand],
    ) -> Vec<Operand> {
        let count = otherwise.len();
        let (name, register) = match otherwise[0].ty.bytes() {
            4 => ("f32", "f"),
            _ => ("f64", "d"),
        };
        let Displaced { pointer: from, by } = self.near(from, by);
        let flag = self.choose(condition, Operand::i32(1), Operand::i32(0));
        let all: Vec<String> = (0..count).map(|n| format!("${n}")).collect();
        let (vector, to) = match count {
            1 => (String::new(), all[0].clone()),
            _ => (format!(".v{count}"), format!("{{{}}}", all.join(", "))),
        };
        let code = format!(
            "{{ .reg .pred %has; setp.ne.u32 %has, ${}, 0; @%has ld.global{vector}.{name} {to}, [${count}+{by}]; }}",
            count + 1
        );
        // The given numbers have the registers of the results.
        let results = vec![format!("={register}"); count].join(",");
        let given: Vec<String> = (0..count).map(|n| n.to_string()).collect();
        let constraints = format!("{results},l,r,{},~{{memory}}", given.join(","));
        let types: Vec<Type> = otherwise.iter().map(|value| value.ty).collect();
        let args: Vec<Operand> = [from, flag]
            .into_iter()
            .chain(otherwise.iter().copied())
            .collect();
        self.assembly(&code, &constraints, &types, &args)
    }

    /// Stores numbers that follow each other in global memory where a condition holds, without a jump: of 16 bytes
    /// together, or fewer, `by` bytes behind `to`.
    pub fn store_several_if(
        &mut self,
        condition: Operand,
        values: &[Operand],
        to: Operand,
        by: i64,
    ) {
        let (name, register) = match values[0].ty.bytes() {
            4 => ("f32", "f"),
            _ => ("f64", "d"),
        };
        let Displaced { pointer: to, by } = self.near(to, by);
        let flag = self.choose(condition, Operand::i32(1), Operand::i32(0));
        let all: Vec<String> = (0..values.len()).map(|n| format!("${}", n + 2)).collect();
        let (vector, from) = match values.len() {
            1 => (String::new(), all[0].clone()),
            count => (format!(".v{count}"), format!("{{{}}}", all.join(", "))),
        };
        let code = format!(
            "{{ .reg .pred %has; setp.ne.u32 %has, $1, 0; @%has st.global{vector}.{name} [$0+{by}], {from}; }}"
        );
        let registers = vec![register; values.len()].join(",");
        let constraints = format!("l,r,{registers},~{{memory}}");
        let args: Vec<Operand> = [to, flag].iter().chain(values).copied().collect();
        self.assembly(&code, &constraints, &[], &args);
    }

    /// A place as a pointer and bytes that an instruction adds.
    fn near(&mut self, pointer: Operand, by: i64) -> Displaced {
        match i32::try_from(by) {
            Ok(_) => Displaced { pointer, by },
            Err(_) => Displaced {
                pointer: self.offset(pointer, by),
                by: 0,
            },
        }
    }
}
