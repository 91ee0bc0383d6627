//! Textures, which only pictures read: what is wrong with them is never an error.

use super::*;
use crate::looks::{Looks, TextureKind};
use crate::test_support::meshes::put;

fn png(wide: u32, high: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, wide, high);
    encoder.set_color(png::ColorType::Rgb);
    let data = vec![90; (3 * wide * high) as usize];
    encoder.write_header().unwrap().write_image_data(&data).unwrap();
    bytes
}

/// The looks of balls in `folder`, each with its texture; training sees the same model.
fn seen(folder: &Path, textures: &[&str]) -> (Model, Looks) {
    let all = textures.iter().enumerate();
    let assets = all.clone().map(|(i, t)| {
        format!("<texture name=\"t{i}\" {t}/><material name=\"m{i}\" texture=\"t{i}\" rgba=\".1 .2 .3 1\"/>")
    });
    let geoms = all.map(|(i, _)| format!("<geom name=\"g{i}\" size=\"1\" material=\"m{i}\"/>"));
    let text = format!(
        "<mujoco><asset>{}</asset><worldbody>{}</worldbody></mujoco>",
        assets.collect::<String>(),
        geoms.collect::<String>()
    );
    let file = folder.join("robot/robot.xml");
    let (model, looks) = parse_looks(&file, text.clone()).unwrap();
    assert_eq!(parse(&file, text).unwrap(), model);
    (model, looks)
}

#[test]
fn textures_that_cannot_be_shown_are_named_and_their_shapes_keep_their_colour() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    put(&folder.join("above.png"), png(2, 2));
    put(&folder.join("robot/wide.png"), png(4, 2));
    put(&folder.join("robot/good.png"), png(2, 2));
    put(&folder.join("robot/cut.png"), &png(20, 20)[..50]);
    put(&folder.join("robot/no.png"), b"<html>not a picture</html>");
    put(&folder.join("robot/a.ktx"), b"\xabKTX 11\xbb");
    let wrong = [
        ("type=\"2d\" file=\"lost.png\"", "cannot read"),
        ("type=\"2d\" file=\"../above.png\"", "outside the model's folder"),
        ("type=\"2d\" file=\"/etc/hostname\"", "PNG"),
        ("type=\"2d\" file=\"cut.png\"", "not a PNG picture"),
        ("type=\"2d\" file=\"no.png\"", "not a PNG picture"),
        ("type=\"2d\" file=\"a.ktx\"", "convert it to PNG"),
        ("type=\"2d\" file=\"good.png\" nchannel=\"1\"", "three or four channels"),
        ("type=\"2d\"", "needs a file"),
        ("", "fileright"),
        ("file=\"wide.png\"", "4 x 2 pixels"),
        ("fileup=\"good.png\" filedown=\"wide.png\"", "filedown is 4 x 2"),
        ("file=\"good.png\" gridsize=\"2 1\"", "2 rows and 1 columns"),
        ("file=\"good.png\" gridsize=\"20 1\"", "at most 12"),
        ("file=\"good.png\" gridsize=\"1e30 1e30\"", "at most 12"),
        ("file=\"good.png\" gridsize=\"2 2\" gridlayout=\"RX..\"", "gridlayout"),
        ("type=\"3d\"", "is not one of 2d, cube, skybox"),
        ("builtin=\"flat\"", "width"),
        ("builtin=\"flat\" width=\"-3\"", "negative"),
        ("builtin=\"checker\" width=\"8\" rgb1=\"1 x 0\"", "is not a number"),
    ];
    let textures: Vec<&str> = wrong.iter().map(|w| w.0).collect();
    let (model, looks) = seen(folder, &textures);
    assert!(looks.textures.is_empty() && looks.painted.is_empty() && looks.missing.is_empty());
    let mut plain = looks.plain.clone();
    plain.sort_by_key(|p| p.name[1..].parse::<usize>().unwrap());
    assert_eq!(plain.len(), wrong.len());
    for ((texture, words), plain) in wrong.iter().zip(&plain) {
        let why = &plain.why;
        assert!(why.starts_with("robot.xml:1:") && why.contains(words), "{texture}: {why}");
    }
    assert!(model.geoms.iter().all(|g| g.rgba == [0.1, 0.2, 0.3, 1.0]));
}

#[test]
fn large_pictures_are_kept_smaller_and_huge_ones_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    put(&dir.path().join("robot/large.png"), png(3000, 2001));
    let mut bomb = png(1, 1);
    // 60,000 by 60,000, by its header alone.
    bomb[16..24].copy_from_slice(&[0, 0, 234, 96, 0, 0, 234, 96]);
    let crc = crc32(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&crc.to_be_bytes());
    put(&dir.path().join("robot/huge.png"), bomb);
    let textures = [
        "type=\"2d\" file=\"large.png\"",
        "type=\"2d\" file=\"huge.png\"",
        "builtin=\"checker\" width=\"2000000000\" rgb1=\"1 1 1\" rgb2=\"0 0 0\"",
        "type=\"2d\" builtin=\"gradient\" width=\"1\" height=\"2000000000\"",
    ];
    let (_, looks) = seen(dir.path(), &textures);
    let [large, checks, thin] = &looks.textures[..] else { panic!("{:?}", looks.plain) };
    assert_eq!((large.width, large.height), (1500, 1001));
    assert_eq!(large.reduced, Some([3000, 2001]));
    assert!(large.data.iter().all(|b| *b == 90));
    assert_eq!(checks.kind, TextureKind::Cube);
    assert_eq!(checks.reduced, Some([2_000_000_000, 12_000_000_000]));
    let mean = checks.mean();
    assert!((mean[0] - 0.5).abs() < 0.01, "{mean:?}");
    let kept: usize = looks.textures.iter().map(|t| t.data.len()).sum();
    assert!(kept < 3 << 24, "{kept}");
    assert!(thin.height > 1 << 12);
    assert_eq!(looks.plain[0].name, "t1");
    assert!(looks.plain[0].why.contains("60000 x 60000 pixels"), "{:?}", looks.plain);
    // However many there are.
    let many = ["builtin=\"flat\" width=\"3000\""; 60];
    let (_, looks) = seen(dir.path(), &many);
    let kept: usize = looks.textures.iter().map(|t| t.data.len()).sum();
    assert!(kept <= 3 << 24, "{kept}");
    assert!(looks.plain.iter().all(|p| p.why.contains("too many pixels")), "{:?}", looks.plain);
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8)
            .fold(crc ^ u32::from(*byte), |c, _| (c >> 1) ^ (0xEDB8_8320 & (c & 1).wrapping_neg()))
    })
}

#[test]
fn textures_and_materials_of_attached_models_keep_each_other() {
    let dir = tempfile::tempdir().unwrap();
    put(&dir.path().join("arm/good.png"), png(2, 2));
    put(
        &dir.path().join("arm/arm.xml"),
        r#"<mujoco model="arm"><default><texture type="2d"/><default class="c"><material texture="t" rgba="1 0 0 1"/></default></default><asset>
        <texture name="t" file="good.png"/><texture type="skybox" builtin="flat" width="4"/>
        <material name="m" class="c"/><material name="n"><layer role="rgb" texture="t"/></material>
        <mesh name="s" vertex="0 0 0 1 0 0 0 1 0 0 0 1" material="n"/></asset>
        <worldbody><body name="b"><freejoint/><geom name="g" size="1" material="m"/><geom name="s" type="mesh" mesh="s"/></body></worldbody></mujoco>"#,
    );
    let text = r#"<mujoco><asset><model name="arm" file="arm/arm.xml"/><texture name="t" type="2d" builtin="flat" width="1" height="1"/></asset>
        <worldbody><attach model="arm" body="b" prefix="p/"/></worldbody></mujoco>"#;
    let (model, looks) = parse_looks(&dir.path().join("robot.xml"), text.into()).unwrap();
    assert_eq!(looks.plain, []);
    let names: Vec<_> = looks.textures.iter().map(|t| (t.name.as_str(), t.kind)).collect();
    assert_eq!(names, [("p/t", TextureKind::Flat)]);
    assert_eq!(looks.painted.len(), 2, "{:?}", looks.painted);
    assert_eq!(model.geoms[0].rgba, [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(model.geoms[1].rgba, [1.0; 4]);
}

#[test]
fn wrong_texture_coordinates_are_named_and_their_meshes_are_whole() {
    let mesh = |name: &str, more: &str| {
        format!(
            "<mesh name=\"{name}\" vertex=\"0 0 0 1 0 0 0 1 0 0 0 1\" face=\"0 2 1 0 1 3 0 3 2 1 2 3\" {more}/>"
        )
    };
    let meshes = [
        mesh("a", "texcoord=\"0 0 1\""),
        mesh("b", "texcoord=\"0 0 1 1\""),
        mesh("c", "texcoord=\"0 0 1 1 0 1 x 0\""),
        mesh("d", "texcoord=\"0 0 1 1 0 1 1 0\""),
        "<mesh file=\"e.obj\"/><mesh file=\"f.obj\"/>".into(),
    ];
    let geoms: String = ["a", "b", "c", "d", "e", "f"]
        .map(|m| format!("<geom type=\"mesh\" mesh=\"{m}\"/>"))
        .concat();
    // Nothing but a picture needs this one.
    let unread = "<geom type=\"mesh\" mesh=\"z\" contype=\"0\" conaffinity=\"0\" mass=\"0\"/>";
    let geoms = format!("{geoms}{unread}");
    let meshes = [meshes.concat(), mesh("z", "scale=\"0 1 1\"")];
    let dir = tempfile::tempdir().unwrap();
    let obj = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nf 1/1 3/1 2/1\nf 1/1 2 4/1\nf 1/1 4 3\nf 2 3 4\n";
    put(&dir.path().join("e.obj"), obj.replace("vt 0 0", "vt 0 zero 0"));
    put(&dir.path().join("f.obj"), obj);
    let text = format!(
        "<mujoco><asset>{}</asset><worldbody>{geoms}</worldbody></mujoco>",
        meshes.concat()
    );
    let file = dir.path().join("robot.xml");
    let (model, looks) = parse_looks(&file, text.clone()).unwrap();
    assert_eq!(parse(&file, text).unwrap(), model);
    let have: Vec<_> = looks.meshes.iter().map(|m| m.coord_faces.len()).collect();
    assert_eq!(have, [0, 0, 0, 4, 0, 4]);
    assert!(looks.meshes.iter().all(|m| m.faces.len() == 4));
    let why: Vec<_> = looks.plain.iter().map(|p| (&p.name[..], &p.why[..])).collect();
    let words = ["multiple of two", "2 texture coordinates for 4", "is not a number", "line 5"];
    for ((name, why), (want, words)) in why.iter().zip(["a", "b", "c", "e"].iter().zip(words)) {
        assert!(name == want && why.contains(words), "{name}: {why}");
    }
    assert_eq!(why.len(), 4);
}
