//! `[task.terrain]`: where episodes begin, how levels follow, what is seen of the ground, and that
//! nothing falls through it.

use crate::batch_env::point_mass::Out;
use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::{BatchEnv, EnvError};
use ostler_sim::model::mjcf;
use ostler_sim::model::terrain::Terrain;
use std::path::Path;
use std::sync::Arc;

/// A free ball with a dial that does nothing, and a range finder that looks down.
const ROBOT: &str = r#"<mujoco><option timestep="0.005"/><worldbody>
<geom name="floor" type="plane" size="0 0 1"/>
<body name="ball" pos="0 0 0.3"><freejoint/><geom name="ball" type="sphere" size="0.02" mass="0.2"/>
<site name="down" euler="180 0 0"/></body>
<body name="dial"><joint name="dial"/><geom size="0.01" contype="0" conaffinity="0"/></body>
</worldbody><actuator><motor joint="dial"/></actuator>
<sensor><rangefinder name="under" site="down"/></sensor></mujoco>"#;

const KINDS: &str = r#"kinds = [{ kind = "stairs", step_height = [0.05, 0.2] }, { kind = "rough" }, { kind = "stairs", inverted = true },
  { kind = "wave" }, { kind = "boxes" }]"#;

fn task(terrain: &str, terms: &str) -> TaskConfig {
    let text = format!(
        r#"
robot = ""
[[action]]
actuators = ["*"]
[[observation]]
name = "place"
expr = "[pos(ball), terrain_origin, terrain_level]"
[[reward]]
name = "r"
expr = "1"
{terms}
{terrain}"#
    );
    toml::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Episodes of `steps` control steps of 0.02 s.
fn batch(n: usize, threads: usize, steps: u32, cfg: &TaskConfig) -> Result<BatchEnv, EnvError> {
    let model = mjcf::parse(Path::new("ball.xml"), ROBOT.to_owned()).unwrap();
    let sim = SimConfig {
        specialize: Specialize::Off,
        threads: ostler_sim::config::Auto::N(threads),
        ..SimConfig::default()
    };
    let env = EnvConfig { num_envs: n, decimation: 4, episode_length_s: 0.02 * f64::from(steps) };
    BatchEnv::new(Arc::new(model), &sim, &env, cfg, 5)
}

fn started(n: usize, steps: u32, cfg: &TaskConfig) -> (BatchEnv, Out) {
    let mut env = batch(n, 1, steps, cfg).unwrap_or_else(|e| panic!("{e}"));
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    (env, out)
}

fn rows(out: &Out, n: usize) -> Vec<Vec<f32>> {
    out.policy.chunks(out.policy.len() / n).map(<[f32]>::to_vec).collect()
}

fn ground(env: &BatchEnv) -> Arc<Terrain> {
    Arc::clone(env.model().terrain.as_ref().unwrap())
}

#[test]
fn episodes_begin_above_their_tiles_and_levels_follow_from_their_ends() {
    let table = format!(
        "[terrain]\nlevels = 4\ncolumns = 5\nstart_level = [0, 0]\nup = \"time > 0\"\ndown = \"time < 0\"\n{KINDS}"
    );
    let n = 40;
    let (mut env, mut out) = started(n, 5, &task(&table, ""));
    let terrain = ground(&env);
    let tiles = |out: &Out| -> Vec<usize> {
        let place = |row: Vec<f32>| {
            let origin: Vec<f64> = row[3..6].iter().map(|x| f64::from(*x)).collect();
            let near = |o: &[f64; 3]| (0..3).all(|k| (o[k] - origin[k]).abs() < 1e-5);
            let tile = terrain.origins.iter().position(near).unwrap();
            assert_eq!(row[6], (tile / terrain.columns) as f32);
            // The ball's own place is counted from there.
            assert!((row[2] - row[5] - 0.3).abs() < 1e-5, "{row:?}");
            tile
        };
        rows(out, n).into_iter().map(place).collect()
    };
    let first = tiles(&out);
    let columns: std::collections::HashSet<usize> = first.iter().copied().collect();
    assert!(first.iter().all(|t| *t < terrain.columns) && columns.len() == terrain.columns);
    let (mut levels, mut began, mut on) = (vec![], 0, first.clone());
    for episode in 1..=6 {
        began += on.iter().map(|t| t / terrain.columns).sum::<usize>();
        for _ in 0..5 {
            out.step(&mut env, &vec![0.0; n]);
        }
        let now = tiles(&out);
        for (before, tile) in first.iter().zip(&now) {
            assert_eq!(before % terrain.columns, tile % terrain.columns, "a column stays");
            if episode < 4 {
                assert_eq!(tile / terrain.columns, episode);
            }
        }
        if episode == 4 {
            levels = now.iter().map(|t| t / terrain.columns).collect();
        }
        on = now;
    }
    // Beyond the highest one: any.
    assert!((0..4).all(|level| levels.contains(&level)), "{levels:?}");
    let mut stats = ostler_sim::EpisodeStats::default();
    env.take_stats(&mut stats);
    assert_eq!(stats.episodes, 6 * n as u64);
    // Of the tiles on which the episodes began that ended, not of those that followed.
    assert_eq!(stats.level_sum, began as f64);
}

/// The mark of a level cell is no height: nothing is above 0 there, or below it.
#[test]
fn level_ground_is_at_zero() {
    let terms = r#"
[[observation]]
name = "flat"
expr = "[terrain_height(pos(ball)), height_scan(ball, [0.1, 0.1], 0.1)]"
[[reset]]
target = "pos(ball)"
value = 0.0
"#;
    let table = "[terrain]\nlevels = 1\ncolumns = 1\nkinds = [{ kind = \"flat\" }]";
    let (_, out) = started(3, 50, &task(table, terms));
    for row in rows(&out, 3) {
        assert_eq!(row[7..], [0.0; 5]);
    }
}

#[test]
fn without_conditions_every_episode_has_a_tile_of_its_own() {
    let table = format!("[terrain]\nlevels = 4\ncolumns = 5\nstart_level = [1, 2]\n{KINDS}");
    let n = 60;
    let (mut env, mut out) = started(n, 2, &task(&table, ""));
    let mut seen = std::collections::HashSet::new();
    for _ in 0..8 {
        for row in rows(&out, n) {
            assert!((1.0..=2.0).contains(&row[6]), "{row:?}");
            seen.insert(row[3..6].iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        }
        out.step(&mut env, &vec![0.0; n]);
    }
    assert_eq!(seen.len(), 2 * 5);
}

#[test]
fn scans_are_the_grounds_heights_and_rays_end_on_it() {
    let terms = r#"
[[observation]]
name = "scan"
expr = "height_scan(ball, [1.6, 1.0], 0.1)"
[[observation]]
name = "rays"
expr = "ray_scan(ball, [7, 5], [-3.0, 2.9], [-1.4, 0.3])"
[[observation]]
name = "turned"
expr = "[yaw(ball), sensor(under), terrain_height(pos(ball)), terrain_normal(pos(ball))]"
[[observation]]
name = "quat"
expr = "quat(ball)"
[[observation]]
name = "odd"
expr = "height_scan(ball, [0.28, 0.24], 0.1)"
[[reset]]
target = "pos(ball)"
uniform = [[-3, 3], [-3, 3], [0, 1]]
[[reset]]
target = "quat(ball)"
expr = "random_quat"
"#;
    let table = format!("[terrain]\nlevels = 3\ncolumns = 5\n{KINDS}");
    let n = 200;
    let (env, out) = started(n, 50, &task(&table, terms));
    let terrain = ground(&env);
    let (mut met, mut none) = (0, 0);
    for row in rows(&out, n) {
        let x: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
        let (pos, scan, rays) = (&x[..3], &x[7..7 + 187], &x[194..229]);
        let [yaw, under, height] = x[229..232].try_into().unwrap();
        let normal = &x[232..235];
        let (quat, odd) = x[235..].split_at(4);
        let quat: [f64; 4] = quat.try_into().unwrap();
        let near_wall = |x: f64, y: f64| {
            let around =
                [-1e-4, 1e-4].map(|d| [terrain.height(x + d, y), terrain.height(x, y + d)]);
            (around[0][0] - around[1][0]).abs() + (around[0][1] - around[1][1]).abs() > 5e-3
        };
        // mjlab's places: from the grid's edge on, to less than half a place beyond the other one.
        let place = |k: usize, columns: usize, size: [f64; 2]| {
            let at = [k % columns, k / columns].map(|i| i as f64 * 0.1);
            [at[0] - size[0] / 2.0, at[1] - size[1] / 2.0]
        };
        assert_eq!(odd.len(), 4 * 3);
        let scan = scan.iter().enumerate().map(|(k, seen)| (k, seen, place(k, 17, [1.6, 1.0])));
        let odd = odd.iter().enumerate().map(|(k, seen)| (k, seen, place(k, 4, [0.28, 0.24])));
        for (k, seen, [dx, dy]) in scan.chain(odd) {
            let at = [
                pos[0] + yaw.cos() * dx - yaw.sin() * dy,
                pos[1] + yaw.sin() * dx + yaw.cos() * dy,
            ];
            let want = pos[2] - terrain.height(at[0], at[1]);
            assert!(
                (seen - want).abs() < 1e-4 || near_wall(at[0], at[1]),
                "{k}: {seen}, not {want}"
            );
        }
        if !near_wall(pos[0], pos[1]) {
            assert!((height - terrain.height(pos[0], pos[1])).abs() < 1e-4);
            let want = terrain.normal(pos[0], pos[1]);
            assert!((0..3).all(|k| (normal[k] - want[k]).abs() < 2e-2), "{normal:?} {want:?}");
        }
        let down = ostler_sim::model::rotation::rotate(quat, [0.0, 0.0, -1.0]);
        let along = |k: usize| {
            let side = -3.0 + (k % 7) as f64 * (5.9 / 6.0);
            let up: f64 = -1.4 + (k / 7) as f64 * (1.7 / 4.0);
            let own = [up.cos() * side.cos(), up.cos() * side.sin(), up.sin()];
            ostler_sim::model::rotation::rotate(quat, own)
        };
        let all = rays.iter().enumerate().map(|(k, seen)| (*seen, along(k)));
        for (seen, d) in all.chain([(under, down)]) {
            match crossing(&terrain, [pos[0], pos[1], pos[2]], d) {
                Some(t) if t < 30.0 => {
                    met += 1;
                    assert!((seen - t).abs() < 2e-3 * (1.0 + t), "{seen}, not {t}: {pos:?} {d:?}");
                }
                Some(_) => {}
                None => {
                    none += 1;
                    assert!(seen == -1.0 || seen > 29.0, "{seen}: {pos:?} {d:?}");
                }
            }
        }
    }
    assert!(met > 1000 && none > 100, "{met} {none}");
}

/// Eighty metres from the origin a step over the border of the tiles is lost to rounding.
#[test]
fn rays_that_come_to_the_tiles_from_outside_end_on_them() {
    let terms = r#"
[[observation]]
name = "rays"
expr = "ray_scan(ball, [9, 5], [-0.8, 0.8], [-0.6, -0.02])"
[[reset]]
target = "pos(ball)"
expr = "[uniform(-20, 20), uniform(81, 85), 0.5] - terrain_origin"
[[reset]]
target = "yaw(ball)"
expr = "uniform(-pi, pi)"
"#;
    let table =
        "[terrain]\nlevels = 4\ncolumns = 20\nkinds = [{kind = \"stairs\"}, {kind = \"rough\"}]\n";
    let n = 128;
    let (_, out) = started(n, 50, &task(table, terms));
    let rows = rows(&out, n);
    // Behind the place.
    let rays = rows.iter().flat_map(|row| &row[7..]);
    assert_eq!(rays.clone().count(), n * 45);
    assert_eq!(rays.filter(|seen| **seen < 0.0).count(), 0);
}

/// Where a ray first goes through the ground, by small steps and bisection.
fn crossing(terrain: &Terrain, from: [f64; 3], d: [f64; 3]) -> Option<f64> {
    let over = |t: f64| from[2] + t * d[2] - terrain.height(from[0] + t * d[0], from[1] + t * d[1]);
    let above = over(0.0) > 0.0;
    let step = 5e-4;
    let mut t = 0.0;
    while t < 31.0 {
        if (over(t + step) > 0.0) != above {
            let (mut low, mut high) = (t, t + step);
            for _ in 0..40 {
                let middle = 0.5 * (low + high);
                if (over(middle) > 0.0) == above { low = middle } else { high = middle }
            }
            return Some(low);
        }
        t += step;
        if d[2] >= 0.0 && from[2] + t * d[2] > terrain.range[1] {
            return None;
        }
    }
    None
}

/// The lowest ground near a place.
fn lowest(terrain: &Terrain, x: f64, y: f64) -> f64 {
    let around = [-0.03, 0.0, 0.03];
    let all = around.iter().flat_map(|dx| around.map(|dy| terrain.height(x + dx, y + dy)));
    all.fold(f64::INFINITY, f64::min)
}

/// A foot's radius, thrown down at 3 m/s and more, in the middle of cells, at their borders and at
/// those of tiles; then it rests, and the ground's force does not jump where it rolls on.
#[test]
fn nothing_falls_through_the_ground() {
    let terms = r#"
[[reset]]
target = "pos(ball)"
uniform = [[-4.5, 4.5], [-4.5, 4.5], [0.0, 0.5]]
[[reset]]
target = "lin_vel(ball)"
uniform = [[-2, 2], [-2, 2], [-4, -3]]
"#;
    let table = format!("[terrain]\nlevels = 3\ncolumns = 5\n{KINDS}");
    let n = 512;
    let (mut env, mut out) = started(n, 10_000, &task(&table, terms));
    let terrain = ground(&env);
    let begins: Vec<bool> = rows(&out, n)
        .iter()
        .map(|row| {
            let [x, y, z] = [0, 1, 2].map(|k| f64::from(row[k]));
            z > terrain.height(x, y) + 0.03
        })
        .collect();
    for _ in 0..250 {
        out.step(&mut env, &vec![0.0; n]);
        for (row, began) in rows(&out, n).iter().zip(&begins) {
            let [x, y, z] = [0, 1, 2].map(|k| f64::from(row[k]));
            // Soft ground gives way, walls too.
            let lowest = lowest(&terrain, x, y);
            assert!(!began || z > lowest - 0.06, "{x} {y} {z}: the ground is at {lowest}");
        }
    }
    // All that began above it lie on it.
    for (row, _) in rows(&out, n).iter().zip(&begins).filter(|(_, began)| **began) {
        let [x, y, z] = [0, 1, 2].map(|k| f64::from(row[k]));
        assert!(z > lowest(&terrain, x, y), "{x} {y} {z}");
    }
    assert!(out.valid.iter().all(|v| *v == 1.0));
}

#[test]
fn bits_do_not_depend_on_threads_and_outlive_a_snapshot() {
    let table = format!(
        "[terrain]\nlevels = 4\ncolumns = 5\nup = \"pos(ball).x > terrain_origin.x\"\ndown = \"pos(ball).x < terrain_origin.x\"\n{KINDS}"
    );
    let terms = "[[reset]]\ntarget = \"lin_vel(ball)\"\nuniform = [[-2, 2], [-2, 2], [-1, 1]]\n\
        [[observation]]\nname = \"scan\"\nexpr = \"height_scan(ball, [0.4, 0.2], 0.1)\"\nnoise = 0.1\ndelay = [0, 2]\nhistory = 2\n";
    let cfg = task(&table, terms);
    let n = 130;
    let run = |threads: usize| {
        let mut env = batch(n, threads, 7, &cfg).unwrap_or_else(|e| panic!("{e}"));
        let mut out = Out::new(env.spec(), 1);
        out.reset(&mut env, true);
        let mut all = Vec::new();
        let mut kept = Vec::new();
        for t in 0..60 {
            if t == 30 {
                env.capture(&mut kept).unwrap();
            }
            out.step(&mut env, &vec![0.0; n]);
            all.push(out.policy.clone());
        }
        env.restore(&kept).unwrap();
        for want in &all[30..] {
            out.step(&mut env, &vec![0.0; n]);
            assert_eq!(&out.policy, want);
        }
        all
    };
    let one = run(1);
    assert_eq!(one, run(2));
    let levels: std::collections::HashSet<u32> =
        one.iter().flatten().map(|x| x.to_bits()).collect();
    assert!(levels.len() > 100);
}

#[test]
fn mistakes_name_their_place_and_a_remedy() {
    let wrong = |terrain: &str, terms: &str, words: &[&str]| {
        let error = match batch(3, 1, 5, &task(terrain, terms)) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("accepted: {terrain} {terms}"),
        };
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
    };
    let flat = "kinds = [{ kind = \"flat\" }]";
    wrong("", "", &["task.observation[0]", "terrain_origin", "[task.terrain] makes one"]);
    wrong(
        &format!("[terrain]\nup = \"time > 1\"\n{flat}"),
        "",
        &["task.terrain.up", "without `down`"],
    );
    wrong(
        &format!("[terrain]\nup = \"time\"\ndown = \"time < 1\"\n{flat}"),
        "",
        &["task.terrain.up", "where a condition holds; this is a number"],
    );
    wrong(
        &format!("[terrain]\nstart_level = [2, 10]\n{flat}"),
        "",
        &["task.terrain.start_level", "0 to 9"],
    );
    wrong("[terrain]\nkinds = []", "", &["task.terrain.kinds"]);
    // The ball is 0.04 m across.
    let tile = |size: f64| format!("[terrain]\ntile = {size}\ncell = 0.01\n{flat}");
    wrong(&tile(0.03), "", &["task.terrain.tile", "0.03 m, and the robot", "0.040 m across"]);
    assert!(batch(3, 1, 5, &task(&tile(0.05), "")).is_ok());
    wrong(
        "[terrain]\nkinds = [{ kind = \"flat\", share = 0.7 }]",
        "",
        &["task.terrain.kinds", "0.7"],
    );
    let seen = |expr: &str| format!("[[observation]]\nname = \"x\"\nexpr = \"{expr}\"\n");
    let table = format!("[terrain]\n{flat}");
    for (expr, word) in [
        ("height_scan(ball, [1, 1], 0)", "resolution above 0"),
        ("height_scan(ball, [time, 1], 0.1)", "numbers"),
        ("height_scan(ball, [100, 100], 0.1)", "at most"),
        ("terrain_height(time)", "takes a point"),
        ("ray_scan(ball, [2.5, 1], [0, 1], [0, 1])", "whole numbers"),
    ] {
        wrong(&table, &seen(expr), &["task.observation", word]);
    }
    let start =
        "[[reset]]\ntarget = \"pos(ball)\"\nexpr = \"[0, 0, height_scan(ball, [0, 0], 1)]\"\n";
    wrong(&table, start, &["task.reset[0]", "terrain_height"]);
}

#[test]
fn kinds_have_their_numbers() {
    let heights = |kind: &str| -> Vec<f32> {
        let table = format!("[terrain]\nlevels = 1\ncolumns = 1\nkinds = [{{ {kind} }}]");
        let (env, _) = started(1, 5, &task(&table, ""));
        let terrain = ground(&env);
        let cells = (0..80).flat_map(|r| (0..80).map(move |c| (r, c)));
        cells.map(|(r, c)| terrain.heights[terrain.index(0, r, c)]).collect()
    };
    let near = |x: f32, y: f32| (x - y).abs() < 1e-6;
    let count = |all: &[f32], h: f32| all.iter().filter(|x| near(**x, h)).count();

    let gap = heights("kind = \"gap\", gap_width = 0.4, platform = 2.0, depth = 1.0");
    assert_eq!((count(&gap, -1.0), count(&gap, 0.0)), (28 * 28 - 20 * 20, 6400 - 384));
    let rails = heights("kind = \"rails\", rail_height = 0.15, rail_thickness = 0.2");
    assert!(count(&rails, 0.15) > 100 && count(&rails, 0.15) + count(&rails, 0.0) == 6400);
    let boxes = heights("kind = \"boxes\", grid_height = 0.2, grid_width = 0.5, border = 0.0");
    assert!(boxes.iter().all(|h| h.abs() <= 0.2001));
    // Columns of five cells: within one nothing changes.
    assert!(
        (0..80).all(|r| (0..16).all(|k| near(boxes[80 * r + 5 * k], boxes[80 * r + 5 * k + 1]))
            || (30..50).contains(&r))
    );
    let stones = heights(
        "kind = \"stones\", stone_height = 0.05, stone_width = 0.5, stone_distance = 0.2, depth = 1.0",
    );
    let holes = count(&stones, -1.0);
    assert!(stones.iter().all(|h| near(*h, -1.0) || h.abs() <= 0.0501));
    // About 1 - (0.5 / 0.7)^2 of what is neither platform nor border.
    assert!((1500..3200).contains(&holes), "{holes}");
}
