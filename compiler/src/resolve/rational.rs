//! Exact fractions, and the coefficients of central differences as such.
//!
//! The coefficients follow from Lagrange interpolation in the squared distance: for sample points at distances `r_k`,
//! with `s_k = r_k^2`, the weights `L_k = prod_{j != k} s_j / (s_j - s_k)` sum even powers to 0 and the constant to 1.
//! B. Fornberg, Math. Comp. 51 (1988) 699, gives the general case.

use std::cmp::Ordering;

/// A fraction in lowest terms with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rational {
    num: i128,
    den: i128,
}

impl Rational {
    pub const ZERO: Rational = Rational { num: 0, den: 1 };
    pub const ONE: Rational = Rational { num: 1, den: 1 };

    pub fn integer(n: i64) -> Self {
        Self {
            num: i128::from(n),
            den: 1,
        }
    }

    /// `None` if `den` is 0 or a part leaves the range.
    pub fn new(num: i128, den: i128) -> Option<Self> {
        let divisor = gcd(num.unsigned_abs(), den.unsigned_abs());
        let divisor = i128::try_from(divisor).ok().filter(|&d| d != 0)?;
        let (num, den) = (num / divisor, den / divisor);
        match den.cmp(&0) {
            Ordering::Equal => None,
            Ordering::Greater => Some(Self { num, den }),
            Ordering::Less => Some(Self {
                num: num.checked_neg()?,
                den: den.checked_neg()?,
            }),
        }
    }

    pub fn is_zero(self) -> bool {
        self.num == 0
    }

    pub fn add(self, other: Self) -> Option<Self> {
        let common = i128::try_from(gcd(self.den.unsigned_abs(), other.den.unsigned_abs())).ok()?;
        let left = self.num.checked_mul(other.den / common)?;
        let right = other.num.checked_mul(self.den / common)?;
        Self::new(
            left.checked_add(right)?,
            self.den.checked_mul(other.den / common)?,
        )
    }

    pub fn mul(self, other: Self) -> Option<Self> {
        let a = Self::new(self.num, other.den)?;
        let b = Self::new(other.num, self.den)?;
        Some(Self {
            num: a.num.checked_mul(b.num)?,
            den: a.den.checked_mul(b.den)?,
        })
    }

    pub fn div(self, other: Self) -> Option<Self> {
        self.mul(Self::new(other.den, other.num)?)
    }

    pub fn neg(self) -> Option<Self> {
        self.num.checked_neg().map(|num| Self { num, ..self })
    }

    /// The nearest double where both parts are exact doubles, else within a unit in the last place.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `L_k` for squared distances `s`.
fn weights(s: &[i64]) -> Option<Vec<Rational>> {
    s.iter()
        .map(|&sk| {
            s.iter()
                .filter(|&&sj| sj != sk)
                .try_fold(Rational::ONE, |l, &sj| {
                    l.mul(Rational::new(i128::from(sj), i128::from(sj - sk))?)
                })
        })
        .collect()
}

/// The odd numbers 1, 3, ... in units of half a cell.
fn odd(order: u32) -> Vec<i64> {
    (1..=i64::from(order / 2)).map(|k| 2 * k - 1).collect()
}

fn squares(r: &[i64]) -> Vec<i64> {
    r.iter().map(|r| r * r).collect()
}

/// `c_k` of `h f'(0) = sum c_k (f(k - 1/2) - f(-k + 1/2))`.
pub fn staggered_first(order: u32) -> Option<Vec<Rational>> {
    let r = odd(order);
    let l = weights(&squares(&r))?;
    l.iter()
        .zip(&r)
        .map(|(l, &r)| l.div(Rational::integer(r)))
        .collect()
}

/// `c_k` of `f(0) = sum c_k (f(k - 1/2) + f(-k + 1/2))`.
pub fn staggered_mean(order: u32) -> Option<Vec<Rational>> {
    let l = weights(&squares(&odd(order)))?;
    l.iter().map(|l| l.div(Rational::integer(2))).collect()
}

/// `c_k` of `h f'(0) = sum c_k (f(k) - f(-k))`, from `k = 1`.
pub fn centred_first(order: u32) -> Option<Vec<Rational>> {
    let r: Vec<i64> = (1..=i64::from(order / 2)).collect();
    let l = weights(&squares(&r))?;
    l.iter()
        .zip(&r)
        .map(|(l, &r)| l.div(Rational::integer(2 * r)))
        .collect()
}

/// `c_k` of `h^2 f''(0) = c_0 f(0) + sum c_k (f(k) + f(-k))`, from `k = 0`.
pub fn centred_second(order: u32) -> Option<Vec<Rational>> {
    let r: Vec<i64> = (1..=i64::from(order / 2)).collect();
    let l = weights(&squares(&r))?;
    let mut c = vec![Rational::ZERO];
    for (l, &r) in l.iter().zip(&r) {
        let ck = l.div(Rational::integer(r * r))?;
        c[0] = c[0].add(ck.mul(Rational::integer(-2))?)?;
        c.push(ck);
    }
    Some(c)
}

/// A double that is a whole number and can be treated as one exactly.
pub fn small_integer(n: f64) -> Option<i64> {
    (n == n.trunc() && n.abs() <= 9e15).then_some(n as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fractions(pairs: &[(i128, i128)]) -> Option<Vec<Rational>> {
        pairs.iter().map(|&(n, d)| Rational::new(n, d)).collect()
    }

    #[test]
    fn known_coefficients() {
        assert_eq!(staggered_first(2), fractions(&[(1, 1)]));
        assert_eq!(staggered_first(4), fractions(&[(9, 8), (-1, 24)]));
        assert_eq!(
            staggered_first(6),
            fractions(&[(75, 64), (-25, 384), (3, 640)])
        );
        assert_eq!(staggered_mean(2), fractions(&[(1, 2)]));
        assert_eq!(staggered_mean(4), fractions(&[(9, 16), (-1, 16)]));
        assert_eq!(centred_first(2), fractions(&[(1, 2)]));
        assert_eq!(centred_first(4), fractions(&[(2, 3), (-1, 12)]));
        assert_eq!(centred_second(2), fractions(&[(-2, 1), (1, 1)]));
        assert_eq!(centred_second(4), fractions(&[(-5, 2), (4, 3), (-1, 12)]));
    }

    /// `sum 2 c_k r_k^m` must be 1 for the power that is differentiated and 0 for the others below the order.
    #[test]
    fn all_orders_are_exact_on_polynomials() {
        for order in (2..=32).step_by(2) {
            let c = staggered_first(order).unwrap();
            for m in (1..order).step_by(2) {
                let mut sum = 0.0;
                for (c, r) in c.iter().zip(odd(order)) {
                    sum += 2.0 * c.as_f64() * (r as f64 / order as f64).powi(m as i32);
                }
                let expected = if m == 1 { 2.0 / order as f64 } else { 0.0 };
                assert!((sum - expected).abs() < 1e-12, "order {order}, power {m}");
            }
            assert!(centred_first(order).is_some());
            assert!(staggered_mean(order).is_some());
            let second = centred_second(order).unwrap();
            let sum: f64 =
                second[0].as_f64() + 2.0 * second[1..].iter().map(|c| c.as_f64()).sum::<f64>();
            assert!(sum.abs() < 1e-12);
        }
    }

    #[test]
    fn overflow_is_noticed() {
        let big = Rational::new(i128::MAX, 1).unwrap();
        assert_eq!(big.mul(big), None);
        assert_eq!(big.add(big), None);
        assert_eq!(Rational::new(1, 0), None);
        assert_eq!(Rational::new(i128::MIN, -1), None);
        assert_eq!(Rational::new(i128::MIN, 3), Rational::new(i128::MIN, 3));
    }
}
