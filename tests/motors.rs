//! Networks of actuators beside PyTorch's, in double precision: the efforts of a motor over a
//! sequence of states.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

// tch is linked with what the trainer puts around it.
use ostler_trainer as _;

use ostler_sim::config::{SimConfig, Specialize, TaskConfig};
use ostler_sim::model::mjcf;
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Physics, native};
use ostler_sim::{Model, task};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tch::nn::{self, Module, RNN};
use tch::{Device, Kind, Tensor};

const STEPS: usize = 60;
/// PyTorch has one generator for all threads.
static SEEDED: Mutex<()> = Mutex::new(());

/// A wheel that its motor turns, in `folder`.
fn wheel(folder: &Path, law: &str) -> Arc<Model> {
    let text = r#"<mujoco model="wheel"><option gravity="0 0 0" timestep="0.02"/><worldbody><body>
      <joint name="hub" axis="0 0 1" damping="0.3"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.5 0.5 0.5"/></body></worldbody></mujoco>"#;
    let file = folder.join("wheel.xml");
    std::fs::write(&file, text).unwrap();
    let model = Arc::new(mjcf::load(&file).unwrap());
    let task: TaskConfig =
        toml::from_str(&format!("[[actuator]]\njoints = [\"hub\"]\n{law}")).unwrap();
    task::robot(&model, &task).unwrap_or_else(|e| panic!("{e}"))
}

/// Errors, velocities and efforts of a motor that chases targets that jump.
fn run(model: &Arc<Model>) -> Vec<[f32; 3]> {
    let config = SimConfig {
        specialize: Specialize::Off,
        ..SimConfig::default()
    };
    let pool = Arc::new(Pool::new(1).unwrap());
    let mut world = native::new(model, &config, 1, &pool).unwrap();
    let target = |step: usize| (0.7 * (step / 7) as f32).sin() * 2.0;
    let each = (0..STEPS).map(|step| {
        let (q, v) = (world.state().qpos[0], world.state().qvel[0]);
        world.step(&[target(step)], 1);
        [target(step) - q, v, world.state().actuator_force[0]]
    });
    each.collect()
}

/// `scale`: efforts to an output of the network.
fn compare(what: &str, scale: f64, ours: &[[f32; 3]], theirs: &[f64]) {
    let mut most: f64 = 0.0;
    for (step, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let off = (f64::from(ours[2]) - theirs).abs();
        assert!(
            off < 1e-6 * scale.max(theirs.abs()),
            "{what}, step {step}: {} and {theirs}",
            ours[2]
        );
        most = most.max(theirs.abs());
    }
    assert!(most > 0.05, "{what}: efforts of {most}");
}

#[test]
fn mlps_give_the_efforts_of_pytorch() {
    let _one = SEEDED.lock();
    tch::manual_seed(3);
    let names = [
        "relu",
        "elu",
        "tanh",
        "softsign",
        "sigmoid",
        "silu",
        "leaky_relu",
    ];
    for name in names {
        let folder = tempfile::tempdir().unwrap();
        let mut vs = nn::VarStore::new(Device::Cpu);
        let sizes = [6, 32, 32, 32, 1];
        let layers: Vec<nn::Linear> = (0..4)
            .map(|k| {
                let path = vs.root() / (2 * k).to_string();
                nn::linear(path, sizes[k], sizes[k + 1], nn::LinearConfig::default())
            })
            .collect();
        vs.save(folder.path().join("net.safetensors")).unwrap();
        vs.double();
        let law = format!(
            "model = \"mlp\"\nnetwork = {{ file = \"net.safetensors\", activation = \"{name}\", \
             history = [0, 1, 3], velocity_scale = 0.5, effort_scale = 4.0 }}\n"
        );
        let ours = run(&wheel(folder.path(), &law));
        let then = |x: &Tensor| match name {
            "relu" => x.relu(),
            "elu" => x.elu(),
            "tanh" => x.tanh(),
            "softsign" => x / (x.abs() + 1.0),
            "sigmoid" => x.sigmoid(),
            "silu" => x.silu(),
            _ => x.leaky_relu(),
        };
        let theirs: Vec<f64> = (0..STEPS)
            .map(|step| {
                // Before an episode's first step there was nothing.
                let of = |back: usize, k: usize| match step.checked_sub(back) {
                    Some(step) => ours[step][k],
                    None => 0.0,
                };
                let steps = [0, 1, 3];
                let errors = steps.iter().map(|s| of(*s, 0));
                let inputs: Vec<f32> = errors
                    .chain(steps.iter().map(|s| of(*s, 1) * 0.5))
                    .collect();
                let mut x = Tensor::from_slice(&inputs)
                    .view([1, 6])
                    .to_kind(Kind::Double);
                for (k, layer) in layers.iter().enumerate() {
                    x = layer.forward(&x);
                    if k < 3 {
                        x = then(&x);
                    }
                }
                x.double_value(&[0, 0]) * 4.0
            })
            .collect();
        compare(name, 4.0, &ours, &theirs);
    }
}

#[test]
fn lstms_give_the_efforts_of_pytorch() {
    let _one = SEEDED.lock();
    tch::manual_seed(5);
    for layers in [1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let mut vs = nn::VarStore::new(Device::Cpu);
        let config = nn::RNNConfig {
            num_layers: layers,
            ..nn::RNNConfig::default()
        };
        let lstm = nn::lstm(vs.root() / "lstm", 2, 8, config);
        let decoder = nn::linear(vs.root() / "decoder", 8, 1, nn::LinearConfig::default());
        vs.save(folder.path().join("net.safetensors")).unwrap();
        vs.double();
        let law = "model = \"lstm\"\nnetwork = { file = \"net.safetensors\", velocity_scale = 0.25, effort_scale = 15.0 }\n";
        let ours = run(&wheel(folder.path(), law));
        let zeros = || Tensor::zeros([layers, 1, 8], (Kind::Double, Device::Cpu));
        let mut state = nn::LSTMState((zeros(), zeros()));
        let theirs: Vec<f64> = ours
            .iter()
            .map(|[error, velocity, _]| {
                let input = Tensor::from_slice(&[*error, velocity * 0.25]).to_kind(Kind::Double);
                let (out, next) = lstm.seq_init(&input.view([1, 1, 2]), &state);
                state = next;
                let out = decoder.forward(&out.view([1, 8]));
                out.double_value(&[0, 0]) * 15.0
            })
            .collect();
        compare(&format!("{layers} layers"), 15.0, &ours, &theirs);
    }
}
