//! The pages `docs/task-*.md` say what is true. To write their generated
//! parts anew: `UPDATE_DOCS=1 cargo test -p ostler-sim page`.

use crate::config::TaskConfig;
use ostler_lang::expr::{
    Definitions, EventNumbers, HistoryBuilder, Program, Readings, Scope, Type, reference,
};
use ostler_model::mjcf;
use ostler_model::terrain::{KindPlan, KindWord, Terrain, TerrainPlan};
use std::path::PathBuf;
use std::sync::Mutex;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(file: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(file)).unwrap()
}

/// Compares, or rewrites, the text of a page between `<!-- name -->` and `<!-- end -->`.
fn generated(file: &str, name: &str, text: &str) {
    // Two parts of one file, perhaps written by two tests at once.
    static FILE: Mutex<()> = Mutex::new(());
    let _lock = FILE.lock().unwrap();
    let page = page(file);
    let mark = format!("<!-- {name} -->\n");
    let start = page.find(&mark).unwrap() + mark.len();
    let end = start + page[start..].find("<!-- end -->").unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let new = format!("{}{text}{}", &page[..start], &page[end..]);
        // Renamed into place: other tests may be reading.
        let path = root().join("docs").join(file);
        let draft = path.with_extension("md.tmp");
        std::fs::write(&draft, new).unwrap();
        return std::fs::rename(draft, path).unwrap();
    }
    assert!(&page[start..end] == text, "docs/{file}, {name}: run with UPDATE_DOCS=1");
}

/// The tasks of the page's complete examples.
fn examples() -> Vec<TaskConfig> {
    #[derive(serde::Deserialize)]
    struct File {
        task: TaskConfig,
    }
    let page = page("task-examples.md");
    let blocks = page.split("```toml\n").skip(1);
    let texts = blocks.map(|b| b.split("```").next().unwrap().to_string());
    texts
        .filter(|t| t.starts_with("[task]"))
        .map(|t| toml::from_str::<File>(&t).unwrap_or_else(|e| panic!("{e}")).task)
        .collect()
}

/// Compiles each text for the task's robot.
fn with_scope<R>(task: &TaskConfig, f: impl FnOnce(&Scope<'_>) -> R) -> R {
    let model = mjcf::load(&root().join("configs").join(&task.robot)).unwrap();
    let commands: Vec<_> =
        (task.command.iter()).map(|c| (c.name.clone(), c.range.len(), c.unit.clone())).collect();
    let params: Vec<String> = task.params.keys().cloned().collect();
    f(&Scope {
        model: &model,
        pose: &model.qpos0,
        commands: &commands,
        params: &params,
        action_width: model.nu(),
        agents: None,
        history: &HistoryBuilder::default(),
        readings: &Readings::default(),
        events: &EventNumbers::default(),
        defined: Definitions::none(),
        start: None,
    })
}

#[test]
fn the_examples_compile_for_their_robots() {
    let tasks = examples();
    assert_eq!(tasks.len(), 3);
    for task in &tasks {
        with_scope(task, |scope| {
            let ty = |text: &str| match Program::compile(text, scope) {
                Ok(p) => p.ty().clone(),
                Err(e) => panic!("{}: {text}: {e}", task.robot),
            };
            for o in &task.observation {
                assert_ne!(ty(&o.expr).len(), 0);
            }
            for r in &task.reward {
                assert_eq!(ty(&r.expr).len(), 1, "{}", r.name);
            }
            for t in &task.termination {
                assert_eq!(ty(&t.expr), Type::Bool, "{}", t.name);
            }
        });
    }
}

/// A robot with the names of a Go1, as the sections on definitions have them.
fn dog() -> ostler_model::Model {
    let (mut legs, mut motors) = (String::new(), String::new());
    for leg in ["FR", "FL", "RR", "RL"] {
        legs += &format!(
            r#"<body name="{leg}_thigh"><joint name="{leg}_hip_joint" axis="1 0 0"/>
                 <geom size="0.05" mass="1"/>
                 <body name="{leg}" pos="0 0 -0.3"><joint name="{leg}_calf_joint" axis="0 1 0"/>
                   <geom name="{leg}_foot_collision" size="0.02" mass="0.1"/></body></body>"#
        );
        for joint in ["hip", "calf"] {
            motors += &format!(r#"<motor joint="{leg}_{joint}_joint"/>"#);
        }
    }
    let text = format!(
        r#"<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/>
             <body name="trunk" pos="0 0 0.3"><freejoint/>
             <geom size="0.1" mass="5"/>{legs}</body></worldbody>
           <actuator>{motors}</actuator></mujoco>"#
    );
    let mut dog = mjcf::parse(std::path::Path::new("dog.xml"), text).unwrap();
    // What is said of the ground wants one.
    let kinds = vec![KindPlan::new(KindWord::Flat)];
    let plan = TerrainPlan { levels: 1, columns: 1, kinds, ..TerrainPlan::default() };
    let (flat, _) = Terrain::generate(&plan, &|name| Err(name.to_owned())).unwrap();
    dog.terrain = Some(std::sync::Arc::new(flat));
    dog
}

/// Compiles the text of a task for that robot.
fn compiled(text: &str) -> crate::task::Task {
    #[derive(serde::Deserialize)]
    struct File {
        task: TaskConfig,
    }
    let task = toml::from_str::<File>(text).unwrap_or_else(|e| panic!("{e}: {text}")).task;
    let compiled = crate::task::Task::compile(&dog(), &task, 0.02);
    compiled.unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn the_sections_on_definitions_are_one_sound_task() {
    let mut text = r#"
[task]
[[task.action]]
actuators = ["*"]
[[task.command]]
name = "twist"
range = [[-1, 1], [-1, 1], [-1, 1]]
unit = "m/s"
[[task.observation]]
name = "state"
expr = "[qpos, speed(FR), each(foot, speed({foot})), near([1, 2], 0.5)]"
"#
    .to_string();
    for (file, section) in [
        ("task-expressions.md", "\n## Lists of parts\n"),
        ("task-expressions.md", "\n## Named expressions\n"),
        ("task-rewards.md", "\n## States\n"),
        ("task-rewards.md", "\n## Metrics\n"),
        ("task-contacts.md", "# Tasks: contacts\n"),
    ] {
        let page = page(file);
        let start = page.find(section).unwrap() + section.len();
        let own = &page[start..];
        let own = &own[..own.find("\n## ").unwrap_or(own.len())];
        let blocks: Vec<&str> = own.split("```toml\n").skip(1).collect();
        assert!(!blocks.is_empty(), "{section}");
        for block in blocks {
            text += block.split("```").next().unwrap();
        }
    }
    let compiled = compiled(&text);
    assert_eq!(compiled.history.states().len(), 2);
    assert_eq!(compiled.history.states()[0].units.len(), 4);
    assert_eq!((compiled.lists.len(), compiled.metrics.len()), (2, 2));
    // The trunk with itself; four feet and four thighs with the floor.
    assert_eq!(compiled.contacts.len(), 1 + 1 + 4 + 4 + 4 + 4);
}

#[test]
fn names_from_other_programs_lead_to_expressions() {
    let page = page("task-functions.md");
    let start = page.find("\n## Names from other programs\n").unwrap();
    let mut text = r#"
[task]
[task.names]
foot = ["FR", "FL", "RR", "RL"]
[task.let]
fallen = "upright(trunk) < 0.5"
[[task.action]]
actuators = ["*"]
[[task.command]]
name = "twist"
kind = "velocity"
lin_vel_x = [-1, 1]
lin_vel_y = [-1, 1]
ang_vel_z = [-1, 1]
[[task.reward]]
name = "alive"
expr = "1"
"#
    .to_string();
    let mut seen = 0;
    for line in page[start..].lines().filter(|l| l.starts_with("| `")) {
        let here = line.split(" | ").nth(2).unwrap();
        // Else a sentence, or a sensor that this robot does not have.
        if !here.starts_with('`') || here.contains("NAME") {
            continue;
        }
        for expr in here.split('`').skip(1).step_by(2) {
            text += &format!("[[task.observation]]\nname = \"x{seen}\"\nexpr = '{expr}'\n");
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
    compiled(&text);
}

#[test]
fn the_table_of_functions_is_the_one_in_use() {
    generated("task-functions.md", "functions", &reference());
}

const MISTAKES: &[&str] = &[
    "lin_vel(trnk).x",
    "lin_vel(hip_f)",
    "joint_vel(\"knee_*\")",
    "joint_vel(root)",
    "command.velocity - lin_vel_body(trunk)",
    "height(trunk) + 0.5 < joint_pos(hip_fl)",
    "exp(-norm2(lin_vel(trunk)))",
    "nrom(action_rate)",
    "clip(joint_vel(), 10)",
    "0.2 < height(trunk) < 0.5",
    "contact(trunk) > 0",
    "norm(base_lin_vel) ** 2",
    "np.exp(-sum(dof_pos))",
    "sum(dof_pos^2)",
    "joint_pos()[12]",
];

#[test]
fn the_errors_are_as_printed() {
    let mut text = String::from("```text\n");
    with_scope(&examples()[2], |scope| {
        for mistake in MISTAKES {
            let e = Program::compile(mistake, scope).unwrap_err();
            let before = mistake[..e.span.start].chars().count();
            let marks = "^".repeat(mistake[e.span.clone()].chars().count().max(1));
            text += &format!("{mistake}\n{}{marks} {}\n", " ".repeat(before), e.message);
            if let Some(help) = e.help {
                text += &format!("{}help: {help}\n", " ".repeat(before));
            }
            text.push('\n');
        }
    });
    generated("task-examples.md", "errors", &(text.trim_end().to_string() + "\n```\n"));
}
