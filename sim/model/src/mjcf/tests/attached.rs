//! Refusals of attached models, the places where their files may lie, and the cost of copies.
//! `sim/tests/engine/mjcf_referee` compares their meaning with MuJoCo's.

use super::*;

const KID: &str = r#"<mujoco model="kid"><worldbody><frame name="stand"><body name="arm"><joint name="arm"/><geom size="1"/></body></frame></worldbody>
  <actuator><motor name="arm" joint="arm"/></actuator></mujoco>"#;

/// A folder with a model to attach.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("robot/parts")).unwrap();
    std::fs::write(folder.path().join("robot/parts/kid.xml"), KID).unwrap();
    std::fs::write(folder.path().join("secret.xml"), KID).unwrap();
    folder
}

fn in_folder(folder: &tempfile::TempDir, text: &str) -> Result<Model, MjcfError> {
    parse(&folder.path().join("robot/main.xml"), text.to_string())
}

/// `~` marks the place and is taken out.
#[test]
fn what_is_wrong_is_named_at_its_place() {
    let folder = folder();
    let with = |worldbody: &str| {
        format!(
            "<mujoco>\n<asset><model name=\"kid\" file=\"parts/kid.xml\"/></asset>\n<worldbody>\n{worldbody}\n</worldbody></mujoco>"
        )
    };
    let asset = |model: &str| {
        format!(
            "<mujoco><asset>\n{model}\n</asset><worldbody><attach model=\"kid\" prefix=\"a\"/></worldbody></mujoco>"
        )
    };
    let body = "<body name=\"b\"><geom size=\"1\"/></body>";
    let table = [
        (with("~<attach model=\"kid\"/>"), "needs prefix"),
        (with("<attach model=~\"kidd\" prefix=\"a\"/>"), "did you mean \"kid\""),
        (with("<attach model=\"kid\" body=~\"ram\" prefix=\"a\"/>"), "no body called \"ram\"; did you mean \"arm\"? in the attached"),
        (with("<attach model=\"kid\" frame=~\"arm\" prefix=\"a\"/>"), "no frame called \"arm\""),
        (with("~<attach model=\"kid\" body=\"arm\" frame=\"stand\" prefix=\"a\"/>"), "keep one"),
        (with("<attach model=\"kid\" ~suffix=\"arm\" prefix=\"a\"/>"), "unknown attribute"),
        (with("~<attach prefix=\"a\"/>"), "needs body"),
        (with(&format!("<attach body=~\"b\" prefix=\"a\"/>{body}")), "before this place"),
        (with("<body name=\"b\"><geom size=\"1\"/><attach body=~\"b\" prefix=\"a\"/></body>"), "before this place"),
        (with("<attach model=\"kid\" prefix=\"a\"/><body name=~\"aarm\"><geom size=\"1\"/></body>"), "two <body>"),
        (with("~<replicate><body/></replicate>"), "needs count"),
        (with("<replicate count=~\"-1\"><body/></replicate>"), "cannot be negative"),
        (with("<replicate count=~\"2 3\"><body/></replicate>"), "whole number"),
        (with("<replicate count=\"2\" euler=~\"1\"><body/></replicate>"), "3 numbers"),
        (with("<replicate count=\"2\" childclass=~\"c\"/>"), "no default class"),
        (with("<body><replicate count=\"2\">~<joint/></replicate></body>"), "unknown element <joint>"),
        (with("<replicate count=\"2\" offset=\"1 0 0\"><body/><attach model=\"kid\" body=~\"b\" prefix=\"a\"/></replicate>"), "no body"),
        (with("~<replicate count=\"40001\"><geom size=\"1\"/></replicate>"), "more than 40000"),
        (asset("<model name=\"kid\" file=~\"nothing.xml\"/>"), "cannot read"),
        (asset("<model name=\"kid\" file=~\"../secret.xml\"/>"), "outside the model's folder"),
        (asset("<model name=\"kid\" file=~\"main.xml\"/>"), "attaches itself"),
        (asset("~<model name=\"kid\"/>"), "needs file"),
        (asset("<model file=\"parts/kid.xml\"/>~<model file=\"parts/kid.xml\"/>"), "two models"),
        ("<mujoco><compiler conflict=\"merge\"/><asset><model file=\"parts/kid.xml\"/></asset>\n<worldbody>~<attach model=\"kid\" prefix=\"a\"/></worldbody></mujoco>".into(), "conflict"),
    ];
    std::fs::write(folder.path().join("robot/main.xml"), "<mujoco/>").unwrap();
    for (text, words) in table {
        let place = text.find('~').unwrap();
        let before = &text[..place];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap().chars().count();
        let quoted = text[place + 1..].starts_with('"');
        let text = text.replacen('~', "", 1);
        let message = in_folder(&folder, &text).unwrap_err().to_string();
        let place = format!("main.xml:{line}:{}: ", column + usize::from(quoted));
        assert!(message.contains(&place), "{place} {message}");
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn a_mistake_in_an_attached_file_is_named_there() {
    let folder = folder();
    let wrong = KID.replace("size=\"1\"", "sise=\"1\"");
    std::fs::write(folder.path().join("robot/parts/wrong.xml"), wrong).unwrap();
    let text = "<mujoco><asset><model name=\"w\" file=\"parts/wrong.xml\"/></asset><worldbody><attach model=\"w\" prefix=\"a\"/></worldbody></mujoco>";
    let message = in_folder(&folder, text).unwrap_err().to_string();
    assert!(message.contains("parts/wrong.xml:1:"), "{message}");
    assert!(message.contains("did you mean \"size\""), "{message}");
}

#[test]
fn attached_files_have_folders_of_their_own() {
    let folder = folder();
    let robot = folder.path().join("robot");
    std::fs::create_dir_all(robot.join("parts/more")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(robot.join(name), text).unwrap();
    write("parts/more/geom.xml", "<mujoco><geom name=\"own\" size=\"1\"/></mujoco>");
    write(
        "parts/mid.xml",
        "<mujoco model=\"mid\"><asset><model file=\"../parts/kid.xml\"/></asset><worldbody><body><include file=\"more/geom.xml\"/><attach model=\"kid\" prefix=\"k_\"/></body></worldbody></mujoco>",
    );
    let text = |file: &str| {
        format!(
            "<mujoco><asset><model name=\"m\" file=\"{file}\"/></asset><worldbody><attach model=\"m\" prefix=\"m_\"/></worldbody></mujoco>"
        )
    };
    let model = in_folder(&folder, &text("parts/mid.xml")).unwrap();
    assert_eq!(model.geoms[0].name, "m_own");
    assert_eq!(model.actuators[0].name, "m_k_arm");
    let files: Vec<_> = model.sources.iter().map(|s| s.canonicalize()).skip(1).collect();
    let there = |name: &str| robot.join(name).canonicalize().unwrap();
    let files: Vec<_> = files.into_iter().map(Result::unwrap).collect();
    assert_eq!(
        files,
        [there("parts/mid.xml"), there("parts/more/geom.xml"), there("parts/kid.xml")]
    );
    // They stay in the folder of the file that is read.
    write(
        "parts/out.xml",
        "<mujoco><worldbody><include file=\"../../secret.xml\"/></worldbody></mujoco>",
    );
    let message = in_folder(&folder, &text("parts/out.xml")).unwrap_err().to_string();
    assert!(message.contains("out.xml:1:") && message.contains("outside"), "{message}");
    // Two that attach each other.
    for (a, b) in [("a", "b"), ("b", "a")] {
        write(&format!("parts/{a}.xml"), &text(&format!("{b}.xml")));
    }
    let message = in_folder(&folder, &text("parts/a.xml")).unwrap_err().to_string();
    assert!(message.contains("attaches itself"), "{message}");
}

#[test]
fn copies_have_bounds() {
    let nested = (0..50).fold("<geom size=\"1\"/>".to_string(), |inside, _| {
        format!("<replicate count=\"2\">{inside}</replicate>")
    });
    let text = format!("<mujoco><worldbody><body>{nested}</body></worldbody></mujoco>");
    let message = parse_text(text).unwrap_err().to_string();
    assert!(message.contains("more than 40000"), "{message}");
    // A sensor without a place is copied with every copy: twice as many each time.
    let text = "<mujoco><worldbody><replicate count=\"90\"><body><geom size=\"1\"/></body></replicate></worldbody><sensor><clock/></sensor></mujoco>";
    let message = parse_text(text).unwrap_err().to_string();
    assert!(message.contains("copies of"), "{message}");
}

/// Each of these is small and would take gigabytes, or hours.
#[test]
fn copies_of_much_are_refused_before_they_are_made() {
    let long = "x".repeat(1 << 20);
    let body = |inside: &str| format!("<mujoco><worldbody>{inside}</worldbody></mujoco>");
    // Names, and what many names of their own ask to be kept.
    let names = format!("<replicate count=\"6000\"><body name=\"{long}\"/></replicate>");
    let values = format!("<replicate count=\"6000\"><site user=\"{long}\"/></replicate>");
    let kept: String = (0..150).map(|i| format!("<body name=\"b{i}\">")).collect();
    let uses: String =
        (0..150).map(|i| format!("<attach body=\"b{i}\" prefix=\"p{i}_\"/>")).collect();
    let kept = format!("{kept}{}{}{uses}", "<site/>".repeat(3000), "</body>".repeat(150));
    for (inside, words) in [
        (names, "32 MiB"),
        (values, "32 MiB"),
        // Each name is kept in several places.
        (
            format!("<replicate count=\"9000\"><body name=\"{}\"/></replicate>", &long[..2000]),
            "32 MiB",
        ),
        (kept, "more than 40000"),
        ("<replicate count=\"2000000000\"><site/></replicate>".into(), "more than 40000"),
    ] {
        let message = parse_text(body(&inside)).unwrap_err().to_string();
        assert!(message.contains(words), "{words}: {message}");
    }
    // Every replicate looks at all names, where something refers to them.
    let many: String = (0..3000)
        .map(|i| format!("<replicate count=\"1\"><site name=\"s{i}_\"/></replicate>"))
        .collect();
    let sensor = "<sensor><framepos objtype=\"site\" objname=\"a\"/></sensor></mujoco>";
    let text = body(&format!("<site name=\"a\"/>{many}")).replace("</mujoco>", sensor);
    let message = parse_text(text).unwrap_err().to_string();
    assert!(message.contains("too many copies of"), "{message}");
}

#[test]
fn a_scene_of_thousands_of_bodies_is_read() {
    let text = "<mujoco><worldbody><replicate count=\"8000\" offset=\"1 0 0\"><body><geom size=\".1\"/></body></replicate></worldbody></mujoco>";
    let model = parse_text(text).unwrap();
    assert_eq!((model.bodies.len(), model.geoms.len()), (8001, 8000));
}

#[test]
fn what_does_not_come_along_is_listed() {
    let folder = folder();
    let kid = KID
        .replace("<worldbody>", "<option timestep=\"0.1\"/><worldbody><body name=\"o\"><joint name=\"o\"/><geom size=\"1\"/></body>")
        .replace("<actuator>", "<equality><joint joint1=\"arm\" joint2=\"o\"/></equality><actuator>");
    std::fs::write(folder.path().join("robot/kid.xml"), kid).unwrap();
    let text = "<mujoco><asset><model name=\"kid\" file=\"kid.xml\"/><model name=\"idle\" file=\"missing.xml\"/></asset>
<worldbody><attach model=\"kid\" body=\"arm\" prefix=\"a_\"/></worldbody></mujoco>";
    let model = in_folder(&folder, text).unwrap();
    let what: Vec<_> = model.ignored.iter().map(|i| i.what.as_str()).collect();
    assert_eq!(what, ["<model> \"idle\"", "<option> of model \"kid\"", "<joint> in <equality>"]);
    assert_eq!((model.equalities.len(), model.options.timestep), (0, 0.002));
}
