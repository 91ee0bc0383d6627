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
