//! Where bodies touch, and with what force.
//!
//! A world beside the one that is watched senses the contacts of every shape: before a step it is
//! made like it, then takes the same step. The watched world and its kernel stay as they are.

use ostler_draw::choice::is_robot;
use ostler_sim::config::SimConfig;
use ostler_sim::env::BatchEnv;
use ostler_sim::model::{ContactReading, ContactSensor};
use ostler_sim::physics::PhysicsError;
use ostler_sim::physics::native::{self, NativePhysics};
use ostler_sim::physics::pool::Pool;
use ostler_sim::{Model, Physics, State};
use std::sync::Arc;

/// Numbers of a contact: its place (m) and the force on the shape (N), both in the world.
pub const WIDTH: usize = 6;
/// Numbers that are sensed of a shape: normal force, places by it, force.
const SENSED: usize = 7;
/// Less normal force is no contact (N).
const LEAST: f32 = 1e-6;

/// A world that senses contacts.
#[derive(Debug)]
pub struct Contacts {
    worlds: NativePhysics,
    /// Shapes whose contacts are sensed.
    geoms: Vec<usize>,
    /// The watched world before its step.
    before: State,
}

impl Contacts {
    /// Senses the contacts of all shapes of the robot that can touch something. `model` is that
    /// of the environments, `config` their physics'.
    ///
    /// # Errors
    /// The native engine, whose sensors these are, does not do something in the model.
    pub fn new(model: &Model, config: &SimConfig) -> Result<Self, PhysicsError> {
        let touches = |g: &usize| {
            let paired = model.pairs.iter().any(|p| p.geom1 == *g || p.geom2 == *g);
            let geom = &model.geoms[*g];
            (geom.collides() || paired) && is_robot(model, geom.body)
        };
        let geoms: Vec<usize> = (0..model.geoms.len()).filter(touches).collect();
        let all: Vec<usize> = (0..model.geoms.len()).collect();
        let mut sensing = model.clone();
        sensing.contact_sensors = geoms
            .iter()
            .flat_map(|&g| {
                let reads = [ContactReading::Force, ContactReading::Place, ContactReading::Net];
                reads.map(|reads| ContactSensor {
                    of: vec![g],
                    with: all.iter().copied().filter(|&other| other != g).collect(),
                    reads,
                    last: false,
                })
            })
            .collect();
        let pool = Arc::new(Pool::new(1)?);
        let worlds = native::new(&Arc::new(sensing), &config.generic(), 1, &pool)?;
        Ok(Self { before: worlds.state().clone(), worlds, geoms })
    }

    /// The shapes, in the order of [`after`](Self::after).
    pub fn geoms(&self) -> &[usize] {
        &self.geoms
    }

    /// Before a step: remembers the world of environment `e`.
    pub fn before(&mut self, env: &BatchEnv, e: usize) {
        self.before.copy_world(0, env.physics().state(), e);
    }

    /// After it: means over the step, [`WIDTH`] numbers a shape; zeros without contact.
    pub fn after(&mut self, env: &BatchEnv, e: usize, out: &mut Vec<f32>) {
        let n = env.spec().num_envs.max(1);
        let ctrl: Vec<f32> = env.controls().iter().skip(e).step_by(n).copied().collect();
        if let Some(state) = self.worlds.state_mut() {
            state.copy_world(0, &self.before, 0);
        }
        self.worlds.step(&ctrl, env.decimation());
        let sensed = self.worlds.state().contact_data.chunks_exact(SENSED);
        out.clear();
        for one in sensed {
            let force = one[0];
            match force > LEAST && one.iter().all(|x| x.is_finite()) {
                true => {
                    out.extend(one[1..4].iter().map(|x| x / force));
                    out.extend(&one[4..7]);
                }
                false => out.extend([0.0; WIDTH]),
            }
        }
    }

    /// The world after its step: that of the watched one, but for what a task changes between
    /// steps.
    pub fn state(&self) -> &State {
        self.worlds.state()
    }
}
