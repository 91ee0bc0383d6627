//! How fast and how far the parts of a robot may be before its world counts as broken.

use crate::config::SimConfig;
use ostler_base::ConfigError;
use ostler_base::names::select;
use ostler_model::{JointKind, Model};

/// Limits of a robot's coordinates and bodies; infinite where there is none.
///
/// Joints have the limits of the last `[[sim.limit]]` that names them, other joints those
/// of the whole robot, `sim.max_speed` and `sim.max_position`.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Of every entry of `qvel` `(nv)` (m/s, rad/s).
    pub speed: Vec<f32>,
    /// Of every entry of `qpos` `(nq)` (m, rad). Angles and rotations have none from the
    /// whole robot.
    pub position: Vec<f32>,
    /// The same from `[[sim.limit]]` alone, for engines that look at bodies: infinite for
    /// joints that none names.
    pub own_speed: Vec<f32>,
    /// Likewise.
    pub own_position: Vec<f32>,
    /// Of every body `(nbody)` (m/s, rad/s): the whole robot's, or the largest of a joint
    /// between the body and the world, where that is larger.
    pub body_speed: Vec<f32>,
    /// Likewise (m).
    pub body_position: Vec<f32>,
}

impl Limits {
    /// Those of `config` for a robot.
    ///
    /// # Errors
    /// A name or pattern that fits no joint; `max_position` for ball joints alone.
    pub fn of(config: &SimConfig, model: &Model) -> Result<Self, ConfigError> {
        let [robot_speed, robot_position] = [config.max_speed, config.max_position];
        let mut own = vec![[None::<f32>; 2]; model.joints.len()];
        for (i, limit) in config.limit.iter().enumerate() {
            for (p, pattern) in limit.joints.iter().enumerate() {
                let path = format!("sim.limit[{i}].joints[{p}]");
                let names = model.joints.iter().map(|j| j.name.as_str()).enumerate();
                let found = select(pattern, "joint", names, &path)?;
                let ball = |j: &usize| model.joints[*j].kind == JointKind::Ball;
                if limit.max_position.is_some() && found.iter().all(ball) {
                    let what = format!("\"{pattern}\" is a ball joint, which has no position");
                    return Err(ConfigError::new(path, what)
                        .help("max_position is for free, sliding and hinge joints; leave it out"));
                }
                for j in found {
                    for (to, from) in own[j].iter_mut().zip([limit.max_speed, limit.max_position]) {
                        *to = from.map(|x| x as f32).or(*to);
                    }
                }
            }
        }
        let mut limits = Self {
            speed: vec![robot_speed as f32; model.nv],
            position: vec![f32::INFINITY; model.nq],
            own_speed: vec![f32::INFINITY; model.nv],
            own_position: vec![f32::INFINITY; model.nq],
            body_speed: vec![robot_speed as f32; model.bodies.len()],
            body_position: vec![robot_position as f32; model.bodies.len()],
        };
        let mut widest = vec![[0.0_f32; 2]; model.bodies.len()];
        for (joint, [speed, position]) in model.joints.iter().zip(own) {
            let dofs = joint.dof_adr..joint.dof_adr + joint.kind.nv();
            let (places, travels) = match joint.kind {
                JointKind::Free => (3, true),
                JointKind::Slide => (1, true),
                JointKind::Hinge => (1, false),
                JointKind::Ball => (0, false),
            };
            let places = joint.qpos_adr..joint.qpos_adr + places;
            if travels {
                limits.position[places.clone()].fill(robot_position as f32);
            }
            if let Some(speed) = speed {
                limits.speed[dofs.clone()].fill(speed);
                limits.own_speed[dofs].fill(speed);
                widest[joint.body][0] = widest[joint.body][0].max(speed);
            }
            if let Some(position) = position {
                limits.position[places.clone()].fill(position);
                limits.own_position[places].fill(position);
                if travels {
                    widest[joint.body][1] = widest[joint.body][1].max(position);
                }
            }
        }
        // A body moves with what carries it. Parents come before their children.
        for (b, body) in model.bodies.iter().enumerate() {
            let above = widest[body.parent];
            for (own, above) in widest[b].iter_mut().zip(above) {
                *own = own.max(above);
            }
            limits.body_speed[b] = limits.body_speed[b].max(widest[b][0]);
            limits.body_position[b] = limits.body_position[b].max(widest[b][1]);
        }
        Ok(limits)
    }

    /// Whether one of these velocities and positions is beyond a limit that its joint has of
    /// its own: [too fast, too far].
    pub fn own_beyond(
        &self,
        qvel: impl Iterator<Item = f32>,
        qpos: impl Iterator<Item = f32>,
    ) -> [bool; 2] {
        [
            qvel.zip(&self.own_speed).any(|(x, limit)| x.abs() > *limit),
            qpos.zip(&self.own_position).any(|(x, limit)| x.abs() > *limit),
        ]
    }
}

/// Of numbers and their limits the one that is farthest beyond its own, in shares of it.
pub fn farthest(numbers: impl Iterator<Item = f32>, limits: &[f32]) -> Option<(usize, f32)> {
    numbers
        .zip(limits)
        .enumerate()
        // In double precision no two numbers give the same quotient.
        .map(|(i, (x, limit))| (i, x, f64::from(x.abs()) / f64::from(*limit)))
        .max_by(|a, b| a.2.total_cmp(&b.2))
        .map(|(i, x, _)| (i, x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::JointLimit;
    use std::path::Path;

    fn robot() -> Model {
        let text = r#"<mujoco><worldbody>
            <body name="base"><freejoint name="float"/><geom size="0.1" mass="1"/>
              <body name="arm"><joint name="arm" type="hinge"/><geom size="0.1" mass="1"/>
                <body name="rotor_1"><joint name="rotor_1" type="hinge"/><geom size="0.1" mass="1"/>
                  <body name="tip" pos="0.1 0 0"><joint name="wobble" type="ball"/><geom size="0.1" mass="1"/></body>
                </body></body></body>
            <body name="sled"><joint name="rail" type="slide"/><geom size="0.1" mass="1"/></body>
            </worldbody></mujoco>"#;
        ostler_model::mjcf::parse(Path::new("robot.xml"), text.into()).unwrap()
    }

    fn config(limit: &[(&str, Option<f64>, Option<f64>)]) -> SimConfig {
        let limit = limit.iter().map(|&(joints, max_speed, max_position)| JointLimit {
            joints: vec![joints.into()],
            max_speed,
            max_position,
        });
        SimConfig {
            max_speed: 100.0,
            max_position: 50.0,
            limit: limit.collect(),
            ..SimConfig::default()
        }
    }

    #[test]
    fn joints_have_their_own_limits_and_others_the_robots() {
        let inf = f32::INFINITY;
        let none = Limits::of(&config(&[]), &robot()).unwrap();
        assert_eq!(none.speed, [100.0; 12]);
        let (quat, ball) = ([inf; 4], [inf; 4]);
        let places = |float: f32, arm: f32, rotor: f32, rail: f32| {
            [&[float; 3][..], &quat, &[arm, rotor], &ball, &[rail]].concat()
        };
        assert_eq!(none.position, places(50.0, inf, inf, 50.0));
        assert!(none.own_speed.iter().chain(&none.own_position).all(|x| *x == inf));

        let some = config(&[
            ("*", Some(20.0), None),
            ("rotor*", Some(5000.0), Some(3.0)),
            ("rail", None, Some(200.0)),
        ]);
        let l = Limits::of(&some, &robot()).unwrap();
        let dofs = [&[20.0; 7][..], &[5000.0], &[20.0; 4]].concat();
        assert_eq!((&l.speed, &l.own_speed), (&dofs, &dofs));
        assert_eq!(l.position, places(50.0, inf, 3.0, 200.0));
        assert_eq!(l.own_position, places(inf, inf, 3.0, 200.0));
        // A part on a rotor is as fast as the rotor; a hinge's angle sets no limit on positions.
        assert_eq!(l.body_speed, [100.0, 100.0, 100.0, 5000.0, 5000.0, 100.0]);
        assert_eq!(l.body_position, [50.0, 50.0, 50.0, 50.0, 50.0, 200.0]);
        // An infinite limit is none, whatever the robot's.
        let open =
            config(&[("arm", Some(f64::INFINITY), None), ("rail", None, Some(f64::INFINITY))]);
        let l = Limits::of(&open, &robot()).unwrap();
        assert_eq!(l.speed, [&[100.0; 6][..], &[inf], &[100.0; 5]].concat());
        assert_eq!(l.position, places(50.0, inf, inf, inf));
        assert_eq!(l.body_speed, [100.0, 100.0, inf, inf, inf, 100.0]);
        assert_eq!(farthest([40.0, 400.0].into_iter(), &[20.0, 5000.0]), Some((0, 40.0)));
    }

    #[test]
    fn what_fits_no_joint_is_an_error_with_its_place() {
        let wrong = |limit| Limits::of(&config(&[limit]), &robot()).unwrap_err();
        let e = wrong(("rottor_1", Some(1.0), None));
        assert_eq!(e.path, "sim.limit[0].joints[0]");
        assert!(e.to_string().contains("did you mean \"rotor_1\"?"), "{e}");
        let e = wrong(("wobble", None, Some(1.0)));
        assert!(e.to_string().contains("ball joint"), "{e}");
    }
}
