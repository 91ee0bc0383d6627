//! Initial weights.

use super::Linear;
use ostler_sim::rng::{Purpose, fill_uniform, normal_pair, philox};
use tch::{Device, Kind, TchError, Tensor};

/// A matrix `[rows,cols]` with orthonormal rows or columns (whichever are fewer)
/// times `gain`, drawn evenly among all such (Saxe et al. 2014). `stream` tells the
/// matrices of one run apart.
pub fn orthogonal(
    rows: i64,
    cols: i64,
    gain: f64,
    seed: u64,
    stream: u32,
) -> Result<Tensor, TchError> {
    let (long, short) = (rows.max(cols), rows.min(cols));
    let count = (long * short) as usize;
    let mut normals = Vec::with_capacity(count + 3);
    for block in 0..count.div_ceil(4) as u32 {
        let w = philox(seed, stream, Purpose::Initialisation, 0, block);
        for (a, b) in [(w[0], w[1]), (w[2], w[3])] {
            let (x, y) = normal_pair(a, b);
            normals.extend([f64::from(x), f64::from(y)]);
        }
    }
    normals.truncate(count);
    let normals = Tensor::f_from_slice(&normals)?.f_view([long, short])?;
    let (q, r) = Tensor::f_linalg_qr(&normals, "reduced")?;
    // The signs of R's diagonal make the factorisation unique, and with it the
    // distribution even (Mezzadri 2007).
    let q = q.f_mul(&r.f_diagonal(0, 0, 1)?.f_sign()?)?;
    let q = if rows < cols { q.f_transpose(0, 1)? } else { q };
    q.f_mul_scalar(gain)?.f_to_kind(Kind::Float)?.f_to_device(Device::Cpu)?.f_contiguous()
}

/// A layer's weights are [orthogonal]; biases stay.
///
/// # Errors
/// libtorch refuses.
pub fn orthogonal_layer(layer: &Linear, gain: f64, seed: u64, stream: u32) -> Result<(), TchError> {
    let (rows, cols) = layer.weight().size2()?;
    let weight = orthogonal(rows, cols, gain, seed, stream)?;
    layer.weight().shallow_clone().f_copy_(&weight)
}

/// A matrix `[rows,cols]` with entries drawn evenly between `-bound` and `bound`.
/// `stream` tells the matrices of one run apart.
pub fn uniform(
    rows: i64,
    cols: i64,
    bound: f64,
    seed: u64,
    stream: u32,
) -> Result<Tensor, TchError> {
    let mut numbers = vec![0.0_f32; (rows * cols) as usize];
    let streams = stream..stream + 1;
    fill_uniform(seed, streams, Purpose::Initialisation, 0, numbers.len(), &mut numbers);
    let unit = Tensor::f_from_slice(&numbers)?.f_view([rows, cols])?;
    unit.f_mul_scalar(2.0 * bound)?.f_sub_scalar(bound)
}

/// Weights and biases of a layer drawn evenly between plus and minus one over the root
/// of the number of its inputs, as PyTorch's `Linear` starts. Takes two streams: `2
/// stream` and the next.
pub fn fan_in(layer: &Linear, seed: u64, stream: u32) -> Result<(), TchError> {
    let (rows, cols) = layer.weight().size2()?;
    let bound = 1.0 / (cols.max(1) as f64).sqrt();
    let weight = uniform(rows, cols, bound, seed, 2 * stream)?;
    layer.weight().shallow_clone().f_copy_(&weight)?;
    let bias = uniform(1, rows, bound, seed, 2 * stream + 1)?;
    layer.bias().shallow_clone().f_copy_(&bias.f_view([rows])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_or_columns_are_orthonormal_times_the_gain() {
        for (rows, cols) in [(8, 3), (3, 8), (5, 5), (1, 7)] {
            let w = orthogonal(rows, cols, 2.0, 7, 1).unwrap();
            assert_eq!(w.size(), [rows, cols]);
            let gram = if rows < cols { w.matmul(&w.tr()) } else { w.tr().matmul(&w) };
            let eye = Tensor::eye(rows.min(cols), (Kind::Float, Device::Cpu)) * 4.0;
            assert!((gram - eye).abs().max().double_value(&[]) < 1e-5);
        }
    }

    #[test]
    fn seeds_and_streams_differ_and_repeat() {
        let w = |seed, stream| orthogonal(4, 4, 1.0, seed, stream).unwrap();
        assert_eq!(w(1, 1), w(1, 1));
        assert_ne!(w(1, 1), w(2, 1));
        assert_ne!(w(1, 1), w(1, 2));
    }
}
