//! Textures, as MuJoCo's compiler has them and as a browser shows them.

use super::browser::{self, pixels};
use super::ostler;
use crate::common::forked::Forked as _;
use crate::support::referee::referee_python;
use ostler_sim::model::looks::{Looks, Paint, Surface, TextureKind};
use ostler_sim::model::mjcf;
use ostler_trainer::draw::camera::{Camera, View};
use ostler_trainer::draw::math::v3;
use ostler_trainer::draw::render::Renderer;
use ostler_trainer::draw::{Geoms, Image, Poses, Scene};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A PNG file of `channels` samples of `depth` bits, whose bytes are all different from their
/// neighbours.
fn png(path: &Path, wide: u32, high: u32, color: png::ColorType, depth: png::BitDepth) {
    let file = std::fs::File::create(path).unwrap();
    let mut encoder = png::Encoder::new(file, wide, high);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == png::ColorType::Indexed {
        encoder.set_palette((0..3 * 16).map(|k| (k * 37) as u8).collect::<Vec<u8>>());
        encoder.set_trns((0..16).map(|k| 16 * k as u8).collect::<Vec<u8>>());
    }
    let row = (wide as usize * color.samples() * depth as usize).div_ceil(8);
    let bytes: Vec<u8> = (0..row * high as usize).map(|k| (k * 41 + k / 7 * 13) as u8).collect();
    encoder.write_header().unwrap().write_image_data(&bytes).unwrap();
}

/// Every kind of texture, each on a box; names of those that MuJoCo draws itself begin with `b`.
fn textures(folder: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (kind, size) in [
        ("2d", "width=\"7\" height=\"5\""),
        ("2d", "width=\"8\" height=\"16\""),
        ("cube", "width=\"8\""),
        ("skybox", "width=\"5\""),
    ] {
        for builtin in ["gradient", "checker", "flat"] {
            for mark in ["none", "edge", "cross", "random"] {
                let more = format!(
                    "type=\"{kind}\" {size} builtin=\"{builtin}\" mark=\"{mark}\" rgb1=\".3 .99 0\" \
                     rgb2=\"1 .2 .61\" markrgb=\".11 .52 .73\" random=\".2\""
                );
                all.push((format!("b{}", all.len()), more));
            }
        }
    }
    use png::{BitDepth::*, ColorType::*};
    for (name, color, depth) in [
        ("grey", Grayscale, Eight),
        ("grey4", Grayscale, Four),
        ("grey16", Grayscale, Sixteen),
        ("greya", GrayscaleAlpha, Eight),
        ("rgb", Rgb, Eight),
        ("rgb16", Rgb, Sixteen),
        ("rgba", Rgba, Eight),
        ("listed", Indexed, Four),
    ] {
        png(&folder.join(format!("{name}.png")), 6, 4, color, depth);
        all.push((name.into(), format!("type=\"2d\" file=\"{name}.png\"")));
    }
    all.push(("over".into(), "type=\"2d\" file=\"rgb.png\" hflip=\"true\"".into()));
    all.push((
        "down".into(),
        "type=\"2d\" file=\"rgb16.png\" vflip=\"true\" hflip=\"true\"".into(),
    ));
    png(&folder.join("square.png"), 4, 4, Rgb, Eight);
    png(&folder.join("other.png"), 4, 4, Rgba, Eight);
    png(&folder.join("grid.png"), 12, 9, Rgb, Eight);
    all.push(("square".into(), "file=\"square.png\" vflip=\"true\"".into()));
    let grid = "type=\"cube\" file=\"grid.png\" gridsize=\"3 4\" gridlayout=\".U..LFRB.D..\"";
    all.push(("grid".into(), grid.into()));
    let few = "file=\"grid.png\" gridsize=\"3 4\" gridlayout=\".U..L..B....\" rgb1=\".1 .2 .3\"";
    all.push(("few".into(), few.into()));
    let six =
        "fileright=\"square.png\" fileup=\"other.png\" fileback=\"square.png\" rgb1=\"1 0 .5\"";
    all.push(("six".into(), six.into()));
    all
}

const OBJ: &str = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nvt 1 .25\nvt .5 1\nvt .1 .9\n\
                   f 1/1 3/3 2/2\nf 1/1 4/4 3/3\nf 1/1 2/2 5/4\nf 2/2 3/3 5/4\nf 3/3 4/4 5/1\nf 4/4 1/1 5/2\n";

/// A robot that has them all, and meshes with texture coordinates.
fn robot(folder: &Path, all: &[(String, String)]) -> String {
    std::fs::write(folder.join("mesh.obj"), OBJ).unwrap();
    let textures = all.iter().map(|(name, more)| format!("<texture name=\"{name}\" {more}/>"));
    let material = |(name, _): &(String, String)| {
        format!(
            "<material name=\"{name}\" texture=\"{name}\" texrepeat=\"3 2.5\" texuniform=\"true\"/>"
        )
    };
    let geom = |(name, _): &(String, String)| {
        format!("<geom name=\"{name}\" type=\"box\" size=\"1 1 1\" material=\"{name}\"/>")
    };
    let vertex = "0 0 0 1 0 0 0 1 0 0 0 1";
    format!(
        "<mujoco><default><default class=\"d\"><material texture=\"rgb\" texrepeat=\"7 8\" rgba=\"1 .5 .25 1\"/></default></default>
        <asset>{}{}<material name=\"layers\" rgba=\".5 .5 .5 1\"><layer role=\"normal\" texture=\"grey\"/><layer role=\"rgb\" texture=\"rgb\"/></material>
        <material name=\"class\" class=\"d\"/>
        <mesh name=\"obj\" file=\"mesh.obj\"/><mesh name=\"mirrored\" file=\"mesh.obj\" scale=\"1 -1 1\"/>
        <mesh name=\"own\" vertex=\"{vertex}\" face=\"0 2 1 0 1 3 0 3 2 1 2 3\" texcoord=\".1 .2 .3 .4 .5 .6 .7 .8\" material=\"rgba\"/></asset>
        <worldbody>{}<geom name=\"layers\" size=\"1\" material=\"layers\"/><geom name=\"class\" size=\"1\" material=\"class\"/>
        <geom name=\"obj\" type=\"mesh\" mesh=\"obj\" material=\"rgb\"/><geom name=\"mirrored\" type=\"mesh\" mesh=\"mirrored\" material=\"rgb\"/>
        <geom name=\"own\" type=\"mesh\" mesh=\"own\"/></worldbody></mujoco>",
        textures.collect::<String>(),
        all.iter().map(material).collect::<String>(),
        all.iter().map(geom).collect::<String>(),
    )
}

/// Texture coordinates of each face's corners.
fn corners(surface: &Surface) -> Vec<[[f32; 2]; 3]> {
    let faces = surface.coord_faces.iter();
    faces.map(|f| f.map(|i| surface.coords[i as usize])).collect()
}

/// Pixels, materials and texture coordinates are those of MuJoCo's compiled model.
#[test]
fn textures_are_those_that_mujoco_compiles() {
    let Some(python) = referee_python() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let all = textures(dir.path());
    let file = dir.path().join("robot.xml");
    std::fs::write(&file, robot(dir.path(), &all)).unwrap();
    let script = "import json, sys, mujoco\n\
        m = mujoco.MjModel.from_xml_path(sys.argv[1])\n\
        t = {}\n\
        for i in range(m.ntex):\n\
        \x20   w, h, n = int(m.tex_width[i]), int(m.tex_height[i]), int(m.tex_nchannel[i])\n\
        \x20   a = m.tex_adr[i]\n\
        \x20   t[m.texture(i).name] = [w, h, m.tex_data[a:a + w*h*n].tolist()]\n\
        g = {}\n\
        rgb = mujoco.mjtTextureRole.mjTEXROLE_RGB\n\
        for i in range(m.ngeom):\n\
        \x20   k = m.geom_matid[i]\n\
        \x20   g[m.geom(i).name] = [m.texture(m.mat_texid[k, rgb]).name, m.mat_texrepeat[k].tolist(),\n\
        \x20       bool(m.mat_texuniform[k]), m.mat_rgba[k].tolist()]\n\
        c = {}\n\
        for i in range(m.nmesh):\n\
        \x20   f, n = m.mesh_faceadr[i], m.mesh_facenum[i]\n\
        \x20   at = m.mesh_facetexcoord[f:f + n] + m.mesh_texcoordadr[i]\n\
        \x20   c[m.mesh(i).name] = m.mesh_texcoord[at].tolist()\n\
        print(json.dumps([t, g, c]))\n";
    let out = Command::new(python).args(["-c", script]).arg(&file).forked().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    let (model, looks) = mjcf::Reading { looks: true, ..Default::default() }.read(&file).unwrap();
    assert!(looks.missing.is_empty() && looks.plain.is_empty(), "{looks:?}");
    assert_eq!(looks.textures.len(), all.len());
    for texture in &looks.textures {
        let name = &texture.name;
        let theirs = &told[0][name];
        let size = [&theirs[0], &theirs[1]].map(|x| x.as_u64().unwrap() as usize);
        assert_eq!([texture.width, texture.height], size, "{name}");
        let theirs: Vec<u8> = serde_json::from_value(theirs[2].clone()).unwrap();
        assert_eq!(texture.data.len(), theirs.len(), "{name}");
        // Sines and roots may differ in their last bit, which is cut off.
        let slack = u8::from(name.starts_with('b'));
        let far = texture.data.iter().zip(&theirs).filter(|(a, b)| a.abs_diff(**b) > slack);
        assert_eq!(far.count(), 0, "{name}: {:?}\n{theirs:?}", texture.data);
        let sum: u64 = theirs.iter().map(|b| u64::from(*b)).sum();
        let mean = sum as f64 / (255 * theirs.len()) as f64;
        let ours = texture.mean().iter().map(|c| f64::from(*c)).sum::<f64>() / 3.0;
        assert!((ours - mean).abs() < 0.004, "{name}: {ours} {mean}");
    }
    let geoms = told[1].as_object().unwrap();
    assert_eq!(looks.painted.len(), geoms.len());
    for (name, theirs) in geoms {
        let paint = &looks.painted[name];
        assert_eq!(looks.textures[paint.texture].name, theirs[0], "{name}");
        let repeat: [f32; 2] = serde_json::from_value(theirs[1].clone()).unwrap();
        assert_eq!((paint.repeat, Value::from(paint.uniform)), (repeat, theirs[2].clone()));
        let rgba: [f32; 4] = serde_json::from_value(theirs[3].clone()).unwrap();
        let geom = model.geoms.iter().find(|g| g.name == *name).unwrap();
        assert_eq!(geom.rgba, rgba, "{name}");
    }
    assert_eq!(looks.meshes.len(), 3);
    for surface in &looks.meshes {
        let theirs: Vec<[[f32; 2]; 3]> =
            serde_json::from_value(told[2][&surface.name].clone()).unwrap();
        assert_eq!(corners(surface), theirs, "{}", surface.name);
    }
    kinds(&looks);
}

fn kinds(looks: &Looks) {
    let flat = looks.textures.iter().filter(|t| t.kind == TextureKind::Flat);
    assert_eq!(flat.count(), 24 + 8 + 2);
    let Paint { repeat, .. } = looks.painted["class"];
    assert_eq!(repeat, [7.0, 8.0]);
}

/// Shapes of all kinds with textures of all kinds in red and blue, on a floor that has one, too.
const PAINTED: &str = r#"
<mujoco>
  <asset>
    <texture name="check" type="2d" builtin="checker" width="32" height="32" rgb1="1 0 0" rgb2="0 0 1"/>
    <texture name="tilt" type="2d" file="tilt.png"/>
    <texture name="cube" type="cube" file="grid.png" gridsize="2 3" gridlayout="RLUDFB"/>
    <material name="floor" texture="check" texrepeat=".5 1" texuniform="true"/>
    <material name="around" texture="tilt" texrepeat="2 1"/>
    <material name="uniform" texture="check" texrepeat="8 6" texuniform="true"/>
    <material name="cube" texture="cube"/>
    <material name="stretched" texture="cube" texuniform="true"/>
    <mesh name="tent" vertex="-.5 -.4 0 .5 -.4 0 .5 .4 0 -.5 .4 0 0 0 .7" face="0 1 4 1 2 4 2 3 4 3 0 4 0 2 1 0 3 2" texcoord="0 1 1 1 1 0 0 0 .5 .5"/>
    <mesh name="bare" vertex="-.5 -.4 0 .5 -.4 0 .5 .4 0 -.5 .4 0 0 0 .7"/>
    <hfield name="hill" nrow="3" ncol="3" size=".6 .6 .4 .1" elevation="0 0 0 0 1 0 0 0 0"/>
  </asset>
  <worldbody>
    <geom type="plane" size="0 0 1" material="floor"/>
    <geom type="plane" size=".6 .4 1" pos="3.5 2 .6" euler="60 0 0" material="around"/>
    <geom type="sphere" size=".5" pos="-3 0 .7" material="around"/>
    <geom type="ellipsoid" size=".4 .5 .7" pos="-1.8 0 .8" material="around"/>
    <geom type="capsule" size=".4 .3" pos="-.6 0 .8" material="around"/>
    <geom type="cylinder" size=".5 .4" pos=".6 0 .6" material="around"/>
    <geom type="box" size=".5 .3 .4" pos="1.9 0 .6" euler="0 0 30" material="around"/>
    <geom type="box" size=".5 .3 .4" pos="3.3 0 .6" euler="0 0 -30" material="uniform"/>
    <geom type="sphere" size=".5" pos="-3 2 .7" material="cube"/>
    <geom type="capsule" size=".4 .3" pos="-1.8 2 .8" material="stretched"/>
    <geom type="cylinder" size=".5 .6" pos="-.6 2 .7" material="stretched"/>
    <geom type="box" size=".5 .3 .4" pos=".6 2 .6" euler="0 0 30" material="cube"/>
    <geom type="mesh" mesh="tent" pos="1.9 2 .3" euler="0 0 20" material="around"/>
    <geom type="mesh" mesh="bare" pos="-1 4 .3" material="around"/>
    <geom type="mesh" mesh="tent" pos="1 4 .3" material="cube"/>
    <geom type="hfield" hfield="hill" pos="3 4 .4" material="around"/>
    <body name="arm" pos="0 0 9"><joint name="swing"/><geom size=".1"/></body>
  </worldbody>
  <actuator><motor name="swing" joint="swing" ctrlrange="-1 1"/></actuator>
</mujoco>"#;

/// A picture of `wide` x `high` squares of 8 pixels, red and blue.
fn squares(path: &Path, wide: usize, high: usize, red: impl Fn(usize, usize) -> bool) {
    let file = std::fs::File::create(path).unwrap();
    let mut encoder = png::Encoder::new(file, 8 * wide as u32, 8 * high as u32);
    encoder.set_color(png::ColorType::Rgb);
    let pixel = |k: usize| match red(k % (8 * wide) / 8, k / (8 * wide) / 8) {
        true => [255, 0, 0],
        false => [0, 0, 255],
    };
    let bytes: Vec<u8> = (0..64 * wide * high).flat_map(pixel).collect();
    encoder.write_header().unwrap().write_image_data(&bytes).unwrap();
}

/// Red and blue lie where the program's own pictures have them, which `draw` tests.
#[test]
fn a_page_lays_textures_as_pictures_do() {
    let Some(mut browser) = browser::open(1000, 500) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    // No picture is its own mirror image.
    squares(&dir.path().join("tilt.png"), 5, 4, |x, y| [7, 9, 28, 16][y] >> x & 1 == 1);
    squares(&dir.path().join("grid.png"), 12, 8, |x, y| (x * x + 3 * y + x * y / 3) % 5 < 2);
    let file = dir.path().join("odd.xml");
    std::fs::write(&file, PAINTED).unwrap();
    std::fs::write(dir.path().join("odd.toml"), super::TASK).unwrap();
    let page = dir.path().join("page.html");
    let out = ostler()
        .args(["play", "odd.toml", "--agent", "zero", "--seconds", "0.1", "--html", "page.html"])
        .current_dir(dir.path())
        .forked()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && !said.contains("cannot be drawn"), "{said}");
    browser.show(&format!("file://{}", page.display()));
    let (eye, target) = (v3(0.4, -5.0, 4.5), v3(0.2, 1.2, 0.0));
    browser.eval("ostler.source.playing && ostler.source.toggle(), ostler.source.seek(0), ostler.view.follow = false, 0");
    browser.eval(
        "for (const id of ['tools', 'hud']) document.getElementById(id).style.display = 'none'",
    );
    browser.eval(&format!(
        "const v = ostler.view; v.camera.fov = 2 * Math.atan(0.36) * 180 / Math.PI; v.camera.updateProjectionMatrix();\
         v.camera.position.set({}, {}, {}); v.controls.target.set({}, {}, {}); v.scene.fog.density = 0; 0",
        eye.x, eye.y, eye.z, target.x, target.y, target.z
    ));
    let drawn = browser.eval("ostler.frames").as_u64().unwrap();
    browser.until(&format!("ostler.frames > {}", drawn + 30));
    let place = browser.eval(
        "(() => { const r = ostler.view.canvas.getBoundingClientRect(); return [r.left, r.top, r.width, r.height] })()",
    );
    let [left, top, width, height]: [f64; 4] = serde_json::from_value(place).unwrap();
    let [left, top, width, height] = [left, top, width, height].map(|x| x as usize);
    let shot = browser.screenshot();
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);

    let (model, looks) = mjcf::Reading { looks: true, ..Default::default() }.read(&file).unwrap();
    let scene = Scene::new(&model, &looks, Geoms::Auto);
    assert_eq!(scene.missing, None);
    let sight = target - eye;
    let azimuth = sight.y.atan2(sight.x);
    let elevation = (sight.z / sight.norm()).asin();
    let view = View::look_at(target, azimuth, elevation, sight.norm());
    let light = Camera::new(&scene, 2.0).light();
    let mut image = Image::new(width, height, [0; 3]);
    Renderer::new(&scene, light, width, height).draw(&Poses::initial(&model), &view, &mut image);
    if let Some(kept) = std::env::var_os("OSTLER_KEEP_PICTURES") {
        std::fs::write(Path::new(&kept).join("page.png"), &shot).unwrap();
        image.write_png(&Path::new(&kept).join("draw.png")).unwrap();
    }
    let shot = pixels(&shot);
    // Far from any edge in both: red, or blue.
    let hue = |[r, _, b]: [u8; 3]| match i32::from(r) - i32::from(b) {
        50.. => Some(true),
        ..-50 => Some(false),
        _ => None,
    };
    let (mut same, mut other) = (0, 0);
    for y in 2..height - 2 {
        for x in 2..width - 2 {
            let around = [(-2, 0), (2, 0), (0, -2), (0, 2)]
                .map(|(i, j)| hue(image.get((x as i32 + i) as usize, (y as i32 + j) as usize)));
            let ours = hue(image.get(x, y));
            if ours.is_none() || around.iter().any(|a| *a != ours) {
                continue;
            }
            match hue(shot[(top + y) * 1000 + left + x]) {
                theirs if theirs == ours => same += 1,
                _ => other += 1,
            }
        }
    }
    assert!(same > 50_000, "{same} pixels are alike");
    let share = f64::from(other) / f64::from(same + other);
    assert!(share < 0.02, "{other} pixels of {} differ", same + other);
}
