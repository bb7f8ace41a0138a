//! Small dense complex matrices: products, how their powers grow, and eigenvalues.
//!
//! Amplification matrices have as many rows as a cell has values, so everything here is plain loops over a flat array.

use num_complex::Complex64;

/// [`Matrix::growth_of_powers`] goes up to the exponent 2^16: rounding makes much higher powers of matrices that lack
/// eigenvectors useless.
const DOUBLINGS: i32 = 16;
/// [`Matrix::polynomial_growth`] compares the powers 2^11 and 2^12.
const LONG: usize = 12;
/// How near to each other eigenvalues lie that may be one without all of its eigenvectors.
const CLUSTER: f64 = 1e-3;
/// The powers that [`Matrix::transient`] sums up, 2^6, and the weight that each takes from the one before.
const SUMMED: i32 = 6;
const WEIGHT: f64 = 1.0 - 1.0 / 32.0;

/// A square matrix, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    size: usize,
    values: Vec<Complex64>,
}

impl Matrix {
    pub fn zero(size: usize) -> Self {
        Self {
            size,
            values: vec![Complex64::ZERO; size * size],
        }
    }

    pub fn identity(size: usize) -> Self {
        let mut identity = Self::zero(size);
        for i in 0..size {
            identity.set(i, i, Complex64::ONE);
        }
        identity
    }

    pub fn get(&self, row: usize, column: usize) -> Complex64 {
        self.values[row * self.size + column]
    }

    pub fn set(&mut self, row: usize, column: usize, value: Complex64) {
        self.values[row * self.size + column] = value;
    }

    fn row(&self, row: usize) -> &[Complex64] {
        &self.values[row * self.size..(row + 1) * self.size]
    }

    /// `self = a b`
    fn product(&mut self, a: &Matrix, b: &Matrix) {
        let n = self.size;
        for (i, out) in self.values.chunks_exact_mut(n).enumerate() {
            out.fill(Complex64::ZERO);
            for (factor, row) in a.row(i).iter().zip(b.values.chunks_exact(n)) {
                if *factor != Complex64::ZERO {
                    for (o, x) in out.iter_mut().zip(row) {
                        *o += factor * x;
                    }
                }
            }
        }
    }

    /// `self = a* b`, `a*` being the conjugate transpose.
    fn product_of_adjoint(&mut self, a: &Matrix, b: &Matrix) {
        let n = self.size;
        self.values.fill(Complex64::ZERO);
        for (left, right) in a.values.chunks_exact(n).zip(b.values.chunks_exact(n)) {
            for (factor, out) in left.iter().zip(self.values.chunks_exact_mut(n)) {
                if *factor != Complex64::ZERO {
                    for (o, x) in out.iter_mut().zip(right) {
                        *o += factor.conj() * x;
                    }
                }
            }
        }
    }

    fn scale(&mut self, factor: f64) {
        for value in &mut self.values {
            *value *= factor;
        }
    }

    /// The Frobenius norm.
    pub fn norm(&self) -> f64 {
        self.values.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt()
    }

    pub fn trace(&self) -> Complex64 {
        (0..self.size).map(|i| self.get(i, i)).sum()
    }

    /// The traces of the powers 1, 2, ... up to the size: they determine the eigenvalues.
    pub fn traces(&self) -> Vec<Complex64> {
        let mut traces = Vec::with_capacity(self.size);
        let mut power = self.clone();
        let mut next = Matrix::zero(self.size);
        for i in 0..self.size {
            if i > 0 {
                next.product(&power, self);
                std::mem::swap(&mut power, &mut next);
            }
            traces.push(power.trace());
        }
        traces
    }

    /// The traces of the first powers, of which there may be fewer than rows.
    #[cfg(test)]
    pub fn first_traces(&self, count: usize) -> Vec<Complex64> {
        let mut power = self.clone();
        let mut next = Matrix::zero(self.size);
        let mut traces = vec![power.trace()];
        while traces.len() < count {
            next.product(&power, self);
            std::mem::swap(&mut power, &mut next);
            traces.push(power.trace());
        }
        traces
    }

    /// ln of the norms of the powers 1, 2, 4, ... up to 2^`doublings`; minus infinity where a power is 0.
    fn log_norms(&self, doublings: i32) -> Vec<f64> {
        let mut norms = Vec::with_capacity(doublings as usize + 1);
        let mut power = self.clone();
        let mut next = Matrix::zero(self.size);
        let mut log = 0.0;
        for doubling in 0..=doublings {
            if doubling > 0 {
                next.product(&power, &power);
                std::mem::swap(&mut power, &mut next);
                log *= 2.0;
            }
            let norm = power.norm();
            if norm == 0.0 {
                norms.resize(doublings as usize + 1, f64::NEG_INFINITY);
                return norms;
            }
            log += norm.ln();
            norms.push(log);
            power.scale(1.0 / norm);
        }
        norms
    }

    /// ln of the factor by which powers grow from one to the next in the long run: that of the largest absolute
    /// eigenvalue.
    ///
    /// Where eigenvectors are missing, rounding by 1e-16 moves eigenvalues by the square root of that, 1e-8, or by a
    /// higher root.
    pub fn growth(&self) -> f64 {
        match self.clone().eigenvalues() {
            Some(values) => {
                let largest = values.iter().map(|v| v.norm_sqr()).fold(0.0, f64::max);
                0.5 * largest.ln()
            }
            None => self.growth_of_powers(),
        }
    }

    /// The same from a high power: an upper bound, a little above for powers that grow as a polynomial.
    pub fn growth_of_powers(&self) -> f64 {
        let last = *self.log_norms(DOUBLINGS).last().unwrap_or(&0.0);
        last / f64::powi(2.0, DOUBLINGS)
    }

    /// The degree p of the polynomial by which powers grow, for a matrix that has no growth otherwise: 0 for bounded
    /// powers, 1 where an eigenvalue on the unit circle lacks an eigenvector.
    ///
    /// Powers of a slow rotation may double between two exponents, too: growth of degree 1 has to go on, and p + 1
    /// eigenvalues lie together.
    pub fn polynomial_growth(&self) -> u32 {
        let norms = self.log_norms(DOUBLINGS);
        let degree = |n: usize| (norms[n] - norms[n - 1]) / std::f64::consts::LN_2;
        let whole = degree(LONG).round();
        // Rounding hides higher degrees in higher powers.
        let last = if whole == 1.0 { norms.len() - 1 } else { LONG };
        let goes_on = (LONG..=last).all(|n| (degree(n) - whole).abs() < 0.05);
        match whole > 0.0 && goes_on && self.has_cluster(whole as usize + 1) {
            true => whole as u32,
            false => 0,
        }
    }

    /// Whether at least `size` eigenvalues lie together.
    fn has_cluster(&self, size: usize) -> bool {
        let Some(values) = self.clone().eigenvalues() else {
            return true;
        };
        values.iter().any(|v| {
            let near = values.iter().filter(|w| (*w - v).norm() < CLUSTER);
            near.count() >= size
        })
    }

    /// ln of the sum of the squared norms of the first 64 powers, each weighted a little less than the one before: a
    /// smooth measure of how near powers are to growth. With S(n) the sum of the first n, S(2n) = S(n) + A*^n S(n) A^n
    /// (R. A. Smith, SIAM J. Appl. Math. 16 (1968) 198-201).
    pub fn transient(&self) -> f64 {
        let n = self.size;
        let mut sum = Matrix::identity(n);
        let mut power = self.clone();
        power.scale(WEIGHT.sqrt());
        let (mut half, mut more) = (Matrix::zero(n), Matrix::zero(n));
        for _ in 0..SUMMED {
            half.product(&sum, &power);
            more.product_of_adjoint(&power, &half);
            for (s, m) in sum.values.iter_mut().zip(&more.values) {
                *s += m;
            }
            half.product(&power, &power);
            std::mem::swap(&mut power, &mut half);
        }
        let energy = sum.trace().re;
        if energy.is_finite() {
            energy.ln()
        } else {
            f64::INFINITY
        }
    }

    /// All eigenvalues, by the QR algorithm with shifts on the Hessenberg form (G. H. Golub and C. F. Van Loan, Matrix
    /// Computations, 4th ed. (2013), sec. 7.4 and 7.5). `None` if it does not converge or a value is not finite.
    pub fn eigenvalues(mut self) -> Option<Vec<Complex64>> {
        if self.values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let scale = self.norm();
        self.reduce_to_hessenberg();
        let mut found = Vec::with_capacity(self.size);
        let mut end = self.size;
        let mut sweeps = 0;
        while end > 0 {
            let start = self.decouple(end, scale);
            if start + 1 == end {
                found.push(self.get(start, start));
                end = start;
                sweeps = 0;
                continue;
            }
            sweeps += 1;
            if sweeps > 60 {
                return None;
            }
            let shift = if sweeps % 10 == 0 {
                self.get(end - 1, end - 1) + 0.75 * self.get(end - 1, end - 2).norm()
            } else {
                self.corner_eigenvalue(end)
            };
            self.qr_step(start, end, shift);
        }
        Some(found)
    }

    /// The start of the last block before `end` that no negligible subdiagonal element cuts.
    fn decouple(&mut self, end: usize, scale: f64) -> usize {
        let mut start = end - 1;
        while start > 0 {
            let beside = self.get(start, start).norm() + self.get(start - 1, start - 1).norm();
            let beside = if beside == 0.0 { scale } else { beside };
            if self.get(start, start - 1).norm() <= f64::EPSILON * beside {
                self.set(start, start - 1, Complex64::ZERO);
                break;
            }
            start -= 1;
        }
        start
    }

    /// The eigenvalue of the last two rows and columns before `end` that is nearer to the last diagonal element.
    fn corner_eigenvalue(&self, end: usize) -> Complex64 {
        let [a, b] = [self.get(end - 2, end - 2), self.get(end - 2, end - 1)];
        let [c, d] = [self.get(end - 1, end - 2), self.get(end - 1, end - 1)];
        let half = (a - d) * 0.5;
        let root = (half * half + b * c).sqrt();
        let larger = if (half + root).norm() >= (half - root).norm() {
            half + root
        } else {
            half - root
        };
        if larger == Complex64::ZERO {
            return d;
        }
        d - b * c / larger
    }

    /// Householder reflections from both sides.
    fn reduce_to_hessenberg(&mut self) {
        let n = self.size;
        for k in 0..n.saturating_sub(2) {
            // Small elements would vanish in a sum of squares with the first one, and are not 0.
            if (k + 2..n).all(|i| self.get(i, k) == Complex64::ZERO) {
                continue;
            }
            let column = (k + 1..n).map(|i| self.get(i, k));
            let largest = column.clone().map(|x| x.norm()).fold(0.0, f64::max);
            let mut v: Vec<Complex64> = column.map(|x| x / largest).collect();
            let sign = match v[0].norm() {
                0.0 => Complex64::ONE,
                size => v[0] / size,
            };
            let size = v.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
            v[0] += sign * size;
            let length: f64 = v.iter().map(|x| x.norm_sqr()).sum();
            for column in 0..n {
                let dot: Complex64 = (k + 1..n)
                    .zip(&v)
                    .map(|(i, x)| x.conj() * self.get(i, column))
                    .sum();
                for (i, x) in (k + 1..n).zip(&v) {
                    let value = self.get(i, column) - 2.0 * dot / length * x;
                    self.set(i, column, value);
                }
            }
            for row in 0..n {
                let dot: Complex64 = (k + 1..n).zip(&v).map(|(i, x)| self.get(row, i) * x).sum();
                for (i, x) in (k + 1..n).zip(&v) {
                    let value = self.get(row, i) - 2.0 * dot / length * x.conj();
                    self.set(row, i, value);
                }
            }
        }
    }

    /// One step of the shifted QR iteration on the rows and columns `start..end`, with Givens rotations.
    fn qr_step(&mut self, start: usize, end: usize, shift: Complex64) {
        for i in start..end {
            let value = self.get(i, i) - shift;
            self.set(i, i, value);
        }
        let mut rotations = Vec::with_capacity(end - start);
        for k in start..end - 1 {
            let (a, b) = (self.get(k, k), self.get(k + 1, k));
            let length = (a.norm_sqr() + b.norm_sqr()).sqrt();
            let (c, s) = if length == 0.0 {
                (Complex64::ONE, Complex64::ZERO)
            } else {
                (a / length, b / length)
            };
            for j in k..end {
                let (x, y) = (self.get(k, j), self.get(k + 1, j));
                self.set(k, j, c.conj() * x + s.conj() * y);
                self.set(k + 1, j, c * y - s * x);
            }
            rotations.push((c, s));
        }
        for (k, (c, s)) in (start..end - 1).zip(rotations) {
            for i in start..(k + 2).min(end) {
                let (x, y) = (self.get(i, k), self.get(i, k + 1));
                self.set(i, k, x * c + y * s);
                self.set(i, k + 1, y * c.conj() - x * s.conj());
            }
        }
        for i in start..end {
            let value = self.get(i, i) + shift;
            self.set(i, i, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    fn random(rng: &mut Rng, size: usize) -> Matrix {
        let mut m = Matrix::zero(size);
        for value in &mut m.values {
            *value = Complex64::new(2.0 * rng.float() - 1.0, 2.0 * rng.float() - 1.0);
        }
        m
    }

    /// The inverse, by elimination with pivots.
    fn inverse(m: &Matrix) -> Matrix {
        let n = m.size;
        let (mut a, mut b) = (m.clone(), Matrix::identity(n));
        for k in 0..n {
            let pivot = (k..n)
                .max_by(|&i, &j| a.get(i, k).norm().total_cmp(&a.get(j, k).norm()))
                .unwrap();
            for j in 0..n {
                a.values.swap(k * n + j, pivot * n + j);
                b.values.swap(k * n + j, pivot * n + j);
            }
            let p = a.get(k, k);
            for j in 0..n {
                a.values[k * n + j] /= p;
                b.values[k * n + j] /= p;
            }
            for i in (0..n).filter(|&i| i != k) {
                let f = a.get(i, k);
                for j in 0..n {
                    let (x, y) = (a.get(k, j), b.get(k, j));
                    a.values[i * n + j] -= f * x;
                    b.values[i * n + j] -= f * y;
                }
            }
        }
        b
    }

    /// A matrix with the given diagonal, in a random basis.
    fn with_eigenvalues(rng: &mut Rng, values: &[Complex64]) -> Matrix {
        with_diagonals(rng, values, Complex64::ZERO)
    }

    /// The same with `above` just above the diagonal.
    fn with_diagonals(rng: &mut Rng, values: &[Complex64], above: Complex64) -> Matrix {
        let n = values.len();
        let mut middle = Matrix::zero(n);
        for (i, v) in values.iter().enumerate() {
            middle.set(i, i, *v);
            if i > 0 {
                middle.set(i - 1, i, above);
            }
        }
        let basis = random(rng, n);
        let (mut left, mut all) = (Matrix::zero(n), Matrix::zero(n));
        left.product(&basis, &middle);
        all.product(&left, &inverse(&basis));
        all
    }

    #[test]
    fn eigenvalues_are_found_in_any_basis() {
        let mut rng = Rng::new(7);
        for size in 1..=12 {
            for _ in 0..20 {
                let values: Vec<Complex64> = (0..size)
                    .map(|_| Complex64::new(rng.float() - 0.5, rng.float() - 0.5))
                    .collect();
                let matrix = with_eigenvalues(&mut rng, &values);
                let mut found = matrix.eigenvalues().expect("converges");
                for v in values {
                    let (at, error) = found
                        .iter()
                        .enumerate()
                        .map(|(i, f)| (i, (f - v).norm()))
                        .min_by(|a, b| a.1.total_cmp(&b.1))
                        .unwrap();
                    assert!(error < 1e-8, "{size}: {v} is off by {error:e}");
                    found.swap_remove(at);
                }
            }
        }
    }

    #[test]
    fn small_elements_count() {
        for small in [1e-6, 1e-8, 1e-10, 1e-12] {
            // Its characteristic polynomial is x^3 - small x.
            let mut matrix = Matrix::zero(3);
            matrix.set(1, 0, Complex64::ONE);
            matrix.set(2, 0, Complex64::from(small));
            matrix.set(0, 2, Complex64::ONE);
            let found = matrix.eigenvalues().expect("converges");
            let root = f64::sqrt(small);
            for value in [root, -root, 0.0] {
                let errors = found.iter().map(|v| (v - value).norm());
                let error = errors.fold(f64::INFINITY, f64::min);
                assert!(error < 1e-3 * root, "{small}: {value} is not in {found:?}");
            }
        }
        // A column whose squares are 0 beside the diagonal.
        let mut tiny = Matrix::zero(3);
        (0..3).for_each(|i| tiny.set(i, i, Complex64::ONE));
        tiny.set(2, 0, Complex64::from(1e-200));
        let found = tiny.eigenvalues().expect("converges");
        assert!(found.iter().all(|v| (v - 1.0).norm() < 1e-15), "{found:?}");
    }

    #[test]
    fn special_matrices_have_their_eigenvalues() {
        // A cyclic permutation: the QR algorithm without shifts would never move.
        let mut cycle = Matrix::zero(5);
        for i in 0..5 {
            cycle.set(i, (i + 1) % 5, Complex64::ONE);
        }
        let found = cycle.eigenvalues().expect("converges");
        let product: Complex64 = found.iter().product();
        assert!((product - 1.0).norm() < 1e-12);
        for v in found {
            assert!((v.powi(5) - 1.0).norm() < 1e-12, "{v}");
        }
        assert_eq!(
            Matrix::zero(3).eigenvalues(),
            Some(vec![Complex64::ZERO; 3])
        );
        assert_eq!(Matrix::zero(0).eigenvalues(), Some(vec![]));
        let mut broken = Matrix::identity(2);
        broken.set(0, 1, Complex64::new(f64::NAN, 0.0));
        assert_eq!(broken.eigenvalues(), None);
    }

    #[test]
    fn growth_is_that_of_the_largest_eigenvalue() {
        let mut rng = Rng::new(11);
        for size in 1..=8 {
            for radius in [0.25, 1.0, 1.001, 3.0] {
                let values: Vec<Complex64> = (0..size)
                    .map(|i| Complex64::from_polar(radius / (1.0 + i as f64), 6.0 * rng.float()))
                    .collect();
                let matrix = with_eigenvalues(&mut rng, &values);
                let error = (matrix.growth() - f64::ln(radius)).abs();
                assert!(error < 1e-9, "{size} {radius}: {error:e}");
                let bound = matrix.growth_of_powers() - f64::ln(radius);
                assert!(bound.abs() < 1e-3, "{size} {radius}: {bound:e}");
            }
        }
        assert_eq!(Matrix::zero(4).growth(), f64::NEG_INFINITY);
    }

    #[test]
    fn missing_eigenvectors_are_no_growth_but_a_polynomial() {
        let mut rng = Rng::new(13);
        for degree in 0..3 {
            for angle in [0.0, 1.0, std::f64::consts::PI] {
                let values = vec![Complex64::from_polar(1.0, angle); degree as usize + 1];
                // In a random basis rounding splits threefold eigenvalues by the third root of its size, 1e-5: real
                // growth.
                let matrix = match degree {
                    2 => {
                        let mut m = Matrix::zero(3);
                        for i in 0..3 {
                            m.set(i, i, values[i]);
                            m.set(
                                i,
                                (i + 1).min(2),
                                if i < 2 { Complex64::ONE } else { values[2] },
                            );
                        }
                        m
                    }
                    _ => with_diagonals(&mut rng, &values, Complex64::ONE),
                };
                assert!(matrix.growth().abs() < 1e-7, "{degree} {angle}");
                assert_eq!(matrix.polynomial_growth(), degree, "{angle}");
            }
        }
    }

    /// A leapfrog step of an oscillator.
    fn leapfrog(a: f64) -> Matrix {
        let mut m = Matrix::zero(2);
        m.set(0, 0, Complex64::from(2.0 - a * a));
        m.set(0, 1, Complex64::from(-1.0));
        m.set(1, 0, Complex64::ONE);
        m
    }

    #[test]
    fn slow_oscillators_do_not_grow() {
        assert_eq!(leapfrog(0.0).polynomial_growth(), 1);
        for n in 1..400 {
            let a = 1e-4 * f64::from(n);
            assert_eq!(leapfrog(a).polynomial_growth(), 0, "{a}");
        }
    }

    #[test]
    fn transients_rise_towards_a_collision_of_eigenvalues() {
        // An oscillator is stable up to a = 2, where its eigenvalues meet at -1.
        let measures: Vec<f64> = [1.5, 1.8, 1.95, 1.99, 2.0, 2.05, 2.5]
            .iter()
            .map(|&a| leapfrog(a).transient())
            .collect();
        assert!(measures.is_sorted(), "{measures:?}");
    }
}
