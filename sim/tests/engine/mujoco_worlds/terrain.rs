//! Robots on tiles of ground, which MuJoCo has as boxes and height fields.

use super::{WORLDS, mjcf, pair, robot};
use ostler_sim::config::TaskConfig;
use ostler_sim::model::GeomKind;
use ostler_sim::model::terrain::{KindPlan, KindWord, LevelRange, TerrainPlan};
use ostler_sim::physics::Physics;
use ostler_sim::{Model, task};
use std::sync::Arc;

/// Control steps of 4 time steps: 1 s.
const STEPS: usize = 50;

fn on_tiles(robot: &Arc<Model>) -> Arc<Model> {
    let kind = |word, change: fn(&mut KindPlan)| {
        let mut kind = KindPlan::new(word);
        change(&mut kind);
        kind
    };
    let kinds = vec![
        kind(KindWord::Flat, |_| {}),
        kind(KindWord::Stairs, |k| k.step_height = Some(LevelRange::One(0.1))),
        kind(KindWord::Stairs, |k| k.inverted = Some(true)),
        kind(KindWord::Slope, |k| k.slope = Some(LevelRange::One(0.2))),
    ];
    let terrain = TerrainPlan { levels: 2, columns: 4, kinds, ..TerrainPlan::default() };
    let cfg = TaskConfig { terrain: Some(terrain), ..TaskConfig::default() };
    task::robot(robot, &cfg).unwrap()
}

#[test]
fn robots_come_to_rest_alike_on_tiles() {
    come_to_rest(&on_tiles(&robot("quadruped")));
}

/// Where the file names them as pairs with its floor, feet alone touch the ground.
#[test]
fn pairs_with_the_floor_are_pairs_with_the_ground() {
    let folder = tempfile::tempdir().unwrap();
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/robots/quadruped.xml");
    let text = std::fs::read_to_string(own).unwrap();
    let untouched = text.replace("<geom contype=\"1\"", "<geom contype=\"0\"");
    assert_ne!(text, untouched);
    let feet = ["fl", "fr", "rl", "rr"];
    let pairs = feet.map(|foot| {
        format!("<pair geom1=\"foot_{foot}\" geom2=\"floor\" condim=\"3\" friction=\"0.9 0.9\"/>")
    });
    let contact = format!("<contact>{}</contact></mujoco>", pairs.concat());
    let file = folder.path().join("paired.xml");
    std::fs::write(&file, untouched.replace("</mujoco>", &contact)).unwrap();
    come_to_rest(&on_tiles(&Arc::new(mjcf::load(&file).unwrap())));
}

/// Standing robots, each a little beside the middle of its own tile, come to rest in the same
/// places, with the same forces on floor and robot.
fn come_to_rest(model: &Arc<Model>) {
    let Some((mut ours, mut theirs)) = pair(model) else {
        return;
    };
    let terrain = model.terrain.clone().unwrap();
    let n = WORLDS;
    assert_eq!(terrain.origins.len(), n);
    let home = &model.keyframes[0];
    let column = |x: &[f64]| -> Vec<f32> {
        x.iter().flat_map(|x| std::iter::repeat_n(*x as f32, n)).collect()
    };
    let (mut qpos, ctrl) = (column(&home.qpos), column(&home.ctrl));
    for (world, origin) in terrain.origins.iter().enumerate() {
        let [x, y] = [origin[0] + 0.03, origin[1] - 0.02];
        for (k, value) in [x, y, origin[2]].into_iter().enumerate() {
            let own = if k == 2 { qpos[k * n + world] } else { 0.0 };
            qpos[k * n + world] = own + value as f32;
        }
    }
    let qvel = vec![0.0; model.nv * n];
    for worlds in [&mut ours as &mut dyn Physics, &mut theirs] {
        worlds.reset(&[1; WORLDS], &qpos, &qvel);
        for _ in 0..STEPS {
            worlds.step(&ctrl, 4);
        }
        assert_eq!(worlds.state().fault, [0; WORLDS]);
    }
    let (a, b) = (ours.state(), theirs.state());
    let floor = model.geoms.iter().position(|g| g.kind == GeomKind::Terrain).unwrap();
    let weight = 9.81 * model.bodies.iter().skip(1).map(|b| b.mass).sum::<f64>() as f32;
    for world in 0..n {
        for k in 0..3 {
            let [x, y] = [a, b].map(|s| s.qpos[k * n + world]);
            assert!((x - y).abs() < 0.02, "tile {world}, {k}: {x}, MuJoCo's {y}");
        }
        for (whose, state) in [("our", a), ("MuJoCo's", b)] {
            let force = state.contact_force[floor * n + world];
            // On a slope the normal forces are less.
            let right = (0.9..1.1).contains(&(force / weight));
            assert!(right, "tile {world}: {whose} floor feels {force} N of {weight} N");
        }
    }
}
