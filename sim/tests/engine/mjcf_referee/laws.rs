//! What an actuator takes from its class, in all pairs of elements of two classes.

use super::{Check, referee, row};
use ostler_sim::model::{Model, mjcf};
use serde_json::Value;
use std::path::Path;

/// What a class gives. None has a positive third bias, which MuJoCo reads as a damping ratio.
const GIVEN: [&str; 15] = [
    "",
    r#"<motor gear="5"/>"#,
    r#"<position kp="20" kv="2" forcerange="-3 3"/>"#,
    r#"<position kp="3" timeconst="0.2"/>"#,
    r#"<velocity kv="3" group="2"/>"#,
    r#"<intvelocity kp="9" kv="1"/>"#,
    r#"<damper kv="7" ctrlrange="0 2"/>"#,
    r#"<cylinder area="2" bias="-1 -2 -3" timeconst="0.3"/>"#,
    r#"<muscle force="10" lmin="0.3"/>"#,
    r#"<adhesion gain="4" ctrlrange="0 1"/>"#,
    r#"<dcmotor motorconst="0.1" resistance="2" saturation="3"/>"#,
    r#"<general gainprm="4 5" biastype="affine" biasprm="-1 -2 -3" actearly="true"/>"#,
    r#"<general dyntype="filterexact" dynprm="0.1" gainprm="6" biasprm="-3 -7 -4" inheritrange="0.5"/>"#,
    r#"<general gaintype="affine" gainprm="4 5 -6" gear="2"/>"#,
    r#"<general dyntype="filter" dynprm="0.1 0.7" gaintype="muscle" gainprm="0.5 1.2 3 100 0.4 1.7 1.4 1.2 1.1"/>"#,
];

/// Actuators that say little of their own.
const TAKE: [&str; 9] = [
    r#"<motor joint="a"/>"#,
    r#"<position joint="a"/>"#,
    r#"<velocity joint="a"/>"#,
    r#"<intvelocity joint="a" actrange="-1 1"/>"#,
    r#"<damper joint="a" ctrlrange="0 1"/>"#,
    r#"<cylinder joint="a"/>"#,
    r#"<muscle joint="a" lengthrange="0 1"/>"#,
    r#"<adhesion body="b" ctrlrange="0 1"/>"#,
    r#"<general joint="a" lengthrange="0 1"/>"#,
];

fn file(classes: &str, class: &str) -> String {
    let all: String = TAKE.iter().map(|t| t.replacen(' ', &format!(" {class} "), 1)).collect();
    format!(
        r#"<mujoco><default>{classes}</default><worldbody>
<body name="b"><joint name="a" range="-60 60"/><geom size="0.1" pos="0.1 0 0"/></body>
</worldbody><actuator>{all}</actuator></mujoco>"#
    )
}

/// What a control becomes; parameters that its form does not use may be anything.
fn check(file: &str, m: &Model, theirs: &Value) {
    let c = Check { file, theirs };
    for (i, a) in m.actuators.iter().enumerate() {
        let dynamics = row(theirs, "actuator_dyntype", i)[0];
        if dynamics == 5.0 {
            // A DC motor's parameters are affine here.
            assert_ne!(a.gain, [0.0; 3]);
            continue;
        }
        c.field("actuator_dyntype", i, &[f64::from(a.dynamics as u8)]);
        let used = [0, 0, 1, 1, 2][dynamics as usize];
        c.same("dynprm", &a.dynprm[..used], &row(theirs, "actuator_dynprm", i)[..used]);
        c.field("actuator_actearly", i, &[f64::from(a.actearly)]);
        c.field("actuator_gear", i, &a.gear);
        c.range("actuator_ctrllimited", "actuator_ctrlrange", i, a.ctrlrange);
        c.range("actuator_forcelimited", "actuator_forcerange", i, a.forcerange);
        let form = |of: &str| row(theirs, of, i)[0];
        let muscle = (form("actuator_gaintype") == 2.0, form("actuator_biastype") == 2.0);
        let own = a.muscle.as_ref();
        assert_eq!(own.is_some_and(|m| m.gain.is_some()), muscle.0, "{a:?}");
        assert_eq!(own.is_some_and(|m| m.bias.is_some()), muscle.1, "{a:?}");
        for (form, prm, own) in [
            (form("actuator_gaintype") + 1.0, "actuator_gainprm", &a.gain),
            (form("actuator_biastype") * 2.0, "actuator_biasprm", &a.bias),
        ] {
            // None, fixed, affine, muscle.
            let used = [0, 1, 3, 0, 0][form as usize];
            c.same(prm, &own[..used], &row(theirs, prm, i)[..used]);
        }
    }
}

#[test]
fn actuators_take_from_their_classes_what_mujocos_take() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (i, outer) in GIVEN.iter().enumerate() {
        for (j, inner) in GIVEN.iter().enumerate() {
            let nested = format!(r#"{outer}<default class="z">{inner}</default>"#);
            let mut files = vec![("nested", file(&nested, r#"class="z""#))];
            // An element stands in a class once.
            let name = |e: &str| e.split_ascii_whitespace().next().map(str::to_string);
            if i * j > 0 && name(outer) != name(inner) {
                files.push(("same", file(&format!("{outer}{inner}"), "")));
            }
            for (kind, text) in files {
                let path = folder.path().join(format!("{i}_{j}_{kind}.xml"));
                std::fs::write(&path, text).unwrap();
                paths.push(path);
            }
        }
    }
    let Some(answer) = referee(&paths) else {
        return;
    };
    assert_eq!(answer.len(), paths.len());
    let mut read = 0;
    for (path, theirs) in &answer {
        match (mjcf::load(Path::new(path)), theirs.get("error")) {
            (Ok(model), None) => check(path, &model, theirs),
            (Err(_), Some(_)) => continue,
            // Half a DC motor is refused here.
            (Err(e), None) if e.to_string().contains("a DC motor has") => continue,
            (Err(e), None) => panic!("{e}"),
            (Ok(_), Some(error)) => panic!("MuJoCo refuses {path}: {error}"),
        }
        read += 1;
    }
    assert!(read > 300, "{read} of {}", answer.len());
}
