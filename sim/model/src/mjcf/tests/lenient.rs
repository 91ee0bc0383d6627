//! What MuJoCo takes is taken: text that XML does not allow, limits without an end, skins.

use super::parse_text;
use crate::Model;
use crate::mjcf::load;

fn arm(joint: &str, more: &str) -> Result<Model, String> {
    let text = format!(
        "<mujoco>{more}<worldbody><body><joint name=\"j\" {joint}/><geom size=\".1\"/></body></worldbody></mujoco>"
    );
    parse_text(text).map_err(|e| e.to_string())
}

#[test]
fn skins_are_ignored_in_one_line() {
    let skins = "<asset><skin name=\"a\" file=\"a.skn\"/></asset>\
                 <deformable><skin name=\"b\"><bone body=\"c\"/></skin><skin/></deformable>";
    let model = arm("", skins).unwrap();
    let lines = model.ignored_lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("<skin> (3) at robot.xml:1:"), "{lines:?}");
    assert!(lines[0].ends_with("only for drawing"), "{lines:?}");
}

/// The range that MuJoCo 4.0 gives the control, in degrees where the joint turns.
#[test]
fn a_range_that_is_no_limit_is_inherited_too() {
    let inherits = |joint: &str, share: &str| {
        let servo =
            format!("<actuator><position joint=\"j\" inheritrange=\"{share}\"/></actuator>");
        arm(joint, &servo).map(|m| m.actuators[0].ctrlrange)
    };
    for (joint, share, range) in [
        ("type=\"slide\" range=\"-1 1\" limited=\"false\"", "1", [-1.0, 1.0]),
        ("type=\"slide\" range=\"-1 1\" limited=\"false\"", "0.5", [-0.5, 0.5]),
        (
            "range=\"-180 180\" limited=\"false\"",
            "1",
            [-1.0, 1.0].map(|x| x * std::f64::consts::PI),
        ),
    ] {
        assert_eq!(inherits(joint, share), Ok(Some(range)), "{joint}");
    }
    for joint in ["", "range=\"0 0\" limited=\"false\"", "type=\"slide\" range=\"-inf inf\""] {
        let error = inherits(joint, "1").unwrap_err();
        assert!(error.contains("give it one, or this actuator a ctrlrange"), "{error}");
    }
}

#[test]
fn an_infinite_range_is_no_limit() {
    let motor =
        "<actuator><motor joint=\"j\" ctrlrange=\"-inf inf\" forcerange=\"-INF 3\"/></actuator>";
    let model =
        arm("type=\"slide\" range=\"-inf inf\" actuatorfrcrange=\"-inf inf\"", motor).unwrap();
    let (joint, motor) = (&model.joints[0], &model.actuators[0]);
    assert_eq!((joint.range, joint.actfrcrange, motor.ctrlrange), (None, None, None));
    assert_eq!(motor.forcerange, Some([-1e10, 3.0]));
    for wrong in ["range=\"nan 1\"", "range=\"inf -inf\"", "damping=\"inf\"", "ref=\"inf\""] {
        assert!(arm(wrong, "").is_err(), "{wrong}");
    }
}

/// As MuJoCo 4.0: `boundinertia` raises a moment that is zero but for rounding.
#[test]
fn dummies_of_equal_moments_are_raised_by_the_compilers_bounds() {
    let body = |compiler: &str, full: &str| {
        let text = format!(
            "<mujoco><compiler {compiler}/><worldbody><body><joint/><inertial pos=\"0 0 0\" mass=\"1e-6\" fullinertia=\"{full}\"/></body></worldbody></mujoco>"
        );
        let model = parse_text(text).map_err(|e| e.to_string())?;
        Ok::<_, String>((model.bodies[1].mass, model.bodies[1].inertia))
    };
    let equal = "1e-6 1e-6 1e-6 1e-6 1e-6 1e-6";
    let flat = "1e-3 1e-3 0 0 0 0";
    assert_eq!(body("boundinertia=\"1e-5\"", equal), Ok((1e-6, [1e-5; 3])));
    let both = "boundinertia=\"1e-3\" boundmass=\"1e-3\"";
    assert_eq!(body(both, equal), Ok((1e-3, [1e-3; 3])));
    assert_eq!(body("boundinertia=\"1e-5\"", flat), Ok((1e-6, [1e-3, 1e-3, 1e-5])));
    for compiler in ["", "balanceinertia=\"true\"", "boundmass=\"1\""] {
        let error = body(compiler, equal).unwrap_err();
        assert!(error.contains("task.balance_inertia = true"), "{error}");
    }
    let negative = "1e-3 1e-3 -1e-12 0 0 0";
    assert!(body("boundinertia=\"1e-5\"", negative).is_err());
}

/// As MuJoCo 4.0, which turns a mocap body whose rotation has no length by nothing.
#[test]
fn a_keyframes_rotation_of_no_length_is_none() {
    let key = |quat: &str, mquat: &str| {
        let text = format!(
            "<mujoco><worldbody><body mocap=\"true\" {quat}/></worldbody><keyframe><key mquat=\"{mquat}\"/></keyframe></mujoco>"
        );
        parse_text(&text).unwrap().keyframes[0].moves_mocap
    };
    let turned = "quat=\"0 1 0 0\"";
    assert!(!key("", "0 0 0 0") && !key("", "0 1e-16 0 0") && !key("", "2 0 0 0"));
    assert!(key(turned, "0 0 0 0") && key("", "0 1e-14 0 0") && !key(turned, "0 -1e-14 0 0"));
}

/// Comments may be in any encoding; values in one that is declared.
#[test]
fn a_file_in_another_encoding_is_read_or_names_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robot.xml");
    let read = |head: &str, comment: &[u8], name: &[u8]| {
        let parts: [&[u8]; 7] = [
            head.as_bytes(),
            b"<mujoco>\n<!-- ",
            comment,
            b" -- --><worldbody><body name=\"",
            name,
            b"\"><joint/><geom size=\".1\"/></body></worldbody></mujoco>",
            b"</mujoco>",
        ];
        std::fs::write(&path, parts.concat()).unwrap();
        load(&path).map_err(|e| e.to_string())
    };
    let declared = |encoding: &str| format!("<?xml version=\"1.0\" encoding=\"{encoding}\"?>");
    for head in ["", &declared("UTF-8"), &declared("x-none"), &declared("ISO-8859-1")] {
        let model = read(head, b"25 \xB0C", b"a").unwrap();
        assert_eq!(model.ignored[0].what, "what stands behind the root element");
    }
    let model = read(&declared("ISO-8859-1"), b"", b"Ger\xE4t").unwrap();
    assert_eq!(model.bodies[1].name, "Gerät");
    let error = read(&declared("x-none"), b"", b"Ger\xE4t").err().unwrap();
    assert!(error.contains("robot.xml:2:"), "{error}");
    assert!(error.contains("iconv"), "{error}");
}
