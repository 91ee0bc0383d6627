//! Parameters of soft constraints: solref and solimp packed as the kernels take them.
//!
//! Source: MuJoCo, Modeling, "Solver parameters": impedance d(r), reference
//! acceleration `aref = -b v - k d r` with
//! `b = 2 / (dwidth timeconst)`, `k = 1 / (dwidth^2 timeconst^2 dampratio^2)`, or,
//! where both numbers of solref are negative, `k = -solref[0] / dwidth^2` and
//! `b = -solref[1] / dwidth`.

use super::error::LowerError;
use crate::physics::native::tables::soft;

pub(super) use ostler_model::rest::MIN_VALUE;

/// Range of impedances, as MuJoCo's.
const IMPEDANCE: [f64; 2] = [1e-4, 0.9999];
/// Replacement of a solref of mixed signs, as in MuJoCo.
const DEFAULT_SOLREF: [f64; 2] = [0.02, 1.0];
/// Largest exponent of the impedance's sigmoid that the kernels evaluate.
const MAX_POWER: f64 = 100.0;

/// A soft constraint, packed in the order of [`soft`].
pub(super) type Soft = [f64; soft::LEN];

/// State of the packing of a model's soft constraints.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packer {
    /// Time step (s).
    pub timestep: f64,
    /// Time constants are at least two time steps (flag `refsafe`).
    pub refsafe: bool,
}

/// solref and solimp of one constraint, with the name of its element for errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec<'a> {
    pub of: &'a str,
    pub solref: [f64; 2],
    pub solimp: [f64; 5],
}

/// A body that cannot give way at the initial pose has inverse weight 0: as hard as it
/// gets, but not infinitely (`mjMINVAL`).
fn regular(diag: f64) -> f64 {
    diag.max(MIN_VALUE)
}

impl Packer {
    /// A constraint on a position: limit, equality or contact normal.
    ///
    /// `margin` (m or rad) is the distance at which it acts, `diag` the diagonal
    /// approximation of `J M^-1 J^T` that regularises it.
    pub(crate) fn position(&self, spec: Spec, margin: f64, diag: f64) -> Result<Soft, LowerError> {
        let [low, high, width, mid, power] = clamp(spec.solimp);
        let [k, b] = self.stiffness_damping(self.safe(spec.solref), high);
        let flat = low == high || width <= MIN_VALUE;
        let mean = 0.5 * (low + high);
        let (low, high, inverse) = if flat { (mean, mean, 1.0) } else { (low, high, 1.0 / width) };
        let power = if flat { 1.0 } else { power };
        if power > MAX_POWER || power.is_nan() {
            return Err(LowerError::new(
                format!("solimp power {power} of {}", spec.of),
                "100 is the most",
            ));
        }
        let mut out = [0.0; soft::LEN];
        out[soft::K] = k;
        out[soft::B] = b;
        out[soft::D0] = low;
        out[soft::DW] = high;
        out[soft::IW] = inverse;
        out[soft::MID] = mid;
        out[soft::LA] = 1.0 / mid;
        out[soft::HB] = 1.0 / (1.0 - mid);
        out[soft::POWER] = power;
        out[soft::MARGIN] = margin;
        out[soft::DIAG] = regular(diag);
        Ok(out)
    }

    /// Dry friction: no position, so no stiffness and the impedance at zero.
    pub(crate) fn friction(&self, spec: Spec, diag: f64) -> Soft {
        let [low, high, width, mid, _] = clamp(spec.solimp);
        let [_, b] = self.stiffness_damping(self.safe(spec.solref), high);
        let flat = low == high || width <= MIN_VALUE;
        let impedance = if flat { 0.5 * (low + high) } else { low };
        let mut out = [0.0; soft::LEN];
        out[soft::B] = b;
        out[soft::D0] = impedance;
        out[soft::DW] = impedance;
        out[soft::IW] = 1.0;
        out[soft::MID] = mid;
        out[soft::LA] = 1.0;
        out[soft::HB] = 1.0;
        out[soft::POWER] = 1.0;
        out[soft::DIAG] = regular(diag);
        out
    }

    /// Damping of the friction directions of an elliptic contact: from
    /// `solref_friction` where that says something, otherwise as the normal's.
    pub(crate) fn friction_damping(&self, spec: Spec, solref_friction: [f64; 2]) -> f64 {
        let [_, high, ..] = clamp(spec.solimp);
        let mixed = (solref_friction[0] > 0.0) != (solref_friction[1] > 0.0);
        let own = if mixed { [0.0; 2] } else { solref_friction };
        let solref = if own == [0.0; 2] { self.safe(spec.solref) } else { self.safe(own) };
        self.stiffness_damping(solref, high)[1]
    }

    /// solref as MuJoCo uses it: one format, and not too stiff for the time step.
    fn safe(&self, solref: [f64; 2]) -> [f64; 2] {
        let mixed = (solref[0] > 0.0) != (solref[1] > 0.0);
        let [mut first, second] = if mixed { DEFAULT_SOLREF } else { solref };
        if self.refsafe && first > 0.0 {
            first = first.max(2.0 * self.timestep);
        }
        [first, second]
    }

    fn stiffness_damping(&self, [first, second]: [f64; 2], high: f64) -> [f64; 2] {
        let k = if first > 0.0 {
            1.0 / (high * high * first * first * second * second).max(MIN_VALUE)
        } else {
            -first / (high * high).max(MIN_VALUE)
        };
        let b = if second > 0.0 {
            2.0 / (high * first).max(MIN_VALUE)
        } else {
            -second / high.max(MIN_VALUE)
        };
        [k, b]
    }
}

fn clamp([low, high, width, mid, power]: [f64; 5]) -> [f64; 5] {
    let impedance = |x: f64| x.clamp(IMPEDANCE[0], IMPEDANCE[1]);
    [impedance(low), impedance(high), width.max(0.0), impedance(mid), power.max(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKER: Packer = Packer { timestep: 0.002, refsafe: true };

    fn spec(solref: [f64; 2], solimp: [f64; 5]) -> Spec<'static> {
        Spec { of: "geom \"g\"", solref, solimp }
    }

    /// Impedance as the kernels evaluate it.
    fn impedance(s: &Soft, r: f64) -> f64 {
        let x = (r - s[soft::MARGIN]).abs() * s[soft::IW];
        if x >= 1.0 {
            return s[soft::DW];
        }
        let p = s[soft::POWER];
        let y = if x <= s[soft::MID] {
            s[soft::MID] * (s[soft::LA] * x).powf(p)
        } else {
            1.0 - (1.0 - s[soft::MID]) * (s[soft::HB] * (1.0 - x)).powf(p)
        };
        s[soft::D0] + y * (s[soft::DW] - s[soft::D0])
    }

    #[test]
    fn time_constant_and_damping_ratio_give_stiffness_and_damping() {
        let s = PACKER.position(spec([0.05, 0.5], [0.8, 0.9, 0.01, 0.5, 2.0]), 0.1, 3.0).unwrap();
        assert!((s[soft::B] - 2.0 / (0.9 * 0.05)).abs() < 1e-12);
        assert!((s[soft::K] - 1.0 / (0.9 * 0.05 * 0.5_f64).powi(2)).abs() < 1e-9);
        assert_eq!((s[soft::MARGIN], s[soft::DIAG]), (0.1, 3.0));
        assert!((impedance(&s, 0.1) - 0.8).abs() < 1e-15);
        assert!((impedance(&s, 0.095) - 0.85).abs() < 1e-12);
        assert!((impedance(&s, 0.0) - 0.9).abs() < 1e-15);
    }

    #[test]
    fn negative_solref_is_stiffness_and_damping_themselves() {
        let s =
            PACKER.position(spec([-100.0, -5.0], [0.9, 0.9, 0.01, 0.5, 2.5]), 0.0, 1.0).unwrap();
        assert!((s[soft::K] - 100.0 / 0.81).abs() < 1e-12);
        assert!((s[soft::B] - 5.0 / 0.9).abs() < 1e-12);
    }

    #[test]
    fn a_time_constant_below_two_steps_is_raised_unless_refsafe_is_off() {
        let at = |packer: Packer| {
            packer.friction(spec([1e-4, 1.0], [0.9, 0.95, 0.001, 0.5, 2.0]), 1.0)[soft::B]
        };
        assert!((at(PACKER) - 2.0 / (0.95 * 0.004)).abs() < 1e-9);
        let unsafe_ = Packer { refsafe: false, ..PACKER };
        assert!((at(unsafe_) - 2.0 / (0.95 * 1e-4)).abs() < 1e-6);
    }

    #[test]
    fn mixed_signs_fall_back_to_the_default() {
        let imp = [0.9, 0.95, 0.001, 0.5, 2.0];
        let mixed = PACKER.position(spec([0.3, -1.0], imp), 0.0, 1.0).unwrap();
        let default = PACKER.position(spec([0.02, 1.0], imp), 0.0, 1.0).unwrap();
        assert_eq!(mixed, default);
    }

    #[test]
    fn flat_impedance_is_the_mean_and_needs_no_power() {
        let s = PACKER.position(spec([0.02, 1.0], [0.7, 0.9, 0.0, 0.5, 2.5]), 0.0, 1.0).unwrap();
        assert_eq!((s[soft::D0], s[soft::DW], s[soft::POWER]), (0.8, 0.8, 1.0));
        // The reference acceleration keeps the full-width impedance.
        assert!((s[soft::B] - 2.0 / (0.9 * 0.02)).abs() < 1e-12);
    }

    #[test]
    fn powers_need_not_be_whole_but_bounded() {
        let at =
            |power: f64| PACKER.position(spec([0.02, 1.0], [0.8, 0.9, 0.01, 0.5, power]), 0.0, 1.0);
        let s = at(2.5).unwrap();
        // y = x^2.5 / 0.5^1.5 at x = 0.25
        let y = 0.25_f64.powf(2.5) / 0.5_f64.powf(1.5);
        assert!((impedance(&s, 0.0025) - (0.8 + 0.1 * y)).abs() < 1e-15);
        let error = at(101.0).unwrap_err().to_string();
        assert!(error.contains("101") && error.contains("geom \"g\""), "{error}");
    }

    #[test]
    fn friction_directions_have_their_own_damping_where_given() {
        let s = spec([0.02, 1.0], [0.9, 0.95, 0.001, 0.5, 2.0]);
        let normal = PACKER.position(s, 0.0, 1.0).unwrap()[soft::B];
        assert_eq!(PACKER.friction_damping(s, [0.0; 2]), normal);
        assert_eq!(PACKER.friction_damping(s, [0.1, -1.0]), normal);
        let own = PACKER.friction_damping(s, [0.1, 1.0]);
        assert!((own - 2.0 / (0.95 * 0.1)).abs() < 1e-12);
    }
}
