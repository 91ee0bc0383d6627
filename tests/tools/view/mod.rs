//! Pages of `ostler play`: what they hold, how a browser shows them, and what is served.

mod browser;
mod pages;
mod reports;
mod served;
mod shown;
mod strangers;
mod textures;

use crate::common::forked::Forked as _;
use crate::common::{ostler, root};
use data_encoding::BASE64;
use serde_json::Value;
use std::io::Read as _;
use std::path::PathBuf;

/// A robot whose names are unkind, without floor; a mesh, a height field, a welded camera body.
const ODD: &str = r#"
<mujoco model="&lt;/script&gt;&lt;script&gt;document.title='broken'&lt;/script&gt;">
  <option timestep="0.005"/>
  <asset>
    <mesh name="wedge" vertex="0 0 0  0.3 0 0  0 0.3 0  0 0 0.3"/>
    <hfield name="hills" nrow="4" ncol="4" size="3 3 0.1 0.1" elevation="0 0 0 0  0 0 0 0  0 0 0 0  0 0 0 1"/>
  </asset>
  <worldbody>
    <geom name="hills" type="hfield" hfield="hills" rgba="0.3 0.5 0.3 1"/>
    <body name="&lt;b&gt;&amp;&quot;box" pos="-0.5 0 0.3">
      <freejoint name="root"/>
      <geom name="&lt;!--" type="box" size="0.2 0.15 0.1" rgba="0.9 0.0 0.9 1" mass="3"/>
      <body name="arm" pos="0 0 0.1">
        <joint name="swing" type="hinge" axis="0 1 0" range="-90 90" damping="0.1"/>
        <geom type="mesh" mesh="wedge" rgba="0.9 0.0 0.9 1" mass="0.2" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="swing" joint="swing" ctrlrange="-1 1"/></actuator>
</mujoco>"#;

/// Its task, with a command.
const TASK: &str = r#"
description = "an odd robot"
[sim]
threads = 1
specialize = "off"
[env]
num_envs = 2
decimation = 2
episode_length_s = 4.0
[task]
robot = "odd.xml"
[[task.action]]
actuators = ["swing"]
[[task.command]]
name = "target"
range = [[-0.5, 0.5], [-1.0, 1.0]]
unit = "m/s"
resample_s = 1.0
[[task.observation]]
name = "velocity"
expr = "qvel"
[[task.observation]]
name = "target"
expr = "command.target"
[[task.reward]]
name = "upright"
expr = "up(arm).z"
[[task.reward]]
name = "effort"
expr = "sum(action^2)"
weight = -0.1
[actor]
hidden_dims = [8]
[critic]
hidden_dims = [8]
[runner]
num_steps_per_env = 8
max_iterations = 2
[learner]
threads = 1
"#;

/// A folder with the odd robot and its task.
fn odd() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("odd.xml"), ODD).unwrap();
    std::fs::write(dir.path().join("odd.toml"), TASK).unwrap();
    dir
}

fn configs() -> PathBuf {
    root().join("configs")
}

/// A page, taken apart.
struct Page {
    text: String,
    data: Value,
    blob: Vec<u8>,
}

impl Page {
    /// `ostler play ARGS --html`, which succeeds; with what it printed.
    fn play(args: &[&str]) -> (Self, String) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("page.html");
        let out = ostler().arg("play").args(args).arg("--html").arg(&file).forked().unwrap();
        let err = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{args:?}: {err}");
        let printed = String::from_utf8(out.stdout).unwrap();
        (Self::read(&std::fs::read_to_string(file).unwrap()), printed)
    }

    fn read(text: &str) -> Self {
        let part = |id: &str| {
            let (_, rest) = text.split_once(&format!("id=\"{id}\">")).unwrap();
            rest.split_once("</script>").unwrap().0
        };
        let packed = BASE64.decode(part("blob").as_bytes()).unwrap();
        let mut blob = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut blob).unwrap();
        Self { data: serde_json::from_str(part("data")).unwrap(), text: text.to_string(), blob }
    }

    fn number(&self, path: &str) -> usize {
        let number = self.data.pointer(path).and_then(Value::as_u64);
        number.unwrap_or_else(|| panic!("{path}: {}", self.data)) as usize
    }

    /// All rows.
    fn rows(&self) -> Vec<Vec<f32>> {
        let (at, count, width) =
            (self.number("/rows_at"), self.number("/row_count"), self.number("/layout/width"));
        let byte = |r: usize, c: usize, b: usize| self.blob[at + (4 * c + b) * count + r];
        let number = |r, c| f32::from_le_bytes(std::array::from_fn(|b| byte(r, c, b)));
        (0..count).map(|r| (0..width).map(|c| number(r, c)).collect()).collect()
    }

    /// Place and names of a group of numbers.
    fn group(&self, name: &str) -> (usize, Vec<String>) {
        let groups = self.data["layout"]["groups"].as_array().unwrap();
        let group = groups.iter().find(|g| g["name"] == name).unwrap();
        let names = group["names"].as_array().unwrap();
        let names = names.iter().map(|n| n.as_str().unwrap().to_string());
        (group["first"].as_u64().unwrap() as usize, names.collect())
    }
}
