//! Tiles of ground beside mjlab's own generators, taken from its wheel: those that draw nothing
//! are the same, height by height.

use crate::support::referee::{peers, referee_python};
use ostler_sim::model::terrain::{KindPlan, KindWord, LevelRange, Terrain, TerrainPlan};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Cells along the side of a tile of 8 m.
const CELLS: usize = 80;

/// A tile of mjlab's, and ours in its place.
struct Case {
    name: &'static str,
    class: &'static str,
    difficulty: f64,
    /// Numbers of mjlab's configuration, besides the size.
    numbers: Value,
    ours: KindPlan,
    /// Largest difference of heights (m): mjlab's fields have whole steps.
    tolerance: f64,
    /// mjlab's has one height for a cell, else one for a corner.
    boxes: bool,
}

fn cases() -> Vec<Case> {
    let kind = KindPlan::new;
    let one = |x: f64| Some(LevelRange::One(x));
    let stairs = |height: f64| KindPlan {
        step_height: one(height),
        step_width: Some(0.3),
        platform: Some(3.0),
        border: Some(1.0),
        ..kind(KindWord::Stairs)
    };
    let steps = json!({
        "step_height_range": [0.0, 0.2], "step_width": 0.3, "platform_width": 3.0,
        "border_width": 1.0,
    });
    // mjlab rounds heights to whole numbers of its vertical scale.
    let scale = 1e-5;
    vec![
        Case {
            name: "stairs up",
            class: "BoxPyramidStairsTerrainCfg",
            difficulty: 1.0,
            numbers: steps.clone(),
            ours: stairs(0.2),
            tolerance: 1e-6,
            boxes: true,
        },
        Case {
            name: "stairs down",
            class: "BoxInvertedPyramidStairsTerrainCfg",
            difficulty: 0.5,
            numbers: steps,
            ours: KindPlan { inverted: Some(true), ..stairs(0.1) },
            tolerance: 1e-6,
            boxes: true,
        },
        Case {
            name: "slope",
            class: "HfPyramidSlopedTerrainCfg",
            difficulty: 1.0,
            numbers: json!({
                "slope_range": [0.0, 0.05], "platform_width": 2.0, "border_width": 0.2,
                "vertical_scale": scale,
            }),
            ours: KindPlan {
                slope: one(0.05),
                platform: Some(2.0),
                border: Some(0.2),
                ..kind(KindWord::Slope)
            },
            tolerance: scale,
            boxes: false,
        },
        Case {
            name: "wave",
            class: "HfWaveTerrainCfg",
            difficulty: 1.0,
            numbers: json!({
                "amplitude_range": [0.0, 0.1], "num_waves": 4, "border_width": 0.0,
                "vertical_scale": scale,
            }),
            ours: KindPlan {
                amplitude: one(0.1),
                waves: Some(4),
                border: Some(0.0),
                ..kind(KindWord::Wave)
            },
            tolerance: scale,
            boxes: false,
        },
    ]
}

/// mjlab's tiles: where environments begin, from the tile's corner, and heights `[y][x]`.
fn ask(python: &Path, peers: &Path, cases: &[Case]) -> Vec<([f64; 3], Vec<Vec<f64>>)> {
    let asked = cases.iter().map(|case| {
        let mut numbers = case.numbers.clone();
        numbers["size"] = json!([8.0, 8.0]);
        json!({"class": case.class, "difficulty": case.difficulty, "numbers": numbers})
    });
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let out = Command::new(python)
        .arg(root.join("tests/referee/peers/mjlab_terrain.py"))
        .arg(peers)
        .arg(Value::from_iter(asked).to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let tiles: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    let tiles = tiles.into_iter().map(|mut tile| {
        let origin = serde_json::from_value(tile["origin"].take()).unwrap();
        (origin, serde_json::from_value(tile["heights"].take()).unwrap())
    });
    tiles.collect()
}

#[test]
fn tiles_are_mjlabs() {
    let Some(python) = referee_python() else {
        return;
    };
    let Some(peers) = peers() else {
        return;
    };
    let cases = cases();
    let theirs = ask(&python, &peers, &cases);
    assert_eq!(theirs.len(), cases.len());
    for (case, (origin, heights)) in cases.iter().zip(theirs) {
        let kinds = vec![case.ours.clone()];
        let plan = TerrainPlan { levels: 1, columns: 1, kinds, ..TerrainPlan::default() };
        let (terrain, notes) = Terrain::generate(&plan, &|_| Err(String::new())).unwrap();
        assert_eq!((terrain.cells, notes), (CELLS, Vec::<String>::new()), "{}", case.name);
        let [x, y] = terrain.corner();
        let own = [terrain.origins[0][0] - x, terrain.origins[0][1] - y, terrain.origins[0][2]];
        for (ours, theirs) in own.iter().zip(origin) {
            // Without a platform ours begin above the ground near by, mjlab's at 0.
            let same = (ours - theirs).abs() <= case.tolerance;
            assert!(same || case.ours.platform.is_none(), "{}: {own:?} {origin:?}", case.name);
        }
        assert_eq!((heights.len(), heights[0].len()), (CELLS, CELLS), "{}", case.name);
        let (mut worst, mut nonzero) = (0.0_f64, 0);
        for (row, column) in (0..CELLS).flat_map(|r| (0..CELLS).map(move |c| (r, c))) {
            let ours = match case.boxes {
                true => {
                    let middle = |from: f64, i: usize| from + (i as f64 + 0.5) * terrain.cell;
                    terrain.height(middle(x, column), middle(y, row))
                }
                false => f64::from(terrain.heights[terrain.index(0, row, column)]),
            };
            let theirs = heights[row][column];
            let off = (ours - theirs).abs();
            assert!(
                off <= case.tolerance,
                "{}, row {row}, column {column}: {ours}, mjlab's {theirs}",
                case.name
            );
            worst = worst.max(off);
            nonzero += usize::from(theirs != 0.0);
        }
        eprintln!("{:12} {nonzero} heights not 0, largest difference {worst:.1e} m", case.name);
        assert!(nonzero > CELLS, "{} is level", case.name);
    }
}
