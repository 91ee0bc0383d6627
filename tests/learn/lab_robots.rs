//! Robots as laboratories have them: files in many folders, meshes to look at, hidden
//! shapes that collide. MuJoCo is the referee where it can be.

use crate::common::{ostler, root};
use crate::support::meshes::{put, wedge};
use crate::support::referee;
use assert_cmd::assert::OutputAssertExt as _;
use ostler_sim::Model;
use ostler_sim::model::looks::{LookKind, Looks, Surface};
use ostler_sim::model::{GeomKind, mjcf};
use ostler_trainer::draw::{Image, Poses};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const LEGS: [&str; 4] = ["fl", "fr", "hl", "hr"];

/// A four-legged robot in `lab`, in the manner of published ones, and its configuration.
fn dog(lab: &Path) -> PathBuf {
    let at = lab.join("robots/dog");
    put(
        &at.join("scene.xml"),
        r#"<mujoco model="scene"><include file="parts/dog.xml"/>
        <worldbody><geom name="floor" type="plane" size="0 0 .05" material="grid"/>
        <geom type="hfield" hfield="hills" contype="0" conaffinity="0" group="2" pos="0 3 0"/></worldbody></mujoco>"#,
    );
    let leg = |(i, name): (usize, &&str)| {
        let (x, y) = (if i < 2 { 0.3 } else { -0.3 }, if i % 2 == 0 { 0.2 } else { -0.2 });
        format!(
            r#"<body name="{name}" pos="{x} {y} 0"><joint name="{name}" axis="0 1 0" range="-1 1"/>
            <inertial pos="0 0 -.2" mass=".5" diaginertia=".01 .01 .01"/>
            <geom class="seen" mesh="leg"/><geom class="seen" mesh="foot" pos="0 0 -.4"/>
            <geom class="felt" type="capsule" fromto="0 0 0 0 0 -.4" size=".04"/></body>"#
        )
    };
    let legs: String = LEGS.iter().enumerate().map(leg).collect();
    let motors: String =
        LEGS.iter().map(|l| format!(r#"<motor joint="{l}" ctrlrange="-5 5"/>"#)).collect();
    put(
        &at.join("parts/dog.xml"),
        format!(
            r#"<mujoco><compiler meshdir="assets" texturedir="pictures" angle="radian"/>
            <default><default class="seen"><geom type="mesh" group="2" contype="0" conaffinity="0" density="0" rgba=".9 .2 .1 1"/></default>
            <default class="felt"><geom group="3" density="0" rgba=".1 .1 .9 1"/></default></default>
            <asset><mesh name="trunk" file="trunk.obj"/><mesh name="leg" file="leg.stl" scale=".2 .2 -.5"/>
            <mesh name="foot" file="../../../shared/foot.stl" scale=".2 .2 .2"/>
            <texture name="grid" type="2d" file="grid.png"/><material name="grid" texture="grid"/>
            <hfield name="hills" file="hills.png" size="2 2 .5 .1"/></asset>
            <worldbody><body name="trunk" pos="0 0 .6"><freejoint/>
            <inertial pos="0 0 0" mass="5" diaginertia=".1 .1 .1"/>
            <geom class="seen" mesh="trunk"/><geom class="felt" type="box" size=".4 .15 .1"/>{legs}</body></worldbody>
            <actuator>{motors}</actuator></mujoco>"#
        ),
    );
    put(
        &at.join("assets/trunk.obj"),
        "v -.4 -.15 -.1\nv .4 -.15 -.1\nv .4 .15 -.1\nv -.4 .15 -.1\nv -.3 -.1 .1\nv .3 -.1 .1\nv .3 .1 .1\nv -.3 .1 .1\n\
         f 4 3 2 1\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n",
    );
    put(&at.join("parts/leg.stl"), wedge());
    put(&lab.join("shared/foot.stl"), wedge());
    std::fs::create_dir_all(at.join("pictures")).unwrap();
    // Grey: the floor is drawn with it, and red and blue pixels are counted.
    let picture = Image::new(4, 4, [120; 3]);
    picture.write_png(&at.join("pictures/grid.png")).unwrap();
    let mut hills = Image::new(5, 5, [0; 3]);
    hills.put(2, 2, [255; 3]);
    hills.write_png(&at.join("parts/hills.png")).unwrap();
    let config = lab.join("dog.toml");
    put(
        &config,
        r#"[env]
num_envs = 4
episode_length_s = 0.4
[task]
robot = "robots/dog/scene.xml"
[[task.action]]
actuators = ["*"]
[[task.observation]]
name = "qpos"
expr = "qpos"
[[task.reward]]
name = "still"
expr = "abs(joint_pos(fl)) <= 0.2"
[[task.termination]]
name = "far"
expr = "abs(joint_pos(fl)) > 9"
[actor]
hidden_dims = [8]
[critic]
hidden_dims = [8]
[runner]
num_steps_per_env = 8
max_iterations = 1
"#,
    );
    config
}

/// Reddish and bluish pixels of a picture.
fn colours(png_file: &Path) -> [usize; 2] {
    let file = std::io::BufReader::new(std::fs::File::open(png_file).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut data).unwrap();
    let pixels = data.chunks_exact(3).map(|c| [c[0], c[1], c[2]].map(u32::from));
    let red = pixels.clone().filter(|[r, g, b]| *r > g + 60 && *r > b + 60);
    let blue = pixels.filter(|[r, g, b]| *b > 2 * r && *b > 2 * g);
    [red.count(), blue.count()]
}

/// `ostler play` with a picture: its colours, and what it says on standard error.
fn play(what: &Path, png: &Path, extra: &[&str]) -> ([usize; 2], String) {
    let out = ostler()
        .arg("play")
        .arg(what)
        .args(["--episodes", "1", "--png"])
        .arg(png)
        .args(extra)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&out.stderr).to_string();
    assert!(out.status.success(), "{words}");
    (colours(png), words)
}

#[test]
fn a_runs_folder_holds_all_that_its_robot_names() {
    let dir = tempfile::tempdir().unwrap();
    let (lab, run, png) =
        (dir.path().join("lab"), dir.path().join("run"), dir.path().join("a.png"));
    let config = dog(&lab);
    let train = ["--quiet", "sim.specialize=off", "--out"];
    ostler().arg("train").arg(&config).args(train).arg(&run).assert().success();
    // Nothing of the original is left where it was.
    std::fs::rename(&lab, dir.path().join("moved")).unwrap();
    for file in [
        "robots/dog/scene.xml",
        "robots/dog/parts/dog.xml",
        "robots/dog/parts/leg.stl",
        "robots/dog/assets/trunk.obj",
        "robots/dog/parts/hills.png",
        "robots/dog/pictures/grid.png",
        "shared/foot.stl",
    ] {
        assert!(run.join("robot").join(file).is_file(), "{file}");
    }
    let ([red, _], words) = play(&run, &png, &[]);
    assert!(red > 3000, "{red} red pixels");
    assert!(!words.contains("drawn") && !words.contains("warning"), "{words}");
    // The copy serves a run that goes on from it as well.
    let resumed = ostler()
        .args(["train", "--quiet", "runner.max_iterations=2", "--resume"])
        .arg(&run)
        .output()
        .unwrap();
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    assert!(run.join("robot/shared/foot.stl").is_file());
    assert!(!run.join("robot/scene.xml").exists());

    let Some(python) = referee::referee_python() else {
        return;
    };
    let out = ostler()
        .arg("eval")
        .arg(&run)
        .args(["--json", "--episodes", "4", "--backend", "native,mujoco", "--python"])
        .arg(python)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let both: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(both["mujoco"]["broken_episodes"], 0, "{both}");
    let number = |engine: &str| both[engine]["mean_length"].as_f64().unwrap();
    assert_eq!(number("native"), number("mujoco"), "{both}");
}

#[test]
fn play_draws_what_is_asked_for_and_says_what_it_cannot() {
    let dir = tempfile::tempdir().unwrap();
    let config = dog(dir.path());
    let png = dir.path().join("a.png");
    let zero = ["--agent", "zero"];
    let with = |geoms: &[&str]| play(&config, &png, &[&zero[..], geoms].concat());
    // A mesh outside of the robot's folder is out of reach, and named.
    let ([red, blue], words) = with(&[]);
    assert!(red > 3000 && blue == 0, "{red} red, {blue} blue");
    assert!(words.contains("4 shapes cannot be drawn: foot ("), "{words}");
    assert!(words.contains("task.robot_folder") && !words.contains("warning"), "{words}");
    let ([red, blue], words) = with(&["--geoms", "collision"]);
    assert!(red == 0 && blue > 3000, "{red} red, {blue} blue");
    assert!(!words.contains("drawn"), "{words}");
    let ([red, _], _) = with(&["--geoms", "visual"]);
    assert!(red > 3000, "{red} red");
    let ([red, blue], _) = with(&["--geoms", "all", "--set", "task.robot_folder=."]);
    assert!(red > 500 && blue > 500, "{red} red, {blue} blue");
    // Without its meshes the robot is drawn as what collides.
    for gone in ["robots/dog/assets/trunk.obj", "robots/dog/parts/leg.stl"] {
        std::fs::remove_file(dir.path().join(gone)).unwrap();
    }
    let ([red, blue], words) = with(&[]);
    assert!(red == 0 && blue > 3000, "{red} red, {blue} blue");
    assert!(words.contains("cannot read") && !words.contains("warning"), "{words}");
    let (_, words) = with(&["--geoms", "visual"]);
    assert!(
        words.contains("warning: nothing of the robot is seen")
            && words.contains("--geoms collision"),
        "{words}"
    );
}

/// Where MuJoCo has the vertices of mesh geoms, by the geoms' numbers, and how many
/// faces they have.
const THEIRS: &str = r"
import json, sys, mujoco
m = mujoco.MjModel.from_xml_path(sys.argv[1])
d = mujoco.MjData(m)
mujoco.mj_kinematics(m, d)
out = {}
for g in range(m.ngeom):
    mesh = m.geom_dataid[g]
    if m.geom_type[g] == mujoco.mjtGeom.mjGEOM_MESH:
        a, n = m.mesh_vertadr[mesh], m.mesh_vertnum[mesh]
        vert = m.mesh_vert[a:a + n] @ d.geom_xmat[g].reshape(3, 3).T + d.geom_xpos[g]
        out[g] = ['mesh', int(m.mesh_facenum[mesh]), vert.tolist()]
    else:
        x = d.geom_xpos[g].tolist()
        out[g] = ['other', 0, [x, m.geom_size[g].tolist()]]
print(json.dumps(out))
";

/// The same here.
fn ours(model: &Model, looks: &Looks) -> BTreeMap<String, (String, usize, Vec<[f64; 3]>)> {
    assert!(looks.missing.is_empty(), "{:?}", looks.missing);
    let poses = Poses::initial(model);
    let number = |k: usize, among: &dyn Fn(&usize) -> bool| -> String {
        let all = 0..model.geoms.len() + model.skipped.len();
        all.filter(among).nth(k).unwrap().to_string()
    };
    let place = |body: usize, pos: [f64; 3], quat: [f64; 4]| {
        let frame = ostler_trainer::draw::math::Frame::new(pos, quat);
        poses.frame(body).unwrap().then(&frame)
    };
    let surface = |body: usize, pos, quat, s: &Surface| {
        let frame = place(body, pos, quat);
        let at = |v: &[f32; 3]| {
            let p = frame.point(v.map(f64::from).into());
            [p.x, p.y, p.z].map(f64::from)
        };
        ("mesh".to_string(), s.faces.len(), s.vertices.iter().map(at).collect())
    };
    let other = |body: usize, pos, quat, size: [f64; 3]| {
        let p = place(body, pos, quat).pos;
        ("other".to_string(), 0, vec![[p.x, p.y, p.z].map(f64::from), size])
    };
    let mut out = BTreeMap::new();
    for (k, g) in model.geoms.iter().enumerate() {
        let shape = match g.kind {
            GeomKind::Mesh(i) => surface(g.body, g.pos, g.quat, &looks.meshes[i]),
            _ => other(g.body, g.pos, g.quat, g.size),
        };
        out.insert(number(k, &|n| !model.skipped.contains(n)), shape);
    }
    for (k, l) in looks.shapes.iter().enumerate() {
        let shape = match l.kind {
            LookKind::Surface(i) => surface(l.body, l.pos, l.quat, &looks.surfaces[i]),
            LookKind::HField(i) => {
                let [x, y, top, base] = looks.hfields[i].size;
                other(l.body, l.pos, l.quat, [x, y, 0.25 * top + 0.5 * base])
            }
            LookKind::Primitive(_) => other(l.body, l.pos, l.quat, l.size),
        };
        out.insert(number(k, &|n| model.skipped.contains(n)), shape);
    }
    out
}

#[test]
fn vertices_are_drawn_where_mujoco_has_them() {
    let Some(python) = referee::referee_python() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    put(&at.join("m/w.stl"), wedge());
    put(&at.join("kid/k.stl"), wedge());
    put(
        &at.join("kid/kid.xml"),
        r#"<mujoco model="kid"><asset><mesh name="w" file="k.stl" scale="1 2 1"/></asset>
        <worldbody><body name="k" pos="0 .1 0"><joint/><geom type="mesh" mesh="w" contype="0" conaffinity="0" mass="0" euler="10 20 30"/><geom size=".1"/></body></worldbody></mujoco>"#,
    );
    let seen = r#"contype="0" conaffinity="0" mass="0""#;
    let text = |compiler: &str, free: &str| {
        format!(
            r#"<mujoco><compiler meshdir="m" {compiler}/><default><default class="v"><geom type="mesh" mesh="w" {seen}/></default></default>
            <asset><mesh name="w" file="w.stl"/><mesh name="flipped" file="w.stl" scale="-1 2 .5" refpos=".1 .2 .3" refquat=".8 0 .6 0"/>
            <mesh name="points" vertex="0 0 0 1 0 0 0 2 0 0 0 3 .1 .1 .1"/><hfield name="h" nrow="2" ncol="3" size="1 2 .5 .25"/>
            <model name="kid" file="kid/kid.xml"/></asset>
            <worldbody><geom type="plane" size="0 0 1"/><geom class="v" pos="3 0 0"/>
            <body name="a" pos="0 0 1" euler="20 0 40">{free}<geom size=".2" mass="1"/><geom type="mesh" mesh="flipped" euler="0 30 0"/>
            <geom class="v" mesh="flipped" pos=".3 .2 .1" quat=".5 .5 .5 .5"/><geom class="v" mesh="points"/>
            <geom type="box" mesh="w" {seen} pos="0 1 0"/><geom type="hfield" hfield="h" {seen} pos="0 0 5"/></body>
            <body name="b" pos="1 1 1"><joint/><geom size=".1"/><frame pos="0 0 .2" euler="0 0 90"><geom class="v" axisangle="1 1 0 50"/></frame>
            <body name="c" pos=".1 0 0" euler="90 0 0"><geom class="v" pos="0 .1 0"/><geom name="w" type="mesh" mesh="w" pos="0 0 1"/>
            <replicate count="2" offset="0 0 .5" euler="0 0 30"><body><joint/><geom size=".1"/><geom class="v"/></body></replicate></body>
            <geom class="v" pos="9 0 0"/></body>
            <frame pos="5 0 0"><attach model="kid" prefix="kid_"/></frame></worldbody></mujoco>"#
        )
    };
    let urdf = r#"<robot name="u"><mujoco><compiler meshdir="m" discardvisual="false" strippath="true"/></mujoco><link name="base"/>
        <link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
        <visual><origin xyz="0 0 1" rpy=".1 .2 .3"/><geometry><mesh filename="package://x/w.stl" scale="2 2 2"/></geometry></visual>
        <collision><geometry><mesh filename="package://x/w.stl"/></geometry></collision></link>
        <joint name="j" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="1 0 0" rpy="0 1 0"/></joint></robot>"#;
    let cases = [
        ("plain.xml", text("", "<joint/>")),
        ("fused.xml", text(r#"fusestatic="true""#, "<joint/>")),
        ("aligned.xml", text(r#"alignfree="true""#, "<freejoint/>")),
        ("arm.urdf", urdf.to_string()),
    ];
    for (name, text) in cases {
        let file = at.join(name);
        put(&file, text);
        let (model, looks) =
            mjcf::Reading { looks: true, ..Default::default() }.read(&file).unwrap();
        let out =
            std::process::Command::new(&python).args(["-c", THEIRS]).arg(&file).output().unwrap();
        assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
        let theirs: BTreeMap<String, (String, usize, Vec<[f64; 3]>)> =
            serde_json::from_slice(&out.stdout).unwrap();
        let ours = ours(&model, &looks);
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
        for (number, mine) in &ours {
            let other = &theirs[number];
            assert_eq!((&mine.0, mine.1), (&other.0, other.1), "{name}: geom {number}");
            let near = |p: &[f64; 3], q: &[f64; 3]| (0..3).all(|i| (p[i] - q[i]).abs() < 2e-5);
            for (some, all) in [(&mine.2, &other.2), (&other.2, &mine.2)] {
                for p in some {
                    assert!(all.iter().any(|q| near(p, q)), "{name}: geom {number} {p:?} {all:?}");
                }
            }
        }
        assert!(ours.values().filter(|o| o.0 == "mesh").count() >= 2, "{name}");
    }
}

/// The tasks of `docs/your-robot.md` and `docs/your-arm.md` with the makers' files as a Python
/// package has them: sound, with the outputs that the pages print, and they train.
///
/// ```sh
/// pip download --no-deps example-robot-data==6.0.0     # 131 MB
/// unzip -q example_robot_data-*.whl -d robots
/// OSTLER_ROBOTS=$PWD/robots cargo test --workspace --test learn makers -- --ignored
/// ```
#[test]
#[ignore = "needs the wheel of example-robot-data, unpacked in OSTLER_ROBOTS"]
fn makers_robots_are_what_their_pages_say_and_train() {
    let robots = PathBuf::from(std::env::var_os("OSTLER_ROBOTS").unwrap());
    let share = robots.join("cmeel.prefix/share");
    let root = root();
    for (task, page, robot) in [
        ("go2", "your-robot", "go2_description/urdf/go2.urdf"),
        ("franka_reach", "your-arm", "panda_description/urdf/panda.urdf"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = share.join("example-robot-data/robots").join(robot);
        let example = root.join(format!("examples/{task}.toml"));
        put(
            &dir.path().join("task.toml"),
            format!("extends = {example:?}\n[task]\nrobot = {file:?}\nrobot_folder = {share:?}\n"),
        );
        let checked =
            ostler().current_dir(dir.path()).args(["check", "task.toml", "-q"]).output().unwrap();
        let said = String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success(), "{task}: {checked:?}");
        assert!(said.contains("task.toml is sound"), "{task}: {said}");
        // The pages' rows of the table of outputs: an output's number or "-", then a joint.
        let page = std::fs::read_to_string(root.join(format!("docs/{page}.md"))).unwrap();
        let rows: Vec<&str> =
            page.lines().filter(|l| l.starts_with("       ") && l.contains("_joint")).collect();
        assert!(rows.len() >= 2, "{task}: {rows:?}");
        for row in rows {
            assert!(said.lines().any(|l| l.trim_end() == row), "{task}: {row}\n{said}");
        }
        ostler()
            .current_dir(dir.path())
            .args(["train", "task.toml", "--quiet", "--out", "run"])
            .args(["--set", "env.num_envs=16"])
            .args(["--set", "runner.max_iterations=2"])
            .args(["--set", "sim.specialize=off"])
            .assert()
            .success();
    }
}
