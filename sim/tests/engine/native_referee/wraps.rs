//! Strings around spheres and cylinders where a branch is near: the first touch, the far side,
//! ends on the surface, the middle. A number that rounds to the other side may move the force
//! by as much as it rounded, not to another path.

use super::engine::{PRECISIONS, due, evaluate, evaluator};
use super::reference::mujoco;
use ostler_sim::Model;
use ostler_sim::model::mjcf;
use ostler_sim::npz::NpzWriter;
use ostler_sim::physics::evaluate::{Precision, States};
use ostler_sim::referee::states::Reference;
use std::f64::consts::PI;
use std::path::Path;

/// A finger whose tendon begins to wrap around its joint.
const FINGER: &str = r#"<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body pos="0 0 0.3">
      <joint axis="0 1 0" range="-60 60" limited="true"/>
      <geom type="capsule" fromto="-0.1 0 0 0 0 0" size="0.012" mass="0.05"/>
      <site name="s1" pos="-0.02 0 -0.02"/>
      <body>
        <joint axis="0 1 0" range="-20 60" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0.07 0 0" size="0.012" mass="0.05" contype="0" conaffinity="0"/>
        <geom name="w" type="cylinder" fromto="0 0.005 0 0 -0.005 0" size="0.018" mass="0" contype="0" conaffinity="0"/>
        <site name="s2" pos="0.04 0 -0.01"/>
      </body>
    </body>
  </worldbody>
  <tendon><spatial name="t"><site site="s1"/><geom geom="w"/><site site="s2"/></spatial></tendon>
  <actuator><motor tendon="t" ctrlrange="-1 1"/></actuator>
</mujoco>"#;

const RADIUS: f64 = 0.05;
/// Of the string, which is as long as its force divided by this.
const STIFFNESS: f64 = 10.0;
/// Each kind of situation.
const STATES: usize = 200;

fn model(text: &str) -> Model {
    mjcf::parse(Path::new("wraps.xml"), text.into()).unwrap_or_else(|e| panic!("{e}"))
}

/// Random numbers that are the same every time (Knuth's MMIX).
struct Draw(u64);

impl Draw {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// 1e-9 to 1e-2, of either sign; 0 now and then.
    fn slight(&mut self) -> f64 {
        let size = 10f64.powf(self.between(-9.0, -2.0));
        match (self.unit() * 10.0) as u32 {
            0 => 0.0,
            1..=4 => -size,
            _ => size,
        }
    }
}

#[test]
fn a_tendon_that_just_begins_to_wrap_pulls_as_in_mujoco() {
    let model = model(FINGER);
    for (label, precision) in PRECISIONS {
        let states = States {
            qpos: &[0.138_051_71, 0.111_150_88],
            qvel: &[0.0; 2],
            ctrl: &[1.0],
            act: &[],
            varied: &[],
        };
        let qacc = evaluate(&model, precision, &states).unwrap().qacc;
        // MuJoCo 4.0.0.
        for (ours, theirs) in qacc.iter().zip([-34.34067, 19.87262]) {
            assert!((ours - theirs).abs() < 5e-3, "{label}: {qacc:?}");
        }
    }
}

#[test]
fn a_finger_moves_on_where_its_tendon_begins_to_wrap() {
    let model = model(FINGER);
    let engine = evaluator(&model, Precision::F32).unwrap();
    let (worlds, steps) = (2048, 1000);
    let mut draw = Draw(7);
    let mut qpos: Vec<f64> = (0..2 * worlds).map(|_| draw.between(-0.3, 0.5)).collect();
    let mut qvel = vec![0.0; 2 * worlds];
    let mut ctrl = vec![0.0; worlds];
    let mut broken = 0;
    for step in 0..steps {
        if step % 20 == 0 {
            ctrl.iter_mut().for_each(|c| *c = draw.between(-1.0, 1.0));
        }
        let states = States { qpos: &qpos, qvel: &qvel, ctrl: &ctrl, act: &[], varied: &[] };
        let next = engine.evaluate(&states, None).unwrap();
        // A newton on arms of 2 cm gives these links some 1,000 rad/s2 at most.
        let wild = next.qacc.iter().filter(|a| a.abs().is_nan() || a.abs() > 1e5);
        broken += wild.count() + next.fault.iter().filter(|f| **f != 0).count();
        (qpos, qvel) = (next.qpos_next, next.qvel_next);
    }
    assert_eq!(broken, 0);
}

/// Two bodies with a string from one to the other around a third, all of which move.
struct Scene {
    model: Model,
    text: String,
    cylinder: bool,
}

impl Scene {
    fn new(cylinder: bool, side: Option<[f64; 3]>, pulley: bool) -> Self {
        let body = |name: &str, more: &str| {
            let slides = ["1 0 0", "0 1 0", "0 0 1"]
                .map(|axis| format!(r#"<joint type="slide" axis="{axis}"/>"#));
            format!(
                r#"<body>{}{more}<inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/><site name="{name}"/></body>"#,
                slides.concat()
            )
        };
        let at = side.unwrap_or([0.0; 3]).map(|x| x.to_string()).join(" ");
        let drum = format!(
            r#"<joint axis="0 0 1"/><joint axis="0 1 0"/><geom name="w" type="{}" size="{RADIUS} 0.1" mass="0"/><site name="side" pos="{at}"/>"#,
            if cylinder { "cylinder" } else { "sphere" },
        );
        let by = if side.is_some() { r#" sidesite="side""# } else { "" };
        let wound = format!(r#"<site site="a"/><geom geom="w"{by}/><site site="b"/>"#);
        // Behind a pulley the same again, and on.
        let more = match pulley {
            true => format!(r#"<pulley divisor="2"/>{wound}<geom geom="w"{by}/><site site="a"/>"#),
            false => String::new(),
        };
        let text = format!(
            r#"<mujoco><option gravity="0 0 0"/><default><geom contype="0" conaffinity="0"/></default>
            <worldbody>{}{}{}</worldbody>
            <tendon><spatial stiffness="{STIFFNESS}" springlength="0">{wound}{more}</spatial></tendon></mujoco>"#,
            body("a", ""),
            body("b", ""),
            body("middle", &drum),
        );
        // It is of no file.
        let model = Model { sources: Vec::new(), ..model(&text) };
        Self { model, text, cylinder }
    }

    /// Positions for ends given in the geom's frame: in the plane of the circle, where `x`
    /// leads to the side point, and along the axis.
    fn place(&self, draw: &mut Draw, ends: [[f64; 2]; 2]) -> Vec<f64> {
        let at = [0.0; 3].map(|_| draw.between(-0.3, 0.3));
        let (yaw, pitch) = (draw.between(-3.0, 3.0), draw.between(-1.0, 1.0));
        // The plane's second axis: any of a sphere.
        let tilt = if self.cylinder { 0.0 } else { draw.between(-3.0, 3.0) };
        let heights = [0.0; 2].map(|_| match self.cylinder && draw.unit() < 0.7 {
            true => draw.between(-0.1, 0.1),
            false => 0.0,
        });
        let (sy, cy) = yaw.sin_cos();
        let (sp, cp) = pitch.sin_cos();
        let (st, ct) = tilt.sin_cos();
        let points = [0, 1].map(|i| {
            let [x, y] = ends[i];
            let p = [x, y * ct, y * st + heights[i]];
            let q = [cp * p[0] + sp * p[2], p[1], cp * p[2] - sp * p[0]];
            [cy * q[0] - sy * q[1] + at[0], sy * q[0] + cy * q[1] + at[1], q[2] + at[2]]
        });
        [&points[0][..], &points[1], &at, &[yaw, pitch]].concat()
    }

    /// Accelerations at `qpos`, at rest.
    fn qacc(&self, precision: Precision, qpos: &[f64]) -> Vec<f64> {
        let states =
            States { qpos, qvel: &vec![0.0; qpos.len()], ctrl: &[], act: &[], varied: &[] };
        evaluate(&self.model, precision, &states).unwrap().qacc
    }
}

fn polar(angle: f64, distance: f64) -> [f64; 2] {
    [distance * angle.cos(), distance * angle.sin()]
}

/// Ends of a string, the side point at the angle 0.
fn ends(draw: &mut Draw, situation: &str) -> [[f64; 2]; 2] {
    let angle = draw.between(-PI, PI);
    let mut away = || RADIUS * (1.0 + 10f64.powf(draw.between(-2.0, 1.0)));
    let (far, other) = (away(), away());
    let slight = draw.slight();
    match situation {
        // Along a tangent, bent by so much.
        "first touch" => {
            let [c, s] = polar(angle, 1.0);
            let (l, k) = (0.3 * far, 0.3 * other);
            let [d, e] = polar(slight, 1.0);
            let at = [RADIUS * c, RADIUS * s];
            [
                [at[0] + l * s, at[1] - l * c],
                [at[0] + k * (-d * s - e * c), at[1] + k * (d * c - e * s)],
            ]
        }
        // Past the far side at a distance of so much from the surface.
        "behind" => {
            let at = -RADIUS * (1.0 + slight);
            let lean = draw.between(-0.5, 0.5);
            [[at + lean * far, far], [at - lean * other, -other]]
        }
        "middle" => [polar(angle, far), polar(angle + PI + slight, other)],
        "surface" => {
            [polar(angle, RADIUS * (1.0 + slight)), polar(angle + draw.between(-2.0, 2.0), far)]
        }
        // Along the axis, or one end behind the other.
        _ => {
            [polar(angle, far), polar(angle + slight, if draw.unit() < 0.5 { far } else { other })]
        }
    }
}

fn gap(a: &[f64], b: &[f64]) -> f64 {
    let (mut gap, mut scale) = (0.0_f64, 1.0_f64);
    for (x, y) in a.iter().zip(b) {
        gap = gap.max((x - y).abs());
        scale = scale.max(y.abs());
    }
    gap / scale
}

#[test]
fn strings_near_a_branch_agree_with_mujoco_in_both_precisions() {
    let mut mujoco = mujoco();
    let folder = tempfile::tempdir().unwrap();
    let sides = [None, Some([2.0 * RADIUS, 0.0, 0.0]), Some([0.2 * RADIUS, 0.0, 0.0])];
    for (cylinder, side, pulley) in [false, true]
        .into_iter()
        .flat_map(|c| sides.map(|s| (c, s, false)))
        .chain([(true, None, true), (false, sides[1], true)])
    {
        let scene = Scene::new(cylinder, side, pulley);
        let width = scene.model.nq;
        for situation in ["first touch", "behind", "middle", "surface", "in line"] {
            let label = format!("cylinder {cylinder}, side {side:?}, pulley {pulley}, {situation}");
            let mut draw = Draw(11);
            let qpos: Vec<f64> = (0..STATES)
                .flat_map(|_| {
                    let ends = ends(&mut draw, situation);
                    scene.place(&mut draw, ends)
                })
                .map(|x| f64::from(x as f32))
                .collect();
            let double = scene.qacc(Precision::F64, &qpos);

            // The plane of a string through a sphere's middle is any, its length is not.
            let free = situation == "middle" && !cylinder;
            let pull = |a: &[f64]| vec![a[0].hypot(a[1]).hypot(a[2])];
            let apart = |a: &[f64], b: &[f64]| match free {
                true => gap(&pull(a), &pull(b)),
                false => gap(a, b),
            };
            // Single precision gives what double precision gives nearby: of an end that leaves the
            // surface a direction changes with the root of how far. Another path is far off.
            let single = scene.qacc(Precision::F32, &qpos);
            let mut nearby = vec![double.clone()];
            for size in [4e-7, 1e-7, 4e-8].repeat(8) {
                let near: Vec<f64> =
                    qpos.iter().map(|x| x + size * draw.between(-1.0, 1.0)).collect();
                nearby.push(scene.qacc(Precision::F64, &near));
            }
            // Behind a pulley each winding falls on either side of a cylinder's middle, and in
            // double precision all of them fall alike: single precision lies between.
            let mixed = situation == "middle" && pulley && cylinder;
            let off: Vec<f64> = (0..STATES)
                .map(|i| {
                    let ours = &single[i * width..][..width];
                    let rows = nearby.iter().map(|n| &n[i * width..][..width]);
                    let off = rows.clone().map(|row| apart(ours, row));
                    let off = off.fold(f64::INFINITY, f64::min);
                    if !mixed {
                        return off;
                    }
                    let bound = |of: fn(f64, f64) -> f64, j: usize| {
                        rows.clone().map(|row| row[j]).reduce(of).unwrap()
                    };
                    let between: Vec<f64> = (0..width)
                        .map(|j| ours[j].clamp(bound(f64::min, j), bound(f64::max, j)))
                        .collect();
                    off.min(apart(ours, &between))
                })
                .collect();
            let far: Vec<_> = (0..STATES).filter(|i| off[*i].is_nan() || off[*i] > 1e-2).collect();
            assert!(
                far.is_empty(),
                "{label}: {} of {STATES} in single precision, {:?} where double precision has {:?} at {:?}",
                far.len(),
                &single[far[0] * width..][..width],
                &double[far[0] * width..][..width],
                &qpos[far[0] * width..][..width],
            );

            // Double precision gives what MuJoCo gives, which ends its search for where a string
            // touches a ring some 1e-8 m off: all of a straight part whose end is on the ring.
            let Some(mujoco) = &mut mujoco else { continue };
            if side == sides[2] && situation == "surface" || !due(&label, &scene.model) {
                continue;
            }
            let path = folder.path().join("scene.xml");
            let given = folder.path().join("states.npz");
            std::fs::write(&path, &scene.text).unwrap();
            let mut file = NpzWriter::create(&given).unwrap();
            file.array("qpos", &[STATES, width], &qpos).unwrap();
            file.array("qvel", &[STATES, width], &vec![0.0; qpos.len()]).unwrap();
            file.finish().unwrap();
            let out = folder.path().join("answers.npz");
            mujoco
                .ask(&serde_json::json!({"op": "evaluate", "model": path, "states": given, "out": out}))
                .unwrap();
            let theirs = Reference::read(&out, &scene.model).unwrap_or_else(|e| panic!("{e}"));
            let allowed: f64 = if side == sides[2] { 1e-3 } else { 1e-7 };
            for i in 0..STATES {
                let at = i * width..(i + 1) * width;
                let off = gap(&double[at.clone()], &theirs.qacc[at.clone()]);
                assert!(
                    off < allowed.max(10.0 * theirs.doubt.qacc.rounding[i]),
                    "{label}: {:?} where MuJoCo has {:?} at {:?}",
                    &double[at.clone()],
                    &theirs.qacc[at.clone()],
                    &qpos[at]
                );
            }
        }
    }
}
