//! Numbers, of one or several lanes.

use super::Kernel;
use super::assembly::Instruction;
use crate::backend::gpu::ir::{Kind, Operand, Type};
use crate::backend::rows::LaneOp;
use crate::real::PowerBits;
use crate::scheme::{Cmp, Precision, Value};

impl Kernel<'_> {
    /// A lane of a vector.
    pub fn lane(&mut self, vector: Operand, lane: u32) -> Operand {
        match (vector.ty.lanes(), vector.kind) {
            (1, _) => vector,
            (_, Kind::Real(_) | Kind::Poison) => Operand {
                ty: vector.ty.element(),
                kind: vector.kind,
            },
            _ => self.result(
                vector.ty.element(),
                format_args!("extractelement {}, i32 {lane}", vector.typed()),
            ),
        }
    }

    /// A vector of single numbers; the number itself if it is one.
    pub fn pack(&mut self, lanes: &[Operand]) -> Operand {
        let (Some(first), true) = (lanes.first(), lanes.len() > 1) else {
            return lanes[0];
        };
        let Type::Real { precision, .. } = first.ty else {
            return *first;
        };
        let ty = Type::vector(precision, lanes.len() as u32);
        let mut vector = Operand::poison(ty);
        for (i, lane) in lanes.iter().enumerate() {
            vector = self.result(
                ty,
                format_args!(
                    "insertelement {}, {}, i32 {i}",
                    vector.typed(),
                    lane.typed()
                ),
            );
        }
        vector
    }

    fn two(&mut self, name: &str, a: Operand, b: Operand) -> Operand {
        debug_assert_eq!(a.ty, b.ty);
        self.result(a.ty, format_args!("{name} {} {a}, {b}", a.ty))
    }

    fn of_numbers(&mut self, name: &str, args: &[Operand]) -> Operand {
        let ty = args[0].ty;
        self.value_of(&format!("llvm.{name}.{}", ty.suffix()), ty, args)
    }

    /// An operation on numbers; `None` for one that is none: a load or a constant.
    pub fn number(&mut self, op: &LaneOp, of: impl Fn(Value) -> Operand) -> Option<Operand> {
        Some(match *op {
            LaneOp::Load(_) | LaneOp::Stream(_) | LaneOp::Const(_) | LaneOp::InBand { .. } => {
                return None;
            }
            LaneOp::Neg(a) => {
                let a = of(a);
                self.result(a.ty, format_args!("fneg {} {a}", a.ty))
            }
            LaneOp::Abs(a) => self.of_numbers("fabs", &[of(a)]),
            LaneOp::Flush(a) => self.flush(of(a)),
            LaneOp::Sqrt(a) => self.root(of(a)),
            LaneOp::Power2(a) => self.power2(of(a)),
            LaneOp::Exponent(a) => self.exponent(of(a)),
            LaneOp::Add(a, b) => self.two("fadd", of(a), of(b)),
            LaneOp::Sub(a, b) => self.two("fsub", of(a), of(b)),
            LaneOp::Mul(a, b) => self.two("fmul", of(a), of(b)),
            LaneOp::Div(a, b) => self.quotient(of(a), of(b)),
            LaneOp::Fma(a, b, c) => self.fma(of(a), of(b), of(c)),
            LaneOp::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => self.select(cmp, of(a), of(b), of(then), of(otherwise)),
        })
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        self.of_numbers("fma", &[a, b, c])
    }

    /// The sum.
    pub fn sum(&mut self, a: Operand, b: Operand) -> Operand {
        self.two("fadd", a, b)
    }

    /// The product.
    pub fn product(&mut self, a: Operand, b: Operand) -> Operand {
        self.two("fmul", a, b)
    }

    fn quotient(&mut self, a: Operand, b: Operand) -> Operand {
        // LLVM multiplies where the divisor is a power of 2.
        let is_power = |n: f64| n.is_normal() && n.to_bits() << 12 == 0;
        if a.as_real().is_some() || b.as_real().is_some_and(is_power) {
            return self.two("fdiv", a, b);
        }
        // So small that no number but 0 has an infinite quotient.
        let (small, code) = match precision(a.ty) {
            Precision::F32 => (2_f64.powi(-30), ("div.rn.f32 $0, $1, $2;", "=f,f,f")),
            Precision::F64 => (2_f64.powi(-100), ("div.rn.f64 $0, $1, $2;", "=d,d,d")),
        };
        let (code, constraints) = code;
        self.with_stand_in(a, &[b], small, Instruction { code, constraints })
    }

    fn root(&mut self, a: Operand) -> Operand {
        let (code, constraints) = match precision(a.ty) {
            Precision::F32 => ("sqrt.rn.f32 $0, $1;", "=f,f"),
            Precision::F64 => ("sqrt.rn.f64 $0, $1;", "=d,d"),
        };
        self.with_stand_in(a, &[], 1.0, Instruction { code, constraints })
    }

    /// A quotient or a root of a number. NVIDIA's assembler takes a way of some hundred instructions for 0, and most
    /// fields are 0 in most of a grid for a long time. So `stand_in` has the place of a zero, and the zero is
    /// multiplied by its result: the product has the sign that the result of a zero has, and is NaN where that is.
    fn with_stand_in(
        &mut self,
        a: Operand,
        others: &[Operand],
        stand_in: f64,
        Instruction { code, constraints }: Instruction<'_>,
    ) -> Operand {
        let ty = a.ty.element();
        let [zero, one, stand_in] = [0.0, 1.0, stand_in].map(|n| Operand::real(ty, n.to_bits()));
        let lanes: Vec<Operand> = (0..a.ty.lanes())
            .map(|lane| {
                let a = self.lane(a, lane);
                let mut args = vec![self.select(Cmp::Eq, a, zero, stand_in, a)];
                args.extend(others.iter().map(|other| self.lane(*other, lane)));
                let factor = self.select(Cmp::Eq, a, zero, a, one);
                // LLVM would compute for both numbers, and select a result.
                let result = self.pure_assembly(code, constraints, &[ty], &args);
                self.product(result[0], factor)
            })
            .collect();
        self.pack(&lanes)
    }

    /// The sign bit flipped.
    pub fn negated(&mut self, a: Operand) -> Operand {
        self.result(a.ty, format_args!("fneg {} {a}", a.ty))
    }

    /// A number in another precision, rounded to the nearest.
    pub fn convert(&mut self, a: Operand, ty: Type) -> Operand {
        let name = match a.ty.element().bytes().cmp(&ty.element().bytes()) {
            std::cmp::Ordering::Less => "fpext",
            std::cmp::Ordering::Greater => "fptrunc",
            std::cmp::Ordering::Equal => return a,
        };
        self.result(ty, format_args!("{name} {} to {ty}", a.typed()))
    }

    /// Whether two numbers differ; NaN differs from all.
    pub fn differs(&mut self, a: Operand, b: Operand) -> Operand {
        self.result(Type::I1, format_args!("fcmp une {} {a}, {b}", a.ty))
    }

    /// The number, or 0 if its magnitude is below the flush threshold.
    fn flush(&mut self, a: Operand) -> Operand {
        match precision(a.ty) {
            Precision::F32 => {
                let number = |n: f64| Operand::real(a.ty, n.to_bits());
                let threshold = number(Precision::F32.flush_threshold());
                let magnitude = self.of_numbers("fabs", &[a]);
                self.select(Cmp::Lt, magnitude, threshold, number(0.0), a)
            }
            Precision::F64 => {
                let lanes: Vec<Operand> = (0..a.ty.lanes())
                    .map(|lane| {
                        let lane = self.lane(a, lane);
                        self.flush_f64(lane)
                    })
                    .collect();
                self.pack(&lanes)
            }
        }
    }

    /// The same for one number in f64. The upper half of its magnitude decides: as a number in f32 it compares like the
    /// whole magnitude, and GPUs have fewer units that compare numbers in f64.
    fn flush_f64(&mut self, a: Operand) -> Operand {
        let single = Type::scalar(Precision::F32);
        let word = self.result(Type::I64, format_args!("bitcast double {a} to i64"));
        let upper = self.result(Type::I64, format_args!("lshr i64 {word}, 32"));
        let upper = self.result(Type::I32, format_args!("trunc i64 {upper} to i32"));
        let upper = self.result(single, format_args!("bitcast i32 {upper} to float"));
        // LLVM would clear the sign by an instruction of its own, the assembler has it in comparisons.
        let magnitude = self.pure_assembly("abs.f32 $0, $1;", "=f,f", &[single], &[upper])[0];
        let threshold = Precision::F64.flush_threshold().to_bits() >> 32;
        let threshold = f64::from(f32::from_bits(threshold as u32));
        let threshold = Operand::real(single, threshold.to_bits());
        let zero = Operand::real(a.ty, 0.0_f64.to_bits());
        self.select(Cmp::Lt, magnitude, threshold, zero, a)
    }

    fn power2(&mut self, a: Operand) -> Operand {
        let (ty, bits, words) = (a.ty, power_bits(a.ty), words(a.ty));
        let number = |n: f64| Operand::real(ty, n.to_bits());
        let [lo, hi] = [bits.least, bits.most].map(number);
        let a = self.select(Cmp::Lt, lo, a, a, lo);
        let a = self.select(Cmp::Lt, a, hi, a, hi);
        let sum = self.sum(a, number(bits.shift));
        // The types of words only matter to the text.
        let word = self.result(ty, format_args!("bitcast {} to {words}", sum.typed()));
        let places = splat(ty, bits.mantissa);
        let field = self.result(ty, format_args!("shl {words} {word}, {places}"));
        self.result(ty, format_args!("bitcast {words} {field} to {ty}"))
    }

    fn exponent(&mut self, a: Operand) -> Operand {
        let (ty, bits, words) = (a.ty, power_bits(a.ty), words(a.ty));
        let number = |n: f64| Operand::real(ty, n.to_bits());
        let magnitude = self.of_numbers("fabs", &[a]);
        let word = self.result(ty, format_args!("bitcast {} to {words}", magnitude.typed()));
        let places = splat(ty, bits.mantissa);
        let field = self.result(ty, format_args!("lshr {words} {word}, {places}"));
        let whole = number(bits.whole);
        let whole = self.result(ty, format_args!("bitcast {} to {words}", whole.typed()));
        let sum = self.result(ty, format_args!("or {words} {field}, {whole}"));
        let sum = self.result(ty, format_args!("bitcast {words} {sum} to {ty}"));
        self.two("fsub", sum, number(bits.start))
    }

    /// `then` where `a cmp b` holds, else `otherwise`, lane by lane.
    pub fn select(
        &mut self,
        cmp: Cmp,
        a: Operand,
        b: Operand,
        then: Operand,
        otherwise: Operand,
    ) -> Operand {
        let name = match cmp {
            Cmp::Lt => "olt",
            Cmp::Le => "ole",
            Cmp::Eq => "oeq",
            Cmp::Ne => "une",
        };
        let truth = a.ty.truth();
        // The type of the intermediate result only matters to the text.
        let holds = self.fresh(Type::I1);
        self.line(format_args!("{holds} = fcmp {name} {} {a}, {b}", a.ty));
        self.result(
            then.ty,
            format_args!(
                "select {truth} {holds}, {}, {}",
                then.typed(),
                otherwise.typed()
            ),
        )
    }
}

fn precision(ty: Type) -> Precision {
    match ty {
        Type::Real { precision, .. } => precision,
        // No number has this type.
        _ => Precision::F64,
    }
}

fn power_bits(ty: Type) -> PowerBits {
    precision(ty).power_bits()
}

/// The integers with the bits of numbers of a type.
fn words(ty: Type) -> String {
    let bits = 8 * ty.element().bytes();
    match ty.lanes() {
        1 => format!("i{bits}"),
        n => format!("<{n} x i{bits}>"),
    }
}

/// A constant of [`words`] in all lanes.
fn splat(ty: Type, n: u32) -> String {
    match ty.lanes() {
        1 => n.to_string(),
        _ => format!("splat (i{} {n})", 8 * ty.element().bytes()),
    }
}
