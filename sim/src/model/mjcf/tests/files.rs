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
fn shapes_that_are_only_seen_are_skipped_and_listed() {
    let text = r#"<mujoco><default><default class="v"><geom type="mesh" contype="0" conaffinity="0"/></default></default>
<asset><mesh name="shell" file="shell.stl"/></asset>
<worldbody><body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<geom class="v" mesh="shell"/><geom size="1"/></body></worldbody></mujoco>"#;
    let model = parse_text(text).unwrap();
    assert_eq!(model.geoms.len(), 1);
    let what: Vec<_> = model
        .ignored
        .iter()
        .map(|i| (i.what.as_str(), i.place.as_str()))
        .collect();
    assert_eq!(
        what,
        [
            ("<mesh> \"shell\"", "robot.xml:2:8"),
            ("<geom> \"shell\"", "robot.xml:4:1")
        ]
    );
    // Without <inertial> its mass would be missing.
    let message = parse_text(text.replace(
        "<inertial pos=\"0 0 0\" mass=\"1\" diaginertia=\"1 1 1\"/>",
        "",
    ));
    assert!(message.unwrap_err().to_string().contains("shell.stl"));
}

#[test]
fn colours_come_from_materials_where_geoms_have_none() {
    let text = r#"<mujoco><asset><material name="red" rgba="1 0 0 1"/></asset><worldbody>
<geom size="1" material="red"/><geom size="1" material="red" rgba="0 1 0 1"/><geom size="1"/></worldbody></mujoco>"#;
    let colours: Vec<_> = parse_text(text)
        .unwrap()
        .geoms
        .iter()
        .map(|g| g.rgba)
        .collect();
    assert_eq!(
        colours,
        [
            [1.0, 0.0, 0.0, 1.0],
            [0.0, 1.0, 0.0, 1.0],
            [0.5, 0.5, 0.5, 1.0]
        ]
    );
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
    std::fs::write(
        folder.join("self.xml"),
        "<mujoco><include file=\"self.xml\"/></mujoco>",
    )
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
    assert_eq!(
        model.sources,
        [main.clone(), folder.join("parts/floor.xml")]
    );
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
    for outside in [
        "../secret.xml",
        "/etc/passwd",
        "parts/../../secret.xml",
        "link.xml",
        "",
    ] {
        let message = with(outside).unwrap_err().to_string();
        assert!(message.contains("main.xml:2:16: "), "{message}");
        assert!(message.contains("outside the model's folder"), "{message}");
    }
    let message = with("parts/bad.xml").unwrap_err().to_string();
    assert!(
        message.contains("parts/bad.xml:2:2: unknown element <gem>"),
        "{message}"
    );
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
    for path in [
        folder.path().join("missing.xml"),
        folder.path().to_path_buf(),
        binary,
    ] {
        assert!(matches!(load(&path), Err(MjcfError::Read { .. })));
    }
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
