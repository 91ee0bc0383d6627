//! Cubic splines through heights, as the peers have them: `RectBivariateSpline` of SciPy.

/// `(spaces + 1)^2` evenly spaced heights, `[y][x]`, on `(cells + 1)^2` corners of the same
/// square.
pub(super) fn grid(heights: Vec<f64>, spaces: usize, cells: usize) -> Vec<f64> {
    if spaces == cells {
        return heights;
    }
    let rows = heights.chunks_exact(spaces + 1).map(|row| line(row, cells));
    let rows: Vec<Vec<f64>> = rows.collect();
    let columns = (0..=cells).map(|c| {
        let column: Vec<f64> = rows.iter().map(|row| row[c]).collect();
        line(&column, cells)
    });
    let columns: Vec<Vec<f64>> = columns.collect();
    (0..=cells).flat_map(|r| columns.iter().map(move |column| column[r])).collect()
}

/// The spline through evenly spaced heights at `cells + 1` evenly spaced places.
fn line(heights: &[f64], cells: usize) -> Vec<f64> {
    let spaces = heights.len() - 1;
    let bends = bends(heights);
    let at = |i: usize| {
        let x = i as f64 * spaces as f64 / cells as f64;
        let k = (x as usize).min(spaces - 1);
        let (b, a) = (x - k as f64, 1.0 - (x - k as f64));
        let bent = (a * a * a - a) * bends[k] + (b * b * b - b) * bends[k + 1];
        a * heights[k] + b * heights[k + 1] + bent / 6.0
    };
    (0..=cells).map(at).collect()
}

/// Second derivatives at the points, without a knot at the second and the last but one. Fewer
/// than four points have straight lines between them.
fn bends(y: &[f64]) -> Vec<f64> {
    let last = y.len() - 1;
    let mut bends = vec![0.0; y.len()];
    if last < 3 {
        return bends;
    }
    let right = |i: usize| 6.0 * (y[i - 1] - 2.0 * y[i] + y[i + 1]);
    // There, third derivatives agree on both sides: the outer bends drop out.
    bends[1] = right(1) / 6.0;
    bends[last - 1] = right(last - 1) / 6.0;
    // Thomas' algorithm for b[i - 1] + 4 b[i] + b[i + 1] = right(i) between them.
    let mut upper = vec![0.0; y.len()];
    for i in 2..last - 1 {
        let pivot = 4.0 - upper[i - 1];
        upper[i] = 1.0 / pivot;
        bends[i] = (right(i) - bends[i - 1]) / pivot;
    }
    for i in (2..last - 1).rev() {
        bends[i] -= upper[i] * bends[i + 1];
    }
    bends[0] = 2.0 * bends[1] - bends[2];
    bends[last] = 2.0 * bends[last - 1] - bends[last - 2];
    bends
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A spline without end knots is a cubic where the points are on one.
    #[test]
    fn cubics_are_kept() {
        let cubic = |x: f64| 0.3 - x + 2.0 * x * x - 1.5 * x * x * x;
        for spaces in [3, 4, 7] {
            let points: Vec<f64> = (0..=spaces).map(|i| cubic(i as f64 / spaces as f64)).collect();
            for (i, y) in line(&points, 50).into_iter().enumerate() {
                assert!((y - cubic(i as f64 / 50.0)).abs() < 1e-12, "{spaces} {i}");
            }
        }
    }
}
