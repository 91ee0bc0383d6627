//! `<keyframe>`.

use super::attach::whole::Pending;
use super::element::{Element, Fault, Read};
use crate::rotation::IDENTITY;
use crate::{JointKind, Keyframe, Model, Quat};
use std::collections::BTreeMap;

/// Reads one `<key>`; missing attributes mean the initial pose at rest. In a model that
/// has `grown` by attached bodies a key may end where the file's own bodies end.
pub(super) fn read(e: &Element, name: String, model: &Model, grown: bool) -> Read<Keyframe> {
    let values = |name: &str, otherwise: &[f64]| values(e, name, otherwise, grown);
    let mut key = Keyframe {
        name,
        qpos: values("qpos", &model.qpos0)?,
        qvel: values("qvel", &vec![0.0; model.nv])?,
        act: values("act", &vec![0.0; model.na])?,
        ctrl: values("ctrl", &vec![0.0; model.nu()])?,
        moves_mocap: moves_mocap(e, model, grown)?,
    };
    normalize(&mut key, e, model)?;
    Ok(key)
}

/// Where the joints and actuators are that keyframes of attached models know.
#[derive(Default)]
pub(super) struct Slots {
    pub joints: BTreeMap<u32, usize>,
    pub actuators: BTreeMap<u32, usize>,
}

/// The keyframe of an attached model.
pub(super) fn attached(
    pending: &Pending,
    name: String,
    slots: &Slots,
    model: &Model,
) -> Read<Keyframe> {
    let mut key = Keyframe {
        name,
        qpos: model.qpos0.clone(),
        qvel: vec![0.0; model.nv],
        act: vec![0.0; model.na],
        ctrl: vec![0.0; model.nu()],
        moves_mocap: false,
    };
    for (slot, joint) in &slots.joints {
        let joint = &model.joints[*joint];
        put(&mut key.qpos, joint.qpos_adr, pending.qpos.get(slot));
        put(&mut key.qvel, joint.dof_adr, pending.qvel.get(slot));
    }
    for (slot, actuator) in &slots.actuators {
        put(&mut key.ctrl, *actuator, pending.ctrl.get(slot));
        if let Some(adr) = model.actuators[*actuator].act_adr {
            put(&mut key.act, adr, pending.act.get(slot));
        }
    }
    normalize(&mut key, &pending.key, model)?;
    Ok(key)
}

fn put(to: &mut [f64], start: usize, part: Option<&Vec<f64>>) {
    if let Some(part) = part {
        to[start..start + part.len()].copy_from_slice(part);
    }
}

/// Makes rotations unit quaternions; as in MuJoCo one of no length is no rotation.
fn normalize(key: &mut Keyframe, e: &Element, model: &Model) -> Read<()> {
    for joint in &model.joints {
        let start = match joint.kind {
            JointKind::Free => joint.qpos_adr + 3,
            JointKind::Ball => joint.qpos_adr,
            _ => continue,
        };
        let quat = [0, 1, 2, 3].map(|i| key.qpos[start + i]);
        let quat = unit(quat).ok_or_else(|| {
            let at = e.attr("qpos").map_or(e.at, |a| a.value_at(0));
            let why = format!(
                "the quaternion of \"{}\" (from number {start}) is too large; scale it to length 1",
                joint.name
            );
            Fault::new(at, why)
        })?;
        key.qpos[start..start + 4].copy_from_slice(&quat);
    }
    Ok(())
}

/// `None` of one too long to be scaled.
fn unit(quat: Quat) -> Option<Quat> {
    /// MuJoCo's `mjMINVAL`.
    const LEAST: f64 = 1e-15;
    let norm = quat.iter().map(|x| x * x).sum::<f64>().sqrt();
    match norm < LEAST {
        true => Some(IDENTITY),
        false => norm.is_finite().then(|| quat.map(|x| x / norm)),
    }
}

/// Whether mocap bodies are elsewhere than where the file has them.
fn moves_mocap(e: &Element, model: &Model, grown: bool) -> Read<bool> {
    let bodies = || model.bodies.iter().filter(|b| b.mocap);
    let pos: Vec<f64> = bodies().flat_map(|b| b.pos).collect();
    let quat: Vec<f64> = bodies().flat_map(|b| b.quat).collect();
    let turned: Vec<f64> = values(e, "mquat", &quat, grown)?
        .chunks_exact(4)
        .zip(quat.chunks_exact(4))
        .flat_map(|(q, here)| {
            let q = unit([q[0], q[1], q[2], q[3]]).unwrap_or([f64::NAN; 4]);
            // q and -q are the same rotation.
            let dot: f64 = q.iter().zip(here).map(|(a, b)| a * b).sum();
            q.map(|x| dot.signum() * x)
        })
        .collect();
    // As near as a file writes numbers; what is not a number is not.
    let same = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
    let moved = values(e, "mpos", &pos, grown)?;
    Ok(!moved.iter().zip(&pos).all(same) || !turned.iter().zip(&quat).all(same))
}

fn values(e: &Element, name: &str, otherwise: &[f64], grown: bool) -> Read<Vec<f64>> {
    match e.numbers(name)? {
        // An empty attribute counts as none, as in MuJoCo.
        None => Ok(otherwise.to_vec()),
        Some(v) if v.is_empty() => Ok(otherwise.to_vec()),
        Some(v) if v.len() == otherwise.len() => Ok(v),
        Some(mut v) if v.len() < otherwise.len() && grown => {
            v.extend(&otherwise[v.len()..]);
            Ok(v)
        }
        Some(v) => Err(Fault::new(
            e.attr(name).map_or(e.at, |a| a.value_at(0)),
            format!("{name} has {} numbers, this model needs {}", v.len(), otherwise.len()),
        )),
    }
}
