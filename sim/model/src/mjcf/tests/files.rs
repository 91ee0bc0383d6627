//! Files: omitted parts, includes, and hostile files.

use super::*;
use proptest::prelude::*;

#[test]
fn places_count_characters_not_bytes() {
    let text = "<mujoco>\n<!-- Käfer -->\n<worldbody><geom name=\"größe\" sise=\"1\"/>";
    let text = format!("{text}</worldbody></mujoco>");
    let message = parse_text(text).unwrap_err().to_string();
    assert!(message.starts_with("robot.xml:3:31: "), "{message}");
}

#[test]
fn what_means_off_passes_though_not_supported() {
    let text = r#"<mujoco><option noslip_iterations="0"/><worldbody><body mocap="false">
        <joint name="j" springdamper="0 0"/><geom size="1" fluidshape="none" adhesion="0"/></body></worldbody>
        <actuator><position joint="j" timeconst="0"/></actuator></mujoco>"#;
    let model = parse_text(text).unwrap();
    assert_eq!(model.ignored, []);
}

#[test]
fn what_concerns_sleep_is_read_and_listed() {
    let text = r#"<mujoco><option sleep_tolerance="0.1"><flag sleep="enable"/></option><worldbody>
        <body sleep="init"><freejoint/><geom size="1"/></body></worldbody></mujoco>"#;
    let model = parse_text(text).unwrap();
    assert_eq!(model.options.flags, []);
    let why: Vec<_> = model.ignored.iter().map(|i| i.why.as_str()).collect();
    assert_eq!(why, ["bodies never sleep here"; 3]);
}

#[test]
fn shapes_that_are_only_seen_are_skipped_and_listed() {
    let text = r#"<mujoco><default><default class="v"><geom type="mesh" contype="0" conaffinity="0"/></default></default>
<asset><mesh name="shell" file="shell.stl"/></asset>
<worldbody><body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<geom class="v" mesh="shell"/><geom size="1"/></body></worldbody></mujoco>"#;
    let model = parse_text(text).unwrap();
    assert_eq!(model.geoms.len(), 1);
    let what: Vec<_> = model.ignored.iter().map(|i| (i.what.as_str(), i.place.as_str())).collect();
    assert_eq!(
        what,
        [("<mesh> \"shell\"", "robot.xml:2:8"), ("<geom> \"shell\"", "robot.xml:4:1")]
    );
    // Without <inertial> its mass would be missing.
    let message =
        parse_text(text.replace("<inertial pos=\"0 0 0\" mass=\"1\" diaginertia=\"1 1 1\"/>", ""));
    assert!(message.unwrap_err().to_string().contains("shell.stl"));
}

#[test]
fn colours_come_from_materials_where_geoms_have_none() {
    let text = r#"<mujoco><asset><material name="red" rgba="1 0 0 1"/></asset><worldbody>
<geom size="1" material="red"/><geom size="1" material="red" rgba="0 1 0 1"/><geom size="1"/></worldbody></mujoco>"#;
    let colours: Vec<_> = parse_text(text).unwrap().geoms.iter().map(|g| g.rgba).collect();
    assert_eq!(colours, [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0], [0.5, 0.5, 0.5, 1.0]]);
}

#[test]
fn includes_stay_inside_the_models_folder() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("robot");
    std::fs::create_dir_all(folder.join("parts")).unwrap();
    std::fs::write(root.path().join("secret.xml"), "<mujoco/>").unwrap();
    std::fs::write(
        folder.join("parts/floor.xml"),
        "<mujoco>\n<geom name=\"floor\" size=\"1\"/></mujoco>",
    )
    .unwrap();
    std::fs::write(folder.join("parts/bad.xml"), "<mujoco>\n <gem/></mujoco>").unwrap();
    std::fs::write(folder.join("self.xml"), "<mujoco><include file=\"self.xml\"/></mujoco>")
        .unwrap();
    std::os::unix::fs::symlink("../secret.xml", folder.join("link.xml")).unwrap();
    let main = folder.join("main.xml");
    let with = |file: &str| {
        parse(
            &main,
            format!("<mujoco><worldbody>\n<include file=\"{file}\"/></worldbody></mujoco>"),
        )
    };
    let model = with("parts/floor.xml").unwrap();
    assert_eq!(model.geoms[0].name, "floor");
    assert_eq!(model.sources, [main.clone(), folder.join("parts/floor.xml")]);
    // A folder that was named may hold more.
    let above = "<mujoco>chat<include file=\"../secret.xml\"/></mujoco>";
    std::fs::write(&main, above).unwrap();
    let within = load_within(&main, folder.parent()).unwrap();
    assert_eq!(within.sources[1], folder.join("../secret.xml"));
    assert_eq!(within.ignored[0].what, "text inside <mujoco>");
    let nowhere = load_within(&main, Some(&folder.join("nowhere")));
    let message = nowhere.unwrap_err().to_string();
    assert!(message.contains("nowhere"), "{message}");
    let message = load_within(&main, Some(&folder.join("parts")));
    let message = message.unwrap_err().to_string();
    assert!(message.contains("is outside"), "{message}");
    for outside in ["../secret.xml", "/etc/passwd", "parts/../../secret.xml", "link.xml", ""] {
        let message = with(outside).unwrap_err().to_string();
        assert!(message.contains("main.xml:2:16: "), "{message}");
        assert!(message.contains("outside the model's folder"), "{message}");
        // The remedy is told where there is one; the whole file system is none.
        let above = format!("; here that is {}", folder.parent().unwrap().display());
        assert_eq!(message.contains(&above), outside.ends_with(".xml"), "{message}");
        assert_eq!(message.contains("here that is"), outside.ends_with(".xml"), "{message}");
    }
    let message = with("parts/bad.xml").unwrap_err().to_string();
    assert!(message.contains("parts/bad.xml:2:2: unknown element <gem>"), "{message}");
    let message = with("missing.xml").unwrap_err().to_string();
    assert!(message.contains("main.xml:2:16: cannot read"), "{message}");
    let message = load(&folder.join("self.xml")).unwrap_err().to_string();
    assert!(message.contains("second time"), "{message}");
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("binary.xml");
    std::fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    let missing = folder.path().join("missing.xml");
    for path in [missing, folder.path().to_path_buf()] {
        assert!(matches!(load(&path), Err(MjcfError::Read { .. })));
    }
    // Any bytes may be a text, of some encoding.
    let message = load(&binary).unwrap_err().to_string();
    assert!(message.contains("not well-formed"), "{message}");
}

#[test]
fn deep_nesting_is_refused() {
    let deep = |n: usize| {
        let inner = "<body><geom size=\"1\"/>".repeat(n) + &"</body>".repeat(n);
        parse_text(format!("<mujoco><worldbody>{inner}</worldbody></mujoco>"))
    };
    assert_eq!(deep(150).unwrap().bodies.len(), 151);
    for n in [1000, 100_000] {
        assert!(deep(n).unwrap_err().to_string().contains("deep"));
    }
}

#[test]
fn entities_are_refused() {
    let mut laughs = String::from("<!DOCTYPE m [<!ENTITY a \"ha\">");
    for (this, last) in ('b'..='z').zip('a'..) {
        laughs += &format!("<!ENTITY {this} \"{}\">", format!("&{last};").repeat(10));
    }
    laughs += "]><mujoco model=\"&z;\"/>";
    let message = parse_text(laughs).unwrap_err().to_string();
    assert!(message.contains("<!DOCTYPE>"), "{message}");
}

#[test]
fn huge_numbers_do_not_panic() {
    for value in ["1e308", "-1e308", "1e-308", "4.9e-324", "1e154", "1e103"] {
        for path in robots() {
            let text = std::fs::read_to_string(path).unwrap();
            let text = text.replace("size=\"0.", &format!("size=\"{value} 0."));
            let _ = parse_text(text.replace("pos=\"0 ", &format!("pos=\"{value} ")));
        }
        let text = format!(
            "<mujoco><worldbody><body><joint axis=\"{value} 0 1\"/><geom size=\"{value}\"/>\
             <geom size=\"1\" pos=\"{value} 0 0\" quat=\"{value} 0 0 1\"/></body></worldbody></mujoco>"
        );
        if let Ok(model) = parse_text(text) {
            let finite = |x: &[f64]| x.iter().all(|x| x.is_finite());
            for b in &model.bodies {
                assert!(
                    b.mass.is_finite() && finite(&b.inertia) && finite(&b.ipos),
                    "{value} {b:?}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A file with random damage is read or refused with a place, never a panic.
    #[test]
    fn random_mutations_never_panic(
        which in 0usize..6,
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..8, ".{0,6}"), 1..6),
    ) {
        let paths = robots();
        let mut text: Vec<char> = std::fs::read_to_string(&paths[which % paths.len()]).unwrap().chars().collect();
        for (place, kind, junk) in edits {
            let i = place.index(text.len());
            match kind {
                0 => { text.remove(i); }
                1 => { text.splice(i..i, junk.chars()); }
                2 => text[i] = '0',
                3 => text[i] = '-',
                4 => text[i] = '"',
                5 => { let end = (i + 40).min(text.len()); text.drain(i..end); }
                6 => { let end = (i + 80).min(text.len()); let copy = text[i..end].to_vec(); text.splice(i..i, copy); }
                _ => { text.splice(i..i, "1e300 ".chars()); }
            }
            if text.is_empty() { text.push('<'); }
        }
        match parse_text(text.into_iter().collect::<String>()) {
            Ok(model) => prop_assert_eq!(model.qpos0.len(), model.nq),
            Err(e) => prop_assert!(e.to_string().starts_with("robot.xml:"), "{e}"),
        }
    }
}

/// One rule for all kinds of files: what lies in the folder in the end is inside.
#[test]
fn files_in_the_models_folder_are_inside_however_their_names_go() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("robot");
    let obj = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
    let mut field = [2_i32, 2].map(i32::to_le_bytes).concat();
    field.extend([0.0_f32, 1.0, 0.0, 1.0].map(f32::to_le_bytes).concat());
    let part = "<mujoco><worldbody><body name=\"part\"><joint/><geom size=\".1\"/></body></worldbody></mujoco>";
    let kid = part.replace("<mujoco>", "<mujoco model=\"kid\">");
    std::fs::create_dir_all(at.join("assets/deep")).unwrap();
    for folder in [at.clone(), dir.path().into()] {
        std::fs::write(folder.join("m.obj"), obj).unwrap();
        std::fs::write(folder.join("h.bin"), &field).unwrap();
        std::fs::write(folder.join("part.xml"), part).unwrap();
        std::fs::write(folder.join("kid.xml"), &kid).unwrap();
    }
    std::os::unix::fs::symlink(dir.path(), at.join("away")).unwrap();
    std::os::unix::fs::symlink("assets/deep", at.join("near")).unwrap();
    let mesh = |name: &str| {
        format!(
            "<mujoco><asset><mesh name=\"m\" file=\"{name}\"/></asset><worldbody><geom type=\"mesh\" mesh=\"m\"/></worldbody></mujoco>"
        )
    };
    let hfield = |name: &str| {
        format!(
            "<mujoco><asset><hfield name=\"h\" size=\"1 1 1 1\" file=\"{name}\"/></asset><worldbody><geom type=\"hfield\" hfield=\"h\"/></worldbody></mujoco>"
        )
    };
    let include = |name: &str| format!("<mujoco><include file=\"{name}\"/></mujoco>");
    let attach = |name: &str| {
        format!(
            "<mujoco><asset><model name=\"k\" file=\"{name}\"/></asset><worldbody><frame><attach model=\"k\" prefix=\"k_\"/></frame></worldbody></mujoco>"
        )
    };
    let urdf = |name: &str| {
        format!(
            "<robot name=\"r\"><link name=\"l\"><collision><geometry><mesh filename=\"{name}\"/></geometry></collision></link></robot>"
        )
    };
    type Text<'a> = &'a dyn Fn(&str) -> String;
    let kinds: [(&str, Text); 5] = [
        ("m.obj", &mesh),
        ("h.bin", &hfield),
        ("part.xml", &include),
        ("kid.xml", &attach),
        ("m.obj", &urdf),
    ];
    let main = at.join("main.xml");
    let full = at.display().to_string();
    for (file, with) in kinds {
        for inside in [
            "assets/../",
            "./",
            "assets/deep/../../",
            "assets/./../",
            "../robot/",
            "assets/../../robot/",
            // As in MuJoCo: folders that are not there, and links by their names.
            "nowhere/../",
            "near/../",
            &format!("{full}/"),
            &format!("{full}/assets/../"),
        ] {
            let read = parse(&main, with(&format!("{inside}{file}")));
            assert!(read.is_ok(), "{inside}{file}: {}", read.unwrap_err());
        }
        for outside in ["../", "assets/../../", "away/", "assets/../away/", &format!("{full}/../")]
        {
            let why = parse(&main, with(&format!("{outside}{file}"))).unwrap_err().to_string();
            assert!(
                why.contains("is outside the model's folder") && why.contains("task.robot_folder"),
                "{outside}{file}: {why}"
            );
        }
    }
    // Folders of kinds go the same ways.
    for dir in ["assets", "assets/", "./assets/", "near", &format!("{full}/assets")] {
        let text =
            mesh("../m.obj").replace("<asset>", &format!("<compiler meshdir=\"{dir}\"/><asset>"));
        assert!(parse(&main, text).is_ok(), "{dir}");
    }
}

#[test]
fn files_of_one_stem_have_one_name_in_mjcf_and_are_refused() {
    for (assets, kind) in [
        ("<mesh file=\"a/m.obj\"/><mesh file=\"b/m.stl\"/>", "mesh"),
        (
            "<texture type=\"2d\" file=\"a/t.png\"/><texture type=\"2d\" file=\"b/t.png\"/>",
            "texture",
        ),
        (
            "<hfield size=\"1 1 1 1\" file=\"a/h.png\"/><hfield size=\"1 1 1 1\" file=\"b/h.png\"/>",
            "hfield",
        ),
        ("<material name=\"m\"/><material name=\"m\"/>", "material"),
    ] {
        let why = parse_text(format!("<mujoco><asset>{assets}</asset></mujoco>")).unwrap_err();
        let why = why.to_string();
        assert!(why.contains(&format!("there are two <{kind}>")), "{why}");
    }
    let skies = "<texture type=\"skybox\" builtin=\"flat\" width=\"2\" height=\"2\"/>".repeat(2);
    parse_text(format!("<mujoco><asset>{skies}</asset></mujoco>")).unwrap();
}
