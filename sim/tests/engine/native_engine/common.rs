//! Robots, worlds and controls for these tests.

use ostler_sim::config::{SimConfig, Specialize};
use ostler_sim::model::{Model, mjcf};
use ostler_sim::physics::Physics;
use ostler_sim::physics::native::{self, NativePhysics};
use ostler_sim::physics::pool::Pool;
use ostler_sim::rng::{self, Purpose};
use std::path::Path;
use std::sync::Arc;

pub fn robot(name: &str) -> Arc<Model> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../configs/robots/{name}.xml"));
    Arc::new(mjcf::load(&path).unwrap())
}

/// A small model of one feature of MJCF.
pub fn feature(name: &str) -> Arc<Model> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/referee/features");
    Arc::new(mjcf::load(&folder.join(format!("{name}.xml"))).unwrap())
}

/// Three convex meshes and a box that fall on each other.
pub fn hulls() -> Arc<Model> {
    let corners = |tall: f64| {
        let around = (0..24).map(move |k| {
            let (turn, rise) = (f64::from(k) * 2.4, f64::from(k) / 11.5 - 1.0);
            let wide = 0.12 * (1.0 - rise * rise * 0.9).sqrt();
            format!("{} {} {} ", wide * turn.cos(), wide * turn.sin(), tall * rise)
        });
        around.collect::<String>()
    };
    let body = |k: usize, geom: &str| {
        let (x, z) = (0.05 * k as f64, 0.2 + 0.21 * k as f64);
        format!("<body pos=\"{x} 0 {z}\"><freejoint/><geom {geom} mass=\"1\"/></body>")
    };
    let text = format!(
        "<mujoco><asset><mesh name=\"a\" vertex=\"{}\"/><mesh name=\"b\" vertex=\"{}\"/></asset>\
         <worldbody><geom type=\"plane\" size=\"5 5 1\"/>{}{}{}{}</worldbody></mujoco>",
        corners(0.1),
        corners(0.25),
        body(0, "type=\"mesh\" mesh=\"a\""),
        body(1, "type=\"box\" size=\"0.1 0.08 0.05\""),
        body(2, "type=\"mesh\" mesh=\"b\""),
        body(3, "type=\"mesh\" mesh=\"a\""),
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hulls.xml");
    std::fs::write(&path, text).unwrap();
    Arc::new(mjcf::load(&path).unwrap())
}

/// The generic kernel for what `kernel` names, or the best there is.
pub fn config(kernel: &str) -> SimConfig {
    SimConfig {
        specialize: Specialize::Off,
        kernel: kernel.into(),
        max_speed: 1e9,
        ..SimConfig::default()
    }
}

pub fn worlds(model: &Arc<Model>, config: &SimConfig, n: usize, threads: usize) -> NativePhysics {
    let pool = Arc::new(Pool::new(threads).unwrap());
    native::new(model, config, n, &pool).unwrap()
}

/// A number in -1..1 that depends on what it is for alone.
pub fn draw(world: usize, step: usize, k: usize) -> f32 {
    let bits = rng::philox(7, world as u32, Purpose::Reset, step as u64, k as u32);
    2.0 * rng::unit(bits[0]) - 1.0
}

/// Starts world `e` of the batch as world `id`: lifted and turned by its own draws.
pub fn start(model: &Model, physics: &mut NativePhysics, ids: &[usize]) {
    let n = ids.len();
    let mut qpos = vec![0.0; model.nq * n];
    let mut qvel = vec![0.0; model.nv * n];
    for (e, id) in ids.iter().enumerate() {
        for (i, q) in model.qpos0.iter().enumerate() {
            qpos[i * n + e] = *q as f32 + 0.1 * draw(*id, 0, i);
        }
        for i in 0..model.nv {
            qvel[i * n + e] = draw(*id, 1, i);
        }
    }
    physics.reset(&vec![1; n], &qpos, &qvel);
}

/// Steps with every world's own random controls.
pub fn run(
    model: &Model,
    physics: &mut NativePhysics,
    ids: &[usize],
    steps: std::ops::Range<usize>,
) {
    let n = ids.len();
    let mut ctrl = vec![0.0; model.nu() * n];
    for step in steps {
        for (e, id) in ids.iter().enumerate() {
            for u in 0..model.nu() {
                ctrl[u * n + e] = draw(*id, step + 2, u);
            }
        }
        physics.step(&ctrl, 4);
    }
}

/// Every bit of world `e`.
pub fn bits(physics: &NativePhysics, e: usize) -> Vec<u32> {
    let s = physics.state();
    let n = s.num_envs;
    s.floats()
        .iter()
        .flat_map(|b| b.iter().skip(e).step_by(n).map(|x| x.to_bits()))
        .chain([s.fault[e]])
        .collect()
}
