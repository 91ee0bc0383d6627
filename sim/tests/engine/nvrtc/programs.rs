//! The programs that are compiled.

use crate::support::referee::{peers, referee_python};
use crate::support::share;
use ostler_sim::Model;
use ostler_sim::config::{EnvConfig, Leave, SimConfig, TaskConfig};
use ostler_sim::device::Program;
use ostler_sim::env::on_device::program;
use ostler_sim::model::{
    Activation, Delay, EffortLimit, Layer, Motor, MotorLaw, Network, NetworkKind, mjcf,
};
use ostler_sim::physics::native::generate::{generate_cuda, program_hash};
use ostler_sim::physics::native::lower::{LowerOptions, lower};
use ostler_sim::referee::mujoco::MuJoCo;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Every shipped configuration, the smallest first.
const SHIPPED: [&str; 9] = [
    "cartpole",
    "double_pendulum",
    "spread",
    "half_cheetah",
    "half_cheetah_legs",
    "hopper",
    "ant",
    "quadruped",
    "ant_sumo",
];
/// Other tasks of these robots, whose programs need no more: compiling takes minutes.
const VARIANTS: [&str; 2] = ["cartpole_recall", "double_pendulum_positions"];
/// Examples with laboratories' robots, from mjlab's wheel. They compile for a minute each.
pub const EXAMPLES: [&str; 2] = ["go1_flat", "g1_flat"];
/// The largest robot that others publish figures of.
pub const HUMANOID: &str = "Gymnasium's humanoid, physics";
/// Models of what our robots do not have.
const FEATURES: [&str; 6] = [
    "actuator_site_reference",
    "actuator_slidercrank",
    "integrator_implicit_fluid",
    "muscle",
    "sensor_touch",
    "tendon_spatial_wrap",
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A shipped robot with its task.
struct Shipped {
    model: Arc<Model>,
    sim: SimConfig,
    env: EnvConfig,
    task: TaskConfig,
}

impl Shipped {
    fn new(name: &str) -> Self {
        Self::of(&root().join(format!("configs/{name}.toml")), &root().join("configs"))
    }

    /// The configuration at `path`, its robot below `robots`.
    fn of(path: &Path, robots: &Path) -> Self {
        let mut table: toml::Table =
            toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let mut part = |key: &str| {
            let part = table.remove(key);
            part.unwrap_or(toml::Value::Table(toml::Table::new()))
        };
        let sim: SimConfig = part("sim").try_into().unwrap();
        let env: EnvConfig = part("env").try_into().unwrap();
        let mut task: TaskConfig = part("task").try_into().unwrap();
        task.agents = table.remove("agents").map(|a| a.try_into().unwrap());
        // Its path is relative to a file in that folder.
        let model = task.model(&robots.join("task.toml")).unwrap();
        let dt = |model: &Model| sim.timestep(model) * env.decimation as f64;
        let (model, _) = ostler_sim::task::prepare(&Arc::new(model), &task, dt).unwrap();
        Self { model, sim, env, task }
    }

    fn program(&self, changing: bool) -> Program {
        program(&self.model, &self.sim, &self.env, &self.task, changing).unwrap()
    }
}

/// The cart-pole with functions of a header.
pub fn natives() -> Program {
    let mut cart = Shipped::new("cartpole");
    let folder = root().join("sim/tests/natives");
    let more = std::fs::read_to_string(folder.join("terms.toml")).unwrap();
    let more: TaskConfig = toml::from_str(&more).unwrap();
    cart.task.native = more.native;
    cart.task.state = more.state;
    cart.task.command.extend(more.command);
    cart.task.observation.extend(more.observation);
    cart.task.reward.extend(more.reward);
    cart.task.metric.extend(more.metric);
    cart.task.termination.extend(more.termination);
    let within = [folder.clone()];
    ostler_sim::config::read_headers(&mut cart.task, &folder, &within, Leave::Run).unwrap();
    cart.program(false)
}

/// One of them.
pub fn named(name: &str) -> Program {
    Shipped::new(name).program(false)
}

/// Robots and tasks as they are shipped, with the hashes of their programs.
pub fn shipped() -> Vec<(String, Program, String)> {
    let all = std::fs::read_dir(root().join("configs")).unwrap();
    let all = all.filter(|f| f.as_ref().unwrap().path().extension().is_some_and(|e| e == "toml"));
    assert_eq!(all.count(), SHIPPED.len() + VARIANTS.len(), "a configuration is not in the list");
    let of = |name: &str| hashed(name, Shipped::new(name), false);
    SHIPPED.into_iter().map(of).collect()
}

/// Physics alone of other models, and a task whose numbers a curriculum changes.
pub fn others() -> Vec<(String, Program, String)> {
    let mut programs = vec![hashed("changing cartpole", Shipped::new("cartpole"), true)];
    for name in FEATURES {
        let path = root().join(format!("tests/referee/features/{name}.xml"));
        programs.push(physics_of(name, &mjcf::load(&path).unwrap()));
    }
    programs.push(physics_of("motors", &motors()));
    if share::in_full()
        && let Some(robots) = peers()
    {
        for name in EXAMPLES {
            let path = root().join(format!("examples/{name}.toml"));
            programs.push(hashed(name, Shipped::of(&path, &robots), true));
        }
    }
    if let Some(path) = humanoid() {
        programs.push(physics_of(HUMANOID, &mjcf::load(&path).unwrap()));
    }
    programs
}

fn hashed(name: &str, of: Shipped, changing: bool) -> (String, Program, String) {
    let program = of.program(changing);
    let plan = lower(&of.model, &LowerOptions::default()).unwrap();
    let hash = program_hash(&plan, &program.text);
    (name.to_string(), program, hash)
}

/// A DC motor, an MLP and an LSTM, each with a delay.
fn motors() -> Model {
    let link = |name: &str| {
        format!(
            r#"<body><joint name="{name}" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02"/>"#
        )
    };
    let text = format!(
        r#"<mujoco><worldbody>{}{}{}</body></body></body></worldbody><actuator>
        <motor joint="a"/><motor joint="b"/><motor joint="c"/></actuator></mujoco>"#,
        link("a"),
        link("b"),
        link("c")
    );
    let mut model = mjcf::parse(Path::new("motors.xml"), text).unwrap();
    let layer = |inputs: usize, outputs: usize, then: Activation| Layer {
        inputs,
        weight: (0..inputs * outputs).map(|i| 0.3 - 0.01 * i as f64).collect(),
        bias: vec![0.1; outputs],
        then,
    };
    let network = |kind: NetworkKind, layers: Vec<Layer>| Network {
        name: "network".into(),
        position_scale: 1.0,
        velocity_scale: 0.5,
        effort_scale: 2.0,
        kind,
        layers,
    };
    let mlp = NetworkKind::Mlp { steps: vec![0, 2], velocities_first: false };
    let lstm = NetworkKind::Lstm { cells: vec![layer(10, 32, Activation::Nothing)], width: 8 };
    model.networks = vec![
        network(
            mlp,
            vec![
                layer(4, 16, Activation::Elu),
                layer(16, 8, Activation::Tanh),
                layer(8, 1, Activation::Nothing),
            ],
        ),
        network(lstm, vec![layer(8, 1, Activation::Nothing)]),
    ];
    let limit = EffortLimit { effort: 5.0, fall: Some([6.0, 20.0]) };
    let pd = MotorLaw::Pd { stiffness: 20.0, damping: 0.5, limit };
    let of = |network| MotorLaw::Network { network, limit };
    for (actuator, law) in model.actuators.iter_mut().zip([pd, of(0), of(1)]) {
        actuator.motor =
            Some(Motor { law, delay: Delay { least: 2, most: 2, ..Delay::default() }, group: 0 });
    }
    model
}

fn physics_of(name: &str, model: &Model) -> (String, Program, String) {
    let plan = lower(model, &LowerOptions::default()).unwrap();
    let text = generate_cuda(&plan).unwrap();
    let hash = program_hash(&plan, &text);
    let program = Program { text, places: Vec::new(), entries: vec!["ostler_step".into()] };
    (name.to_string(), program, hash)
}

/// Among the referees, if they are there.
fn humanoid() -> Option<PathBuf> {
    let python = referee_python()?;
    let mut mujoco = MuJoCo::start(Some(&python)).unwrap();
    let about = mujoco.ask(&serde_json::json!({"op": "version"})).unwrap();
    let folder = about["gymnasium"].as_str().unwrap();
    Some(Path::new(folder).join("humanoid.xml"))
}
