//! Reflections of tasks: robots that are symmetric prove it by physics, and what stands in the way
//! is named.

use ostler_sim::config::file::load_simulation;
use ostler_sim::config::file::{Override, Simulation};
use ostler_sim::config::{Leave, ObservationTerm, TerminationTerm};
use ostler_sim::env::mirror::{Reflection, Sides};
use ostler_sim::model::Model;
use std::path::PathBuf;
use std::sync::Arc;

fn shipped(name: &str) -> (Simulation, Arc<Model>) {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs"));
    let loaded = load_simulation(&folder.join(name), &[], Leave::Refused).unwrap();
    let model = loaded.model().unwrap();
    (loaded.config, Arc::new(model))
}

fn find(config: &Simulation, model: &Arc<Model>, axis: usize) -> Result<Reflection, String> {
    let sides = Sides { axis, ..Sides::default() };
    Reflection::find(config, Arc::clone(model), &sides).map_err(|e| e.to_string())
}

/// Entry of an observation term, as it is found and as it has to be.
fn entries(reflection: &Reflection, first: usize, len: usize) -> Vec<(u32, f32)> {
    let own = &reflection.policy.0[first..first + len];
    own.iter().map(|(at, sign)| (at - first as u32, *sign)).collect()
}

#[test]
fn a_quadruped_has_a_left_and_a_right_side() {
    let (config, model) = shipped("quadruped.toml");
    // Its trunk is heavier on the left: physics says how much that is, and where.
    let crooked = find(&config, &model, 1).unwrap();
    assert!(!crooked.proof.holds() && crooked.proof.typical < 0.01, "{:?}", crooked.proof);
    let said: Vec<String> = crooked.differences.iter().map(ToString::to_string).collect();
    assert!(said[0].contains("centre of mass of body \"trunk\" differs from its own"), "{said:?}");
    // A centre and an inertia of the trunk and of both pairs of calves.
    assert_eq!(said.len(), 6, "{said:?}");
    let lines = crooked.lines(&model).join("\n");
    assert!(lines.contains("accelerations by 0.3"), "{lines}");
    // With both sides made alike nothing is left of it.
    assert!(crooked.touching.holds() && crooked.touching.touching > 300, "{:?}", crooked.touching);

    // One foot is softer: contacts are not alike, the rest is.
    let mut soft = Model::clone(&model);
    let foot = soft.geoms.iter().position(|g| g.name == "foot_fl").unwrap();
    soft.geoms[foot].solref[0] *= 1.001;
    let soft = Arc::new(soft);
    let found = find(&config, &soft, 1).unwrap();
    assert!(!found.touching.holds() && found.free.holds() && found.free.touching == 0);
    assert!(found.lines(&soft).join("\n").contains("contacts have no exact reflection"));

    // What physics does not prove is said.
    let mut doubtful = crooked.clone();
    doubtful.touching.alike = 10;
    let said = doubtful.lines(&model).join("\n");
    assert!(said.contains("contacts have no exact reflection: with them 10 of the 1000"), "{said}");
    assert!(said.contains("reflections, without contacts, have") && !said.contains("does not"));
    doubtful.free.alike = 20;
    let said = doubtful.lines(&model).join("\n");
    assert!(said.contains("physics: 20 of 1000") && said.contains("does not prove"), "{said}");
    assert!(!said.contains("no exact reflection"), "{said}");
    assert!(!lines.contains("prove") && !lines.contains("no exact reflection"), "{lines}");

    let mut even = Model::clone(&model);
    for part in ["trunk", "calf_fl", "calf_fr", "calf_rl", "calf_rr"] {
        let part = even.body(part).unwrap();
        even.bodies[part].ipos[1] = 0.0;
        even.bodies[part].iquat = [1.0, 0.0, 0.0, 0.0];
    }
    let found = find(&config, &Arc::new(even), 1).unwrap();
    assert!(found.proof.holds(), "{:?}", found.proof);
    assert!(found.proof.touching > 300, "{:?}", found.proof);
    assert_eq!(found.differences, []);
    // Hips turn over, thighs and calves do not; left and right change places.
    let legs = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8];
    let joints: Vec<(u32, f32)> =
        legs.iter().map(|k| (*k, if k % 3 == 0 { -1.0 } else { 1.0 })).collect();
    assert_eq!(found.action.0, joints);
    // Linear velocity, angular velocity, gravity, the commands; joints, velocities, actions.
    assert_eq!(entries(&found, 0, 3), [(0, 1.0), (1, -1.0), (2, 1.0)]);
    assert_eq!(entries(&found, 3, 3), [(0, -1.0), (1, 1.0), (2, -1.0)]);
    assert_eq!(entries(&found, 6, 3), [(0, 1.0), (1, -1.0), (2, 1.0)]);
    assert_eq!(found.command.0, [(0, 1.0), (1, -1.0), (2, -1.0)]);
    for first in [12, 24, 36] {
        assert_eq!(entries(&found, first, 12), joints, "{first}");
    }
    let critic = found.critic.as_ref().unwrap();
    let feet = &critic.0[critic.0.len() - 5..];
    let first = critic.0.len() as u32 - 5;
    assert_eq!(feet.iter().map(|e| e.0 - first).collect::<Vec<_>>(), [1, 0, 3, 2, 4]);
    assert!(found.terms.iter().all(|(_, share)| *share < 0.02), "{:?}", found.terms);
}

/// A curriculum that widens ranges begins with none.
#[test]
fn commands_without_a_range_yet_are_turned_over() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs"));
    let set = ["task.command.velocity.range=[[0.5,0.5],[0,0]]", "task.command.turn.range=[[0,0]]"];
    let set = set.map(|text| Override { flag: "--set".into(), text: text.into() });
    let loaded = load_simulation(&folder.join("quadruped.toml"), &set, Leave::Refused).unwrap();
    let found = find(&loaded.config, &Arc::new(loaded.model().unwrap()), 1).unwrap();
    assert_eq!(found.command.0, [(0, 1.0), (1, -1.0), (2, -1.0)]);
    assert_eq!(entries(&found, 9, 3), [(0, 1.0), (1, -1.0), (2, -1.0)]);
}

#[test]
fn an_ant_is_found_by_the_places_of_its_legs() {
    let (config, model) = shipped("ant.toml");
    for axis in [0, 1] {
        // Walking forwards is rewarded: backwards is another task.
        let found = find(&config, &model, axis);
        assert_eq!(found.is_ok(), axis == 1, "{found:?}");
        let Ok(found) = found else { continue };
        assert!(found.proof.holds(), "{:?}", found.proof);
        let leg = |name: &str| model.joint(name).unwrap();
        assert_eq!(found.mirror.joints[leg("hip_1")], leg("hip_4"));
    }
}

#[test]
fn a_cart_pole_has_a_left_and_a_right_side_along_x() {
    let (config, model) = shipped("cartpole.toml");
    let found = find(&config, &model, 0).unwrap();
    assert_eq!(found.action.0, [(0, -1.0)]);
    assert!(found.policy.0.iter().any(|e| e.1 == -1.0));
    let (config, model) = shipped("half_cheetah.toml");
    let wrong = find(&config, &model, 1).unwrap_err();
    assert!(wrong.contains("all of the robot lies in the plane"), "{wrong}");
}

#[test]
fn what_is_not_symmetric_has_its_name() {
    let (config, model) = shipped("quadruped.toml");
    let refused = |change: &dyn Fn(&mut Simulation), words: &[&str]| {
        let mut config = config.clone();
        change(&mut config);
        let why = find(&config, &model, 1).unwrap_err();
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    };
    refused(
        &|c| c.task.reward[0].expr = "joint_vel(hip_fl)".into(),
        &["track_velocity", "not the same in reflected states"],
    );
    let lifted = "joint_pos(hip_fl) > 0.1";
    refused(
        &|c| c.task.command[0].resample_when = Some(lifted.into()),
        &["resample_when of", "of [[task.command]]", "not the same in reflected states"],
    );
    // Also where observations would be alike with the command turned over as a whole, so that
    // rewards alone tell its signs.
    for goal in [false, true] {
        refused(
            &|c| {
                let (name, expr) = ("lifted".into(), lifted.into());
                c.task.termination.push(TerminationTerm { name, expr, truncate: false });
                if goal {
                    let seen = "rotate_inv(quat_yaw(quat(trunk)), [command.velocity, 0]).xy";
                    let seen = seen.to_string();
                    c.task.observation.retain(|o| !o.name.starts_with("command"));
                    let own = ObservationTerm {
                        name: "goal".into(),
                        expr: seen,
                        ..c.task.observation[0].clone()
                    };
                    c.task.observation.push(own);
                    c.task.reward.truncate(1);
                    c.task.reward[0].expr = "dot(lin_vel(trunk).xy, command.velocity)".into();
                    c.task.command[0].range = vec![[-0.5, 0.5]; 2];
                }
            },
            &["\"lifted\" of [[task.termination]]", "not the same in reflected states"],
        );
    }
    refused(
        &|c| c.task.observation[5].expr = "joint_pos(hip_fl) + 2 * joint_pos(hip_fr)".into(),
        &["observation \"joint_pos\"", "has no reflection"],
    );
    refused(
        &|c| c.task.termination[0].expr = "joint_pos(hip_fl) > 0.1".into(),
        &[&config.task.termination[0].name, "task.termination"],
    );
}

/// The ground is reflected, too: a scan's rows change places.
#[test]
fn a_scan_of_the_ground_is_turned_over() {
    let (mut config, model) = shipped("quadruped.toml");
    let text = r#"
tile = 8.0
cell = 0.1
levels = 2
columns = 2
kinds = [{ kind = "rough" }, { kind = "stairs", step_height = [0.05, 0.1] }]
"#;
    config.task.terrain = Some(toml::from_str(text).unwrap());
    config.task.observation[7].expr = "height_scan(trunk, [0.6, 0.4], 0.2)".into();
    let found = find(&config, &model, 1).unwrap();
    // 4 along the heading, 3 across: the outer rows change places.
    let rows: Vec<(u32, f32)> =
        [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3].into_iter().map(|k| (k, 1.0)).collect();
    assert_eq!(entries(&found, 36, 12), rows);
}

/// A sensor beside the plane moves otherwise than its reflection where the robot turns; the nearest
/// one will do if that is said.
#[test]
fn a_sensor_beside_the_plane_is_refused_unless_it_may_be_near() {
    let (mut config, model) = shipped("quadruped.toml");
    let mut beside = Model::clone(&model);
    beside.sites[0].pos = [0.1, 0.3, 0.0];
    let beside = Arc::new(beside);
    config.task.observation[0].expr = "lin_vel_body(imu)".into();
    let why = find(&config, &beside, 1).unwrap_err();
    assert!(why.contains("\"lin_vel\"") && why.contains("has no reflection"), "{why}");
    let sides = |name: &str| Sides { axis: 1, approximate: vec![name.into()], ..Sides::default() };
    let found = Reflection::find(&config, Arc::clone(&beside), &sides("lin_vel")).unwrap();
    assert_eq!(entries(&found, 0, 3), [(0, 1.0), (1, -1.0), (2, 1.0)]);
    assert_eq!(found.terms[0].0, "lin_vel");
    let wrong = Reflection::find(&config, beside, &sides("lin_val")).unwrap_err().to_string();
    assert!(wrong.contains("no observation is called \"lin_val\""), "{wrong}");
}

/// Activations change places as their actuators do, some with another sign; an actuator without
/// one is passed over.
#[test]
fn activations_go_with_their_actuators() {
    let (mut config, _) = shipped("ant.toml");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/robots/ant.xml");
    let mut text = std::fs::read_to_string(file).unwrap();
    for joint in
        ["hip", "ankle"].iter().flat_map(|part| (1..=4).map(move |k| format!("{part}_{k}")))
    {
        let motor = format!("<motor name=\"{joint}\" joint=\"{joint}\"/>");
        let law = r#"biastype="none" dyntype="filter" dynprm="0.05""#;
        let lagging = format!("<general name=\"{joint}\" joint=\"{joint}\" gear=\"150\" {law}/>");
        let is_instant = joint == "ankle_1" || joint == "ankle_4";
        let new = if is_instant { motor.clone() } else { lagging };
        assert!(text.contains(&motor));
        text = text.replace(&motor, &new);
    }
    let model = ostler_sim::model::mjcf::parse(file.as_ref(), text).unwrap();
    config.task.observation[0].expr = "activation()".into();
    let found = find(&config, &Arc::new(model), 1).unwrap();
    assert!(found.proof.holds(), "{:?}", found.proof);
    // Of hips 4 and 1, of hips and ankles 2 and 3: 4 <-> 1, 2 <-> 3. Hips turn about z; the axes
    // of ankles 2 and 3, (1 1 0) and (-1 1 0), are each other's reflection.
    let expected = [(1, -1.0), (0, -1.0), (4, -1.0), (5, 1.0), (2, -1.0), (3, 1.0)];
    assert_eq!(entries(&found, 0, 6), expected);
}
