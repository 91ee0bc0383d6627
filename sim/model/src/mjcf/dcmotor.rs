//! `<dcmotor>`: a motor by its constants, whose input is a voltage or a setpoint.
//!
//! Source: MuJoCo, `mjs_setToDCMotor`, `mj_fwdActuation`. With one input its force is affine:
//! by a voltage `K/R (V - K v)`, by a setpoint `kp (u_pos - l) + kd (u_vel - v) + u_ff`. With
//! inductance the current follows that force over K.

use super::element::{Element, Fault, Read};

/// Gain, bias and dynamics parameters in MuJoCo's places.
pub(super) struct Parameters<'a> {
    pub gain: &'a mut [f64],
    pub bias: &'a mut [f64],
    pub dynamics: &'a mut [f64],
    /// Least and greatest force, if the motor has one.
    pub forcerange: &'a mut Option<[f64; 2]>,
}

/// What a motor amounts to.
pub(super) struct Affine {
    pub gain: [f64; 3],
    pub bias: [f64; 3],
    /// Electrical time constant (s) and motor constant, if its current is a state.
    pub current: Option<[f64; 2]>,
}

/// Reads the attributes; `damping` is the actuator's own (N m s/rad).
pub(super) fn read(e: &Element, damping: f64, p: Parameters<'_>) -> Read<()> {
    let (mut constants, mut nominal, mut saturation) = ([p.gain[1], 0.0], [0.0; 3], [0.0; 3]);
    let (mut inductance, mut resistance) = ([0.0, p.dynamics[0]], p.gain[0]);
    let g = &p.gain;
    let mut controller = [g[4], g[5], g[6], p.dynamics[7], p.dynamics[8], g[7]];
    e.fill("motorconst", 1, &mut constants)?;
    e.scalar("resistance", &mut resistance)?;
    e.fill("nominal", 1, &mut nominal)?;
    e.fill("saturation", 1, &mut saturation)?;
    e.fill("inductance", 1, &mut inductance)?;
    e.fill("controller", 1, &mut controller)?;
    let [voltage, stall, free] = nominal;
    let [torque, mut emf] = constants;
    if voltage > 0.0 && emf <= 0.0 && free > 0.0 {
        // Free, the motor turns against its own damping.
        let plain = voltage / free;
        emf = if damping > 0.0 && resistance > 0.0 {
            let root = voltage * voltage - 4.0 * resistance * damping * free * free;
            if root > 0.0 { (voltage + root.sqrt()) / (2.0 * free) } else { plain }
        } else if damping > 0.0 && stall > 0.0 {
            let less = plain - voltage * damping / stall;
            if less > 0.0 { less } else { plain }
        } else {
            plain
        };
    }
    let constant = match (torque > 0.0, emf > 0.0) {
        (true, true) => (torque * emf).sqrt(),
        (true, false) => torque,
        _ => emf,
    };
    if resistance == 0.0 && voltage > 0.0 && stall > 0.0 && constant > 0.0 {
        resistance = constant * voltage / stall;
    }
    if constant <= 0.0 || resistance <= 0.0 {
        let why = "a <dcmotor> needs motorconst and resistance, or nominal=\"VOLTAGE STALL_TORQUE \
                   NO_LOAD_SPEED\", all positive";
        return Err(Fault::new(e.at, why));
    }
    (p.gain[0], p.gain[1]) = (resistance, constant);
    p.gain[4..7].copy_from_slice(&controller[..3]);
    (p.dynamics[7], p.dynamics[8]) = (controller[3], controller[4]);
    p.gain[7] = controller[5].max(0.0);
    if saturation[0] > 0.0 || saturation[1] > 0.0 {
        let most = if saturation[0] == 0.0 { constant * saturation[1] } else { saturation[0] };
        *p.forcerange = Some([-most, most]);
    }
    if saturation[2] > 0.0 {
        p.dynamics[1] = saturation[2];
    }
    p.dynamics[0] =
        if inductance[0] > 0.0 { inductance[0] / resistance } else { inductance[1].max(0.0) };
    // Those that are refused where they are not 0: amplitude, heat, bristles' stiffness.
    let first = |name: &str, count: usize, to: &mut f64| -> Read<()> {
        if let Some(given) = e.numbers(name)? {
            *to = given.into_iter().take(count).find(|x| *x != 0.0).unwrap_or(0.0);
        }
        Ok(())
    };
    first("cogging", 1, &mut p.bias[0])?;
    first("thermal", 3, &mut p.dynamics[2])?;
    first("lugre", 1, &mut p.dynamics[5])
}

/// The motor with these parameters and the input of this name; empty: a voltage.
pub(super) fn resolve(
    e: &Element,
    input: &str,
    gain: &[f64],
    bias: &[f64],
    dynamics: &[f64],
) -> Read<Affine> {
    let at = |name: &str| e.attr(name).map_or(e.at, |a| a.value_at(0));
    let refused = [
        ("cogging", "cogging", bias[0]),
        ("thermal", "a motor's temperature", dynamics[2]),
        ("lugre", "LuGre friction; give the joint frictionloss", dynamics[5]),
        ("saturation", "a limit of the current's rate (saturation's third number)", dynamics[1]),
        ("controller", "an integral gain (controller's second number)", gain[5]),
        ("controller", "a limit of the setpoint's rate (controller's fourth number)", dynamics[7]),
        ("controller", "a limit of the voltage (controller's sixth number)", gain[7]),
    ];
    if let Some((name, what, _)) = refused.into_iter().find(|r| r.2 != 0.0) {
        return Err(Fault::new(at(name), format!("a DC motor is not supported with {what}")));
    }
    let [resistance, constant, kp, kd] = [gain[0], gain[1], gain[4], gain[6]];
    let held = [0.0, -kp, -kd];
    let (gain, bias) = match input {
        "" | "voltage" if (kp, kd) != (0.0, 0.0) => {
            let why = "a DC motor's controller needs input=\"pos\", \"vel\" or \"ff\"";
            return Err(Fault::new(at("controller"), why));
        }
        "" | "voltage" => {
            let gain = constant / resistance.max(crate::rest::MIN_VALUE);
            (gain, [0.0, 0.0, -gain * constant])
        }
        "pos" => (kp, held),
        "vel" => (kd, held),
        "ff" => (1.0, held),
        _ => {
            let why = "a DC motor has one input here: voltage, pos, vel or ff";
            return Err(Fault::new(at("input"), why));
        }
    };
    let current = (dynamics[0] > 0.0).then_some([dynamics[0], constant]);
    Ok(Affine { gain: [gain, 0.0, 0.0], bias, current })
}
