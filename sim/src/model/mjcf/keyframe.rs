//! `<keyframe>`.

use super::source::{Element, Fault, Read};
use crate::model::rotation::normalized;
use crate::model::{JointKind, Keyframe, Model};

/// Reads one `<key>`; what it leaves out is the initial pose at rest.
pub(super) fn read(e: &Element, name: String, model: &Model) -> Read<Keyframe> {
    let mut key = Keyframe {
        name,
        qpos: values(e, "qpos", &model.qpos0)?,
        qvel: values(e, "qvel", &vec![0.0; model.nv])?,
        act: values(e, "act", &vec![0.0; model.na])?,
        ctrl: values(e, "ctrl", &vec![0.0; model.nu()])?,
    };
    mocap(e, model)?;
    for joint in &model.joints {
        let start = match joint.kind {
            JointKind::Free => joint.qpos_adr + 3,
            JointKind::Ball => joint.qpos_adr,
            _ => continue,
        };
        let quat = [0, 1, 2, 3].map(|i| key.qpos[start + i]);
        let quat = normalized(quat).ok_or_else(|| {
            let at = e.attr("qpos").map_or(e.at, |a| a.value_at(0));
            let why = format!(
                "the quaternion of \"{}\" (from number {start}) is zero",
                joint.name
            );
            Fault::new(at, why)
        })?;
        key.qpos[start..start + 4].copy_from_slice(&quat);
    }
    Ok(key)
}

/// Poses of mocap bodies: nothing moves these here, so that a keyframe can only repeat
/// where they are.
fn mocap(e: &Element, model: &Model) -> Read<()> {
    let bodies = || model.bodies.iter().filter(|b| b.mocap);
    let pos: Vec<f64> = bodies().flat_map(|b| b.pos).collect();
    let quat: Vec<f64> = bodies().flat_map(|b| b.quat).collect();
    let turned: Vec<f64> = values(e, "mquat", &quat)?
        .chunks_exact(4)
        .zip(quat.chunks_exact(4))
        .flat_map(|(q, here)| {
            // q and -q are the same rotation.
            let dot: f64 = q.iter().zip(here).map(|(a, b)| a * b).sum();
            let norm = dot.signum() * q.iter().map(|x| x * x).sum::<f64>().sqrt();
            q.iter().map(move |x| x / norm).collect::<Vec<_>>()
        })
        .collect();
    for (name, found, here) in [
        ("mpos", values(e, "mpos", &pos)?, pos),
        ("mquat", turned, quat),
    ] {
        // As near as a file writes numbers; a zero quaternion is not.
        let same = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
        if !found.iter().zip(&here).all(same) {
            return Err(Fault::new(
                e.attr(name).map_or(e.at, |a| a.value_at(0)),
                format!(
                    "{name} moves a mocap body, which stays here where its <body> is; leave \
                     {name} out or move the body"
                ),
            ));
        }
    }
    Ok(())
}

fn values(e: &Element, name: &str, otherwise: &[f64]) -> Read<Vec<f64>> {
    match e.numbers(name)? {
        // An empty attribute counts as none, as in MuJoCo.
        None => Ok(otherwise.to_vec()),
        Some(v) if v.is_empty() => Ok(otherwise.to_vec()),
        Some(v) if v.len() == otherwise.len() => Ok(v),
        Some(v) => Err(Fault::new(
            e.attr(name).map_or(e.at, |a| a.value_at(0)),
            format!(
                "{name} has {} numbers, this model needs {}",
                v.len(),
                otherwise.len()
            ),
        )),
    }
}
