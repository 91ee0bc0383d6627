//! Terrains by the real program: what `check` says and draws, files as tiles, the run's own
//! copies of them.

use crate::common::{Place, root};

/// A NumPy file of 3 x 3 heights with this one in the middle.
fn hill(height: f32) -> Vec<u8> {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }";
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    let heights = (0..9).map(|i| if i == 4 { height } else { 0.0 });
    bytes.extend(heights.flat_map(f32::to_le_bytes));
    bytes
}

const TERRAIN: &str = r#"extends = "quadruped.toml"
[task.terrain]
tile = 4.0
levels = 2
columns = 2
kinds = [{ kind = "file", file = "tiles/hill.npy" }, { kind = "stairs", platform = 1.0, border = 0.4 }]
"#;

fn place() -> Place {
    let place = Place::new();
    for name in ["quadruped.toml", "robots/quadruped.xml"] {
        let to = place.path(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(root().join("configs").join(name), to).unwrap();
    }
    std::fs::create_dir(place.path("tiles")).unwrap();
    std::fs::write(place.path("tiles/hill.npy"), hill(0.5)).unwrap();
    std::fs::write(place.path("hills.toml"), TERRAIN).unwrap();
    place
}

#[test]
fn check_prints_and_draws_the_ground() {
    let place = place();
    let said = place.ok(&["check", "hills.toml", "--quiet", "--terrain", "seen.png"]);
    for line in [
        "terrain: 2 levels x 2 columns of tiles of 4 m, 8 x 8 m; 6,400 cells of 0.1 m; heights 0",
        "file: 1 column, \"tiles/hill.npy\"",
        "stairs: 1 column, step_height 0 to 0.2 m",
        "environments begin on levels 0 to 1; every episode on a tile that is drawn",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let picture = std::fs::read(place.path("seen.png")).unwrap();
    // Width and height.
    assert_eq!(picture[16..24], [0, 0, 0, 80, 0, 0, 0, 80]);
    let said = place.fails(2, &["check", "quadruped.toml", "-q", "--terrain", "none.png"]);
    assert!(said.contains("no terrain") && said.contains("[task.terrain]"), "{said}");
    assert!(!place.path("none.png").exists());
    std::fs::remove_file(place.path("tiles/hill.npy")).unwrap();
    let said = place.fails(2, &["check", "hills.toml", "--quiet"]);
    assert!(said.contains("task.terrain.kinds[0].file: there is no file"), "{said}");
    std::fs::write(place.path("tiles/hill.npy"), "no heights").unwrap();
    let said = place.fails(2, &["check", "hills.toml", "--quiet"]);
    assert!(said.contains("task.terrain.kinds[0].file"), "{said}");
    assert!(said.contains("not a NumPy file"), "{said}");
}

#[test]
fn a_run_keeps_the_files_of_its_tiles() {
    let place = place();
    let small = [
        "--quiet",
        "env.num_envs=8",
        "runner.num_steps_per_env=4",
        "ppo.num_mini_batches=1",
        "actor.hidden_dims=[8]",
        "critic.hidden_dims=[8]",
        "sim.specialize=off",
        "runner.eval_interval=0",
    ];
    let begin = ["train", "hills.toml", "--out", "run", "runner.max_iterations=2"];
    place.ok(&[&begin[..], &small].concat());
    let run = place.path("run");
    let config = std::fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(config.contains("file = \"terrain/0/hill.npy\""), "{config}");
    assert_eq!(std::fs::read(run.join("terrain/0/hill.npy")).unwrap(), hill(0.5));
    std::fs::remove_file(place.path("tiles/hill.npy")).unwrap();
    place.ok(&["train", "--resume", "run", "--quiet", "runner.max_iterations=3"]);
    place.ok(&["eval", "run", "--episodes", "2"]);
    // Under a configuration with other tiles it would be another run.
    std::fs::write(place.path("tiles/hill.npy"), hill(0.4)).unwrap();
    let other = ["train", "hills.toml", "--resume", "run", "runner.max_iterations=4"];
    let said = place.fails(2, &[&other[..], &small].concat());
    assert!(said.contains("tiles/hill.npy holds something else"), "{said}");
    std::fs::write(place.path("tiles/hill.npy"), hill(0.5)).unwrap();
    place.ok(&[&other[..], &small].concat());
}
