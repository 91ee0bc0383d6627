//! The kinematics of a robot as C++ (`sim/kernels/env/frames.cuh`).

use super::kinematics::Kinematics;
use crate::model::{JointKind, Model};
use crate::task::expr::literal;
use std::fmt::Write;

/// `place_bodies(a, e, q, v)`: the frames of all bodies from positions and velocities, as
/// [`Kinematics::frames`] has them.
pub(crate) fn text(model: &Model) -> String {
    let robot = Kinematics::new(model);
    let list = |x: &[f32]| {
        let items: Vec<String> = x.iter().map(|v| literal(*v)).collect();
        format!("{{{{{}}}}}", items.join(", "))
    };
    let mut text = String::from(
        "OSTLER_FN_BIG void place_bodies(const EnvArgs& a, int e, const float* q, const float* v) {\n  \
         (void)q, (void)v;\n",
    );
    // A frame lives as long as bodies hang on it.
    for (b, body) in robot.bodies.iter().enumerate() {
        let from = match b {
            0 => "world_frame()".to_string(),
            _ => format!(
                "fixed_in(f{}, {}, {})",
                body.parent,
                list(&body.pos),
                list(&body.quat)
            ),
        };
        let _ = writeln!(text, "  Frame f{b} = {from};");
        for joint in &robot.joints[body.joints.clone()] {
            let at = format!("f{b}, q + {}, v + {}", joint.qpos, joint.dof);
            let (pos, axis) = (list(&joint.pos), list(&joint.axis));
            let reference = literal(joint.reference);
            let call = match joint.kind {
                JointKind::Free => format!("free_joint({at})"),
                JointKind::Slide => format!("slide_joint({at}, {axis}, {reference})"),
                JointKind::Hinge => format!("hinge_joint({at}, {pos}, {axis}, {reference})"),
                JointKind::Ball => format!("ball_joint({at}, {pos})"),
            };
            let _ = writeln!(text, "  {call};");
        }
        let _ = writeln!(
            text,
            "  f{b}.quat = q_normalized(f{b}.quat);\n  write_frame(a, e, {b}, f{b});"
        );
    }
    text.push_str("}\n");
    text
}
