//! Which of libtorch's float32 matrix products to use on this processor.
//!
//! Precision "medium" lets libtorch hand float32 products to oneDNN. Without AMX
//! oneDNN still computes them in float32, about twice as fast as MKL on AMD
//! processors; with AMX it uses bfloat16 (errors near 4e-3), but for some shapes only,
//! and which these are changes with its version. So "medium" is refused where there is
//! AMX, and measured elsewhere.

use super::{TorchError, call, ostler_torch_matmul_precision, ostler_torch_set_matmul_precision};
use ostler_collector::transfer::host_number;
use tch::{Device, Kind, Tensor};

/// A float32 product may differ from the exact one by this much, relative to its
/// largest element. Float32 gives 5e-7, bfloat16 4e-3.
const LARGEST_ERROR: f64 = 1e-5;

/// Rows, inner size and columns of the products that are measured.
const SHAPES: [(i64, i64, i64); 4] =
    [(64, 48, 64), (256, 128, 128), (256, 256, 128), (128, 512, 256)];

/// How libtorch may compute products of float32 matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatmulPrecision {
    /// Float32 throughout.
    Highest,
    /// TensorFloat32 where the processor has it.
    High,
    /// bfloat16 where the processor has it in hardware, oneDNN's float32 elsewhere.
    Medium,
}

impl MatmulPrecision {
    /// libtorch's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Highest => "highest",
            Self::High => "high",
            Self::Medium => "medium",
        }
    }
}

impl std::fmt::Display for MatmulPrecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Sets the precision for the whole process. It also governs CUDA, where
/// everything below "highest" allows TensorFloat32.
///
/// # Errors
/// libtorch refuses, with its message.
pub fn set_matmul_precision(precision: MatmulPrecision) -> Result<(), TorchError> {
    let name = match precision {
        MatmulPrecision::Highest => c"highest",
        MatmulPrecision::High => c"high",
        MatmulPrecision::Medium => c"medium",
    };
    // SAFETY: the name is a terminated string, and `call` hands over a buffer
    // together with its length.
    call("set the matmul precision", |error, size| unsafe {
        ostler_torch_set_matmul_precision(name.as_ptr(), error, size)
    })
}

/// The precision in force.
///
/// # Errors
/// libtorch refuses, with its message.
pub fn matmul_precision() -> Result<MatmulPrecision, TorchError> {
    let mut level = 0;
    // SAFETY: `level` lives through the call, and `call` hands over a buffer
    // together with its length.
    call("read the matmul precision", |error, size| unsafe {
        ostler_torch_matmul_precision(&raw mut level, error, size)
    })?;
    Ok(match level {
        0 => MatmulPrecision::Highest,
        1 => MatmulPrecision::High,
        _ => MatmulPrecision::Medium,
    })
}

/// Sets "medium" where there is no AMX and its products, measured here and now, are
/// float32's, and "highest" elsewhere. Returns the setting and the error measured for
/// "medium".
///
/// # Errors
/// libtorch refuses a setting or the measurement, with its message.
pub fn choose_matmul_precision() -> Result<(MatmulPrecision, f64), TorchError> {
    set_matmul_precision(MatmulPrecision::Medium)?;
    let error = measured_matmul_error()?;
    // Written so that a NaN is refused too.
    if error <= LARGEST_ERROR && !cpu_has_amx_bf16() {
        return Ok((MatmulPrecision::Medium, error));
    }
    set_matmul_precision(MatmulPrecision::Highest)?;
    Ok((MatmulPrecision::Highest, error))
}

/// Largest error of float32 products under the precision in force, against
/// float64, relative to the largest element of the exact product.
///
/// The shapes are those of small and of wide layers and of a layer's gradient: libtorch
/// decides by size which library computes a product, and oneDNN how.
///
/// # Errors
/// libtorch refuses, with its message.
pub fn measured_matmul_error() -> Result<f64, TorchError> {
    measured_matmul_error_on(Device::Cpu)
}

/// The same of products on a device.
///
/// # Errors
/// As there.
pub fn measured_matmul_error_on(device: Device) -> Result<f64, TorchError> {
    let mut worst = 0.0_f64;
    for (rows, inner, columns) in SHAPES {
        let a = tensor(spread(rows, inner)?.f_to_device(device))?;
        let b = tensor(spread(inner, columns)?.f_to_device(device))?;
        let exact =
            tensor(a.f_to_kind(Kind::Double))?.f_matmul(&tensor(b.f_to_kind(Kind::Double))?);
        let exact = tensor(exact)?;
        let product = tensor(a.f_matmul(&b))?;
        let difference = tensor(tensor(product.f_to_kind(Kind::Double))?.f_sub(&exact))?;
        let error = largest(&difference)? / largest(&exact)?;
        if error.is_nan() {
            return Ok(f64::NAN);
        }
        worst = worst.max(error);
    }
    Ok(worst)
}

/// `[rows, columns]` numbers in -1 to 1 whose mantissas use all 24 bits. Not
/// random: the golden ratio's multiples, so that every start measures the same.
fn spread(rows: i64, columns: i64) -> Result<Tensor, TorchError> {
    let golden = 0.618_033_988_749_894_9_f64;
    let numbers: Vec<f32> =
        (1..=rows * columns).map(|i| (2.0 * (i as f64 * golden).fract() - 1.0) as f32).collect();
    tensor(Tensor::f_from_slice(&numbers).and_then(|t| t.f_view([rows, columns])))
}

fn largest(t: &Tensor) -> Result<f64, TorchError> {
    let norm = tensor(t.f_abs().and_then(|t| t.f_max()))?;
    host_number(&norm).map_err(failed)
}

fn tensor(result: Result<Tensor, tch::TchError>) -> Result<Tensor, TorchError> {
    result.map_err(failed)
}

fn failed(error: tch::TchError) -> TorchError {
    TorchError::Call { operation: "measure a matrix product", message: error.to_string() }
}

/// Whether the processor multiplies bfloat16 tiles in hardware (CPUID leaf 7,
/// EDX bits 22 and 24: AMX-BF16, AMX-TILE).
pub fn cpu_has_amx_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        const BF16_AND_TILE: u32 = 1 << 22 | 1 << 24;
        let highest = std::arch::x86_64::__cpuid(0).eax;
        highest >= 7 && std::arch::x86_64::__cpuid_count(7, 0).edx & BF16_AND_TILE == BF16_AND_TILE
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The precision is the process's, and the tests share one: whoever changes it, or
/// compares bits over a while, is alone.
#[cfg(test)]
pub(crate) static PRECISION: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read_back() {
        let _alone = PRECISION.lock();
        for precision in [MatmulPrecision::Medium, MatmulPrecision::High, MatmulPrecision::Highest]
        {
            set_matmul_precision(precision).unwrap();
            assert_eq!(matmul_precision().unwrap(), precision);
        }
    }

    #[test]
    fn the_choice_computes_in_float32_and_is_in_force() {
        let _alone = PRECISION.lock();
        let (chosen, medium_error) = choose_matmul_precision().unwrap();
        assert_eq!(matmul_precision().unwrap(), chosen);
        assert_eq!(
            chosen == MatmulPrecision::Medium,
            medium_error <= LARGEST_ERROR && !cpu_has_amx_bf16()
        );
        let error = measured_matmul_error().unwrap();
        assert!(error > 0.0 && error <= LARGEST_ERROR, "{chosen}: {error:e}");
        println!("{chosen}, medium's error {medium_error:e}, AMX {}", cpu_has_amx_bf16());
        set_matmul_precision(MatmulPrecision::Highest).unwrap();
    }

    /// Every product that a network of usual widths makes, forward and backward: not only
    /// those that the choice looks at.
    #[test]
    fn products_of_all_usual_sizes_are_float32s() {
        let _alone = PRECISION.lock();
        choose_matmul_precision().unwrap();
        for rows in [64, 256, 1024, 6144] {
            for (inner, columns) in [(17, 128), (48, 256), (256, 128), (512, 256), (64, 6)] {
                let (x, w) = (spread(rows, inner).unwrap(), spread(inner, columns).unwrap());
                let y = spread(rows, columns).unwrap();
                let (w_t, x_t) = (w.transpose(0, 1), x.transpose(0, 1));
                let w_t = w_t.contiguous().transpose(0, 1);
                for (a, b) in [(&x, &w_t), (&x_t, &y)] {
                    let exact = a.to_kind(Kind::Double).matmul(&b.to_kind(Kind::Double));
                    let off = a.matmul(b).to_kind(Kind::Double) - &exact;
                    let error = largest(&off).unwrap() / largest(&exact).unwrap();
                    let size = (a.size(), b.size());
                    assert!(error <= LARGEST_ERROR, "{size:?}: {error:e}");
                }
            }
        }
        set_matmul_precision(MatmulPrecision::Highest).unwrap();
    }

    #[test]
    fn bfloat16_products_are_beyond_the_threshold() {
        // The spreads that the measurement must tell apart, on a processor that has no AMX too.
        let (a, b) = (spread(256, 128).unwrap(), spread(128, 128).unwrap());
        let exact = a.to_kind(Kind::Double).matmul(&b.to_kind(Kind::Double));
        let bf16 = a.to_kind(Kind::BFloat16).matmul(&b.to_kind(Kind::BFloat16));
        let difference = bf16.to_kind(Kind::Double) - &exact;
        let error = largest(&difference).unwrap() / largest(&exact).unwrap();
        assert!(error > 10.0 * LARGEST_ERROR, "{error:e}");
    }
}
