//! `rangefinder` sensors and scans by rays beside MuJoCo's rays.

use super::{ask, numbers};
use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::model::terrain::{Terrain, TerrainPart};
use ostler_sim::model::{Keyframe, Model, SensorKind, mjcf};
use ostler_sim::{BatchEnv, Groups};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// A ring of four-sided section, which is no convex shape: vertices and faces.
fn ring() -> [String; 2] {
    const COUNT: usize = 9;
    let (mut vertices, mut faces) = (String::new(), String::new());
    for k in 0..COUNT {
        let (sin, cos) = (k as f64 / COUNT as f64 * std::f64::consts::TAU).sin_cos();
        for (radius, z) in [(0.7, -0.1), (0.7, 0.15), (0.4, 0.1), (0.4, -0.1)] {
            let _ = write!(vertices, " {} {} {z}", radius * cos, radius * sin);
        }
        for side in 0..4 {
            let [a, b] = [side, (side + 1) % 4];
            let [c, d] = [a, b].map(|s| (k + 1) % COUNT * 4 + s);
            let [a, b] = [a, b].map(|s| 4 * k + s);
            let _ = write!(faces, " {a} {c} {b} {b} {c} {d}");
        }
    }
    [vertices, faces]
}

/// A robot with rays in many directions, in a room with every shape that they can meet.
fn room() -> String {
    let [rays, sensors] = rays(96, 6);
    let [vertices, faces] = ring();
    let heights: String = (0..7 * 9).map(|k| format!(" {}", (k * k * 31 + k * 17) % 97)).collect();
    format!(
        r#"<mujoco><compiler eulerseq="zyx"/>
  <asset><material name="clear" rgba="1 1 1 0"/><material name="solid" rgba="1 1 1 1"/>
  <mesh name="ring" vertex="{vertices}" face="{faces}"/>
  <mesh name="tip" vertex="0 0 0.6 0.5 0 0 0 0.5 0 -0.4 -0.4 -0.1"/>
  <hfield name="hill" nrow="7" ncol="9" size="1.2 0.9 0.6 0.3" elevation="{heights}"/></asset><worldbody>
  <geom name="by_material" type="sphere" size="0.5" pos="-0.8 -0.8 -0.6" material="clear" rgba="1 0 0 1"/>
  <geom name="in_spite" type="sphere" size="0.4" pos="0.7 0.9 -0.7" material="solid" rgba="1 0 0 0"/>
  <geom name="floor" type="plane" size="0 0 1" pos="0 0 -1.5"/>
  <geom name="seen_from_behind" type="plane" size="0 0 1" pos="0 0 2.5" contype="0" conaffinity="0"/>
  <geom name="wall" type="plane" size="1 0.4 1" pos="-2 0 0.5" euler="0 90 0"/>
  <geom name="box" type="box" size="0.5 0.3 0.4" pos="1.5 0.3 0" euler="20 10 40"/>
  <geom name="drum" type="cylinder" size="0.4 0.3" pos="0 1.6 0.2" euler="0 60 30"/>
  <geom name="pill" type="capsule" size="0.3 0.5" pos="0 -1.5 0" euler="40 70 0"/>
  <geom name="egg" type="ellipsoid" size="0.3 0.6 0.4" pos="0.3 0.2 1.4" euler="10 0 30"/>
  <geom name="glass" type="sphere" size="0.3" pos="0.9 0 0" rgba="1 1 1 0"/>
  <geom name="round" type="sphere" size="1.2" pos="0.5 -0.5 1.2"/>
  <geom name="hill" type="hfield" hfield="hill" pos="-0.9 0.2 -1.1" euler="10 -15 40"/>
  <geom name="tip" type="mesh" mesh="tip" pos="-1.2 1.1 0.2" euler="0 200 0"/>
  <body name="trunk"><freejoint/><geom name="own" size="0.15"/>{rays}
    <body name="arm" pos="0.3 0 0"><joint name="hinge" axis="0 1 0.2"/>
      <geom name="arm" type="capsule" fromto="0 0 0 0.4 0 0.1" size="0.06"/></body></body>
  <body name="ball" pos="-1 1 0.3"><freejoint/><geom name="ball" size="0.5"/></body>
  <body name="hoop" pos="-1 -0.6 0.3"><freejoint/><geom name="hoop" type="mesh" mesh="ring"/></body>
  </worldbody><actuator><motor joint="hinge"/></actuator><sensor>{sensors}</sensor></mujoco>"#
    )
}

/// The environment of a task with these observations and this table, whose episodes begin in the
/// keyframe `here`; what is seen there.
fn seen(model: &Model, expressions: &[String], table: &str) -> (BatchEnv, Vec<f32>) {
    let mut text = "robot = \"\"\ndefault_pose = \"keyframe(here)\"\n\
                    [[action]]\nactuators = [\"*\"]\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n"
        .to_owned();
    for (i, expr) in expressions.iter().enumerate() {
        let _ = writeln!(text, "[[observation]]\nname = \"o{i}\"\nexpr = '{expr}'");
    }
    text += table;
    let task: TaskConfig = toml::from_str(&text).unwrap();
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: 1, decimation: 1, episode_length_s: 1.0 };
    let mut env = BatchEnv::new(Arc::new(model.clone()), &sim, &env, &task, 1)
        .unwrap_or_else(|e| panic!("{e}"));
    let mut policy = vec![0.0; env.spec().obs.policy];
    env.reset(false, &mut Groups { policy: &mut policy, critic: None });
    (env, policy)
}

fn here(model: &Model, qpos: Vec<f64>) -> Keyframe {
    Keyframe {
        name: "here".into(),
        qpos,
        qvel: vec![0.0; model.nv],
        act: Vec::new(),
        ctrl: vec![0.0; model.nu()],
        moves_mocap: false,
    }
}

/// Sites of a body with rays in many directions, and the sensors; of each `cut` one has a cutoff,
/// of 1 none.
fn rays(count: usize, cut: usize) -> [String; 2] {
    let (mut rays, mut sensors) = (String::new(), String::new());
    for i in 0..count {
        let (yaw, pitch) = (i * 37 % 360, i as f64 * 53.3 % 180.0 - 90.0);
        let z = (i % 5) as f64 / 20.0;
        let _ = write!(rays, r#"<site name="s{i}" pos="0.02 0 {z}" euler="0 {pitch} {yaw}"/>"#);
        let cutoff = if i % cut == 1 { r#"cutoff="0.7""# } else { "" };
        let _ = write!(sensors, r#"<rangefinder name="ray{i}" site="s{i}" {cutoff}/>"#);
    }
    [rays, sensors]
}

fn range_finders(model: &Model) -> Vec<String> {
    let all = model.sensors.iter().filter(|s| matches!(s.kind, SensorKind::Rangefinder(_)));
    all.map(|s| s.name.clone()).collect()
}

#[test]
fn rays_end_where_mujocos_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("room.xml");
    std::fs::write(&path, room()).unwrap();
    let Some(answer) = ask("sensors.py", std::slice::from_ref(&path)) else { return };
    let mut model = mjcf::load(&path).unwrap();
    let rays = range_finders(&model);
    let expressions: Vec<String> = rays.iter().map(|ray| format!("sensor({ray})")).collect();
    let (mut met, mut missed) = (0, 0);
    for state in answer[path.to_str().unwrap()].as_array().unwrap() {
        model.keyframes = vec![here(&model, numbers(&state["qpos"]))];
        let (_, ours) = seen(&model, &expressions, "");
        assert_eq!(ours.len(), rays.len());
        for (ray, x) in rays.iter().zip(ours) {
            let theirs = numbers(&state["readings"][ray])[0];
            let off = (theirs - f64::from(x)).abs();
            assert!(off < 1e-5 * theirs.abs().max(1.0), "{ray}: {x} here, {theirs} in MuJoCo");
            *(if theirs < 0.0 { &mut missed } else { &mut met }) += 1;
        }
    }
    assert!(met > 1000 && missed > 20, "{met} met, {missed} missed");
}

/// A ball that looks around, over a floor or over other geoms.
fn looking(floor: &str, assets: &str) -> String {
    let [rays, sensors] = rays(64, 1);
    format!(
        r#"<mujoco><compiler eulerseq="zyx"/><asset>{assets}</asset><worldbody>{floor}
  <body name="ball" pos="0.1 0.2 1.3"><freejoint/><geom size="0.02"/>{rays}</body>
  <body name="dial"><joint name="dial"/><geom size="0.001" rgba="1 1 1 0"/></body>
  </worldbody><actuator><motor joint="dial"/></actuator><sensor>{sensors}</sensor></mujoco>"#
    )
}

/// Geoms of MuJoCo that are a terrain, and their assets.
fn geoms(terrain: &Terrain) -> [String; 2] {
    let (mut geoms, mut assets) = (String::new(), String::new());
    for (k, part) in terrain.parts().into_iter().enumerate() {
        match part {
            TerrainPart::Box { center: [x, y, z], size: [a, b, c] } => {
                let _ = write!(geoms, r#"<geom type="box" pos="{x} {y} {z}" size="{a} {b} {c}"/>"#);
            }
            TerrainPart::Field { corner: [x, y], cells, cell, bottom, heights } => {
                let top = heights.iter().copied().fold(f32::MIN, f32::max);
                let low = heights.iter().copied().fold(f32::MAX, f32::min);
                let [b, a] = cells.map(|n| n as f64 * cell / 2.0);
                // MuJoCo counts elevations from the least to the greatest.
                let range = f64::from(top - low).max(1e-6);
                let [rows, columns] = cells.map(|n| n + 1);
                // The text's first row is the one of greatest y.
                let lines = heights.chunks(columns).rev().flatten();
                let elevation: String = lines.map(|h| format!(" {h}")).collect();
                let base = f64::from(low) - bottom;
                let _ = write!(
                    assets,
                    r#"<hfield name="f{k}" nrow="{rows}" ncol="{columns}" size="{a} {b} {range} {base}" elevation="{elevation}"/>"#
                );
                let _ = write!(
                    geoms,
                    r#"<geom type="hfield" hfield="f{k}" pos="{} {} {low}"/>"#,
                    x + a,
                    y + b
                );
            }
        }
    }
    [geoms, assets]
}

#[test]
fn rays_end_on_the_ground_where_mujocos_end() {
    let folder = tempfile::tempdir().unwrap();
    let plane = looking(r#"<geom type="plane" size="0 0 1"/>"#, "");
    let mut model = mjcf::parse(Path::new("ball.xml"), plane).unwrap();
    let rays = range_finders(&model);
    let expressions: Vec<String> = rays.iter().map(|ray| format!("sensor({ray})")).collect();
    for kind in [
        "\"rough\"",
        "\"wave\", amplitude = 0.15",
        "\"stairs\", step_height = 0.15, inverted = true",
        "\"boxes\", grid_height = 0.2",
        "\"slope\", slope = 0.4, inverted = true",
    ] {
        let table = format!(
            "[terrain]\nlevels = 1\ncolumns = 1\ntile = 8.0\nkinds = [{{ kind = {kind} }}]"
        );
        let at_rest = model.qpos0.clone();
        model.keyframes = vec![here(&model, at_rest)];
        let (env, _) = seen(&model, &expressions, &table);
        let terrain = Arc::clone(env.model().terrain.as_ref().unwrap());
        let [floor, assets] = geoms(&terrain);
        let path = folder.path().join("ground.xml");
        std::fs::write(&path, looking(&floor, &assets)).unwrap();
        let Some(answer) = ask("sensors.py", std::slice::from_ref(&path)) else { return };
        let mut met = 0;
        for state in answer[path.to_str().unwrap()].as_array().unwrap() {
            let mut qpos = numbers(&state["qpos"]);
            // Starts count from the tile's origin.
            (0..3).for_each(|k| qpos[k] -= terrain.origins[0][k]);
            model.keyframes = vec![here(&model, qpos)];
            let (_, ours) = seen(&model, &expressions, &table);
            for (ray, x) in rays.iter().zip(ours) {
                let theirs = numbers(&state["readings"][ray])[0];
                // Level ground around the tiles has an end there.
                if x > 40.0 {
                    continue;
                }
                let off = (theirs - f64::from(x)).abs();
                let what = format!("{kind}, {ray}: {x} here, {theirs} in MuJoCo");
                assert!(off < 1e-5 * theirs.abs().max(1.0), "{what}");
                met += usize::from(theirs >= 0.0);
            }
        }
        assert!(met > 200, "{kind}: {met}");
    }
}
