//! Names of other programs, and the names here.

/// A list of a task whose terms have names, but no values that expressions read.
pub(super) fn term(name: &str) -> Option<&'static str> {
    Some(match name {
        "reward" | "rewards" => "a reward",
        "termination" | "terminations" => "a termination",
        "observation" | "observations" => "an observation",
        "metric" | "metrics" => "a metric",
        _ => return None,
    })
}

/// Name elsewhere -> advice.
const NAMES: &[(&str, &str)] = &[
    ("base_lin_vel", "write lin_vel_body(BODY), with the name of the robot's base"),
    ("root_lin_vel_b", "write lin_vel_body(BODY), with the name of the robot's base"),
    ("root_lin_vel_w", "write lin_vel(BODY), with the name of the robot's base"),
    ("base_ang_vel", "write ang_vel_body(BODY), with the name of the robot's base"),
    ("root_ang_vel_b", "write ang_vel_body(BODY), with the name of the robot's base"),
    ("root_ang_vel_w", "write ang_vel(BODY), with the name of the robot's base"),
    ("root_pos", "write pos(BODY), with the name of the robot's base"),
    ("root_pos_w", "write pos(BODY), with the name of the robot's base"),
    ("base_pos", "write pos(BODY), with the name of the robot's base"),
    ("base_pos_z", "write height(BODY), with the name of the robot's base"),
    ("base_height", "write height(BODY), with the name of the robot's base"),
    ("root_quat", "write quat(BODY), with the name of the robot's base"),
    ("root_quat_w", "write quat(BODY), with the name of the robot's base"),
    ("base_quat", "write quat(BODY), with the name of the robot's base"),
    ("root_rot", "write quat(BODY), with the name of the robot's base"),
    ("heading_w", "write yaw(BODY), with the name of the robot's base"),
    ("heading", "write yaw(BODY), with the name of the robot's base"),
    ("projected_gravity_b", "write projected_gravity(BODY), with the name of the robot's base"),
    ("dof_pos", "write joint_pos()"),
    ("dof_vel", "write joint_vel()"),
    ("dof_acc", "write joint_acc()"),
    ("qacc", "write joint_acc()"),
    ("joint_angle", "write joint_pos(JOINT)"),
    ("joint_pos_limits", "write sum(joint_limit_excess(0.9)), with the factor of soft limits"),
    ("dof_pos_limits", "write sum(joint_limit_excess(0.9)), with the factor of soft limits"),
    ("default_dof_pos", "write joint_pos_rel() for positions relative to task.default_pose"),
    ("default_joint_pos", "write joint_pos_rel() for positions relative to task.default_pose"),
    ("torques", "write actuator_force()"),
    ("applied_torque", "write actuator_force()"),
    ("dof_torque", "write actuator_force()"),
    ("act", "write activation(), or action for the policy's output"),
    ("actions", "write action, or last_action for the step before"),
    ("prev_action", "write last_action"),
    ("prev_actions", "write last_action"),
    ("last_actions", "write last_action"),
    ("commands", "write command, or command.NAME"),
    ("generated_commands", "write command, or command.NAME"),
    ("velocity_commands", "write command, or command.NAME"),
    ("params", "write param.NAME"),
    (
        "feet_air_time",
        "write air_time(FOOT); at the touch-down, previous(air_time(FOOT)) + step_dt",
    ),
    ("current_air_time", "write air_time(FOOT)"),
    (
        "last_air_time",
        "write previous(air_time(FOOT)) + step_dt at the touch-down; it is not held after it",
    ),
    ("current_contact_time", "write contact_time(FOOT)"),
    ("prev", "write previous(x)"),
    ("last", "write previous(x)"),
    ("contact_forces", "write contact_force(BODY)"),
    ("net_forces_w", "write contact_force(BODY)"),
    ("xpos", "write pos(BODY)"),
    ("xquat", "write quat(BODY)"),
    ("xipos", "write com(BODY)"),
    ("subtree_com", "write com() for the whole robot"),
    ("site_xpos", "write pos(SITE)"),
    ("geom_xpos", "write pos(GEOM)"),
    ("cvel", "write lin_vel(BODY) or ang_vel(BODY)"),
    ("qfrc_actuator", "write actuator_force()"),
    ("velocity", "write lin_vel(BODY), ang_vel(BODY) or joint_vel(JOINT)"),
    ("position", "write pos(BODY) or joint_pos(JOINT)"),
    ("linvel", "write lin_vel(BODY)"),
    ("angvel", "write ang_vel(BODY)"),
    ("pow", "write a^b"),
    ("power", "write a^b"),
    ("ln", "write log(x), the natural logarithm"),
    ("atan", "write atan2(y, x), or atan2(x, 1)"),
    ("arctan2", "write atan2(y, x)"),
    ("arctan", "write atan2(y, x), or atan2(x, 1)"),
    ("arcsin", "write asin(x)"),
    ("arccos", "write acos(x)"),
    ("where", "write if(condition, a, b)"),
    ("select", "write if(condition, a, b)"),
    ("clamp", "write clip(x, lo, hi)"),
    ("maximum", "write max(a, b)"),
    ("minimum", "write min(a, b)"),
    ("isfinite", "write is_finite(x)"),
    ("isnan", "write not is_finite(x)"),
    ("logical_and", "write a and b"),
    ("logical_or", "write a or b"),
    ("logical_not", "write not a"),
    ("hstack", "write concat(a, b, ...) or [a, b, ...]"),
    ("concatenate", "write concat(a, b, ...) or [a, b, ...]"),
    ("quat_rotate", "write rotate(q, v)"),
    ("quat_apply", "write rotate(q, v)"),
    ("quat_rotate_inverse", "write rotate_inv(q, v)"),
    ("quat_apply_inverse", "write rotate_inv(q, v)"),
    ("wrap_to_pi", "write wrap_angle(x)"),
    ("sum_squares", "write norm2(v)"),
    ("True", "write true"),
    ("False", "write false"),
    ("None", "there is no such value"),
    ("self", "values stand alone: qpos, lin_vel(torso), ..."),
    ("env", "values stand alone: qpos, lin_vel(torso), ..."),
    ("data", "values stand alone: qpos, lin_vel(torso), ..."),
    ("not", "`not` binds loosely, as in Python: write (not ...) in brackets"),
];

/// Advice for a name of another program.
pub(crate) fn lookup(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|(n, _)| *n == name).map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_foreign_name_hides_a_function() {
        for (name, _) in super::NAMES {
            assert!(super::super::functions::find(name).is_none(), "{name}");
        }
    }
}
