//! Products of matrices in the host's memory.
//!
//! By the crate `gemm`, on the calling thread. Of two equal calls in one process, on whatever
//! thread, the results have the same bits; how sums are split depends on the processor's
//! caches and vectors.

use gemm_common::Parallelism;

/// A matrix in memory.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<T> {
    x: T,
    shape: Shape,
}

/// Element `(r, c)` is at `r * row + c * column`.
#[derive(Debug, Clone, Copy)]
struct Shape {
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
}

impl Shape {
    fn transposed(self) -> Self {
        Self { rows: self.columns, columns: self.rows, row: self.column, column: self.row }
    }

    /// How many numbers it reaches over.
    fn len(self) -> usize {
        match (self.rows, self.columns) {
            (0, _) | (_, 0) => 0,
            (r, c) => (r - 1) * self.row + (c - 1) * self.column + 1,
        }
    }
}

impl<T> Matrix<T> {
    /// Rows of `columns` numbers, one behind the other.
    pub fn rows(x: T, rows: usize, columns: usize) -> Self {
        Self::columns(x, columns, rows, columns).t()
    }

    /// Columns of `rows` numbers, one every `stride`.
    pub fn columns(x: T, rows: usize, columns: usize, stride: usize) -> Self {
        let shape = Shape { rows, columns, row: 1, column: stride };
        Self { x, shape }
    }

    /// Its transpose.
    pub fn t(self) -> Self {
        Self { shape: self.shape.transposed(), ..self }
    }
}

/// `to = a b`, or with `add`: `to += a b`.
///
/// # Panics
/// Where sizes do not fit, or a slice is too short.
pub fn product(to: Matrix<&mut [f32]>, a: Matrix<&[f32]>, b: Matrix<&[f32]>, add: bool) {
    let (m, n, k) = (to.shape.rows, to.shape.columns, a.shape.columns);
    let sizes = [a.shape.rows, b.shape.columns, b.shape.rows];
    assert_eq!(sizes, [m, n, k], "sizes of a product");
    assert!(to.x.len() >= to.shape.len(), "room for a product");
    assert!(a.x.len() >= a.shape.len() && b.x.len() >= b.shape.len());
    // Rows and columns of a result do not share a number.
    let Shape { row, column, .. } = to.shape;
    assert!(m <= 1 || n <= 1 || row >= n * column || column >= m * row);
    if m == 0 || n == 0 {
        return;
    }
    // Its kernels write columns: results in rows are computed transposed.
    let whole = (m, n, to.shape, (a.x, a.shape), (b.x, b.shape));
    let (m, n, to_shape, (a, a_shape), (b, b_shape)) = match column < row {
        true => {
            (n, m, to.shape.transposed(), (b.x, b.shape.transposed()), (a.x, a.shape.transposed()))
        }
        false => whole,
    };
    let step = |x: usize| x as isize;
    // SAFETY: every element of the three matrices lies within its slice, and `to` is borrowed
    // mutably, so that it overlaps neither of the others.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            to.x.as_mut_ptr(),
            step(to_shape.column),
            step(to_shape.row),
            add,
            a.as_ptr(),
            step(a_shape.column),
            step(a_shape.row),
            b.as_ptr(),
            step(b_shape.column),
            step(b_shape.row),
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_sim::rng::{Purpose, fill_normal};

    fn normals(stream: u64, n: usize) -> Vec<f32> {
        let mut x = vec![0.0; n];
        fill_normal(stream, 0..n as u32, Purpose::Replay, 0, 1, &mut x);
        x
    }

    /// In double precision.
    fn expected(a: &[f64], b: &[f64], [m, n, k]: [usize; 3]) -> Vec<f64> {
        let entry = |i: usize| -> f64 {
            let (r, c) = (i / n, i % n);
            (0..k).map(|j| a[r * k + j] * b[j * n + c]).sum()
        };
        (0..m * n).map(entry).collect()
    }

    #[test]
    fn products_are_right_in_every_layout() {
        for [m, n, k] in [[1, 1, 1], [7, 5, 3], [256, 128, 48], [64, 1, 33], [3, 70, 300]] {
            let (a, b) = (normals(1, m * k), normals(2, k * n));
            let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            let exact = expected(&wide(&a), &wide(&b), [m, n, k]);
            let transposed = |x: &[f32], rows: usize, columns: usize| -> Vec<f32> {
                let at = |i: usize| x[(i % rows) * columns + i / rows];
                (0..rows * columns).map(at).collect()
            };
            let (a_t, b_t) = (transposed(&a, m, k), transposed(&b, k, n));
            let lefts = [
                Matrix::rows(&a[..], m, k),
                Matrix::rows(&a_t[..], k, m).t(),
                Matrix::columns(&a_t[..], m, k, m),
            ];
            let rights = [Matrix::rows(&b[..], k, n), Matrix::rows(&b_t[..], n, k).t()];
            for a in lefts {
                for b in rights {
                    for in_columns in [false, true] {
                        // Columns with a gap behind each, which stays as it is.
                        let stride = m + 3;
                        let mut to = vec![0.5; stride * n + m * n];
                        let at = |i: usize| match in_columns {
                            true => (i % n) * stride + i / n,
                            false => i,
                        };
                        for add in [false, true] {
                            let shape = match in_columns {
                                true => Matrix::columns(&mut to[..], m, n, stride),
                                false => Matrix::rows(&mut to[..], m, n),
                            };
                            product(shape, a, b, add);
                            let times = if add { 2.0 } else { 1.0 };
                            for (i, exact) in exact.iter().enumerate() {
                                let off = (f64::from(to[at(i)]) - times * exact).abs();
                                assert!(off < 1e-4, "{m} {n} {k} {in_columns} {add}: {off}");
                            }
                        }
                        if in_columns {
                            assert_eq!(to[m..stride], [0.5; 3]);
                        }
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "sizes of a product")]
    fn sizes_that_do_not_fit_are_refused() {
        let (a, b, mut to) = ([0.0; 6], [0.0; 6], [0.0; 4]);
        let (a, b) = (Matrix::rows(&a[..], 2, 3), Matrix::rows(&b[..], 2, 3));
        product(Matrix::rows(&mut to[..], 2, 2), a, b, false);
    }

    #[test]
    #[should_panic(expected = "room for a product")]
    fn results_need_room() {
        let (a, b, mut to) = ([0.0; 6], [0.0; 6], [0.0; 3]);
        let (a, b) = (Matrix::rows(&a[..], 2, 3), Matrix::rows(&b[..], 3, 2));
        product(Matrix::rows(&mut to[..], 2, 2), a, b, false);
    }
}
