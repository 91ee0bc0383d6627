//! `learner.precision`: factors of products are rounded to ten bits, and only where asked for.

use crate::place::{figure, gpu};
use ostler_trainer::torch::{MatmulPrecision, measured_matmul_error_on, set_matmul_precision};

#[test]
fn products_are_rounded_as_the_configuration_says() {
    let Some(place) = gpu() else { return };
    for (precision, name, range) in [
        (MatmulPrecision::Highest, "float32", 0.0..1e-5),
        (MatmulPrecision::High, "tf32", 1e-5..4e-3),
        (MatmulPrecision::Highest, "float32 again", 0.0..1e-5),
    ] {
        set_matmul_precision(precision).unwrap();
        let error = measured_matmul_error_on(place.torch).unwrap();
        assert!(range.contains(&error), "{name}: {error}");
        figure(&format!("precision.{}", name.replace(' ', "_")), error);
    }
}
