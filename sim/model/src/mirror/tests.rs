//! Reflections of small robots: in every pose the bodies are where the reflection puts them.

use super::*;
use crate::mjcf;
use std::path::Path;

fn robot(body: &str, rest: &str) -> Model {
    let text = format!(
        r#"<mujoco><compiler angle="radian"/><worldbody>{body}</worldbody>{rest}</mujoco>"#
    );
    mjcf::parse(Path::new("robot.xml"), text).unwrap()
}

/// Two legs: frames of the right one are turned by half a turn about z, so that its hinge about y
/// turns the other way; hips are balls; a slide in each foot.
fn walker(right_axis: &str, right_mass: &str) -> Model {
    let trunk = |legs: String| {
        format!(
            r#"<body name="trunk" pos="0 0.3 1"><freejoint/><geom size="0.1 0.05 0.08" type="box"/>
            <site name="left_wing" pos="0 0.2 0" euler="0.2 0 0"/>
            <site name="right_wing" pos="0 -0.2 0" euler="-0.2 0 0"/>{legs}</body>"#
        )
    };
    let leg = |side: &str, y: f64, turn: &str, knee: &str, foot: &str, mass: &str| {
        let forward = if turn == "0" { 1.0 } else { -1.0 };
        format!(
            r#"<body name="{side}_thigh" pos="0.02 {y} -0.1" euler="0 0 {turn}">
            <joint name="{side}_hip" type="ball"/>
            <geom type="capsule" fromto="0 0 0 {} 0 -0.3" size="0.03"/>
            <body name="{side}_shin" pos="{} 0 -0.3">
              <joint name="{side}_knee" axis="{knee}" range="0 2"/>
              <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="{mass}"/>
              <body name="{side}_foot" pos="0 0 -0.3"><joint name="{side}_toe" type="slide" axis="{foot}"/>
                <geom type="box" size="0.05 0.02 0.01" pos="{} 0 0"/></body></body></body>"#,
            0.1 * forward,
            0.1 * forward,
            0.03 * forward
        )
    };
    let legs = leg("left", 0.1, "0", "0 1 0", "0.6 0.8 0", "1")
        + &leg("right", -0.1, "3.14159265358979", right_axis, "0.6 -0.8 0", right_mass);
    robot(
        &trunk(legs),
        r#"<actuator><motor name="b" joint="right_knee" gear="50"/><motor name="a" joint="left_knee" gear="50"/>
        <position name="push_l" joint="left_toe" kp="3"/><position name="push_r" joint="right_toe" kp="3"/>
        <general name="wing_r" site="right_wing" gear="0 0 1 0 0 0.1"/>
        <general name="wing_l" site="left_wing" gear="0 0 1 0 0 -0.1"/>
        <motor name="roll" joint="left_hip" gear="1 0 0"/><motor name="roll2" joint="right_hip" gear="1 0 0"/></actuator>"#,
    )
}

/// The same random pose for every model.
fn pose(model: &Model) -> (Vec<f64>, Vec<f64>) {
    let wave = |i: usize| (1.7 * i as f64 + 0.4).sin();
    let mut qpos: Vec<f64> =
        model.qpos0.iter().enumerate().map(|(i, q)| q + 0.4 * wave(i)).collect();
    for joint in &model.joints {
        let quat = match joint.kind {
            JointKind::Free => joint.qpos_adr + 3,
            JointKind::Ball => joint.qpos_adr,
            _ => continue,
        };
        let unit = normalized([0, 1, 2, 3].map(|k| qpos[quat + k])).unwrap();
        qpos[quat..quat + 4].copy_from_slice(&unit);
    }
    (qpos, (0..model.nv).map(|i| wave(3 * i)).collect())
}

/// Centres of mass and their velocities are reflections of each other.
fn moves_alike(model: &Model, mirror: &Mirror) -> f64 {
    let (qpos, qvel) = pose(model);
    let (mut q, mut v) = (qpos.clone(), qvel.clone());
    mirror.qpos(model, &qpos, &mut q);
    mirror.qvel(model, &qvel, &mut v);
    let sides = [Rest::new(model, &qpos), Rest::new(model, &q)];
    let place = |side: usize, b: usize, qvel: &[f64]| {
        let at = sides[side].bodies[b].point(model.bodies[b].ipos);
        let mut velocity = [0.0; 3];
        for (d, shift, _) in sides[side].jacobian(b, at) {
            velocity = [0, 1, 2].map(|k| velocity[k] + shift[k] * qvel[d]);
        }
        [at, velocity]
    };
    let mut worst = 0.0f64;
    for b in 1..model.bodies.len() {
        let own = place(0, b, &qvel).map(|x| reflected(mirror.axis, x));
        let other = place(1, mirror.bodies[b], &v);
        let apart = own.iter().flatten().zip(other.iter().flatten()).map(|(a, b)| (a - b).abs());
        worst = apart.fold(worst, f64::max);
    }
    worst
}

#[test]
fn frames_that_are_turned_and_joints_of_every_kind_have_reflections() {
    let model = walker("0 -1 0", "1");
    let (mirror, differences) = Mirror::find(&model, 1, &Pairs::default()).unwrap();
    assert!(moves_alike(&model, &mirror) < 1e-12);
    // Nothing differs but by the digits of half a turn.
    assert!(differences.iter().all(|d| d.share < 1e-6), "{differences:?}");
    let joint = |name: &str| model.joint(name).unwrap();
    assert_eq!(mirror.joints[joint("left_knee")], joint("right_knee"));
    // About y a turn stays what it is, in a frame that is turned it is about -y.
    assert_eq!(mirror.signs[joint("left_knee")], 1.0);
    let actuator = |name: &str| model.actuator(name).unwrap();
    let pairs = [("a", "b", 1.0), ("push_l", "push_r", 0.0), ("wing_l", "wing_r", 1.0)];
    for (left, right, sign) in pairs {
        let (other, found) = mirror.actuators[actuator(left)];
        assert_eq!(other, actuator(right), "{left}");
        assert!(sign == 0.0 || found == sign, "{left}");
    }
    // Twice reflected everything is as before.
    let (qpos, qvel) = pose(&model);
    let (mut q, mut v) = (qpos.clone(), qvel.clone());
    mirror.qpos(&model, &qpos, &mut q);
    mirror.qvel(&model, &qvel, &mut v);
    let (once, once_v) = (q.clone(), v.clone());
    mirror.qpos(&model, &once, &mut q);
    mirror.qvel(&model, &once_v, &mut v);
    let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(same(&v, &qvel) && same(&q, &qpos));
}

#[test]
fn what_differs_has_its_name() {
    let heavy = walker("0 -1 0", "1.25");
    let (_, differences) = Mirror::find(&heavy, 1, &Pairs::default()).unwrap();
    let said: Vec<String> = differences.iter().map(Difference::to_string).collect();
    let mass = |d: &String| d.starts_with("mass of body") && d.contains("_shin\" differs");
    assert!(said.iter().any(|d| mass(d) && d.contains("20.00 %")), "{said:?}");
    let crooked = walker("0.1 -1 0", "1");
    let wrong = Mirror::find(&crooked, 1, &Pairs::default()).unwrap_err().to_string();
    assert!(wrong.contains("axis of joint \"right_knee\""), "{wrong}");
}

#[test]
fn robots_without_a_reflection_are_refused() {
    let find = |model: &Model, axis: usize, pairs: &Pairs| {
        Mirror::find(model, axis, pairs).unwrap_err().to_string()
    };
    let none = Pairs::default();
    let arm = r#"<body name="base"><joint name="lift" axis="0 1 0"/><geom size="0.1"/>
        <body name="{}" pos="0 0.2 0"><joint name="bend" axis="1 0 0"/><geom size="0.05"/></body></body>"#;
    let one = robot(&arm.replace("{}", "left_arm"), "");
    let model = robot(
        r#"<body name="b"><joint name="bend" axis="0.6 0.8 0"/><geom size="0.1"/></body>"#,
        "",
    );
    assert!(find(&model, 1, &none).contains("axis of joint \"bend\""));
    let planar = robot(
        r#"<body name="b"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" axis="0 1 0"/><geom size="0.1"/></body>"#,
        r#"<actuator><motor name="m" joint="y"/></actuator>"#,
    );
    assert_eq!(Mirror::find(&planar, 1, &none).unwrap_err(), MirrorError::Nothing);
    // In the other plane both directions turn over.
    let (mirror, _) = Mirror::find(&planar, 0, &none).unwrap();
    assert_eq!((mirror.signs, mirror.actuators), (vec![-1.0; 2], vec![(0, -1.0)]));
    let given = Pairs::new(vec![["left_*".into(), "right_*".into()]]);
    assert!(find(&one, 1, &given).contains("no \"right_arm\""));
    let unused = Pairs::new(vec![["port_*".into(), "star_*".into()]]);
    assert!(find(&one, 1, &unused).contains("\"port_*\" fits no body"));
    assert!(find(&one, 1, &none).contains("\"left_arm\" has no counterpart"));
    // A name that says nothing of sides: the arm is beside its own reflection, far or a little.
    let nameless = arm.replace("{}", "arm");
    let far = find(&robot(&nameless, ""), 1, &none);
    assert!(far.contains("\"arm\" lies 200 % of the robot's size from itself"), "{far}");
    let nameless = robot(&nameless.replace("0 0.2 0", "0.3 0.02 0"), "");
    let (_, differences) = Mirror::find(&nameless, 1, &none).unwrap();
    assert!(differences[0].to_string().contains("\"arm\""), "{}", differences[0]);
}

/// `lr` is the left rear leg and `rr` the right one: that `rr` mostly is the counterpart of `rl`
/// says nothing here, because there is none.
#[test]
fn a_name_that_calls_for_nobody_leaves_it_to_places() {
    let leg = |name: &str, x: f64, y: f64| {
        format!(
            r#"<body name="{name}_hip" pos="{x} {y} 0"><joint name="{name}" axis="0 1 0"/>
            <geom size="0.05"/></body>"#
        )
    };
    let legs = |[a, b, c, d]: [&str; 4]| {
        let legs = [leg(a, 0.3, 0.1), leg(b, 0.3, -0.1), leg(c, -0.3, 0.1), leg(d, -0.3, -0.1)];
        let body = r#"<body name="trunk" pos="0 0 1"><freejoint/><geom size="0.1"/>"#;
        robot(&format!("{body}{}</body>", legs.concat()), "")
    };
    for names in [["lf", "rf", "lr", "rr"], ["ll_hr", "lr_hr", "xl_hr", "rr_hr"]] {
        let model = legs(names);
        let (mirror, _) = Mirror::find(&model, 1, &Pairs::default()).unwrap();
        let at = |name: &str| model.joint(name).unwrap();
        for (a, b) in [(names[0], names[1]), (names[2], names[3])] {
            assert_eq!(mirror.joints[at(a)], at(b), "{names:?}");
        }
    }
    let stars = Pairs::new(vec![["l*_*".into(), "r*".into()]]);
    let why = Mirror::find(&legs(["lf", "rf", "lr", "rr"]), 1, &stars).unwrap_err().to_string();
    assert!(why.contains("different numbers of *"), "{why}");
}

/// Two arms that point the same way are each other's reflection in one plane; in the other one
/// the reflection of each lies behind the robot.
#[test]
fn arms_are_not_reflected_in_the_wrong_plane() {
    let arm = |name: &str, y: f64, out: f64| {
        format!(
            r#"<body name="{name}_up" pos="1 {y} 0"><joint name="{name}_lift" axis="0 1 0"/>
            <joint name="{name}_turn" axis="0 0 1"/>
            <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04"/>
            <body name="{name}_fore" pos="0.3 0 0"><joint name="{name}_bend" axis="0 0 1"/>
            <geom type="capsule" fromto="0 0 0 0.2 {out} 0" size="0.03"/></body></body>"#
        )
    };
    for names in [["left", "right"], ["one", "two"]] {
        let both = arm(names[0], 0.25, 0.05) + &arm(names[1], -0.25, -0.05);
        // What does not move may stand anywhere.
        let model =
            robot(&format!(r#"{both}<body name="box" pos="0 3 0"><geom size="0.1"/></body>"#), "");
        let (mirror, _) = Mirror::find(&model, 1, &Pairs::default()).unwrap();
        let at = |name: usize| model.joint(&format!("{}_bend", names[name])).unwrap();
        assert_eq!(mirror.joints[at(0)], at(1), "{names:?}");
        let wrong = Mirror::find(&model, 0, &Pairs::default()).unwrap_err();
        assert!(matches!(wrong, MirrorError::Elsewhere { .. }), "{wrong}");
    }
    // A robot that is bolted beside the plane has the plane through itself.
    let cart = r#"<body name="cart" pos="0.7 0 0"><joint name="slide" type="slide" axis="1 0 0"/>
        <geom size="0.1"/><body name="pole" pos="0 0 0.5"><joint name="hinge" axis="0 1 0"/>
        <geom size="0.1"/></body></body>"#;
    assert!(Mirror::find(&robot(cart, ""), 0, &Pairs::default()).is_ok());
}
