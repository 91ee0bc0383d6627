use crate::model::mjcf::parse;
use crate::model::{EqualityKind, JointKind, Model};
use std::path::Path;

fn read(text: &str) -> Result<Model, String> {
    parse(Path::new("robot.urdf"), text.to_string()).map_err(|e| e.to_string())
}

const LINKS: &str = r#"<link name="base"/>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"#;

/// Every mistake is found at its place, which `~` marks.
#[test]
fn errors_name_the_place_in_the_urdf() {
    let joint = |inside: &str| {
        format!(
            "<robot name=\"r\">\n{LINKS}\n<joint name=\"j\" type=\"revolute\"><parent link=\"base\"/><child link=\"arm\"/>{inside}</joint>\n</robot>"
        )
    };
    let link = |inside: &str| format!("<robot>\n<link name=\"a\">{inside}</link>\n</robot>");
    let table = [
        ("<robot>\n~<lnk/></robot>".to_string(), "unknown element <lnk>"),
        (
            "<robot>\n~<property name=\"w\" value=\"1\"/><link name=\"a\"/></robot>".into(),
            "xacro FILE > robot.urdf",
        ),
        (
            "<robot>\n<link name=\"a\"/>\n~<link name=\"a\"/></robot>".into(),
            "two links called \"a\"",
        ),
        (
            format!("<robot>{LINKS}<joint name=\"j\" type=\"fixed\"><parent link=\"base\"/>\n~<child link=\"amr\"/></joint></robot>"),
            "did you mean \"arm\"?",
        ),
        (
            format!("<robot>{LINKS}\n~<joint name=\"j\" type=\"fixed\"><parent link=\"base\"/></joint></robot>"),
            "needs <child",
        ),
        (
            format!("<robot>{LINKS}\n~<joint name=\"j\" type=\"bent\"><parent link=\"base\"/><child link=\"arm\"/></joint></robot>"),
            "not one of revolute",
        ),
        (
            "~<robot><link name=\"a\"/><link name=\"b\"/><joint name=\"j\" type=\"fixed\"><parent link=\"a\"/><child link=\"b\"/></joint><joint name=\"k\" type=\"fixed\"><parent link=\"b\"/><child link=\"a\"/></joint></robot>".into(),
            "no root among them",
        ),
        (joint("~<mimic joint=\"k\"/>"), "no joint called \"k\""),
        (joint("~<mimic/>"), "needs joint"),
        (joint("<mimic joint=\"j\" multiplier=\"~x\"/>"), "not a number"),
        (joint("~<limits/>"), "unknown element <limits>"),
        (joint("<origin xyz=\"0 ~x 0\"/>"), "not a number"),
        (joint("<dynamics damping=\"~no\"/>"), "not a number"),
        (
            joint("<axis xyz=\"1 0 0\"/>") .replace("<joint", "~<joint").replace("1 0 0", "0 0 0"),
            "no direction",
        ),
        (link("~<colision/>"), "unknown element <colision>"),
        (link("~<collision/>"), "needs <geometry>"),
        (
            link("<collision><geometry>~<blob/></geometry></collision>"),
            "unknown shape <blob>",
        ),
        (
            link("<collision><geometry>~<sphere/></geometry></collision>"),
            "needs radius",
        ),
        (
            link("<collision><geometry><mesh filename=\"~package://p/a.stl\"/></geometry></collision>"),
            "as far as task.robot_folder reaches",
        ),
        (
            link("<inertial><mass value=\"1\"/>~<inertia ixx=\"1\"/></inertial>"),
            "needs iyy",
        ),
        (
            "<robot><mujoco>~<worldbody/></mujoco></robot>".into(),
            "compiler, option, size",
        ),
    ];
    for (marked, words) in table {
        let message = match read(&marked.replace('~', "")) {
            Ok(_) => panic!("accepted: {marked}"),
            Err(e) => e,
        };
        assert!(message.contains(words), "{message}\n{marked}");
        let before = &marked[..marked.find('~').unwrap()];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap().chars().count();
        let place = format!("robot.urdf:{line}:{column}: ");
        assert!(
            message.starts_with(&place),
            "want {place} {message}\n{marked}"
        );
    }
}

#[test]
fn what_a_robot_can_do_without_is_listed() {
    let joint = |limit: &str| {
        format!(
            "<robot name=\"r\">{LINKS}<link name=\"lonely\"/>\
             <joint name=\"j\" type=\"revolute\"><parent link=\"base\"/><child link=\"arm\"/>{limit}</joint></robot>"
        )
    };
    for (limit, what, limited) in [
        ("<limit lower=\"1.2\" upper=\"-1.2\"/>", "limit", false),
        ("<limit lower=\"1.2\"/>", "limit", false),
        ("", "<joint type=\"revolute\">", false),
        ("<limit lower=\"-1\" upper=\"1\"/>", "", true),
    ] {
        let model = read(&joint(limit)).unwrap();
        let mut listed: Vec<_> = model.ignored.iter().map(|i| i.what.as_str()).collect();
        listed.sort_unstable();
        let mut wanted = vec![what, "<link name=\"lonely\">"];
        wanted.retain(|w| !w.is_empty());
        wanted.sort_unstable();
        assert_eq!(listed, wanted, "{limit}");
        assert_eq!(model.joints[0].range.is_some(), limited, "{limit}");
    }
}

#[test]
fn what_mujoco_does_not_read_is_listed() {
    let text = format!(
        "<robot name=\"r\">{LINKS}<transmission><type>text</type></transmission><gazebo><any/></gazebo>\
         <joint name=\"j\" type=\"revolute\"><parent link=\"base\"/><child link=\"arm\"/>\
         <limit lower=\"-1\" upper=\"1\" effort=\"2\" velocity=\"3\"/><safety_controller/></joint></robot>"
    );
    let model = read(&text).unwrap();
    let what: Vec<_> = model.ignored.iter().map(|i| i.what.as_str()).collect();
    assert_eq!(
        what,
        [
            "<transmission>",
            "<gazebo>",
            "limit/velocity",
            "<safety_controller>"
        ]
    );
    assert_eq!((model.bodies.len(), model.joints.len()), (2, 1));
    let joint = &model.joints[0];
    assert_eq!(joint.kind, JointKind::Hinge);
    assert_eq!(
        (joint.range, joint.actfrcrange),
        (Some([-1.0, 1.0]), Some([-2.0, 2.0]))
    );
}

/// Grippers of laboratories have them.
#[test]
fn a_joint_that_follows_another_is_an_equality() {
    let text = |mimic: &str| {
        format!(
            "<robot name=\"r\">{LINKS}<link name=\"tip\"><inertial><mass value=\"1\"/><inertia ixx=\"1\" iyy=\"1\" izz=\"1\" ixy=\"0\" ixz=\"0\" iyz=\"0\"/></inertial></link>\
             <joint name=\"k\" type=\"prismatic\"><parent link=\"arm\"/><child link=\"tip\"/>{mimic}</joint>\
             <joint name=\"j\" type=\"continuous\"><parent link=\"base\"/><child link=\"arm\"/></joint></robot>"
        )
    };
    let model = read(&text(
        "<mimic joint=\"j\" multiplier=\"-2\" offset=\"0.5\"/>",
    ))
    .unwrap();
    let named = |name: &str| model.joints.iter().position(|j| j.name == name);
    let EqualityKind::Joint {
        joint1,
        joint2,
        polycoef,
    } = model.equalities[0].kind
    else {
        panic!("{:?}", model.equalities);
    };
    assert_eq!((Some(joint1), joint2), (named("k"), named("j")));
    assert_eq!(polycoef, [0.5, -2.0, 0.0, 0.0, 0.0]);
    // Beside the joint that has no limit.
    assert!(model.ignored.iter().any(|i| i.what == "<mimic>"));
    let alike = read(&text("<mimic joint=\"j\"/>")).unwrap();
    let EqualityKind::Joint { polycoef, .. } = alike.equalities[0].kind else {
        panic!("{:?}", alike.equalities);
    };
    assert_eq!(polycoef, [0.0, 1.0, 0.0, 0.0, 0.0]);
    assert!(read(&text("")).unwrap().equalities.is_empty());
}

#[test]
fn deep_chains_are_refused() {
    let mut text = String::from("<robot><link name=\"l0\"/>");
    for i in 1..1000 {
        let up = i - 1;
        text += &format!(
            "<link name=\"l{i}\"/><joint name=\"j{i}\" type=\"fixed\"><parent link=\"l{up}\"/><child link=\"l{i}\"/></joint>"
        );
    }
    assert!(read(&(text + "</robot>")).unwrap_err().contains("deep"));
}

/// What is meant for other programs is listed; the rest of the file stays strict.
#[test]
fn elements_of_other_programs_have_no_effect() {
    let text = |link: &str, joint: &str| {
        format!(
            "\n\n<?xml version=\"1.0\"?>\n<robot name=\"r\">{LINKS}<link name=\"tip\">{link}</link>
            <joint name=\"j\" type=\"fixed\"><parent link=\"arm\"/><child link=\"tip\"/>{joint}</joint></robot>"
        )
    };
    let plain = read(&text("", "")).unwrap();
    let more = read(&text(
        "<contact><lateral_friction value=\"1\"/></contact><gravity>0</gravity>",
        "<joint_properties friction=\"0.0\"/>",
    ));
    let more = more.unwrap();
    let said: Vec<_> = more.ignored.iter().map(|i| i.what.as_str()).collect();
    // No joint has the first link.
    let base = "<link name=\"base\">";
    assert_eq!(said, [base, "<contact>", "<gravity>", "<joint_properties>"]);
    assert_eq!((more.bodies, more.joints), (plain.bodies, plain.joints));
    // Blank lines in front shift no place.
    let error = read(&text("<colision/>", "")).unwrap_err();
    assert!(error.contains("robot.urdf:5:"), "{error}");
}
