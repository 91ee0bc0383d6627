//! Motors with laws of their own: `kernels/motor.cuh`.

use super::context::Context;
use super::error::LowerError;
use crate::kernels;
use crate::physics::native::tables::{RobotTables, UNLIMITED};
use ostler_model::{Field, Layer, MotorLaw, Network, NetworkKind};

pub(super) fn write(c: &Context, plan: &mut RobotTables) -> Result<(), LowerError> {
    let model = c.model;
    plan.nmemory = model.nmemory();
    let redrawn = model.redrawn();
    plan.nredrawn = redrawn.len();
    let mut at = 1;
    for (u, actuator) in model.actuators.iter().enumerate() {
        let Some(motor) = &actuator.motor else {
            continue;
        };
        let Some(joint) = actuator.joint().map(|j| &model.joints[j]) else {
            return Err(LowerError::new(
                format!("the motor \"{}\" of no joint", actuator.name),
                "motors drive hinge and slide joints",
            ));
        };
        let (law, network) = match &motor.law {
            MotorLaw::MuJoCo => (kernels::MOTOR_DELAYED, 0),
            MotorLaw::Pd { .. } => (kernels::MOTOR_PD, 0),
            MotorLaw::Network { network, .. } => match model.networks[*network].kind {
                NetworkKind::Mlp { .. } => (kernels::MOTOR_MLP, *network),
                NetworkKind::Lstm { .. } => (kernels::MOTOR_LSTM, *network),
            },
        };
        let depth = motor.delay.most;
        plan.motor_int.extend([u, joint.qpos_adr, joint.dof_adr].map(|i| i as i32));
        plan.motor_int.extend([law, network as i32, at as i32, depth as i32]);
        // MuJoCo's own law has its fields in the tables of actuators.
        let own = |field| match law {
            kernels::MOTOR_DELAYED => -1,
            _ => c.row(field, u),
        };
        plan.motor_int.push(c.row(Field::Delay, u));
        plan.motor_int.extend([Field::Kp, Field::Kd, Field::Effort].map(own));
        let drawn = redrawn.iter().position(|m| m.group == motor.group && motor.delay.redraw > 0);
        plan.motor_int.push(drawn.map_or(-1, |at| at as i32));
        let [kp, kd] = match motor.law {
            MotorLaw::Pd { stiffness, damping, .. } => [stiffness, damping],
            _ => [0.0; 2],
        };
        let limit = motor.law.limit();
        let [stall, speed] = limit.and_then(|l| l.fall).unwrap_or([0.0; 2]);
        let effort = limit.map_or(UNLIMITED, |l| l.effort.min(UNLIMITED));
        plan.motor_real.extend([f64::from(motor.delay.least), kp, kd, effort, stall, speed]);
        at += model.memory_of(u);
        plan.nmotor += 1;
    }
    for network in &model.networks {
        add(network, plan);
    }
    Ok(())
}

/// A network's tables.
fn add(network: &Network, plan: &mut RobotTables) {
    let first = plan.layer_int.len() / 4;
    let cells: &[Layer] = match &network.kind {
        NetworkKind::Mlp { .. } => &[],
        NetworkKind::Lstm { cells, .. } => cells,
    };
    for layer in cells.iter().chain(&network.layers) {
        let sizes = [layer.inputs, layer.bias.len(), plan.net_weight.len()];
        plan.layer_int.extend(sizes.map(|n| n as i32));
        plan.layer_int.push(layer.then as i32);
        plan.net_weight.extend(&layer.weight);
        plan.net_weight.extend(&layer.bias);
    }
    let end = plan.layer_int.len() / 4;
    let seen = plan.net_seen.len();
    let (mut swap, mut width) = (0, 0);
    match &network.kind {
        NetworkKind::Mlp { steps, velocities_first } => {
            plan.net_seen.extend(steps.iter().map(|s| *s as i32));
            swap = i32::from(*velocities_first);
        }
        NetworkKind::Lstm { width: own, .. } => width = *own,
    }
    let ends = [first, end, seen, plan.net_seen.len()];
    plan.net_int.extend(ends.map(|n| n as i32));
    plan.net_int.push(swap);
    plan.net_int.extend([network.back(), cells.len(), width].map(|n| n as i32));
    plan.net_real.extend([network.position_scale, network.velocity_scale, network.effort_scale]);
    plan.nwide = plan.nwide.max(network.widest());
}
