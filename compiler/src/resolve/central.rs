//! The coefficients of central differences, as exact fractions.
//!
//! They follow from Lagrange interpolation in the squared distance: for sample points at distances `r_k`, with `s_k =
//! r_k^2`, the weights `L_k = prod_{j != k} s_j / (s_j - s_k)` sum even powers to 0 and the constant to 1. B. Fornberg,
//! Math. Comp. 51 (1988) 699, gives the general case.

use super::fraction::Fraction;

/// `L_k` for squared distances `s`.
fn weights(s: &[i64]) -> Option<Vec<Fraction>> {
    s.iter()
        .map(|&sk| {
            s.iter()
                .filter(|&&sj| sj != sk)
                .try_fold(Fraction::ONE, |l, &sj| {
                    l.mul(Fraction::new(i128::from(sj), i128::from(sj - sk))?)
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
pub fn staggered_first(order: u32) -> Option<Vec<Fraction>> {
    let r = odd(order);
    let l = weights(&squares(&r))?;
    l.iter()
        .zip(&r)
        .map(|(l, &r)| l.div(Fraction::integer(r)))
        .collect()
}

/// `c_k` of `f(0) = sum c_k (f(k - 1/2) + f(-k + 1/2))`.
pub fn staggered_mean(order: u32) -> Option<Vec<Fraction>> {
    let l = weights(&squares(&odd(order)))?;
    l.iter().map(|l| l.div(Fraction::integer(2))).collect()
}

/// `c_k` of `h f'(0) = sum c_k (f(k) - f(-k))`, from `k = 1`.
pub fn centred_first(order: u32) -> Option<Vec<Fraction>> {
    let r: Vec<i64> = (1..=i64::from(order / 2)).collect();
    let l = weights(&squares(&r))?;
    l.iter()
        .zip(&r)
        .map(|(l, &r)| l.div(Fraction::integer(2 * r)))
        .collect()
}

/// `c_k` of `h^2 f''(0) = c_0 f(0) + sum c_k (f(k) + f(-k))`, from `k = 0`.
pub fn centred_second(order: u32) -> Option<Vec<Fraction>> {
    let r: Vec<i64> = (1..=i64::from(order / 2)).collect();
    let l = weights(&squares(&r))?;
    let mut c = vec![Fraction::ZERO];
    for (l, &r) in l.iter().zip(&r) {
        let ck = l.div(Fraction::integer(r * r))?;
        c[0] = c[0].add(ck.mul(Fraction::integer(-2))?)?;
        c.push(ck);
    }
    Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fractions(pairs: &[(i128, i128)]) -> Option<Vec<Fraction>> {
        pairs.iter().map(|&(n, d)| Fraction::new(n, d)).collect()
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
}
