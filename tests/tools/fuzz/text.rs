//! Readers of text: configurations, robots, tasks, expressions, drills, messages.

use super::drive::Target;
use super::mutate::Corpus;
use crate::common::root;
use ostler_sim::config::{Backend, SimConfig};
use ostler_sim::model::mjcf;
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Physics, native, rapier};
use ostler_sim::task::Task;
use ostler_sim::task::expr::{
    Agents, Definitions, Draws, EventNumbers, HistoryBuilder, Program, Readings, Scope, Start,
};
use ostler_sim::{BatchEnv, Model};
use ostler_trainer::config::{Config, Override, parse};
use ostler_trainer::regress::case::Case;
use ostler_trainer::{drill, readers};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All files of a folder whose names end so, by name.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let folder = root().join(folder);
    let mut all: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.to_string_lossy().ends_with(end))
        .collect();
    all.sort();
    assert!(!all.is_empty(), "{}", folder.display());
    all
}

fn texts(folder: &str, end: &str) -> Vec<Vec<u8>> {
    let all = files(folder, end);
    all.iter().map(|p| std::fs::read(p).unwrap()).collect()
}

/// Keys and values as `--set` takes them, written as comments of the file.
const SET: &str = "#!set ";

fn overrides(text: &str) -> Vec<Override> {
    let lines = text.lines().filter_map(|l| l.strip_prefix(SET));
    lines.map(Override::set).collect()
}

fn configurations() -> Vec<Vec<u8>> {
    let mut all = texts("configs", ".toml");
    let mut full = toml::to_string(&Config::default()).unwrap().into_bytes();
    full.extend_from_slice(b"#!set env.num_envs=16\n#!set task.robot=x.xml\n");
    all.push(full);
    let curriculum = b"#!set curriculum=[{key=\"task.reward.alive.weight\",points=[[0,1],[5,2]]}]\n#!set fault.inject=[\"nan qpos[2] env=3 step=50\"]\n#!set ppo.clip_param=0.3\n#!set task.reward[0].weight=2\n";
    all.push([crate::common::TASK.as_bytes(), curriculum].concat());
    all.push(REAL.as_bytes().to_vec());
    // Files that are not there, or no files.
    let parts =
        "extends = \"../configs/none.toml\"\ninclude = [\".\", \"/dev/null\", \"name.toml\"]\n";
    all.push(parts.as_bytes().to_vec());
    all
}

/// A task with all that a real robot has: errors, delays, histories, headings, ranges.
const REAL: &str = r#"
[env]
num_envs = 8
[task]
robot = "robots/quadruped.xml"
[[task.action]]
actuators = ["*"]
kind = "position"
scale = { "hip_*" = 0.1, "thigh_*" = 0.2, "calf_*" = 0.3 }
offset = { "*" = 0.0 }
clip = { "hip_*" = [-1, 1], "thigh_*" = [-2, 2], "calf_*" = [-3, 3] }
delay = { steps = [0, 2], redraw = 3, hold = 0.2 }
[[task.command]]
name = "twist"
kind = "velocity"
frame = "trunk"
lin_vel_x = [-1, 1]
lin_vel_y = [-1, 1]
ang_vel_z = [-0.5, 0.5]
heading = { share = 0.3, stiffness = 0.5, range = [-3, 3] }
standing = 0.1
forward = 0.2
world = 0.1
deadband = 0.2
resample_s = [0.03, 0.08]
[[task.command]]
name = "gait"
distribution = "choice"
choices = [[0, 0.5], [0.5, 0]]
weights = [1, 2]
resample_s = 0.04
[[task.command]]
name = "height"
distribution = "normal"
mean = [0.3]
std = [0.05]
range = [[0.2, 0.4]]
[[task.command]]
name = "flag"
distribution = "bernoulli"
probability = [0.3]
[[task.command]]
name = "log"
distribution = "log_uniform"
range = [[0.1, 10]]
[[task.command]]
name = "wait"
distribution = "exponential"
mean = [2]
[[task.command]]
name = "hump"
distribution = "beta"
range = [[0, 1]]
mean = [0.3]
std = [0.1]
[[task.observation]]
name = "joints"
expr = "joint_pos_rel()"
noise = { uniform = [-0.01, 0.02] }
bias = [-0.015, 0.015]
delay = [0, 2]
history = 3
critic = { history = 2, noise = 0.1, bias = { normal = 0.1 }, delay = 1 }
[[task.observation]]
name = "gyro"
expr = "ang_vel_body(trunk)"
noise = { normal = 0.2 }
delay = { steps = 2, redraw = 4, hold = 0.5 }
critic = { seen = false }
[[task.observation]]
name = "command"
expr = "command"
[[task.observation]]
name = "truth"
expr = "lin_vel_body(trunk)"
group = "critic"
history = 2
[task.observations.policy]
history = 2
stack = "term"
[[task.reward]]
name = "alive"
expr = "1"
[[task.reset]]
target = "pos(trunk)"
uniform = [[-0.1, 0.1], [-0.2, 0.2], [0, 0.05]]
[[task.reset]]
target = "rpy(trunk)"
uniform = [[-0.1, 0.1], [-0.1, 0.1], [-3, 3]]
[[task.reset]]
target = "roll(trunk)"
normal = 0.1
[[task.reset]]
target = "joint_pos(hip_*)"
value = { "hip_f*" = 0.1, "hip_r*" = -0.1 }
uniform = { "hip_*" = [-0.1, 0.1] }
within_limits = 0.9
[[task.reset]]
target = "joint_pos(thigh_*)"
scale = [0.5, 1.5]
[[task.reset]]
target = "joint_pos(calf_*)"
within_limits = 0.5
[[task.reset]]
target = "lin_vel(trunk)"
choice = [[0, 0, 0], [1, 0, 0]]
[[task.reset]]
target = "ang_vel(trunk)"
draw = { distribution = "truncated_normal", range = [0.1, 0.5], std = 0.1 }
[[task.reset]]
target = "ang_vel(trunk)"
log_uniform = [0.1, 0.5]
[[task.reset]]
target = "pos(trunk)"
expr = "[uniform([-1, -1], [1, 1]), 0.3 + 0.1 * command.height + max(0, -min(height(\"foot_*\")))]"
normal = 0.01
[[task.reset]]
target = "quat(trunk)"
expr = "quat_mul(quat_yaw(random_quat), quat_from_rpy(0, normal(0, 0.1), 0))"
[[task.reset]]
target = "joint_vel(*)"
expr = "lean * sign(joint_pos()) + (bernoulli(0.2) ? 1 : choice(0, 2))"
[task.let]
lean = "uniform(-1, 1)"
"more(x)" = "x * log_uniform(0.5, 2)"
[[task.state]]
name = "lean"
init = "more(lean)"
update = "0.5 * state.lean"
[task.start]
until = ["upright(trunk) > 0.5", "norm(command.twist) < uniform(1, 2)"]
tries = 4
[[task.actuator]]
joints = ["calf_*"]
stiffness = 20.0
damping = 0.5
delay = { steps = [0, 3], redraw = 2, hold = 0.1 }
"#;

const KEYS: [&str; 24] = [
    "[task]",
    "[env]",
    "[[task.reward]]",
    "[[curriculum]]",
    "[sim.rapier]",
    "num_envs",
    "auto",
    "true",
    "\"auto\"",
    "task.params",
    "expr",
    "[1, 2]",
    "[]",
    "{}",
    "\"\"\"",
    "'",
    "\\u00e9",
    "1979-05-27T07:32:00Z",
    "inject",
    "points",
    "key",
    "#!set a.b=[",
    "#!set task.reward.x.y=1",
    "0x10",
];

pub fn config() -> Target {
    Target {
        corpus: Corpus::of_text(configurations(), &KEYS),
        read: Box::new(|bytes| {
            let text = String::from_utf8_lossy(bytes);
            let read = parse(&text, Path::new("dir/name.toml"), &overrides(&text));
            match &read {
                Ok(loaded) => {
                    // An accepted configuration can be written and read again.
                    let again = toml::to_string(&loaded.config).unwrap();
                    parse(&again, Path::new("name.toml"), &[]).unwrap();
                }
                Err(e) => assert!(!e.to_string().is_empty()),
            }
            read.is_ok()
        }),
    }
}

/// Regression files, beside the configurations that they name.
pub fn regression() -> Target {
    let dir = super::runs::folder();
    for config in files("configs", ".toml") {
        let name = config.file_name().unwrap();
        std::fs::copy(&config, dir.path().join(name)).unwrap();
    }
    std::fs::create_dir(dir.path().join("regress")).unwrap();
    let keys = [
        "[budget]",
        "[short.expect]",
        "seeds",
        "time = \"99999999999999999999s\"",
        "limit",
        "env_steps = 9223372036854775807",
        "\"env.num_envs=auto\"",
        "[expect.metrics.\"Guard/x\"]",
        "absent = 0",
        "last = 9223372036854775807",
        "[]",
        "-1",
        "1e308",
    ];
    Target {
        corpus: Corpus::of_text(texts("configs/regress", ".toml"), &keys),
        read: Box::new(move |bytes| {
            let path = dir.path().join("regress/case.toml");
            std::fs::write(&path, bytes).unwrap();
            match Case::read(&path) {
                Ok(case) => {
                    let plans = std::iter::once(&case.full).chain(&case.short);
                    for plan in plans {
                        assert!(!plan.seeds.is_empty() && !plan.limit.is_zero());
                        assert!(plan.amount.iterations() >= 1);
                    }
                    true
                }
                Err(e) => {
                    assert!(!e.to_string().is_empty());
                    false
                }
            }
        }),
    }
}

/// Robots by the path that configurations give them.
fn robots() -> Vec<(String, Arc<Model>)> {
    let name = |p: &Path| format!("robots/{}", p.file_name().unwrap().to_string_lossy());
    let all = files("configs/robots", ".xml");
    all.iter().map(|p| (name(p), Arc::new(mjcf::load(p).unwrap()))).collect()
}

const TERMS: [&str; 96] = [
    "uniform(-1, 1)",
    "normal(",
    "choice(",
    "random_quat()",
    "mass(",
    "friction(",
    "event.",
    "native.",
    "contact(",
    "net_contact_force(",
    "subtree(",
    "air_time(",
    "latest(",
    "substeps(",
    "each(foot, ",
    "{foot}",
    "state.",
    "moving",
    "near(",
    "[[task.state]]\nname = \"s\"\ninit = \"0\"\nupdate = \"state.s + 1\"\n",
    "[[task.metric]]\nname = \"m\"\nexpr = \"time\"\nover = \"max\"\n",
    "[task.let]\nv = \"time\"\n\"f(x)\" = \"2 * x\"\n",
    "[task.names]\nfoot = [\"*\"]\n",
    "update = \"",
    "init = \"",
    "quat_mul(",
    "quat_6d(",
    "tolerance(",
    "linear",
    "argmax(",
    "each(",
    "others(",
    "{agent}",
    "{other}",
    "qpos",
    "qvel",
    "abs(",
    "joint_pos(hinge)",
    "joint_vel(\"*\")",
    "pos(",
    "command.",
    "param.x",
    "action",
    "last_action",
    "previous(",
    "since(",
    "sqrt(",
    "exp(",
    "norm(",
    "clamp(",
    "min(",
    "max(",
    "sum(",
    "where(",
    "contact(",
    "height(",
    "up(",
    "dot(",
    "[0]",
    "[1:3]",
    ".x",
    ".y",
    "and",
    "or",
    "not",
    "true",
    "?",
    ":",
    "<",
    "==",
    "!=",
    "^",
    "*",
    "/",
    "\"*\"",
    "m/s",
    "sensor(",
    "com(",
    "energy(",
    "step",
    "step_dt",
    "max_steps",
    "rotate(",
    "body_quat(",
    "yaw(",
    "world",
    "keyframe(",
    "actuator_force(",
    "ctrl",
    "force(",
    "mean(",
    "log(",
    "sin(",
    "atan2(",
    "floor(",
    "quat(",
];

/// Definitions beside those of `configs/quadruped.toml`: in its tables, and at its end.
const NAMED: &str = r#"[task.names]
leg = ["fl", "fr", "rl", "rr"]
"#;
const LET: &str = r#"[task.let]
lift = "height(foot)"
slip = "norm(lin_vel({foot}).xy)"
"near(error2, std)" = "exp(-mean(error2) / std^2)"
"tall(part)" = "height({part}) + pos(part).z"
"#;
const DEFINED: &str = r#"
[[task.state]]
name = "peak"
init = "0"
unit = "m"
update = "touch ? 0 : max(state.peak, lift)"
[[task.state]]
name = "{leg}_turn"
init = "joint_pos(hip_{leg})"
update = "0.5 * state.{leg}_turn + joint_pos(hip_{leg})"
[[task.reward]]
name = "lifted"
expr = "near(1 * state.peak, 0.1) + sum(each(foot, slip * tall({foot}))) + sum(each(leg, state.{leg}_turn))"
[[task.metric]]
name = "success"
expr = "any(touch and previous(not touch))"
over = "any"
"#;

pub fn task() -> Target {
    let robots = robots();
    let mut corpus = Corpus::of_text(texts("configs", ".toml"), &TERMS);
    corpus.files.push(crate::common::TASK.as_bytes().to_vec());
    let quadruped = std::fs::read_to_string(root().join("configs/quadruped.toml")).unwrap();
    let mut defined = quadruped + DEFINED;
    for (table, more) in [("[task.names]\n", NAMED), ("[task.let]\n", LET)] {
        assert!(defined.contains(table), "{table}");
        defined = defined.replacen(table, more, 1);
    }
    corpus.files.extend([defined.clone(), defined].map(String::into_bytes));
    // Often enough, among all that is shipped.
    for _ in 0..4 {
        corpus.files.push(REAL.as_bytes().to_vec());
    }
    Target {
        corpus,
        read: Box::new(move |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let Ok(loaded) = parse(&text, Path::new("name.toml"), &overrides(&text)) else {
                return false;
            };
            let c = &loaded.config;
            let robot = robots.iter().find(|r| r.0 == c.task.robot);
            let model = &robot.unwrap_or(&robots[bytes.len() % robots.len()]).1;
            let dt = c.sim.timestep(model) * c.env.decimation as f64;
            if let Err(e) = Task::compile(model, &c.task, dt) {
                assert!(!loaded.places.explain(&e).to_string().is_empty());
                return false;
            }
            let mut env = c.env.clone();
            env.num_envs = 2;
            env.decimation = env.decimation.min(3);
            let sim = SimConfig {
                threads: ostler_sim::config::Auto::N(1),
                specialize: ostler_sim::config::Specialize::Off,
                backend: Backend::Native,
                kernel: "auto".into(),
                ..c.sim.clone()
            };
            let Ok(mut env) = BatchEnv::new(model.clone(), &sim, &env, &c.task, c.seed) else {
                return false;
            };
            super::state::step(&mut env, 2);
            true
        }),
    }
}

pub fn expression() -> Target {
    let robots = robots();
    let mut found = Vec::new();
    let of_tasks = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().starts_with("task-");
    let pages: Vec<_> = files("docs", ".md").into_iter().filter(of_tasks).collect();
    assert!(pages.len() > 10, "{pages:?}");
    for page in pages {
        let page = std::fs::read_to_string(page).unwrap();
        found.extend(page.split('`').skip(1).step_by(2).map(str::to_string));
    }
    for text in texts("configs", ".toml") {
        for line in String::from_utf8(text).unwrap().lines() {
            if let Some(value) = line.strip_prefix("expr = ") {
                found.push(value.trim_matches(['"', '\'']).to_string());
            }
        }
    }
    let files = found.into_iter().map(String::into_bytes).collect();
    let commands =
        vec![("speed".to_string(), 3, "m/s".to_string()), ("any".to_string(), 1, String::new())];
    let params = vec!["x".to_string(), "width".to_string()];
    let names = ["red".to_string(), "torso".to_string()];
    Target {
        corpus: Corpus::of_text(files, &TERMS),
        read: Box::new(move |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let mut good = false;
            for (several, (_, model)) in robots[robots.len() - 2..].iter().enumerate() {
                let agents =
                    Agents { names: &names, agent: Some(0), others: &[1], action_first: 0 };
                let (history, draws) = (HistoryBuilder::default(), Draws::default());
                let scope = Scope {
                    model,
                    pose: &model.qpos0,
                    commands: &commands,
                    params: &params,
                    action_width: model.actuators.len(),
                    agents: (several == 1).then_some(agents),
                    history: &history,
                    readings: &Readings::default(),
                    events: &EventNumbers::default(),
                    defined: Definitions::none(),
                    start: None,
                };
                // Of a step, of a start that is drawn, and of one that has been.
                for moment in [None, Some(true), Some(false)] {
                    let start = moment.map(|drawing| Start { draws: &draws, of: "text", drawing });
                    let scope = Scope { start, ..scope.clone() };
                    match Program::compile(&text, &scope) {
                        Ok(program) => {
                            assert!(program.steps() < 1 << 20 && program.scratch_len() < 1 << 20);
                            good = true;
                        }
                        Err(e) => {
                            // The place can be shown.
                            let span = e.span.start.min(text.len())..e.span.end.min(text.len());
                            assert_eq!(span, e.span, "{e}");
                            assert!(text.get(span).is_some(), "{e}");
                        }
                    }
                }
            }
            good
        }),
    }
}

const URDF: &str = r#"<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0 0 0.1" rpy="0 0.1 0"/><mass value="1.5"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.002"/></inertial>
    <collision name="c"><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.05" length="0.3"/></geometry></collision>
    <visual><geometry><box size="0.1 0.1 0.3"/></geometry><material name="red"/></visual>
  </link>
  <link name="lower"><inertial><mass value="0.5"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
    <collision><geometry><sphere radius="0.05"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.2" rpy="0 0 1"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="10" velocity="3"/>
    <dynamics damping="0.1" friction="0.05"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/><mimic joint="shoulder" multiplier="2" offset="0.1"/></joint>
  <mujoco><compiler fusestatic="true" discardvisual="true"/></mujoco>
</robot>"#;

const TAGS: [&str; 50] = [
    "<replicate count='2'>",
    "<attach body='torso' prefix='a_'/>",
    "body",
    "geom",
    "joint",
    "freejoint",
    "site",
    "motor",
    "position",
    "general",
    "muscle",
    "tendon",
    "fixed",
    "spatial",
    "equality",
    "weld",
    "connect",
    "mesh",
    "hfield",
    "plane",
    "sphere",
    "capsule",
    "box",
    "ellipsoid",
    "cylinder",
    "hinge",
    "slide",
    "ball",
    "free",
    "range",
    "size",
    "mass",
    "pos",
    "quat",
    "axisangle",
    "euler",
    "fromto",
    "class",
    "childclass",
    "inertia",
    "fullinertia",
    "true",
    "auto",
    "<worldbody>",
    "</worldbody>",
    "<geom size='1'/>",
    "<joint/>",
    "<include file=\"hfield.xml\"/>",
    "<!--",
    "<![CDATA[",
];

pub fn mjcf() -> Target {
    let folder = "tests/referee/features";
    let mut corpus = Corpus::of_text(texts(folder, ".xml"), &TAGS);
    corpus.files.extend(texts("configs/robots", ".xml"));
    corpus.files.push(URDF.as_bytes().to_vec());
    let place = root().join(folder).join("fuzz.xml");
    let pool = Arc::new(Pool::new(1).unwrap());
    let sim = SimConfig { specialize: ostler_sim::config::Specialize::Off, ..SimConfig::default() };
    Target {
        corpus,
        read: Box::new(move |bytes| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let shown = mjcf::Reading { text: Some(text), looks: true, ..Default::default() };
            let model = match shown.read(&place) {
                Ok((model, _)) => Arc::new(model),
                Err(e) => {
                    assert!(!e.to_string().is_empty());
                    return false;
                }
            };
            assert!(!model.summary().is_empty());
            // A robot that was read is one that engines take or refuse. Their memory grows
            // with the square of its size.
            if model.nv.max(model.geoms.len()) > 100 {
                return true;
            }
            if let Ok(mut physics) = native::new(&model, &sim, 1, &pool) {
                physics.step(&vec![0.0; model.actuators.len()], 1);
            }
            let _ = rapier::new(&model, &sim, 1, &pool);
            true
        }),
    }
}

/// Drills, one a line, and the messages of a supervised run.
pub fn lines() -> Target {
    let drills = drill::EXAMPLES.replace("\", \"", "\n").replace('"', "");
    let messages = "{\"folder\":\"/a\"}\n{\"num_envs\":4096}\n{\"saved\":17}\n{\"memory\":{\"level\":\"warn\",\"share\":0.9,\"what\":\"x\"}}\n";
    let words = [
        "nan",
        "inf",
        "qpos[2]",
        "env=3",
        "step=50",
        "every=20",
        "gradient",
        "fail",
        "allocation",
        "phase=update",
        "iteration=3..5",
        "after=17",
        "kill",
        "full",
        "disk",
        "slow",
        "ms=200",
        "panic",
        "worker",
        "abort",
        "=",
        "..",
        "parameter",
        "reward",
        "observation",
        "value=1e9",
    ];
    Target {
        corpus: Corpus::of_text(vec![drills.into(), messages.into()], &words),
        read: Box::new(|bytes| {
            let text = String::from_utf8_lossy(bytes);
            let good = text.lines().filter(|l| drill::parse(l).is_ok()).count();
            let one = readers::messages(bytes, 1 + bytes.len() % 7);
            good + one > 0
        }),
    }
}
