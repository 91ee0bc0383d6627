use crate::mjcf::parse;
use crate::{EqualityKind, JointKind, Model};
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
        (
            "<robot>\n<link name=\"a\"><visual>~<xacro:box/></visual></link></robot>".to_string(),
            "xacro FILE > robot.urdf",
        ),
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
        (joint("~<mimic/>"), "needs joint"),
        (joint("<mimic joint=\"j\" multiplier=\"~x\"/>"), "not a number"),
        (
            joint("<limit lower=\"0\"/>~<limit upper=\"1\"/>"),
            "a second <limit> in <joint>",
        ),
        (joint("<axis xyz=\"1 0 0\"/>~<axis xyz=\"0 1 0\"/>"), "a second <axis>"),
        (joint("<limit lower=\"~nan\" upper=\"1\"/>"), "\"nan\" in lower is not a number"),
        (joint("<limit lower=\"-1\" upper=\"1\" effort=\"~NaN\"/>"), "is not a number"),
        (joint("~<mimic joint=\"j\"/>"), "follows itself"),
        (joint("<origin xyz=\"0 ~x 0\"/>"), "not a number"),
        (joint("<dynamics damping=\"~no\"/>"), "not a number"),
        (
            joint("<axis xyz=\"1 0 0\"/>") .replace("<joint", "~<joint").replace("1 0 0", "0 0 0"),
            "no direction",
        ),
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
            link("<inertial><mass value=\"1\"/><inertia ixx=\"1e-6\" ixy=\"1e-6\" ixz=\"1e-6\" iyy=\"1e-6\" iyz=\"1e-6\" izz=\"1e-6\"/></inertial>")
                .replace("<inertia ", "~<inertia "),
            "task.balance_inertia = true makes them their mean",
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
        assert!(message.starts_with(&place), "want {place} {message}\n{marked}");
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
            "<transmission> in <robot>",
            "<gazebo> in <robot>",
            "limit/velocity",
            "<safety_controller> in <joint>"
        ]
    );
    assert_eq!((model.bodies.len(), model.joints.len()), (2, 1));
    let joint = &model.joints[0];
    assert_eq!(joint.kind, JointKind::Hinge);
    assert_eq!((joint.range, joint.actfrcrange), (Some([-1.0, 1.0]), Some([-2.0, 2.0])));
}

/// As MuJoCo has it: the effort counts, the ends do not, which a note says.
#[test]
fn a_continuous_joint_has_no_ends() {
    let text = |kind: &str| {
        format!(
            "<robot name=\"r\">{LINKS}<joint name=\"j\" type=\"{kind}\"><parent link=\"base\"/>\
             <child link=\"arm\"/><limit lower=\"-1\" upper=\"1\" effort=\"2\"/></joint></robot>"
        )
    };
    let model = read(&text("continuous")).unwrap();
    assert_eq!((model.joints[0].range, model.joints[0].actfrcrange), (None, Some([-2.0, 2.0])));
    let [note] = &model.ignored[..] else {
        panic!("{:?}", model.ignored);
    };
    assert!(note.what == "limit" && note.why.contains("type=\"revolute\""), "{note:?}");
    assert_eq!(read(&text("revolute")).unwrap().joints[0].range, Some([-1.0, 1.0]));
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
    let model = read(&text("<mimic joint=\"j\" multiplier=\"-2\" offset=\"0.5\"/>")).unwrap();
    let named = |name: &str| model.joints.iter().position(|j| j.name == name);
    let EqualityKind::Joint { joint1, joint2, polycoef } = model.equalities[0].kind else {
        panic!("{:?}", model.equalities);
    };
    assert_eq!((Some(joint1), joint2), (named("k"), named("j")));
    assert_eq!(polycoef, [0.5, -2.0, 0.0, 0.0, 0.0]);
    // One that cannot move follows nothing.
    let fixed = text("<mimic joint=\"j\"/>").replace("prismatic", "fixed");
    let fixed = read(&fixed).unwrap();
    assert!(fixed.equalities.is_empty());
    assert_eq!(fixed.ignored[0].what, "<mimic>");
    let alike = read(&text("<mimic joint=\"j\"/>")).unwrap();
    let EqualityKind::Joint { polycoef, .. } = alike.equalities[0].kind else {
        panic!("{:?}", alike.equalities);
    };
    assert_eq!(polycoef, [0.0, 1.0, 0.0, 0.0, 0.0]);
    assert!(read(&text("")).unwrap().equalities.is_empty());
    // Nor one of nobody: MuJoCo warns and loads.
    let nobody = read(&text("<mimic joint=\"i\"/>")).unwrap();
    assert!(nobody.equalities.is_empty());
    assert!(nobody.ignored.iter().any(|note| note.what == "<mimic> of \"i\""));
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
    let others = ["<contact> in <link>", "<gravity> in <link>", "<joint_properties> in <joint>"];
    assert_eq!(said, [&[base][..], &others[..]].concat());
    assert_eq!((more.bodies, more.joints), (plain.bodies, plain.joints));
    // Blank lines in front shift no place.
    let error = read(&text("<collision/>", "")).unwrap_err();
    assert!(error.contains("robot.urdf:5:"), "{error}");
}

/// As tools write them, one for each part of a mesh's file.
#[test]
fn of_several_materials_the_first_colours_the_shape() {
    let visual = |materials: &str| {
        format!(
            "<robot name=\"r\"><mujoco><compiler discardvisual=\"false\"/></mujoco>{LINKS}<link name=\"tip\">\
             <visual><geometry><sphere radius=\"1\"/></geometry>{materials}</visual>\
             <inertial><mass value=\"1\"/><inertia ixx=\"1\" iyy=\"1\" izz=\"1\" ixy=\"0\" ixz=\"0\" iyz=\"0\"/></inertial></link>\
             <joint name=\"j\" type=\"continuous\"><parent link=\"base\"/><child link=\"tip\"/></joint>\
             <joint name=\"k\" type=\"continuous\"><parent link=\"base\"/><child link=\"arm\"/></joint></robot>"
        )
    };
    let one = "<material name=\"a\"><color rgba=\"1 0 0 1\"/></material>";
    let more = "<material name=\"b\"><color rgba=\"0 1 0 1\"/></material>";
    let plain = read(&visual(one)).unwrap();
    let both = read(&visual(&[one, more, more].concat())).unwrap();
    assert_eq!(both.geoms, plain.geoms);
    let lines = both.ignored_lines();
    assert!(lines.iter().any(|l| l.contains("a second <material> in <visual> (2)")), "{lines:?}");
}

/// Wherever they stand, whatever they are called: each kind is one line of what is said.
#[test]
fn unknown_elements_anywhere_are_ignored_and_named_once_a_kind() {
    let others = "<frame name=\"f\"/><inertial/><ros2_control><joint name=\"j\"/></ros2_control>\
                  <group/><group/><group/><disable_collisions/><drake:joint/><controller:link/>";
    let text = |robot: &str, link: &str, shape: &str, joint: &str| {
        format!(
            "<robot name=\"r\">{robot}{LINKS}<link name=\"tip\">{link}<inertial>{joint}<mass value=\"1\"/>\
             <inertia ixx=\"1\" iyy=\"1\" izz=\"1\" ixy=\"0\" ixz=\"0\" iyz=\"0\"/></inertial>\
             <collision>{shape}<geometry>{shape}<sphere radius=\"1\"/></geometry></collision></link>\
             <joint name=\"j\" type=\"revolute\">{joint}<parent link=\"base\"/><child link=\"tip\"/>\
             <limit lower=\"-1\" upper=\"1\"/></joint>\
             <joint name=\"k\" type=\"continuous\"><parent link=\"base\"/><child link=\"arm\"/></joint></robot>"
        )
    };
    let plain = read(&text("", "", "", "")).unwrap();
    assert_eq!(plain.ignored, []);
    let more = text(
        &format!("{others}<mujoco><contact/></mujoco>"),
        "<origin/><self_filter/><x:collision/>",
        "<verbose/><drake:sphere/>",
        "<hardwareInterface>words</hardwareInterface><limits/>",
    );
    let more = read(&more).unwrap();
    let alike = |m: &Model| (m.bodies.clone(), m.joints.clone(), m.geoms.clone());
    assert_eq!(alike(&more), alike(&plain));
    let lines = more.ignored_lines();
    for (kind, count) in [
        ("<group> in <robot> (3) at robot.urdf:1:", 1),
        ("<frame> in <robot> at", 1),
        ("<inertial> in <robot>", 1),
        ("<ros2_control> in <robot>", 1),
        ("<drake:joint> in <robot>", 1),
        ("<controller:link> in <robot>", 1),
        ("<contact> in <mujoco>", 1),
        ("<origin> in <link>", 1),
        ("<self_filter> in <link>", 1),
        ("<x:collision> in <link>", 1),
        ("<verbose> in <collision>", 1),
        ("<verbose> in <geometry>", 1),
        ("<drake:sphere> in <geometry>", 1),
        ("<hardwareInterface> in <joint>", 1),
        ("<hardwareInterface> in <inertial>", 1),
        ("<limits> in <joint> (did you mean <limit>?)", 1),
    ] {
        let found = lines.iter().filter(|l| l.starts_with(kind)).count();
        assert_eq!(found, count, "{kind}: {lines:#?}");
    }
}

#[test]
fn an_infinite_limit_is_none() {
    let joint = |limit: &str| {
        let text = format!(
            "<robot name=\"r\">{LINKS}<joint name=\"j\" type=\"revolute\"><parent link=\"base\"/><child link=\"arm\"/><limit {limit}/></joint></robot>"
        );
        read(&text).unwrap().joints.remove(0)
    };
    for ends in [
        "lower=\"-inf\" upper=\"inf\"",
        "lower=\"-Infinity\" upper=\"INFINITY\"",
        "lower=\"-1e999\" upper=\"+inf\"",
        "lower=\"1\" upper=\"1\"",
        "effort=\"inf\"",
    ] {
        let joint = joint(ends);
        assert_eq!((joint.range, joint.actfrcrange), (None, None), "{ends}");
    }
    for effort in ["inf", "-inf", "1e999", "0"] {
        let joint = joint(&format!("lower=\"-1\" upper=\"1\" effort=\"{effort}\""));
        let range = Some([-1.0, 1.0]);
        assert_eq!((joint.range, joint.actfrcrange), (range, None), "{effort}");
    }
    // No number gets farther in MuJoCo.
    let range = joint("lower=\"-inf\" upper=\"2\"").range;
    assert_eq!(range, Some([-1e10, 2.0]));
}

/// MuJoCo makes what does not move a part of the world, so that a link may float on it.
#[test]
fn a_link_floats_behind_links_that_do_not_move() {
    let link = |name: &str| {
        format!(
            "<link name=\"{name}\"><inertial><mass value=\"1\"/><inertia ixx=\"1\" iyy=\"1\" izz=\"1\" ixy=\"0\" ixz=\"0\" iyz=\"0\"/></inertial></link>"
        )
    };
    let joint = |kind: &str, parent: &str, child: &str, origin: &str| {
        format!(
            "<joint name=\"{child}_joint\" type=\"{kind}\"><parent link=\"{parent}\"/><child link=\"{child}\"/><origin {origin}/></joint>"
        )
    };
    let up = "xyz=\"0 0 0.5\"";
    let turned = "xyz=\"1 0 0\" rpy=\"0 0 1.5707963267948966\"";
    for (links, joints, names, pos) in [
        (
            "map trunk leg",
            [
                joint("floating", "map", "trunk", up),
                joint("continuous", "trunk", "leg", ""),
                String::new(),
                String::new(),
            ],
            ["trunk", "leg", "", ""],
            [0.0, 0.0, 0.5],
        ),
        (
            "world odom trunk leg",
            [
                joint("fixed", "world", "odom", turned),
                joint("floating", "odom", "trunk", turned),
                joint("continuous", "trunk", "leg", ""),
                String::new(),
            ],
            ["trunk", "leg", "", ""],
            [1.0, 1.0, 0.0],
        ),
        (
            "a stand arm trunk leg",
            [
                joint("fixed", "a", "stand", turned),
                joint("continuous", "stand", "arm", up),
                joint("floating", "stand", "trunk", up),
                joint("continuous", "a", "leg", up),
            ],
            ["arm", "trunk", "leg", ""],
            [1.0, 0.0, 0.5],
        ),
    ] {
        let links: String = links.split(' ').map(link).collect();
        let text = format!("<robot name=\"r\">{links}{}</robot>", joints.concat());
        let model = read(&text).unwrap();
        let bodies: Vec<_> = model.bodies.iter().skip(1).map(|b| b.name.as_str()).collect();
        let wanted: Vec<_> = names.into_iter().filter(|n| !n.is_empty()).collect();
        assert_eq!(bodies, wanted);
        let free = model.joints.iter().find(|j| j.kind == JointKind::Free).unwrap();
        assert_eq!(free.name, "trunk_joint");
        let at = &model.qpos0[free.qpos_adr..free.qpos_adr + 3];
        let near = at.iter().zip(pos).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(near, "{at:?} {pos:?}");
    }
    // Below one that moves it cannot.
    let text = format!(
        "<robot name=\"r\">{}{}{}{}{}</robot>",
        link("a"),
        link("b"),
        link("c"),
        joint("continuous", "a", "b", ""),
        joint("floating", "b", "c", "")
    );
    assert!(read(&text).unwrap_err().contains("a free joint belongs"));
}

/// As MuJoCo: links stand in the order of the joints that bear them.
#[test]
fn bodies_and_joints_stand_in_the_order_of_the_joints() {
    let link = |name: &str| LINKS.replace("<link name=\"base\"/>", "").replace("arm", name);
    let joint = |parent: &str, child: &str| {
        format!(
            "<joint name=\"{child}_j\" type=\"continuous\"><parent link=\"{parent}\"/><child link=\"{child}\"/></joint>"
        )
    };
    let links: String = ["base", "left", "right", "foot"].map(link).concat();
    let joints = [joint("right", "foot"), joint("base", "right"), joint("base", "left")].concat();
    let model = read(&format!("<robot name=\"r\">{links}{joints}</robot>")).unwrap();
    let names: Vec<_> = model.joints.iter().map(|j| j.name.as_str()).collect();
    assert_eq!(names, ["right_j", "foot_j", "left_j"]);
    let bodies: Vec<_> = model.bodies.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(bodies, ["world", "right", "foot", "left"]);
}

/// A circle of followers holds nobody.
#[test]
fn joints_that_follow_each_other_in_a_circle_are_refused() {
    let text = |leaders: [&str; 3]| {
        let mut text = String::from("<robot name=\"r\"><link name=\"base\"/>");
        for (name, leader) in ["a", "b", "c"].into_iter().zip(leaders) {
            text += &LINKS.replace("<link name=\"base\"/>", "").replace("arm", name);
            let mimic = match leader {
                "" => String::new(),
                leader => format!("<mimic joint=\"{leader}_j\"/>"),
            };
            text += &format!(
                "<joint name=\"{name}_j\" type=\"continuous\"><parent link=\"base\"/><child link=\"{name}\"/>{mimic}</joint>"
            );
        }
        text + "</robot>"
    };
    assert_eq!(read(&text(["", "a", "b"])).unwrap().equalities.len(), 2);
    assert_eq!(read(&text(["b", "c", ""])).unwrap().equalities.len(), 2);
    for circle in [["b", "c", "a"], ["b", "a", ""], ["a", "", ""], ["", "c", "b"]] {
        let error = read(&text(circle)).unwrap_err();
        assert!(error.contains("follows itself"), "{circle:?}: {error}");
    }
}
