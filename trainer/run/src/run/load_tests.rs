use super::*;
use crate::run::store::dir::RunDir;
use ostler_sim::files;

/// A box of `mass` kg.
fn lump(mass: f64) -> String {
    let side = 0.1;
    let long = mass * 0.1;
    format!(
        "v 0 0 0\nv {long} 0 0\nv {long} {side} 0\nv 0 {side} 0\nv 0 0 {side}\nv {long} 0 {side}\n\
         v {long} {side} {side}\nv 0 {side} {side}\nf 4 3 2 1\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\n\
         f 3 4 8 7\nf 4 1 5 8\n"
    )
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A robot of a link for each mesh.
fn urdf(meshes: &[&str]) -> String {
    let links = meshes.iter().enumerate().map(|(i, mesh)| {
        format!(
            r#"<link name="l{i}"><collision><geometry><mesh filename="{mesh}"/></geometry></collision></link>
            <joint name="j{i}" type="continuous"><parent link="base"/><child link="l{i}"/><origin xyz="{i} 0 0"/></joint>"#
        )
    });
    let links: String = links.collect();
    format!(r#"<robot name="bot"><link name="base"/>{links}</robot>"#)
}

/// The configuration `bot.toml` in `lab`.
fn configured(lab: &Path, robot: &str, folder: Option<&str>) -> Loaded {
    let folder = folder.map_or(String::new(), |f| format!("robot_folder = \"{f}\"\n"));
    let text = format!(
        r#"[env]
num_envs = 2
episode_length_s = 1
[task]
robot = "{robot}"
{folder}
[[task.actuator]]
joints = ["*"]
stiffness = 1
[[task.action]]
actuators = ["*"]
kind = "position"
[[task.observation]]
name = "q"
expr = "qpos"
[[task.reward]]
name = "one"
expr = "1"
"#
    );
    let path = lab.join("bot.toml");
    put(&path, &text);
    load(&path, &[]).unwrap()
}

/// Keeps the robot in a run, takes the original away and reads the run. Returns the model and
/// the run's folder.
fn kept(dir: &Path, loaded: &Loaded) -> (Arc<Model>, PathBuf) {
    let model = robot(loaded).unwrap();
    let out = dir.join("run");
    let mut run = RunDir::create(&loaded.config, Some(&out)).unwrap();
    run.begun(&loaded.config);
    run.write_config(&loaded.config, &model).unwrap();
    read_back(&out, &model).unwrap();
    std::fs::rename(dir.join("lab"), dir.join("gone")).unwrap();
    read_back(&out, &model).unwrap_or_else(|e| panic!("{}: {e}", loaded.robot().display()));
    // A run that goes on copies its own copy, to where it lies.
    let again = load(&out.join(dir::CONFIG), &[]).unwrap();
    let copy = robot(&again).unwrap();
    assert!(copy.ignored.len() <= model.ignored.len());
    run.write_config(&again.config, &copy).unwrap();
    assert_eq!(load(&out.join(dir::CONFIG), &[]).unwrap().config.task, again.config.task);
    read_back(&out, &model).unwrap();
    (model, out)
}

fn masses(model: &Model) -> Vec<f64> {
    let masses = model.bodies[1..].iter().map(|b| (b.mass * 1e5).round() / 1e5);
    masses.collect()
}

/// Files, the main one, `task.robot_folder`, meshes as they are named with their masses.
type Layout<'a> = (&'a [&'a str], &'a str, Option<&'a str>, &'a [(&'a str, f64)]);

#[test]
fn a_run_reads_its_robot_back_from_every_layout() {
    let layouts: [Layout; 19] = [
        (
            &["bot_description/meshes/m.obj"],
            "bot.urdf",
            None,
            &[("package://bot_description/meshes/m.obj", 1.0)],
        ),
        (&["d/meshes/m.obj"], "d/urdf/bot.urdf", Some("."), &[("package://d/meshes/m.obj", 1.0)]),
        (&["d/meshes/m.obj"], "d/urdf/bot.urdf", Some("d"), &[("package://d/meshes/m.obj", 1.0)]),
        (&["d/meshes/m.obj"], "d/bot.urdf", None, &[("package://d/meshes/m.obj", 1.0)]),
        (
            &["d/meshes/m.obj"],
            "d/urdf/bot.urdf",
            Some("d"),
            &[("package://other/meshes/m.obj", 1.0)],
        ),
        (
            &["p/r/bot/meshes/m.obj", "p/n/m.obj"],
            "p/r/bot/urdf/bot.urdf",
            Some("."),
            &[("package://other/r/bot/meshes/m.obj", 1.0), ("package://p/n/m.obj", 2.0)],
        ),
        (
            &["p/r/m.obj", "p/n/m.obj"],
            "p/r/urdf/bot.urdf",
            Some("p"),
            &[("package://other/r/m.obj", 1.0), ("package://p/n/m.obj", 2.0)],
        ),
        // A package above the robot's folder, by its whole depth.
        (
            &["p/robots/bot/meshes/m.obj"],
            "p/robots/bot/urdf/bot.urdf",
            Some("."),
            &[("package://p/robots/bot/meshes/m.obj", 1.0)],
        ),
        (
            &["p/robots/bot/meshes/m.obj"],
            "p/robots/bot/urdf/bot.urdf",
            Some("p"),
            &[("model://p/robots/bot/meshes/m.obj", 1.0)],
        ),
        (
            &["p/a/b/c/d/e/m.obj"],
            "p/a/b/c/d/e/f/bot.urdf",
            Some("."),
            &[("package://p/a/b/c/d/e/m.obj", 1.0)],
        ),
        (
            &["p/bot/meshes/m.obj"],
            "p/bot/urdf/bot.urdf",
            Some("."),
            &[("package://p/bot/meshes/m.obj", 1.0), ("../meshes/m.obj", 1.0)],
        ),
        // Two packages with files of one name; one like a parent folder, one in itself.
        (
            &["arm/meshes/m.obj", "gripper/meshes/m.obj"],
            "arm/urdf/bot.urdf",
            Some("."),
            &[("package://arm/meshes/m.obj", 1.0), ("package://gripper/meshes/m.obj", 2.0)],
        ),
        (
            &["src/arm/meshes/m.obj", "src/gripper/meshes/m.obj"],
            "src/arm/urdf/bot.urdf",
            Some("src"),
            &[("package://gripper/meshes/m.obj", 2.0), ("package://arm/meshes/m.obj", 1.0)],
        ),
        (
            &["bot/m.obj", "bot/bot/m.obj"],
            "bot/bot/urdf/bot.urdf",
            Some("."),
            &[("package://bot/m.obj", 2.0), ("../../m.obj", 1.0)],
        ),
        (
            &["robot/m.obj", "robot/robot/m.obj"],
            "robot/robot/urdf/bot.urdf",
            Some("robot"),
            &[("package://robot/m.obj", 2.0), ("../../m.obj", 1.0)],
        ),
        // Relative names.
        (
            &["d/meshes/m.obj", "shared/m.obj"],
            "d/urdf/bot.urdf",
            Some("."),
            &[
                ("../meshes/m.obj", 1.0),
                ("../../shared/m.obj", 2.0),
                ("../urdf/../meshes/./m.obj", 1.0),
            ],
        ),
        (&["m.obj"], "a/b/c/bot.urdf", Some("."), &[("../../../m.obj", 1.0)]),
        // Names from the root.
        (
            &["d/meshes/m.obj", "d/n/m.obj"],
            "d/bot.urdf",
            None,
            &[("file://LAB/d/meshes/m.obj", 1.0), ("LAB/d/n/../n/m.obj", 2.0)],
        ),
        (
            &["d/meshes/m.obj", "n/m.obj"],
            "d/urdf/bot.urdf",
            Some("."),
            &[("file://LAB/d/meshes/m.obj", 1.0), ("LAB/n/m.obj", 2.0), ("../../n/m.obj", 2.0)],
        ),
    ];
    for (files, main, folder, meshes) in layouts {
        for absolute in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let lab = dir.path().join("lab");
            for (i, file) in files.iter().enumerate() {
                put(&lab.join(file), &lump(1.0 + i as f64));
            }
            let from_root = |name: &str| name.replace("LAB", &lab.display().to_string());
            let names: Vec<_> = meshes.iter().map(|(name, _)| from_root(name)).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            put(&lab.join(main), &urdf(&names));
            let main = match absolute {
                true => lab.join(main).display().to_string(),
                false => main.into(),
            };
            let loaded = configured(&lab, &main, folder);
            let (model, _) = kept(dir.path(), &loaded);
            let wanted: Vec<_> = meshes.iter().map(|(_, mass)| *mass).collect();
            assert_eq!(masses(&model), wanted, "{main}");
        }
    }
}

#[test]
fn links_to_packages_and_to_robots_are_kept_as_they_are_named() {
    use std::os::unix::fs::symlink;
    let meshes = ["package://bot_description/meshes/m.obj", "../meshes/m.obj"];
    for (robot, folder, meshes) in [
        ("ws/bot_description/urdf/bot.urdf", ".", &meshes[..]),
        ("store/bot_v3/urdf/bot.urdf", ".", &meshes),
        ("store/bot_v3/urdf/bot.urdf", "link", &meshes),
        ("link/store/bot_v3/urdf/bot.urdf", ".", &meshes),
        ("link/ws/bot_description/urdf/bot.urdf", "store/..", &meshes),
        ("cfg/bot.urdf", ".", &meshes[1..]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let lab = dir.path().join("lab");
        put(&lab.join("store/bot_v3/meshes/m.obj"), &lump(1.0));
        put(&lab.join("store/bot_v3/urdf/bot.urdf"), &urdf(meshes));
        put(
            &lab.join("store/bot_v3/package.xml"),
            "<package><name>bot_description</name></package>",
        );
        std::fs::create_dir(lab.join("ws")).unwrap();
        symlink("../store/bot_v3", lab.join("ws/bot_description")).unwrap();
        symlink(".", lab.join("link")).unwrap();
        symlink("store/bot_v3/urdf", lab.join("cfg")).unwrap();
        let (model, run) = kept(dir.path(), &configured(&lab, robot, Some(folder)));
        assert_eq!(masses(&model), vec![1.0; meshes.len()], "{robot}");
        assert_eq!(files::link_below(&run, 20), None, "{robot}");
    }
}

/// One mesh to the reader, and a file for each of its names in the run.
#[test]
fn a_file_of_two_names_is_kept_by_both() {
    let dir = tempfile::tempdir().unwrap();
    let lab = dir.path().join("lab");
    put(&lab.join("a/m.obj"), &lump(1.0));
    std::fs::create_dir(lab.join("b")).unwrap();
    std::os::unix::fs::symlink("../a/m.obj", lab.join("b/n.obj")).unwrap();
    put(&lab.join("bot.urdf"), &urdf(&["a/m.obj", "b/n.obj", "a/m.obj"]));
    let (model, run) = kept(dir.path(), &configured(&lab, "bot.urdf", None));
    assert_eq!((masses(&model), model.meshes.len()), (vec![1.0; 3], 1));
    assert!(run.join("robot/b/n.obj").is_file());
}

#[test]
fn all_kinds_of_files_are_kept_where_names_find_them() {
    let dir = tempfile::tempdir().unwrap();
    let lab = dir.path().join("lab");
    let main = r#"<mujoco><compiler meshdir="assets" texturedir="../pictures"/><include file="assets/../parts/floor.xml"/>
        <asset><mesh name="m" file="../m.obj"/><mesh name="n" file="deep/../n.obj"/><model name="arm" file="../arm/arm.urdf"/>
        <hfield name="h" size="1 1 1 1" file="../../fields/h.bin"/></asset>
        <worldbody><body name="b"><joint name="b"/><geom type="mesh" mesh="m"/><geom type="mesh" mesh="n"/></body>
        <geom type="hfield" hfield="h" pos="5 0 0"/><frame pos="2 0 0"><attach model="arm" prefix="arm_"/></frame></worldbody></mujoco>"#;
    put(&lab.join("bot/bot.xml"), main);
    put(
        &lab.join("bot/parts/floor.xml"),
        "<mujoco><worldbody><geom type=\"plane\" size=\"0 0 1\"/></worldbody></mujoco>",
    );
    put(&lab.join("bot/m.obj"), &lump(1.0));
    put(&lab.join("bot/assets/n.obj"), &lump(2.0));
    put(&lab.join("arm/arm.urdf"), &urdf(&["package://arm_meshes/n.obj", "package://hand/n.obj"]));
    put(&lab.join("arm_meshes/n.obj"), &lump(3.0));
    put(&lab.join("hand-main/n.obj"), &lump(4.0));
    put(&lab.join("hand-main/package.xml"), "<package><name>hand</name></package>");
    let mut field = [2_i32, 2].map(i32::to_le_bytes).concat();
    field.extend([0.0_f32, 1.0, 0.0, 1.0].map(f32::to_le_bytes).concat());
    std::fs::create_dir(lab.join("fields")).unwrap();
    std::fs::write(lab.join("fields/h.bin"), field).unwrap();
    let (model, _) = kept(dir.path(), &configured(&lab, "bot/bot.xml", Some(".")));
    assert_eq!(masses(&model), [3.0, 0.0, 3.0, 4.0]);
}

#[test]
fn a_run_that_cannot_be_read_back_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let lab = dir.path().join("lab");
    put(&lab.join("bot.urdf"), &urdf(&["m.obj"]));
    put(&lab.join("m.obj"), &lump(1.0));
    let (model, run) = kept(dir.path(), &configured(&lab, "bot.urdf", None));
    let refused = || read_back(&run, &model).unwrap_err().to_string();
    put(&run.join("robot/m.obj"), &lump(2.0));
    let why = refused();
    assert!(why.contains("nothing was trained") && why.contains("another one"), "{why}");
    std::fs::remove_file(run.join("robot/m.obj")).unwrap();
    let why = refused();
    assert!(why.contains("robot/m.obj") && why.contains("task.robot_folder"), "{why}");
    std::fs::remove_file(run.join(dir::CONFIG)).unwrap();
    assert!(refused().contains("config.toml"));
}
