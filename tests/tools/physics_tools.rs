//! `ostler compare`, `ostler bench physics`: the tools that take any MJCF file.

use crate::common::Place;
use serde_json::Value;

/// The engines at hand.
const BACKENDS: [&str; 2] = ["rapier", "native"];
const CARTPOLE: &str = "robots/cartpole.xml";

#[test]
fn a_command_that_was_removed_names_what_replaces_it() {
    let place = Place::new();
    for args in [&["physics"][..], &["physics", CARTPOLE, "--states", "in.npz", "--out", "o.npz"]] {
        let text = place.fails(2, args);
        assert!(text.contains("`ostler physics` is gone: `ostler compare MODEL.xml`"), "{text}");
    }
    let help = place.ok(&["--help"]);
    assert!(!help.contains("Removed"), "{help}");
}

#[test]
fn bench_physics_prints_its_rate_and_its_kernel() {
    let place = Place::new();
    for backend in BACKENDS {
        let out = place.ok(&[
            "bench",
            "physics",
            CARTPOLE,
            "--backend",
            backend,
            "--num-envs",
            "16",
            "--threads",
            "1",
            "--seconds",
            "0.05",
            "--json",
        ]);
        let out: Value = serde_json::from_str(&out).unwrap();
        assert!(out["physics_steps_per_s"].as_f64().unwrap() > 0.0, "{out}");
        assert!(!out["kernel"].as_str().unwrap().is_empty(), "{out}");
        assert_eq!(out["num_envs"], 16);
        assert_eq!(out["threads"], 1);
    }
    let out = place.ok(&[
        "bench",
        "physics",
        CARTPOLE,
        "--instructions",
        "portable",
        "--threads",
        "1",
        "--seconds",
        "0.05",
        "--json",
    ]);
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(out["kernel"], "generic-portable");
}

/// A capsule on more cells than a pair may have contacts: its speed is that of another robot.
#[test]
fn bench_physics_says_that_contacts_were_left_out() {
    let place = Place::new();
    let scene = "<mujoco><asset><hfield name='h' nrow='81' ncol='81' size='2 2 0.05 0.5'/></asset>\
                 <worldbody><geom type='hfield' hfield='h'/><body pos='0 0 0.1' euler='0 90 0'>\
                 <freejoint/><geom type='capsule' size='0.1 1.5'/></body></worldbody></mujoco>";
    std::fs::write(place.path("long.xml"), scene).unwrap();
    let flags = ["--num-envs", "2", "--specialize", "off", "--seconds", "0.05", "--json"];
    let done = place.run(&[&["bench", "physics", "long.xml"][..], &flags].concat());
    let out: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(out["contact_overflow"].as_u64().unwrap() > 0, "{out}");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("contacts touched than the physics has room for"), "{said}");
}

#[test]
fn compare_without_mujoco_names_the_way_out() {
    let place = Place::new();
    let text = place.fails(2, &["compare", CARTPOLE, "--python", "/nowhere/python"]);
    for word in ["/nowhere/python", "pip install mujoco", "--python", "OSTLER_REFEREE_PYTHON"] {
        assert!(text.contains(word), "{text} lacks {word}");
    }
}

/// A file that stops early is far from the solution, and near where its iterations are followed;
/// nothing is judged.
#[test]
fn compare_as_written_shows_how_far_a_file_is_from_the_solution() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let place = Place::new();
    let robot = crate::common::root().join("configs/robots/quadruped.xml");
    let text = std::fs::read_to_string(robot).unwrap();
    let early = text.replacen("<option ", "<option iterations=\"1\" ", 1);
    assert_ne!(early, text);
    std::fs::write(place.path("early.xml"), early).unwrap();
    let python = python.display().to_string();
    let args = ["compare", "early.xml", "--python", &python, "--states", "200", "--as-written"];
    let said = place.ok(&args);
    assert!(said.contains("solver Newton, iterations 1"), "{said}");
    let out = place.ok(&[&args[..], &["--json"]].concat());
    let out: Value = serde_json::from_str(&out).unwrap();
    let table = |label: &str| {
        let tables = out["tables"].as_array().unwrap().iter();
        let of = |t: &&Value| t["label"] == label;
        tables.clone().find(of).unwrap()["next"]["p99"].as_f64().unwrap()
    };
    let (whole, same) = (table("f32"), table("f32, iterations as in the file"));
    assert!(whole > 1e-2 && same < whole / 10.0, "{whole} {same}");
}

/// An actuator of 1e9 N m: half of the states break in MuJoCo.
#[test]
fn compare_counts_the_states_that_mujoco_breaks_in() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let place = Place::new();
    let robot = r#"<mujoco><option timestep="0.02"/><worldbody><body><joint name="j" axis="0 1 0"/>
        <geom size=".1" pos="0 0 .2"/></body></worldbody><actuator><general name="m" joint="j"
        gainprm="1e9" ctrlrange="-10 10" ctrllimited="true"/></actuator></mujoco>"#;
    std::fs::write(place.path("strong.xml"), robot).unwrap();
    let python = python.display().to_string();
    let args = ["compare", "strong.xml", "--python", &python, "--states", "60"];
    let said = place.ok(&args);
    assert!(said.contains(" of 60 states are left out: MuJoCo's own step breaks"), "{said}");
    let out: Value = serde_json::from_str(&place.ok(&[&args[..], &["--json"]].concat())).unwrap();
    let [kept, left] = ["states", "left_out"].map(|key| out[key].as_u64().unwrap());
    assert!(left > 0 && kept + left == 60, "{out}");
}

/// Damping of 1e11 takes any velocity away in one time step; MuJoCo takes the acceleration of one
/// that is left for a fault.
#[test]
fn compare_moves_joints_no_faster_than_their_damping_lets_them() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let place = Place::new();
    let robot = |gain: &str| {
        format!(
            r#"<mujoco><worldbody><body><joint name="held" type="slide" axis="1 0 0" damping="1e11"/>
            <geom size=".1"/><body><joint name="free" axis="0 1 0" damping=".1"/>
            <geom size=".1" pos="0 0 .2"/></body></body></worldbody><actuator><general name="m"
            joint="free" gainprm="{gain}" ctrlrange="1 2" ctrllimited="true"/></actuator></mujoco>"#
        )
    };
    std::fs::write(place.path("held.xml"), robot("1")).unwrap();
    let python = python.display().to_string();
    let args = ["compare", "held.xml", "--python", &python, "--states", "60"];
    let done = place.run(&args);
    let (out, said) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(out.contains("f32: means the same here as in MuJoCo"), "{out}\n{said}");
    assert!(!out.contains("left out") && !said.contains("none is of a roll-out"), "{out}\n{said}");
    // Where nothing helps the joint is named.
    std::fs::write(place.path("held.xml"), robot("1e15")).unwrap();
    let said = place.fails(2, &args);
    assert!(said.contains("unstable in every state, mostly at free; "), "{said}");
}

/// A joint that starts far beyond stiff limits, where roll-outs begin; scattered states do not.
#[test]
fn compare_says_where_mujocos_roll_outs_fly_apart() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let place = Place::new();
    let robot = r#"<mujoco><worldbody><body name="foot"><joint name="calm"/><geom size=".1" pos="0 0 .2"/>
        <body><joint name="far" limited="true" range="5 6" solreflimit="-1e8 -1"/>
        <geom size=".1" pos="0 0 .2"/></body></body></worldbody></mujoco>"#;
    std::fs::write(place.path("far.xml"), robot).unwrap();
    let python = python.display().to_string();
    let args = ["compare", "far.xml", "--python", &python, "--states", "60"];
    let done = place.run(&args);
    let (out, said) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(out.contains("f32: means the same here as in MuJoCo"), "{out}\n{said}");
    for words in ["none is of a roll-out", "mostly at far;", "a smaller timestep"] {
        assert!(said.contains(words), "{said}");
    }
    let written = place.fails(2, &[&args[..], &["--as-written"]].concat());
    assert!(written.contains("mostly at far;"), "{written}");
}

/// Two bodies of many spheres that lie on each other.
#[test]
fn compare_says_that_contacts_found_no_room() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let place = Place::new();
    let slide = r#"type="slide" damping="5" limited="true" range="-.3 .3""#;
    let grid = |count: u32| {
        format!(
            r#"<joint {slide} axis="1 0 0"/><joint {slide} axis="0 1 0"/>
            <replicate count="{count}" offset=".05 0 0"><replicate count="{count}" offset="0 .05 0">
            <geom size=".03" mass=".1" condim="1" solref=".1 1"/></replicate></replicate>"#
        )
    };
    let robot = format!(
        r#"<mujoco><option gravity="0 0 0"/><worldbody><body>{}</body><body pos="0 0 .05">{}</body>
        </worldbody></mujoco>"#,
        grid(14),
        grid(8)
    );
    std::fs::write(place.path("grids.xml"), robot).unwrap();
    let python = python.display().to_string();
    let done = place.run(&["compare", "grids.xml", "--python", &python, "--states", "16"]);
    let out = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(1), "{out}");
    assert!(out.contains("more contacts touch than there is room for"), "{out}");
    assert!(out.contains("contype and conaffinity") && !out.contains("broken"), "{out}");
}

/// A turret that stands on its base to the last digit, and one that is a millimetre higher.
#[test]
fn compare_names_geoms_that_only_just_touch() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let place = Place::new();
    let python = python.display().to_string();
    let said = |height: &str| {
        let robot = format!(
            r#"<mujoco><worldbody><geom name="base" type="box" size=".3 .3 .15" pos="0 0 .2"/>
            <body pos="0 0 {height}"><joint name="j" axis="0 0 1"/><geom name="foot" size=".05"/>
            <geom type="capsule" size=".02" fromto="0 0 .3 .3 0 .3"/></body></worldbody>
            <actuator><motor joint="j" ctrlrange="-1 1" ctrllimited="true"/></actuator></mujoco>"#
        );
        std::fs::write(place.path("turret.xml"), robot).unwrap();
        let args = ["compare", "turret.xml", "--python", &python, "--states", "60"];
        crate::common::text(&place.run(&args))
    };
    let touches = "note: base and foot only just touch in 60 of 60 states";
    // As 0.2 + 0.15 + 0.05 is.
    let just = said("0.39999999999999997");
    assert!(just.contains(touches), "{just}");
    assert!(!said("0.401").contains("only just touch"));
}

#[test]
fn compare_tells_an_engine_that_is_not_mujoco_from_mujoco() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let place = Place::new();
    let python = python.display().to_string();
    let args = [
        "compare",
        CARTPOLE,
        "--python",
        &python,
        "--states",
        "60",
        "--backend",
        "rapier",
        "--seed",
        "3",
        "--json",
    ];
    let out = place.run(&args);
    assert_eq!(out.status.code(), Some(1), "{}", crate::common::text(&out));
    let out: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(out["same"], false);
    let table = &out["tables"][0];
    assert_eq!(table["states"], 60);
    let kinds: u64 =
        table["rows"].as_array().unwrap().iter().map(|r| r["states"].as_u64().unwrap()).sum();
    assert_eq!(kinds, 60);
    // Of limits: both have their own softness.
    assert_eq!(table["rows"][1]["kind"], "limits");
    assert!(table["rows"][1]["qacc"]["max"].as_f64().unwrap() > 1e-3);
    assert!(!table["beyond"].as_array().unwrap().is_empty());
    // A line for eyes.
    let out = place.run(args.split_last().unwrap().1);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("DIFFERS from MuJoCo"), "{text}");
}
