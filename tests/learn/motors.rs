//! Networks of actuators beside PyTorch's, in double precision: the efforts of a motor over a
//! sequence of states.

#![allow(clippy::disallowed_methods)]

use crate::common::root;
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
    let config = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
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

/// What a function is called in a configuration, by PyTorch's own.
fn activated(name: &str, x: &Tensor) -> Tensor {
    match name {
        "relu" => x.relu(),
        "elu" => x.elu(),
        "tanh" => x.tanh(),
        "softsign" => x / (x.abs() + 1.0),
        "sigmoid" => x.sigmoid(),
        "silu" => x.silu(),
        _ => x.leaky_relu(),
    }
}

/// PyTorch's efforts of an MLP that sees the steps 0, 1 and 3 back, with factors 0.5 of velocities
/// and 4 of the output.
fn efforts_of_mlp(layers: &[nn::Linear], name: &str, ours: &[[f32; 3]]) -> Vec<f64> {
    let effort = |step: usize| {
        // Before an episode's first step there was nothing.
        let of = |back: usize, k: usize| match step.checked_sub(back) {
            Some(step) => ours[step][k],
            None => 0.0,
        };
        let steps = [0, 1, 3];
        let errors = steps.iter().map(|s| of(*s, 0));
        let inputs: Vec<f32> = errors.chain(steps.iter().map(|s| of(*s, 1) * 0.5)).collect();
        let mut x = Tensor::from_slice(&inputs).view([1, 6]).to_kind(Kind::Double);
        for (k, layer) in layers.iter().enumerate() {
            x = layer.forward(&x);
            if k + 1 < layers.len() {
                x = activated(name, &x);
            }
        }
        x.double_value(&[0, 0]) * 4.0
    };
    (0..STEPS).map(effort).collect()
}

/// PyTorch's efforts of an LSTM with 8 outputs and its decoder, with factors 0.25 of velocities
/// and 15 of the output.
fn efforts_of_lstm(
    lstm: &nn::LSTM,
    decoder: &nn::Linear,
    layers: i64,
    ours: &[[f32; 3]],
) -> Vec<f64> {
    let zeros = || Tensor::zeros([layers, 1, 8], (Kind::Double, Device::Cpu));
    let mut state = nn::LSTMState((zeros(), zeros()));
    let effort = |[error, velocity, _]: &[f32; 3]| {
        let input = Tensor::from_slice(&[*error, velocity * 0.25]).to_kind(Kind::Double);
        let (out, next) = lstm.seq_init(&input.view([1, 1, 2]), &state);
        state = next;
        let out = decoder.forward(&out.view([1, 8]));
        out.double_value(&[0, 0]) * 15.0
    };
    ours.iter().map(effort).collect()
}

#[test]
fn mlps_give_the_efforts_of_pytorch() {
    let _one = SEEDED.lock();
    tch::manual_seed(3);
    let names = ["relu", "elu", "tanh", "softsign", "sigmoid", "silu", "leaky_relu"];
    for name in names {
        let folder = tempfile::tempdir().unwrap();
        let mut vs = nn::VarStore::new(Device::Cpu);
        let layers = linear(&vs, &[6, 32, 32, 32, 1]);
        vs.save(folder.path().join("net.safetensors")).unwrap();
        vs.double();
        let law = format!(
            "model = \"mlp\"\nnetwork = {{ file = \"net.safetensors\", activation = \"{name}\", \
             history = [0, 1, 3], velocity_scale = 0.5, effort_scale = 4.0 }}\n"
        );
        let ours = run(&wheel(folder.path(), &law));
        let theirs = efforts_of_mlp(&layers, name, &ours);
        compare(name, 4.0, &ours, &theirs);
    }
}

/// Layers as an `nn.Sequential` with activations between them names them.
fn linear(vs: &nn::VarStore, sizes: &[i64]) -> Vec<nn::Linear> {
    let each = sizes.windows(2).enumerate().map(|(k, size)| {
        let path = vs.root() / (2 * k).to_string();
        nn::linear(path, size[0], size[1], nn::LinearConfig::default())
    });
    each.collect()
}

/// An LSTM with 8 outputs and its decoder.
fn recurrent(vs: &nn::VarStore, layers: i64) -> (nn::LSTM, nn::Linear) {
    let config = nn::RNNConfig { num_layers: layers, ..nn::RNNConfig::default() };
    let lstm = nn::lstm(vs.root() / "lstm", 2, 8, config);
    let decoder = nn::linear(vs.root() / "decoder", 8, 1, nn::LinearConfig::default());
    (lstm, decoder)
}

#[test]
fn lstms_give_the_efforts_of_pytorch() {
    let _one = SEEDED.lock();
    tch::manual_seed(5);
    for layers in [1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let mut vs = nn::VarStore::new(Device::Cpu);
        let (lstm, decoder) = recurrent(&vs, layers);
        vs.save(folder.path().join("net.safetensors")).unwrap();
        vs.double();
        let law = "model = \"lstm\"\nnetwork = { file = \"net.safetensors\", velocity_scale = 0.25, effort_scale = 15.0 }\n";
        let ours = run(&wheel(folder.path(), law));
        let theirs = efforts_of_lstm(&lstm, &decoder, layers, &ours);
        compare(&format!("{layers} layers"), 15.0, &ours, &theirs);
    }
}

/// A folder with the files of a network that PyTorch exported.
fn exported(name: &str) -> (tempfile::TempDir, nn::VarStore) {
    let folder = tempfile::tempdir().unwrap();
    let kept = root().join("tests/fixtures/onnx");
    for end in ["onnx", "onnx.data", "safetensors"] {
        let file = format!("{name}.{end}");
        if kept.join(&file).exists() {
            std::fs::copy(kept.join(&file), folder.path().join(&file)).unwrap();
        }
    }
    (folder, nn::VarStore::new(Device::Cpu))
}

/// PyTorch's exports of both exporters, beside PyTorch with the same weights.
#[test]
fn onnx_files_of_pytorch_give_its_efforts() {
    let _one = SEEDED.lock();
    let files = [
        ("mlp_relu", "relu"),
        ("mlp_elu", "elu"),
        ("mlp_tanh", "tanh"),
        ("mlp_softsign", "softsign"),
        ("mlp_sigmoid", "sigmoid"),
        ("mlp_silu", "silu"),
        ("mlp_leaky_relu", "leaky_relu"),
        ("mlp_softsign_script", "softsign"),
        ("mlp_rows_tanh", "tanh"),
    ];
    for (name, then) in files {
        let (folder, mut vs) = exported(name);
        let layers = linear(&vs, &[6, 8, 8, 1]);
        vs.load(folder.path().join(format!("{name}.safetensors"))).unwrap();
        vs.double();
        let law = format!(
            "model = \"mlp\"\nnetwork = {{ file = \"{name}.onnx\", history = [0, 1, 3], \
             velocity_scale = 0.5, effort_scale = 4.0 }}\n"
        );
        let ours = run(&wheel(folder.path(), &law));
        let theirs = efforts_of_mlp(&layers, then, &ours);
        compare(name, 4.0, &ours, &theirs);
    }
    for (name, layers) in [("lstm_1_script", 1), ("lstm_2_any", 2), ("lstm_2_step", 2)] {
        let (folder, mut vs) = exported(name);
        let (lstm, decoder) = recurrent(&vs, layers);
        vs.load(folder.path().join(format!("{name}.safetensors"))).unwrap();
        vs.double();
        let law = format!(
            "model = \"lstm\"\nnetwork = {{ file = \"{name}.onnx\", velocity_scale = 0.25, \
             effort_scale = 15.0 }}\n"
        );
        let model = wheel(folder.path(), &law);
        let beside = name == "lstm_2_step";
        assert_eq!(model.sources.len(), if beside { 3 } else { 2 }, "{name}");
        let ours = run(&model);
        let theirs = efforts_of_lstm(&lstm, &decoder, layers, &ours);
        compare(name, 15.0, &ours, &theirs);
    }
}
