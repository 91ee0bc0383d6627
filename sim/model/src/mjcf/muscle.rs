//! `<muscle>` and the data of muscles: lengths, and the peak force from the scale.

use super::compiler::Compiler;
use super::element::{At, Element, Fault, Read};
use super::value::wrong;
use crate::rest::{MIN_VALUE, Rest};
use crate::{Model, Muscle, Transmission};

/// MuJoCo's values of parameters that no class gives, in the order of `gainprm`.
const CURVES: [f64; 9] = [0.75, 1.05, -1.0, 200.0, 0.5, 1.6, 1.5, 1.3, 1.2];

/// Reads the attributes of `<muscle>` into the parameters of dynamics and gain.
pub(super) fn read(e: &Element, dynprm: &mut [f64], gain: &mut [f64]) -> Read<()> {
    // Where they are still what actuators have without any class.
    for (x, plain, muscles) in [(0, 1.0, 0.01), (1, 0.0, 0.04)] {
        if dynprm[x] == plain {
            dynprm[x] = muscles;
        }
    }
    for (k, (x, muscles)) in gain.iter_mut().zip(CURVES).enumerate() {
        if *x == if k == 0 { 1.0 } else { 0.0 } {
            *x = muscles;
        }
    }
    let positive = |name: &str, to: &mut f64| {
        let mut value = -1.0;
        e.scalar(name, &mut value)?;
        if value >= 0.0 {
            *to = value;
        }
        Ok(())
    };
    let (mut times, mut range) = ([-1.0; 2], [-1.0; 2]);
    e.array("timeconst", &mut times)?;
    e.array("range", &mut range)?;
    for k in 0..2 {
        if times[k] >= 0.0 {
            dynprm[k] = times[k];
        }
        if range[k] >= 0.0 {
            gain[k] = range[k];
        }
    }
    e.scalar("tausmooth", &mut dynprm[2])?;
    if let Some(attr) = e.attr("tausmooth").filter(|_| dynprm[2] < 0.0) {
        return Err(wrong(attr, "cannot be negative"));
    }
    for (k, name) in
        ["force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax"].into_iter().enumerate()
    {
        positive(name, &mut gain[2 + k])?;
    }
    Ok(())
}

/// A muscle's curves with the lengths that they stand on; `None` for other actuators.
pub(super) fn resolve(
    e: &Element,
    compiler: &Compiler,
    [gain, bias]: [Option<[f64; 9]>; 2],
    given: [f64; 2],
    transmission: Transmission,
    model: &Model,
) -> Read<Option<Muscle>> {
    if gain.is_none() && bias.is_none() {
        return Ok(None);
    }
    for curve in [gain, bias].into_iter().flatten() {
        let why = if curve[0] >= curve[1] {
            "a muscle's range has to grow: the first below the second"
        } else if curve[4] >= 1.0 || curve[5] <= 1.0 {
            "a muscle's lmin is below 1, its lmax above"
        } else if [curve[3], curve[6], curve[7], curve[8]].iter().any(|x| *x <= 0.0) {
            "a muscle's scale, vmax, fpmax and fvmax are positive"
        } else {
            continue;
        };
        return Err(Fault::new(e.at, why));
    }
    let limit = match transmission {
        Transmission::Joint(j) | Transmission::JointInParent(j) => model.joints[j].range,
        Transmission::Tendon(t) => model.tendons[t].range,
        _ => None,
    };
    let lengthrange = match limit.filter(|_| compiler.length_from_limit) {
        _ if compiler.length_given && given[0] < given[1] => given,
        Some(range) => range,
        None if given[0] < given[1] => {
            return Err(Fault::new(
                e.attr("lengthrange").map_or(e.at, |a| a.value_at(0)),
                "<compiler><lengthrange useexisting=\"false\"/> has MuJoCo replace this by what it \
                 finds by a simulation of its own: leave useexisting out, and write what MuJoCo \
                 finds (actuator_lengthrange of its compiled model)",
            ));
        }
        None => {
            return Err(Fault::new(
                e.attr("lengthrange").map_or(e.at, |a| a.value_at(0)),
                "a muscle needs lengthrange=\"SHORTEST LONGEST\" here: MuJoCo finds it by a \
                 simulation of its own (read actuator_lengthrange of its compiled model, or \
                 save that as XML), or set <compiler><lengthrange uselimit=\"true\"/> with \
                 limits on what the muscle acts on",
            ));
        }
    };
    Ok(Some(Muscle { gain, bias, lengthrange, acc0: 0.0 }))
}

/// Fills `acc0` of the muscles that need it.
pub(super) fn accelerations(model: &mut Model, at: At) -> Read<()> {
    let scaled = |p: &Option<[f64; 9]>| p.is_some_and(|p| p[2] < 0.0);
    let needs = |m: &Muscle| scaled(&m.gain) || scaled(&m.bias);
    if !model.actuators.iter().any(|a| a.muscle.is_some_and(|m| needs(&m))) {
        return Ok(());
    }
    let rest = Rest::new(model, &model.qpos0);
    let wanted = model.actuators.len();
    super::derive::affordable(&rest, wanted, at, "a muscle without a force of its own")?;
    let factor = rest.factor().ok_or_else(|| {
        let why = "muscles without a force of their own need a robot that has inertia in \
                   every direction it can move";
        Fault::new(at, why)
    })?;
    let found: Vec<f64> = (0..model.actuators.len())
        .map(|a| factor.solve(&rest.actuator_jacobian(a)).norm().max(MIN_VALUE))
        .collect();
    for (actuator, acc0) in model.actuators.iter_mut().zip(found) {
        if let Some(muscle) = &mut actuator.muscle {
            muscle.acc0 = acc0;
        }
    }
    Ok(())
}
