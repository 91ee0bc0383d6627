//! A robot by hand, states drawn at random, and one-line evaluation.

use crate::model::*;
use crate::physics::State;
use crate::rng::{Purpose, philox, unit};
use crate::task::expr::{BLOCK, ExprError, Inputs, Program, Scope, Scratch};

const TURNED: Quat = [0.5, 0.5, 0.5, 0.5];
const STRAIGHT: Quat = [1.0, 0.0, 0.0, 0.0];

fn body(name: &str, parent: usize, mass: f64, ipos: Vec3) -> Body {
    Body {
        name: name.into(),
        parent,
        pos: [0.0, 0.0, 0.1],
        quat: STRAIGHT,
        mass,
        ipos,
        iquat: STRAIGHT,
        inertia: [0.1, 0.1, 0.1],
        joints: 0..0,
        geoms: 0..0,
        weld: if parent == 0 && mass == 0.0 { 0 } else { 1 },
    }
}

fn joint(name: &str, kind: JointKind, body: usize, range: Option<[f64; 2]>) -> Joint {
    Joint {
        name: name.into(),
        kind,
        body,
        pos: [0.0; 3],
        axis: [0.0, 1.0, 0.0],
        reference: 0.0,
        range,
        damping: 0.0,
        stiffness: 0.0,
        springref: 0.0,
        armature: 0.0,
        frictionloss: 0.0,
        actfrcrange: None,
        margin: 0.0,
        solref_limit: [0.02, 1.0],
        solimp_limit: [0.9, 0.95, 0.001, 0.5, 2.0],
        solref_friction: [0.02, 1.0],
        solimp_friction: [0.9, 0.95, 0.001, 0.5, 2.0],
        qpos_adr: 0,
        dof_adr: 0,
    }
}

fn geom(name: &str, body: usize, pos: Vec3, quat: Quat) -> Geom {
    Geom {
        name: name.into(),
        kind: GeomKind::Sphere,
        body,
        pos,
        quat,
        size: [0.1, 0.0, 0.0],
        contype: 1,
        conaffinity: 1,
        condim: 3,
        friction: [1.0, 0.005, 0.0001],
        priority: 0,
        solmix: 1.0,
        solref: [0.02, 1.0],
        solimp: [0.9, 0.95, 0.001, 0.5, 2.0],
        margin: 0.0,
        gap: 0.0,
        group: 0,
        rgba: [0.5, 0.5, 0.5, 1.0],
    }
}

/// A floating torso with two legs on hinges and a tail on a slide.
///
/// `foot_1` is a body and a geom; `hip_1` a joint; bodies 1.. weigh 4, 1, 1, 0.5.
pub fn robot() -> Model {
    use JointKind::{Free, Hinge, Slide};
    let mut bodies = vec![
        body("world", 0, 0.0, [0.0; 3]),
        body("torso", 0, 4.0, [0.1, 0.0, -0.2]),
        body("foot_1", 1, 1.0, [0.0, 0.05, 0.0]),
        body("foot_2", 1, 1.0, [0.0, -0.05, 0.0]),
        body("tail-tip", 1, 0.5, [0.0; 3]),
    ];
    let mut joints = vec![
        joint("root", Free, 1, None),
        joint("hip_1", Hinge, 2, Some([-0.5, 0.7])),
        joint("hip_2", Hinge, 3, Some([-0.6, 0.8])),
        joint("rail", Slide, 4, None),
    ];
    let (mut nq, mut nv) = (0, 0);
    for (i, j) in joints.iter_mut().enumerate() {
        (j.qpos_adr, j.dof_adr) = (nq, nv);
        nq += j.kind.nq();
        nv += j.kind.nv();
        bodies[j.body].joints = i..i + 1;
    }
    let geoms = vec![
        geom("floor", 0, [0.0; 3], STRAIGHT),
        geom("belly", 1, [0.0, 0.0, -0.1], TURNED),
        geom("back", 1, [0.0, 0.0, 0.1], STRAIGHT),
        geom("foot_1", 2, [0.0, 0.0, -0.3], STRAIGHT),
        geom("foot_2", 3, [0.0, 0.0, -0.3], STRAIGHT),
    ];
    for b in 0..bodies.len() {
        let own: Vec<usize> = (0..geoms.len()).filter(|&g| geoms[g].body == b).collect();
        bodies[b].geoms = own.first().map_or(0..0, |&g| g..g + own.len());
    }
    let actuator = |name: &str, joint| Actuator {
        name: name.into(),
        element: "motor",
        joint,
        gear: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ctrlrange: Some([-1.0, 1.0]),
        forcerange: None,
        gain: [1.0, 0.0, 0.0],
        bias: [0.0; 3],
    };
    let mut qpos0 = vec![0.0; nq];
    qpos0[3] = 1.0;
    qpos0[7] = 0.25;
    Model {
        name: "hopalong".into(),
        options: Options {
            timestep: 0.002,
            gravity: [0.0, 0.0, -9.81],
            density: 0.0,
            viscosity: 0.0,
            wind: [0.0; 3],
            impratio: 1.0,
            integrator: Integrator::Euler,
            cone: Cone::Pyramidal,
            solver: Solver::Newton,
            iterations: 100,
            tolerance: 1e-8,
            flags: vec![],
        },
        bodies,
        joints,
        geoms,
        sites: vec![
            Site {
                name: "imu".into(),
                body: 1,
                pos: [0.2, 0.1, 0.05],
                quat: TURNED,
            },
            Site {
                name: "mark".into(),
                body: 0,
                pos: [1.0, 2.0, 3.0],
                quat: STRAIGHT,
            },
        ],
        actuators: vec![
            actuator("motor_1", 1),
            actuator("motor_2", 2),
            actuator("push", 3),
        ],
        keyframes: vec![],
        excludes: vec![],
        nq,
        nv,
        qpos0,
        ignored: vec![],
        sources: vec![],
    }
}

/// Everything [`Inputs`] borrows, drawn at random.
pub struct World {
    pub model: Model,
    pub commands: Vec<(String, usize, String)>,
    pub params: Vec<String>,
    pub state: State,
    pub ctrl: Vec<f32>,
    pub action: Vec<f32>,
    pub last_action: Vec<f32>,
    pub command: Vec<f32>,
    pub param: Vec<f32>,
    pub step: Vec<u32>,
}

/// Outputs of the policy.
pub const ACTIONS: usize = 3;
/// Duration of a control step.
pub const STEP_DT: f32 = 0.02;
/// Steps until the time-out.
pub const MAX_STEPS: u32 = 250;

impl World {
    pub fn new(n: usize, seed: u64) -> Self {
        let model = robot();
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
        let bodies = model.bodies.len();
        for (b, e) in (0..bodies).flat_map(|b| (0..n).map(move |e| (b, e))) {
            let at = |k: usize| (4 * b + k) * n + e;
            let size = (0..4)
                .map(|k| state.body_quat[at(k)].powi(2))
                .sum::<f32>()
                .sqrt();
            for k in 0..4 {
                let upright = if b == 0 {
                    [1.0, 0.0, 0.0, 0.0][k]
                } else {
                    state.body_quat[at(k)] / size
                };
                state.body_quat[at(k)] = upright;
            }
            if b == 0 {
                for k in 0..3 {
                    for v in [
                        &mut state.body_pos,
                        &mut state.body_lin_vel,
                        &mut state.body_ang_vel,
                    ] {
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
        Self {
            commands: vec![
                ("twist".into(), 3, "m/s".into()),
                ("heading".into(), 1, "rad".into()),
            ],
            params: vec!["target".into(), "width".into()],
            ctrl,
            action,
            last_action,
            command,
            param: vec![0.75, 2.0],
            step: (0..n as u32).map(|e| e * 7 % MAX_STEPS).collect(),
            model,
            state,
        }
    }

    pub fn scope(&self) -> Scope<'_> {
        Scope {
            model: &self.model,
            commands: &self.commands,
            params: &self.params,
            action_width: ACTIONS,
        }
    }

    pub fn inputs(&self, first: usize, len: usize) -> Inputs<'_> {
        Inputs {
            state: &self.state,
            ctrl: &self.ctrl,
            action: &self.action,
            last_action: &self.last_action,
            command: &self.command,
            params: &self.param,
            step: &self.step,
            step_dt: STEP_DT,
            max_steps: MAX_STEPS,
            first,
            len,
        }
    }

    pub fn compile(&self, text: &str) -> Result<Program, ExprError> {
        Program::compile(text, &self.scope())
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
