//! Small files that ask for much: robots and tasks of a few lines that were gigabytes or
//! hours. They are refused, or cost little, and so do files like them; a robot that is
//! taken goes all the way to what engines make of it.

use super::drive::Target;
use super::mutate::Corpus;
use ostler_sim::config::{SimConfig, Specialize};
use ostler_sim::model::mjcf;
use ostler_sim::physics::native::generate::generate;
use ostler_sim::physics::native::lower::{LowerOptions, lower};
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Physics, native, rapier};
use ostler_trainer::config::parse;
use std::path::Path;
use std::sync::Arc;

fn world(inside: &str) -> String {
    format!("<mujoco><worldbody>{inside}</worldbody></mujoco>")
}

/// `n` bodies, each on the one before.
fn chain(n: usize, inside: &str) -> String {
    let body = format!("<body pos=\"0 0 1\">{inside}");
    format!("{}{}", body.repeat(n), "</body>".repeat(n))
}

fn repeated(n: usize, what: impl Fn(usize) -> String) -> String {
    (0..n).map(what).collect()
}

/// Replicas: of geoms that touch each other, of replicas, of long names.
fn replicas() -> Vec<String> {
    let side = "<body><joint/><geom size=\"1\"/><replicate count=\"6000\"><geom size=\"1\"/></replicate></body>";
    let nested = "<replicate count=\"1000\">".repeat(5);
    let long = "x".repeat(4000);
    vec![
        world(&side.repeat(2)),
        world(&format!("{nested}<geom size=\"1\"/>{}", "</replicate>".repeat(5))),
        world(&format!("<replicate count=\"10000\"><body name=\"{long}\"/></replicate>")),
        world(
            "<replicate count=\"8000\" offset=\"1 0 0\"><body><geom size=\"0.1\"/></body></replicate>",
        ),
        world("<replicate count=\"19000\"><geom size=\"0.1\"/></replicate>"),
        world("<replicate count=\"9000\"><body><joint/><geom size=\"1\"/></body></replicate>"),
        world(&side.replace("6000", "180").repeat(2)),
    ]
}

/// Long and wide trees, and what asks for the inertia of all of it.
fn trees() -> Vec<String> {
    let hinges = "<joint axis=\"1 0 0\"/><joint axis=\"0 1 0\"/><joint axis=\"0 0 1\"/>";
    let geom = "<geom size=\"0.1\"/>";
    let servo = "<position joint=\"j\" kp=\"1\" dampratio=\"1\"/>".repeat(2000);
    let deep = chain(150, &format!("{hinges}{geom}"));
    vec![
        world(&chain(180, &format!("<joint axis=\"0 1 0\"/>{geom}"))),
        world(&deep),
        // Each welded body asks for the inverse of the whole tree.
        world(&deep.replacen("</body>", "<replicate count=\"9000\"><body/></replicate></body>", 1)),
        world(&repeated(900, |i| format!("<body pos=\"{i} 0 0\"><joint/>{geom}</body>"))),
        world(&repeated(3000, |_| format!("<body><joint springdamper=\"1 1\"/>{geom}</body>"))),
        world(&format!("<body><joint name=\"j\"/>{geom}</body>{deep}"))
            .replace("</worldbody>", &format!("</worldbody><actuator>{servo}</actuator>")),
    ]
}

/// Constraints and tendons between what everything moves.
fn ties() -> Vec<String> {
    let joints = "<joint axis=\"1 0 0\"/><joint axis=\"0 1 0\"/>";
    let quiet = "<geom size=\"0.1\" contype=\"0\" conaffinity=\"0\"/>";
    let tip = "<body name=\"tip\"><site name=\"a\"/></body></body>";
    let deep = chain(120, &format!("{joints}{quiet}")).replacen("</body>", tip, 1);
    let with = |more: String| {
        let text = world(&format!("<site name=\"b\"/>{deep}"));
        text.replace("</mujoco>", &format!("{more}</mujoco>"))
    };
    let connect = "<connect body1=\"tip\" anchor=\"0 0 0\"/>".repeat(6000);
    let path = "<site site=\"a\"/><site site=\"b\"/>".repeat(10_000);
    let bodies = repeated(3000, |i| format!("<body name=\"b{i}\"/>"));
    let excludes =
        repeated(3000, |i| format!("<exclude body1=\"b{i}\" body2=\"b{}\"/>", (i + 1) % 3000));
    vec![
        with(format!("<equality>{connect}</equality>")),
        with(format!("<tendon><spatial>{path}</spatial></tendon>")),
        world(&bodies).replace("</mujoco>", &format!("<contact>{excludes}</contact></mujoco>")),
    ]
}

/// Height fields and meshes.
fn assets() -> Vec<String> {
    let field = |nrow: usize, ncol: usize| {
        format!(
            "<mujoco><asset><hfield name=\"h\" size=\"1 1 1 1\" nrow=\"{nrow}\" ncol=\"{ncol}\"/></asset>\
             <worldbody><geom type=\"hfield\" hfield=\"h\"/><body><freejoint/><geom size=\"1\"/></body></worldbody></mujoco>"
        )
    };
    // On the moment curve all points are corners of the hull.
    let curve = repeated(6000, |i| {
        let t = i as f64 / 6000.0;
        format!("{t} {} {} ", t * t, t * t * t)
    });
    let mesh = "<worldbody><body><freejoint/><geom type=\"mesh\" mesh=\"m\"/></body></worldbody>";
    vec![
        field(16_384, 16_384),
        field(1024, 1024),
        format!("<mujoco><asset><mesh name=\"m\" vertex=\"{curve}\"/></asset>{mesh}</mujoco>"),
        textures(),
    ]
}

/// Textures that are drawn by MuJoCo, thousands of pixels wide.
fn textures() -> String {
    let texture = |i: usize| {
        let builtin = ["gradient", "checker", "flat"][i % 3];
        format!(
            "<texture name=\"t{i}\" builtin=\"{builtin}\" width=\"{}\" mark=\"random\"/>\
             <material name=\"t{i}\" texture=\"t{i}\"/>",
            100_000 * i + 1
        )
    };
    let geom = |i: usize| format!("<geom size=\"1\" material=\"t{i}\"/>");
    format!(
        "<mujoco><asset>{}</asset><worldbody><body><freejoint/>{}</body></worldbody></mujoco>",
        repeated(40, texture),
        repeated(40, geom)
    )
}

/// Long texts in one line, and URDFs.
fn texts() -> Vec<String> {
    let attributes = repeated(100_000, |i| format!(" a{i}=\"1\""));
    let ignored = "<light dir=\"0 0 1\"/>".repeat(20_000);
    let spaces = repeated(2000, |i| format!(" xmlns:a{i}=\"u\""));
    let inner = repeated(2000, |i| format!("<body xmlns:b{i}=\"v\"/>"));
    let link = |i: usize| {
        let inertia = "<inertial><mass value=\"1\"/><inertia ixx=\"1\" ixy=\"0\" ixz=\"0\" iyy=\"1\" iyz=\"0\" izz=\"1\"/></inertial>";
        format!(
            "<link name=\"l{i}\">{inertia}</link><joint name=\"j{i}\" type=\"revolute\"><parent link=\"base\"/>\
             <child link=\"l{i}\"/><axis xyz=\"0 1 0\"/><limit lower=\"-1\" upper=\"1\"/></joint>"
        )
    };
    vec![
        world(&format!("<geom size=\"1\"{attributes}/>")),
        world(&ignored),
        format!("<mujoco{spaces}><worldbody>{inner}</worldbody></mujoco>"),
        format!("<robot name=\"r\"><link name=\"base\"/>{}</robot>", repeated(1500, link)),
    ]
}

const WORDS: [&str; 22] = [
    "<replicate count='6000'>",
    "<replicate count='200'>",
    "</replicate>",
    "<body><freejoint/><geom size='1'/></body>",
    "<replicate count='900'><body><joint/><geom size='1'/></body></replicate>",
    "<geom size='1'/>",
    "<joint axis='1 0 0'/>",
    "<joint springdamper='1 1'/>",
    "300",
    "2000",
    "6000",
    "16384",
    "40000",
    "4294967295",
    "nrow",
    "ncol",
    "count",
    "contype",
    "<attach body='tip' prefix='p'/>",
    "<sensor><clock/></sensor>",
    "<connect body1='tip' anchor='0 0 0'/>",
    "childclass",
];

/// Robots, as far as engines take them.
pub fn models() -> Target {
    let files = [replicas(), trees(), ties(), assets(), texts()].concat();
    let files = files.into_iter().map(String::into_bytes).collect();
    let pool = Arc::new(Pool::new(1).unwrap());
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    Target {
        corpus: Corpus::of_text(files, &WORDS),
        read: Box::new(move |bytes| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let shown = mjcf::Reading { text: Some(text), looks: true, ..Default::default() };
            let model = match shown.read(Path::new("dir/fuzz.xml")) {
                Ok((model, _)) => Arc::new(model),
                Err(e) => {
                    let said = e.to_string();
                    assert!(!said.is_empty() && said.len() < 10_000 + bytes.len());
                    return false;
                }
            };
            assert!(!model.summary().is_empty());
            let mut few = false;
            match lower(&model, &LowerOptions::default()) {
                Ok(plan) => {
                    few = plan.npair <= 2000;
                    drop(generate(&plan, 8));
                }
                Err(e) => assert!(!e.to_string().is_empty()),
            }
            // Worlds have room for all pairs and are dense in what moves: their memory is the
            // batch's, which is asked for as such.
            if few && model.nv <= 200 && model.geoms.len() <= 1000 {
                if let Ok(mut physics) = native::new(&model, &sim, 1, &pool) {
                    physics.step(&vec![0.0; model.actuators.len()], 1);
                }
                let _ = rapier::new(&model, &sim, 1, &pool);
            }
            true
        }),
    }
}

/// Configurations with thousands of keys and terms, right and wrong.
pub fn terms() -> Target {
    let task = crate::common::TASK;
    let keys = repeated(10_000, |i| format!("k{i} = 1\n"));
    let line: Vec<String> = (0..10_000).map(|i| format!("k{i} = 1")).collect();
    let rewards =
        repeated(5000, |i| format!("[[task.reward]]\nname = \"r{i}\"\nexpr = \"qpos\"\n"));
    let wrong = repeated(5000, |_| "[[task.reward]]\nname = 3\nexpr = 'x'\n".into());
    let long = "x".repeat(100_000);
    let points = repeated(20_000, |i| format!("[{i}, 1], "));
    let lets = repeated(5000, |i| format!("v{i} = 'v{} + 1'\n", i + 1));
    let states = repeated(2000, |i| {
        let update = format!("update = \"state.s{} + 1\"", i + 1);
        format!("[[task.state]]\nname = \"s{i}\"\ninit = \"0\"\n{update}\n")
    });
    let entries = repeated(10_000, |i| format!("\"p{i}*\", "));
    let files = vec![
        format!("{task}\n[log]\n{keys}"),
        format!("log = {{ {} }}\n", line.join(", ")),
        format!("{task}\n{rewards}"),
        format!("{task}\n{wrong}"),
        format!("seed = \"{long}\"\n{task}"),
        format!("{task}\n[task.params]\n{keys}"),
        format!("{task}\n[task.let]\n{lets}"),
        format!("{task}\n{states}"),
        format!("{task}\n[task.names]\nlong = [{entries}]\n"),
        format!("{task}\n[[curriculum]]\nkey = \"ppo.clip_param\"\npoints = [{points}]\n"),
    ];
    let words = [
        "[[task.reward]]",
        "[[task.observation]]",
        "[[task.reset]]",
        "[task.params]",
        "name = 'a'",
        "{}",
        "[]",
        "'",
    ];
    Target {
        corpus: Corpus::of_text(files.into_iter().map(String::into_bytes).collect(), &words),
        read: Box::new(|bytes| {
            let text = String::from_utf8_lossy(bytes);
            match parse(&text, Path::new("dir/name.toml"), &[]) {
                Ok(_) => true,
                Err(e) => {
                    let said = e.to_string();
                    assert!(!said.is_empty() && said.len() < 100_000 + 10 * bytes.len());
                    false
                }
            }
        }),
    }
}
