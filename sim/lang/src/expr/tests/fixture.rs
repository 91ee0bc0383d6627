//! A robot, states drawn at random, and one-line evaluation.

use crate::expr::{
    BLOCK, Buffers, Definitions, Draws, EventNumbers, EventValue, ExprError, HistoryBuilder,
    Inputs, Looks, Program, Readings, Scope, Scratch, Start, Unit,
};
use ostler_base::rng::{Purpose, philox, unit};
use ostler_engine::physics::State;
use ostler_model::terrain::{KindPlan, KindWord, Terrain, TerrainPlan};
use ostler_model::{ContactReading, ContactSensor, Model, Varied, mjcf};
use std::path::Path;
use std::sync::Arc;

/// A floating torso with two legs on hinges and a tail on a slide.
///
/// `foot_1` is a body and a geom; bodies 1.. weigh 4, 1, 1, 0.5 kg. The hinges
/// start at 0.25 and 0.
const ROBOT: &str = r#"
<mujoco model="hopalong">
  <compiler angle="radian"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <site name="mark" pos="1 2 3"/>
    <body name="torso" pos="0 0 1">
      <freejoint name="root"/>
      <inertial pos="0.1 0 -0.2" mass="4" diaginertia="0.1 0.1 0.1"/>
      <geom name="belly" size="0.1" pos="0 0 -0.1" quat="0.5 0.5 0.5 0.5"/>
      <geom name="back" size="0.1" pos="0 0 0.1"/>
      <site name="imu" pos="0.2 0.1 0.05" quat="0.5 0.5 0.5 0.5"/>
      <body name="foot_1">
        <joint name="hip_1" axis="0 1 0" range="-0.5 0.7" limited="true" ref="0.25"/>
        <inertial pos="0 0.05 0" mass="1" diaginertia="0.1 0.1 0.1"/>
        <geom name="foot_1" size="0.1" pos="0 0 -0.3"/>
      </body>
      <body name="foot_2">
        <joint name="hip_2" axis="0 1 0" range="-0.6 0.8" limited="true"/>
        <inertial pos="0 -0.05 0" mass="1" diaginertia="0.1 0.1 0.1"/>
        <geom name="foot_2" size="0.1" pos="0 0 -0.3"/>
      </body>
      <body name="tail-tip">
        <joint name="rail" type="slide" axis="1 0 0"/>
        <inertial pos="0 0 0" mass="0.5" diaginertia="0.1 0.1 0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="motor_1" joint="hip_1"/>
    <motor name="motor_2" joint="hip_2"/>
    <general name="push" joint="rail" dyntype="integrator" actrange="-1 1"/>
  </actuator>
  <sensor>
    <gyro name="imu_gyro" site="imu"/>
    <jointpos name="encoder" joint="hip_1" cutoff="0.3"/>
    <accelerometer name="imu_acc" site="imu" cutoff="9"/>
    <user name="wrist" dim="2"/>
    <touch name="pad" site="imu"/>
    <framepos name="lost" objtype="camera" objname="eye"/>
  </sensor>
</mujoco>
"#;

/// The model of the text above.
pub fn robot() -> Model {
    mjcf::parse(Path::new("hopalong.xml"), ROBOT.to_string()).unwrap()
}

/// A tile of ground without walls.
fn rough() -> Terrain {
    let kinds = vec![KindPlan::new(KindWord::Rough)];
    let plan = TerrainPlan { levels: 1, columns: 1, kinds, ..TerrainPlan::default() };
    Terrain::generate(&plan, &|name| Err(name.into())).unwrap().0
}

/// Everything [`Buffers`] borrow, drawn at random.
pub struct World {
    pub model: Model,
    pub commands: Vec<(String, usize, String)>,
    pub params: Vec<String>,
    pub state: State,
    pub ctrl: Vec<f32>,
    pub action: Vec<f32>,
    pub last_action: Vec<f32>,
    pub memory: Vec<f32>,
    pub shown: Vec<f32>,
    pub history: HistoryBuilder,
    pub readings: Readings,
    pub draws: Draws,
    pub random: Vec<f32>,
    pub events: EventNumbers,
    pub command: Vec<f32>,
    pub param: Vec<f32>,
    pub scan: Vec<f32>,
    pub stand: Vec<f32>,
    pub motion: Vec<f32>,
    pub defined: Definitions<'static>,
    pub step: Vec<u32>,
}

/// Outputs of the policy.
pub const ACTIONS: usize = 3;
/// Numbers that are remembered at most.
pub const MEMORY: usize = 12;
/// Random numbers that are drawn at most.
pub const RANDOM: usize = 24;
/// Numbers of events.
pub const SHOWN: usize = 5;
/// Places that are scanned at most.
pub const SCANNED: usize = 8;
/// Numbers that are read of the reference motion at most.
pub const LOOKED: usize = 32;
/// Duration of a control step.
pub const STEP_DT: f32 = 0.02;
/// Steps until the time-out.
pub const MAX_STEPS: u32 = 250;

impl World {
    pub fn new(n: usize, seed: u64) -> Self {
        Self::of(robot(), n, seed)
    }

    /// The robot with a position actuator, gains in its file, and numbers that events change.
    pub fn varied(varied: &[Varied], n: usize, seed: u64) -> Self {
        Self::with("", "", varied, n, seed)
    }

    /// The same with another text in the place of a part of the robot's.
    pub fn with(part: &str, other: &str, varied: &[Varied], n: usize, seed: u64) -> Self {
        let motor = "<motor name=\"motor_1\" joint=\"hip_1\"/>";
        let servo =
            "<position name=\"motor_1\" joint=\"hip_1\" kp=\"20\" kv=\"1.5\" forcerange=\"-5 5\"/>";
        let mut text = ROBOT.replace(motor, servo);
        if !part.is_empty() {
            text = text.replace(part, other);
        }
        let mut model = mjcf::parse(Path::new("hopalong.xml"), text).unwrap();
        model.varied = varied.to_vec();
        Self::of(model, n, seed)
    }

    fn of(mut model: Model, n: usize, seed: u64) -> Self {
        // As many readings as the texts of the tests have at most.
        model.contact_sensors = vec![
            ContactSensor {
                of: Vec::new(),
                with: Vec::new(),
                reads: ContactReading::Net,
                last: false,
            };
            40
        ];
        let mut state = State::new(&model, n).unwrap();
        let mut buffer = 0;
        let mut fill = |v: &mut [f32], low: f32, high: f32| {
            buffer += 1;
            for (i, x) in v.iter_mut().enumerate() {
                let word = philox(seed, i as u32, Purpose::Reset, buffer, 0)[0];
                *x = low + (high - low) * unit(word);
            }
        };
        fill(&mut state.qpos, -1.0, 1.0);
        fill(&mut state.qvel, -3.0, 3.0);
        fill(&mut state.body_pos, -2.0, 2.0);
        fill(&mut state.body_quat, -1.0, 1.0);
        fill(&mut state.body_lin_vel, -2.0, 2.0);
        fill(&mut state.body_ang_vel, -2.0, 2.0);
        fill(&mut state.contact_force, -50.0, 100.0);
        state.contact_force.iter_mut().for_each(|f| *f = f.max(0.0));
        fill(&mut state.actuator_force, -5.0, 5.0);
        fill(&mut state.qacc, -40.0, 40.0);
        fill(&mut state.sensordata, -20.0, 20.0);
        fill(&mut state.contact_data, -20.0, 60.0);
        fill(&mut state.act, 0.0, 1.0);
        fill(&mut state.varied, 0.5, 1.5);
        let bodies = model.bodies.len();
        for (b, e) in (0..bodies).flat_map(|b| (0..n).map(move |e| (b, e))) {
            let at = |k: usize| (4 * b + k) * n + e;
            let size = (0..4).map(|k| state.body_quat[at(k)].powi(2)).sum::<f32>().sqrt();
            for k in 0..4 {
                let upright =
                    if b == 0 { [1.0, 0.0, 0.0, 0.0][k] } else { state.body_quat[at(k)] / size };
                state.body_quat[at(k)] = upright;
            }
            if b == 0 {
                for k in 0..3 {
                    for v in [&mut state.body_pos, &mut state.body_lin_vel, &mut state.body_ang_vel]
                    {
                        v[k * n + e] = 0.0;
                    }
                }
            }
        }
        let mut drawn = |k: usize| {
            let mut v = vec![0.0; k * n];
            fill(&mut v, -1.0, 1.0);
            v
        };
        let (ctrl, action, last_action, command) =
            (drawn(3), drawn(ACTIONS), drawn(ACTIONS), drawn(4));
        let memory = drawn(MEMORY);
        let mut random = drawn(RANDOM);
        random.iter_mut().for_each(|x| *x = 0.5 + 0.499 * *x);
        let shown = drawn(SHOWN);
        let (scan, stand, motion) = (drawn(SCANNED), drawn(4), drawn(LOOKED));
        model.terrain = Some(Arc::new(rough()));
        Self {
            commands: vec![("twist".into(), 3, "m/s".into()), ("heading".into(), 1, "rad".into())],
            params: vec!["target".into(), "width".into()],
            ctrl,
            action,
            last_action,
            memory,
            shown,
            history: HistoryBuilder::default(),
            readings: Readings::default(),
            draws: Draws::default(),
            random,
            events: EventNumbers::new(vec![
                EventValue::new("push", vec![Unit::parse("m/s").unwrap(); 3]),
                EventValue::new("gain", vec![Unit::NONE; 2]),
                EventValue::new("idle", Vec::new()),
            ]),
            command,
            param: vec![0.75, 2.0],
            scan,
            stand,
            motion,
            defined: Definitions {
                motion: Looks::with_step(f64::from(STEP_DT)),
                ..Definitions::default()
            },
            step: (0..n as u32).map(|e| e * 7 % MAX_STEPS).collect(),
            model,
            state,
        }
    }

    pub fn scope(&self) -> Scope<'_> {
        Scope {
            model: &self.model,
            pose: &self.model.qpos0,
            commands: &self.commands,
            params: &self.params,
            action_width: ACTIONS,
            agents: None,
            history: &self.history,
            readings: &self.readings,
            events: &self.events,
            defined: &self.defined,
            start: Some(Start { draws: &self.draws, of: "", drawing: false }),
        }
    }

    pub fn inputs(&self, first: usize, len: usize) -> Inputs<'_> {
        Buffers {
            state: &self.state,
            ctrl: &self.ctrl,
            action: &self.action,
            last_action: &self.last_action,
            history: &self.memory,
            shown: &self.shown,
            command: &self.command,
            random: &self.random,
            native: &[],
            scan: &self.scan,
            stand: &self.stand,
            motion: &self.motion,
            terrain: self.model.terrain.as_deref(),
            params: &self.param,
            step: &self.step,
            step_dt: STEP_DT,
            max_steps: MAX_STEPS,
        }
        .block(first, len)
    }

    pub fn compile(&self, text: &str) -> Result<Program, ExprError> {
        let scope = self.scope();
        let start = scope.start.map(|start| Start { of: text, ..start });
        Program::compile(text, &Scope { start, ..scope })
    }

    /// The value for every environment, `[environment][component]`.
    pub fn eval(&self, text: &str) -> Vec<Vec<f32>> {
        let program = self.compile(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        self.run(&program, BLOCK)
    }

    /// The same in blocks of `block` environments.
    pub fn run(&self, program: &Program, block: usize) -> Vec<Vec<f32>> {
        let mut scratch = Scratch::default();
        let n = self.state.num_envs;
        let mut all = Vec::new();
        for first in (0..n).step_by(block) {
            let len = block.min(n - first);
            let out = program.eval(&self.inputs(first, len), &mut scratch);
            all.extend((0..len).map(|e| out.chunks(BLOCK).map(|c| c[e]).collect::<Vec<f32>>()));
        }
        all
    }
}
