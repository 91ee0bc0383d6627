//! Sensors of accelerations and forces: the kernels measure them in the last time step of a
//! control step, because no state holds them.
//!
//! Source: MuJoCo, Computation, "Sensors"; `mj_sensorAcc` and `mj_rnePostConstraint`. A
//! force sensor reads what its body and all that hangs on it need to move as they do, less
//! what contacts, `connect`, `weld` and spatial tendons give them: whatever else acts goes
//! through the sensor, fixed tendons too. Bodies that are welded to a moving one are a part of it
//! in the tables, so what a sensor holds is listed as parts of moving bodies.

use super::context::Context;
use super::tree::{RigidMass, Tree};
use crate::kernels::{
    METER_ACCELEROMETER, METER_ANGULAR, METER_FORCE, METER_LINEAR, METER_TORQUE, METER_TOUCH,
};
use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::{Pose, matrix};
use ostler_model::{FrameQuantity, GeomKind, Model, SensorFrame, SensorKind, Vec3};
use std::collections::BTreeMap;

/// Writes all sensors that are measured. `held`: the model's bodies that each item of the
/// general rows holds together; `strung`: those that each part of spatial tendons pulls at.
pub(super) fn write(
    c: &Context,
    held: &[Option<[usize; 2]>],
    strung: &[[usize; 3]],
    plan: &mut RobotTables,
) {
    plan.part_adr.push(0);
    for sensor in &c.model.sensors {
        let width = sensor.kind.measured();
        let Some((kind, body, pose)) = measured(c.model, &sensor.kind) else {
            continue;
        };
        let carrier = c.tree.carrier[body];
        let pose = carrier.pose.then(pose);
        plan.meter_kind.push(kind);
        plan.meter_body.push(carrier.index());
        plan.meter_adr.push(plan.nsense as i32);
        plan.meter_pos.extend(pose.pos);
        plan.meter_mat.extend(matrix(pose.quat).concat());
        let (shape, size) = volume(c.model, &sensor.kind);
        plan.meter_shape.push(shape.code() as i32);
        plan.meter_size.extend(size);
        let inside = counted(c.model, kind, body);
        let of_geom = |g: &i32| i32::from(inside[c.model.geoms[*g as usize].body]);
        let geoms: Vec<i32> = plan.cg_geom.iter().map(of_geom).collect();
        plan.meter_geom.extend(geoms);
        let transmits = matches!(kind, METER_FORCE | METER_TORQUE);
        for bodies in held {
            let holds = |b: usize| i32::from(transmits && inside[b]);
            plan.meter_item.extend(bodies.map_or([0; 2], |pair| pair.map(holds)));
        }
        // What pulls at both ends from within adds up to nothing.
        let pulled = |bodies: &[usize; 3]| match bodies.map(|b| i32::from(transmits && inside[b])) {
            [1, 1, 1] => 0,
            [start, end, geom] => start + 2 * end + 4 * geom,
        };
        plan.meter_seg.extend(strung.iter().map(pulled));
        if transmits {
            parts(c.model, &c.tree, &inside, plan);
        }
        plan.part_adr.push(plan.part_body.len() as i32);
        plan.nsense += width;
    }
    plan.nmeter = plan.meter_kind.len();
    plan.nstrung = plan.meter_seg.iter().filter(|s| **s != 0).count();
    // Contacts that are kept by body have their places stored already.
    let touched = plan.meter_kind.iter().any(|kind| *kind >= METER_FORCE);
    plan.felt = usize::from(touched && plan.npslot > 0);
}

/// How a sensor is measured, and the frame of the model's body in which it is.
fn measured(model: &Model, sensor: &SensorKind) -> Option<(i32, usize, Pose)> {
    let (kind, frame) = match *sensor {
        SensorKind::Accelerometer(s) => (METER_ACCELEROMETER, SensorFrame::Site(s)),
        SensorKind::Force(s) => (METER_FORCE, SensorFrame::Site(s)),
        SensorKind::Torque(s) => (METER_TORQUE, SensorFrame::Site(s)),
        SensorKind::Touch(s) => (METER_TOUCH, SensorFrame::Site(s)),
        SensorKind::Frame { quantity, frame, .. } => match quantity {
            FrameQuantity::LinAcc => (METER_LINEAR, frame),
            FrameQuantity::AngAcc => (METER_ANGULAR, frame),
            _ => return None,
        },
        _ => return None,
    };
    let (body, pose) = model.carried(frame);
    Some((kind, body, pose))
}

/// The volume of a touch sensor.
fn volume(model: &Model, sensor: &SensorKind) -> (GeomKind, Vec3) {
    match sensor {
        SensorKind::Touch(s) => (model.sites[*s].kind, model.sites[*s].size),
        _ => (GeomKind::Sphere, [0.0; 3]),
    }
}

/// For each body of the model, whether what touches it counts for a sensor at `body`.
fn counted(model: &Model, kind: i32, body: usize) -> Vec<bool> {
    let mut inside = vec![false; model.bodies.len()];
    if kind < METER_FORCE {
        return inside;
    }
    for b in 0..model.bodies.len() {
        // Parents come first.
        let below = kind != METER_TOUCH && b > 0 && inside[model.bodies[b].parent];
        inside[b] = b == body || below;
    }
    inside
}

/// Writes the inertias of the bodies `inside`, summed by the body that carries them.
fn parts(model: &Model, tree: &Tree, inside: &[bool], plan: &mut RobotTables) {
    let mut lumps: BTreeMap<i32, RigidMass> = BTreeMap::new();
    for (b, carrier) in tree.carrier.iter().enumerate().filter(|(b, _)| inside[*b]) {
        let lump = RigidMass::of(model, b, carrier.pose);
        lumps.entry(carrier.index()).or_default().add(&lump);
    }
    for (body, lump) in lumps {
        plan.part_body.push(body);
        plan.part_mass.push(lump.mass);
        plan.part_mcom.extend(lump.first);
        plan.part_inertia.extend(lump.inertia);
    }
}
