//! Scenes of boxes, cylinders, meshes and ellipsoids that lie, stand and roll on each other, with
//! the geometry of MuJoCo's own test models, beside MuJoCo: half the states are met on the way.

use super::engine::{PRECISIONS, evaluate, gate};
use super::reference::{mujoco, reference};
use crate::support::share;
use ostler_sim::model::mjcf;
use ostler_sim::physics::evaluate::Precision;
use ostler_sim::referee::residual::{Gate, compare};
use std::fmt::Write;

const STATES: usize = 200;
/// With the other tests.
const SHARE: usize = 100;

/// A scene: its name, what stands in the file, and which shares of its states may be excused and
/// may have another contact chosen; see `Gate`.
struct Scene {
    name: &'static str,
    text: String,
    excused: f64,
    choice: f64,
}

fn scene(name: &'static str, excused: f64, choice: f64, text: String) -> Scene {
    Scene { name, text, excused, choice }
}

fn free(at: [f64; 3], geom: &str) -> String {
    let [x, y, z] = at;
    format!("<body pos=\"{x} {y} {z}\"><freejoint/><geom {geom}/></body>")
}

fn world(before: &str, bodies: &str) -> String {
    format!("<mujoco>{before}<worldbody>{bodies}</worldbody></mujoco>")
}

fn mesh(name: &str, vertices: &[[f64; 3]]) -> String {
    let mut list = String::new();
    for [x, y, z] in vertices {
        let _ = write!(list, " {x:.5} {y:.5} {z:.5}");
    }
    format!("<mesh name=\"{name}\" vertex=\"{list}\"/>")
}

/// All corners of a box of these half sizes.
fn corners([x, y, z]: [f64; 3]) -> Vec<[f64; 3]> {
    let sign = |k: usize, bit: usize, s: f64| if k & bit == 0 { -s } else { s };
    (0..8).map(|k| [sign(k, 1, x), sign(k, 2, y), sign(k, 4, z)]).collect()
}

/// A tower of blocks that stick out, with gaps; two of the pairs do not touch.
fn tower() -> String {
    let (up, flat) = ("type=\"box\" size=\".5 .5 1.5\"", "type=\"box\" size=\"1.5 .5 .5\"");
    let blocks = [([-0.9, 1.5], up), ([-0.7, 3.5], flat), ([0.3, 5.5], up), ([0.2, 7.5], flat)];
    let blocks = blocks.map(|([x, z], geom)| free([x, 0.0, z], &format!("{geom} mass=\"1\"")));
    let before = "<default><geom gap=\"0.001\"/></default>";
    world(before, &format!("<geom type=\"plane\" size=\"50 50 1\"/>{}", blocks.concat()))
}

/// A small crate on a plate that turns on a cylinder.
fn seesaw() -> String {
    let plate = "<body pos=\"0 0 .2\"><joint axis=\"0 1 0\" range=\"-20 20\"/>\
         <geom type=\"cylinder\" size=\".02 .16\" zaxis=\"0 1 0\"/>\
         <geom type=\"box\" size=\".4 .08 .02\" pos=\"0 0 .04\"/></body>";
    let crate_ = free([-0.24, 0.0, 0.36], "type=\"box\" size=\".04 .04 .04\" euler=\"0 0 30\"");
    let floor = "<geom type=\"plane\" size=\"3 3 .01\"/>";
    world("", &format!("{floor}{plate}{crate_}"))
}

/// Boxes of a mesh, two beside two and two above, that slide into a corner.
fn stack() -> String {
    let walls = "<geom type=\"box\" size=\".5 .5 .1\" pos=\".2 .2 -.1\"/>\
         <geom type=\"box\" size=\".5 .1 .5\" pos=\".2 .4 .4\"/>\
         <geom type=\"box\" size=\".1 .5 .5\" pos=\"-.2 .2 .4\"/>";
    let geom = "type=\"mesh\" mesh=\"m\" friction=\".4\"";
    let at = [[0.0, 0.2, 0.1], [0.1, 0.2, 0.1], [0.0, 0.2, 0.2], [0.1, 0.2, 0.2]];
    let boxes = at.map(|at| free(at, geom)).concat();
    let asset = mesh("m", &corners([0.05; 3]));
    let before = format!("<option gravity=\"-4 4 -10\"/><asset>{asset}</asset>");
    world(&before, &format!("{walls}{boxes}"))
}

/// A cone of this many corners on its base or its side.
fn cone(count: usize) -> String {
    let mut vertices = vec![[0.0, 0.0, 0.3]];
    vertices.extend((0..count).map(|k| {
        let (y, x) = (k as f64 / count as f64 * std::f64::consts::TAU).sin_cos();
        [0.2 * x, 0.2 * y, 0.0]
    }));
    let before = format!("<asset>{}</asset>", mesh("m", &vertices));
    let floor = "<geom type=\"box\" size=\"2 2 .3\" pos=\"0 0 -.3\"/>";
    let geom = "type=\"mesh\" mesh=\"m\"";
    world(&before, &format!("{floor}{}", free([0.0, 0.0, 0.1], geom)))
}

/// A layer of nine cubes with blunt edges that turn about one centre, without friction.
fn cubes() -> String {
    let (a, b) = (0.0807, 0.095);
    let mut vertices = corners([a, a, b]);
    vertices.extend(corners([a, b, a]));
    vertices.extend(corners([b, a, a]));
    let asset = mesh("m", &vertices);
    let mut bodies = String::new();
    for k in (0..9).filter(|k| *k != 4) {
        let [x, y] = [k % 3, k / 3].map(|i| (f64::from(i) - 1.0) * 0.19);
        let _ = write!(
            bodies,
            "<body><joint type=\"ball\" armature=\".01\" damping=\".05\" frictionloss=\".1\"/>\
             <geom type=\"mesh\" mesh=\"m\" mass=\".3\" condim=\"1\" pos=\"{x} {y} 0\"/></body>"
        );
    }
    let before = format!("<option integrator=\"implicitfast\"/><asset>{asset}</asset>");
    world(&before, &bodies)
}

/// Two rafts of planks between planes.
fn planks() -> String {
    let mut raft = String::new();
    for k in 0..4 {
        let x = 0.1 * f64::from(k);
        let _ = write!(
            raft,
            "<geom type=\"box\" size=\".02 .02 .2\" pos=\"{x} .1 0\" euler=\"-45 0 0\"/>"
        );
    }
    for (y, z) in [(0.02, -0.1), (0.22, 0.1)] {
        let _ = write!(
            raft,
            "<geom type=\"box\" size=\".02 .02 .2\" pos=\".15 {y} {z}\" euler=\"0 90 0\"/>"
        );
    }
    let at = [0.2, 0.35].map(|z| format!("<body pos=\"-.2 -.1 {z}\"><freejoint/>{raft}</body>"));
    let walls = "<geom type=\"plane\" size=\"0 0 1\" condim=\"1\"/>\
         <geom type=\"plane\" size=\".5 .5 .05\" zaxis=\"1 0 0\" pos=\"-.3 0 -.25\"/>";
    world("", &format!("{walls}{}", at.concat()))
}

/// Every convex shape on a box, and near each other.
fn convex() -> String {
    let half = |left: bool| -> Vec<[f64; 3]> {
        let all = corners([0.1, 0.15, 0.05]).into_iter();
        all.enumerate().filter(|(k, _)| *k != if left { 7 } else { 0 }).map(|(_, v)| v).collect()
    };
    let before = format!("<asset>{}{}</asset>", mesh("a", &half(true)), mesh("b", &half(false)));
    let shapes = [
        ([0.2, 0.0, 0.4], "type=\"sphere\" size=\".15\""),
        ([0.0, 0.0, 0.2], "type=\"ellipsoid\" size=\".1 .1 .2\""),
        ([0.4, 0.0, 0.2], "type=\"cylinder\" size=\".1 .15\""),
        ([-0.5, 0.0, 0.1], "type=\"box\" size=\".2 .15 .1\""),
        ([-0.5, 0.0, 0.3], "type=\"mesh\" mesh=\"a\""),
        ([-0.5, -0.4, 0.1], "type=\"mesh\" mesh=\"b\""),
    ];
    let floor = "<geom type=\"box\" size=\"3 3 .5\" pos=\"0 0 -.5\"/>";
    world(&before, &format!("{floor}{}", shapes.map(|(at, geom)| free(at, geom)).concat()))
}

/// An arm of which some actuators are off, and cylinders that roll in its plane.
fn rolling() -> String {
    let object = |x: f64, z: f64| {
        format!(
            "<body pos=\"{x} 0 {z}\"><joint axis=\"1 0 0\" type=\"slide\"/>\
             <joint axis=\"0 0 1\" type=\"slide\"/><joint axis=\"0 1 0\"/><geom type=\"cylinder\" \
             size=\".1\" fromto=\"0 -.03 0 0 .03 0\" solref=\"-10000 -10\" priority=\"1\"/></body>"
        )
    };
    let bodies = format!(
        "<geom type=\"plane\" size=\".6 .2 .01\"/>\
         <geom type=\"plane\" size=\".4 .2 .01\" pos=\"-.6 0 .4\" zaxis=\"1 0 0\"/>\
         <body name=\"arm\" pos=\"-.6 0 .6\"><joint name=\"arm\" axis=\"0 -1 0\" range=\"-86 86\"/>\
         <geom type=\"capsule\" size=\".02\" fromto=\"0 0 0 .7 0 0\"/><body pos=\".7 0 0\">\
         <joint name=\"hand\" axis=\"0 -1 0\" range=\"-266 86\"/>\
         <geom type=\"capsule\" size=\".02\" fromto=\"0 0 0 0 0 .4\"/></body></body>{}{}",
        object(-0.3, 0.2),
        object(-0.2, 0.4)
    );
    let actuators = "<motor joint=\"arm\" gear=\"30\" ctrlrange=\"-1 1\"/>\
         <position joint=\"hand\" group=\"1\" kp=\"60\" ctrlrange=\"-1 1\"/>\
         <intvelocity joint=\"arm\" group=\"2\" kp=\"60\" actrange=\"-1 1\" ctrlrange=\"-1 1\"/>";
    format!(
        "<mujoco><option actuatorgroupdisable=\"1 2\" cone=\"elliptic\"/><default>\
         <joint damping=\"1\"/><geom friction=\".4\"/></default><worldbody>{bodies}</worldbody>\
         <contact><exclude body1=\"world\" body2=\"arm\"/></contact>\
         <actuator>{actuators}</actuator></mujoco>"
    )
}

/// Ellipsoids in air on threads to a weight.
fn balloons() -> String {
    let (mut bodies, mut threads) = (String::new(), String::new());
    for (k, [x, y, long]) in
        [[-0.1, 0.1, 0.15], [0.1, 0.1, 0.14], [0.0, -0.1, 0.13]].iter().enumerate()
    {
        let _ = write!(
            bodies,
            "<body gravcomp=\"7.2\" pos=\"{x} {y} .2\"><freejoint/><geom type=\"ellipsoid\" \
             size=\".11 .12 {long}\" density=\".167\" fluidshape=\"ellipsoid\"/><geom size=\".02\" \
             pos=\"0 0 -{long}\" density=\".167\"/><site name=\"s{k}\" pos=\"0 0 -{long}\"/></body>"
        );
        let _ = write!(
            threads,
            "<spatial limited=\"true\" range=\"0 .3\"><site site=\"s{k}\"/><site site=\"w\"/></spatial>"
        );
    }
    format!(
        "<mujoco><option density=\"1.204\" viscosity=\"1.8e-5\" integrator=\"implicit\"/><worldbody>\
         <geom type=\"plane\" size=\"5 5 .05\" pos=\"0 0 -.5\"/>\
         <geom type=\"box\" size=\".4 .2 .03\" pos=\"0 0 -.4\" euler=\"0 20 0\"/>\
         <body pos=\"0 0 -.1\"><freejoint/><geom type=\"box\" size=\".015 .015 .015\" mass=\".03\"/>\
         <site name=\"w\" pos=\"0 0 .013\"/></body>{bodies}</worldbody>\
         <tendon>{threads}</tendon></mujoco>"
    )
}

fn scenes() -> Vec<Scene> {
    let on = |geom: &str, at: [f64; 3], size: &str| {
        world("", &format!("<geom type=\"box\" size=\"{size}\"/>{}", free(at, geom)))
    };
    let cylinder = on("type=\"cylinder\" size=\".4 .03\"", [0.0, 0.0, 0.32], "1 1 .3");
    let sunk = on("type=\"box\" size=\".2 .2 .2\"", [0.1, 0.2, 0.3], "1 1 1");
    let flush = on("type=\"box\" size=\"1 1 1\"", [0.0, 0.0, 2.0], "1 1 1");
    let long = on("type=\"box\" size=\".6 .03 .03\" euler=\"0 0 40\"", [0.0, 0.0, 0.32], "1 1 .3");
    // Excused: MuJoCo's own answer moves with rounding, most of all which corners of a cap it
    // keeps. Choices: a cap's corners; of meshes the first corner of a face and the first face
    // of a corner, which are those of its hull's construction. With its tables in place of ours
    // these contacts are the same (`collide_referee`).
    vec![
        scene("tower", 0.005, 0.0, tower()),
        scene("seesaw", 0.005, 0.05, seesaw()),
        scene("sunk", 0.005, 0.0, sunk),
        scene("flush", 0.005, 0.0, flush),
        scene("long box", 0.005, 0.0, long),
        scene("stack", 0.005, 0.08, stack()),
        scene("cylinder on box", 0.35, 0.15, cylinder),
        scene("cone of 40 corners", 0.005, 0.6, cone(40)),
        scene("cone of 250 corners", 0.005, 0.8, cone(250)),
        scene("cubes", 0.02, 0.55, cubes()),
        scene("planks", 0.005, 0.0, planks()),
        scene("convex", 0.15, 0.05, convex()),
        scene("rolling", 0.03, 0.05, rolling()),
        scene("balloons", 0.005, 0.05, balloons()),
    ]
}

#[test]
fn scenes_of_lying_shapes_agree_with_mujoco() {
    let Some(mut mujoco) = mujoco() else { return };
    let folder = tempfile::tempdir().unwrap();
    let states = share::of(STATES, "states", SHARE);
    let mut beyond = Vec::new();
    for Scene { name, text, excused, choice } in scenes() {
        let path = folder.path().join(format!("{name}.xml"));
        std::fs::write(&path, text).unwrap();
        let model = mjcf::load(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        let answers = reference(&mut mujoco, &path, &model, states, 4);
        for (label, precision) in PRECISIONS {
            let gate = Gate { excused, choice, ..gate(precision) };
            // As for the models of one feature: many rest, forces of hundreds cancel.
            let gate = match precision {
                Precision::F64 => gate,
                Precision::F32 => Gate { most: gate.all, ..gate },
            };
            let ours = evaluate(&model, precision, &answers.states.view()).unwrap();
            let table = compare(&model, label, &ours, &answers, gate);
            println!("{name}\n{table}");
            if table.same_ncon * 100 < states * 98 {
                let text =
                    format!("contacts are as many in {} of {states} states", table.same_ncon);
                beyond.push(format!("{name}, {label}: {text}"));
            }
            beyond.extend(table.beyond.iter().map(|b| format!("{name}, {label}: {b}")));
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}
