//! How many contacts a robot has at once: room for them is local memory of every thread of a GPU.

use super::PhysicsError;
use super::evaluate::Precision;
use super::mirror::{Draws, random_state};
use super::native::tables::RobotTables;
use super::native::{EvalOptions, evaluate};
use crate::referee::states::StateTable;
use ostler_model::edit::lowest_in;
use ostler_model::{JointKind, Model};

/// States that are looked at.
const STATES: u32 = 2048;
/// Room that a robot has in any case: what it grasps or meets is in no random state.
const LEAST: usize = 48;

/// Leaves room in `plan` for as many contacts as one environment has in 2,048 random states, a
/// quarter more and at least 48, where the pairs of geoms could give more. Contacts beyond it are
/// left out and counted in `Guard/contact_overflow`.
///
/// # Errors
/// The engine cannot have the robot.
pub fn fit(model: &Model, plan: &mut RobotTables) -> Result<(), PhysicsError> {
    if plan.nwslot.max(plan.npslot) <= LEAST {
        return Ok(());
    }
    let most = most_contacts(model)?;
    // By sixteens: a robot's program is the same where another machine's rounding gives one more.
    let room = (most + most.div_ceil(4)).next_multiple_of(16).max(LEAST);
    plan.nwslot = plan.nwslot.min(room);
    plan.npslot = plan.npslot.min(room);
    Ok(())
}

/// The most contacts of [`STATES`] states: joints within their ranges, free bodies turned any way
/// and in the ground by up to a third of their height, as robots that fall are for a moment.
fn most_contacts(model: &Model) -> Result<usize, PhysicsError> {
    let varied = model.varied_numbers();
    let mut rows = StateTable { count: STATES as usize, ..StateTable::default() };
    for i in 0..STATES {
        let mut qpos = random_state(model, &model.qpos0, i).qpos;
        let mut draws = Draws { stream: i, next: 1 << 20 };
        for joint in model.joints.iter().filter(|j| j.kind == JointKind::Free) {
            let at = joint.qpos_adr;
            let height =
                lowest_in(model, joint.body, &model.qpos0).map_or(0.0, |z| model.qpos0[at + 2] - z);
            let turn = [(); 4].map(|()| draws.normal());
            let length = turn.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-6);
            qpos[at + 3..at + 7].copy_from_slice(&turn.map(|x| x / length));
            let ground = model.terrain.as_ref().map_or(0.0, |t| t.height(qpos[at], qpos[at + 1]));
            if let Some(z) = lowest_in(model, joint.body, &qpos) {
                qpos[at + 2] += ground - z - height * draws.even().max(0.0) / 3.0;
            }
        }
        rows.qpos.extend(qpos);
        rows.qvel.extend(vec![0.0; model.nv]);
        rows.ctrl.extend(vec![0.0; model.nu()]);
        rows.act.extend(vec![0.0; model.na]);
        rows.varied.extend(&varied);
    }
    // Contacts alone: the solver need not end.
    let options = EvalOptions { iterations: 1, ..EvalOptions::default() };
    let found = evaluate(model, &options, Precision::F32, &rows.view())?;
    Ok(found.ncon.iter().max().map_or(0, |most| *most as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::native::lower::{LowerOptions, lower};
    use ostler_model::mjcf;
    use std::path::Path;

    fn fitted(bodies: &str) -> [RobotTables; 2] {
        let text = format!(
            r#"<mujoco><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>"#
        );
        let model = mjcf::parse(Path::new("test.xml"), text).unwrap();
        let whole = lower(&model, &LowerOptions::default()).unwrap();
        let mut plan = whole.clone();
        fit(&model, &mut plan).unwrap();
        [whole, plan]
    }

    fn boxes(count: usize) -> String {
        let one = |i| {
            format!(
                r#"<body pos="{i} 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>"#
            )
        };
        (0..count).map(one).collect()
    }

    /// Twelve boxes could touch in 256 places and do so in far fewer; each has room to lie.
    #[test]
    fn there_is_room_for_what_lies_and_not_for_what_all_pairs_could_give() {
        let [whole, plan] = fitted(&boxes(12));
        assert_eq!(whole.npslot, 256);
        assert!((48..256).contains(&plan.npslot), "{}", plan.npslot);
        assert!(plan.npslot + plan.nwslot >= 12 * 4, "{} {}", plan.npslot, plan.nwslot);
        assert_eq!(plan.npslot % 16, 0);
        let again = fitted(&boxes(12))[1].npslot;
        assert_eq!(again, plan.npslot);
    }

    #[test]
    fn few_pairs_keep_their_room() {
        let [whole, plan] = fitted(&boxes(2));
        assert_eq!((whole.npslot, whole.nwslot), (plan.npslot, plan.nwslot));
    }
}
