//! Textures on shapes, where MuJoCo's renderer has them.

use super::*;
use std::f32::consts::FRAC_PI_2;

const RED: &str = "rgb1=\"1 0 0\" rgb2=\"0 0 1\"";

fn read(assets: &str, world: &str) -> (Model, Looks) {
    let text = format!("<mujoco><asset>{assets}</asset><worldbody>{world}</worldbody></mujoco>");
    let (model, looks) = shown(Path::new("robot.xml"), text);
    assert!(looks.plain.is_empty(), "{looks:?}");
    (model, looks)
}

/// Something large and out of sight: what is far away for a small robot is hazy.
const GIANT: &str = "<body pos=\"0 0 -50\"><freejoint/><geom size=\"5\"/></body>";

/// The picture from `view`, and red less blue where a point of the world is in it.
fn seen((model, looks): &(Model, Looks), view: View) -> impl Fn(V3) -> i32 + use<> {
    let scene = Scene::new(model, looks, Geoms::Auto);
    let light = Camera::new(&scene, 4.0 / 3.0).light();
    let mut image = Image::new(320, 240, [0; 3]);
    Renderer::new(&scene, light, 320, 240).draw(&Poses::initial(model), &view, &mut image);
    move |p| {
        let (x, y, _) = view.project(p, 320.0, 240.0);
        let [r, _, b] = image.get(x as usize, y as usize);
        i32::from(r) - i32::from(b)
    }
}

const DOWN: f32 = -1.55;

/// Red where the first colour is, blue where the second: `u` and `v` in pictures.
fn red(u: f32, v: f32) -> bool {
    let half = |x: f32| x - x.floor() < 0.5;
    half(u) == half(v)
}

#[test]
fn checks_of_an_endless_floor_have_the_size_that_the_file_says() {
    for (repeat, uniform) in [([1.0, 1.0], false), ([0.5, 2.0], true)] {
        let [a, b] = repeat;
        let assets = format!(
            "<texture name=\"t\" type=\"2d\" builtin=\"checker\" width=\"64\" height=\"64\" {RED}/>
             <material name=\"m\" texture=\"t\" texrepeat=\"{a} {b}\" texuniform=\"{uniform}\"/>"
        );
        let floor = "<geom type=\"plane\" size=\"0 0 1\" material=\"m\"/>";
        let robot = read(&assets, &format!("{floor}{GIANT}"));
        let look = seen(&robot, View::look_at(v3(0.1, 0.2, 0.0), FRAC_PI_2, DOWN, 6.0));
        for k in 0..400_u16 {
            let (x, y) = (f32::from(k % 20) * 0.13 - 1.2, f32::from(k / 20) * 0.13 - 1.2);
            let (u, v) = (0.5 * a * x - 0.5, -0.5 * b * y - 0.5);
            // Not at an edge.
            if [u, v].iter().any(|c| ((2.0 * c).round() - 2.0 * c).abs() < 0.1) {
                continue;
            }
            let found = look(v3(x, y, 0.0));
            assert!(found.abs() > 60 && (found > 0) == red(u, v), "{x} {y}: {found}");
        }
    }
}

#[test]
fn a_finite_plane_counts_from_its_corner_and_repeats_over_itself() {
    let assets = format!(
        "<texture name=\"t\" type=\"2d\" builtin=\"checker\" width=\"64\" height=\"64\" {RED}/>
         <material name=\"m\" texture=\"t\" texrepeat=\"1 2\"/>"
    );
    let floor = "<geom type=\"plane\" size=\"1.5 1 1\" material=\"m\"/>";
    let robot = read(&assets, &format!("{floor}{GIANT}"));
    let look = seen(&robot, View::look_at(v3(0.0, 0.0, 0.0), FRAC_PI_2, DOWN, 6.0));
    // Twice along y, once along x, the first row at +y.
    for (x, y, want) in [
        (-0.7, 0.8, true),
        (0.7, 0.8, false),
        (-0.7, 0.3, false),
        (0.7, 0.3, true),
        (-0.7, -0.3, true),
        (0.7, -0.8, true),
    ] {
        let found = look(v3(x, y, 0.0));
        assert!(found.abs() > 60 && (found > 0) == want, "{x} {y}: {found}");
    }
}

/// Colours are products as they are shown, not of light.
#[test]
fn a_material_tints_its_texture_and_a_shape_has_at_least_the_mean() {
    let assets =
        "<texture name=\"t\" builtin=\"checker\" width=\"2\" rgb1=\".3 .2 .1\" rgb2=\".1 .2 .3\"/>
         <material name=\"m\" texture=\"t\" rgba=\".2 .3 .4 1\"/>";
    let body = |more: &str| format!("<geom type=\"sphere\" size=\"1\" material=\"m\" {more}/>");
    for (more, tint) in [("", [0.2, 0.3, 0.4]), ("rgba=\".1 .2 1 1\"", [0.1, 0.2, 1.0])] {
        let (model, looks) = read(assets, &body(more));
        let scene = Scene::new(&model, &looks, Geoms::Auto);
        // Bytes are cut off: 51 of 255, and the mean of 76 and 25.
        let seen = [50.5, 51.0, 50.5].map(|x| x / 255.0);
        let mean = linear([0, 1, 2].map(|i| tint[i] * seen[i]));
        let found = scene.solids[0].color;
        for (found, mean) in [(found.x, mean.x), (found.y, mean.y), (found.z, mean.z)] {
            assert!((found / mean - 1.0).abs() < 0.01, "{found} {mean}");
        }
        assert_eq!(scene.solids[0].coat.as_ref().unwrap().tint, tint);
    }
}

#[test]
fn a_cube_has_its_last_colour_below_and_goes_with_the_shape() {
    let assets = format!(
        "<texture name=\"t\" builtin=\"flat\" width=\"4\" {RED}/><material name=\"m\" texture=\"t\"/>"
    );
    // Below is -y of the shape; the second one is upside down.
    let robot = read(
        &assets,
        "<geom type=\"box\" size=\".4 .4 .4\" pos=\"-1 0 2\" material=\"m\"/>
         <geom type=\"box\" size=\".4 .4 .4\" pos=\"1 0 2\" euler=\"180 0 0\" material=\"m\"/>
         <geom type=\"sphere\" size=\".4\" pos=\"0 0 2\" material=\"m\"/>",
    );
    let front = seen(&robot, View::look_at(v3(0.0, 0.0, 2.0), FRAC_PI_2, 0.0, 5.0));
    let [one, two, ball] = [-1.0, 1.0, 0.0].map(|x| front(v3(x, -0.4, 2.0)));
    assert!(one < -60 && two > 60 && ball < -60, "{one} {two} {ball}");
    let back = seen(&robot, View::look_at(v3(0.0, 0.0, 2.0), -FRAC_PI_2, 0.0, 5.0));
    let [one, two, ball] = [-1.0, 1.0, 0.0].map(|x| back(v3(x, 0.4, 2.0)));
    assert!(one > 60 && two < -60 && ball > 60, "{one} {two} {ball}");
}

#[test]
fn a_mesh_has_its_own_coordinates() {
    // The left half of the square has the red quarter, the right half the blue one.
    let assets = format!(
        "<texture name=\"t\" type=\"2d\" builtin=\"checker\" width=\"64\" height=\"64\" {RED}/>
         <material name=\"m\" texture=\"t\"/>
         <mesh name=\"s\" vertex=\"-1 0 -1 0 0 -1 0 0 1 -1 0 1 1 0 -1 1 0 1 0 1 0\"
           face=\"0 1 2 0 2 3 1 4 5 1 5 2 0 6 1 1 6 4 4 6 5 5 6 2 2 6 3 3 6 0\"
           texcoord=\".1 .1 .3 .1 .3 .3 .1 .3 .9 .1 .9 .3 .5 .5\"/>"
    );
    let robot = read(
        &assets,
        "<geom type=\"mesh\" mesh=\"s\" pos=\"0 0 3\" material=\"m\" contype=\"0\" conaffinity=\"0\" mass=\"0\"/>",
    );
    let look = seen(&robot, View::look_at(v3(0.0, 0.0, 3.0), FRAC_PI_2, 0.0, 5.0));
    assert!(look(v3(-0.5, 0.0, 3.2)) > 60 && look(v3(-0.8, 0.0, 2.3)) > 60);
    assert!(look(v3(0.8, 0.0, 3.2)) < -60 && look(v3(0.7, 0.0, 2.3)) < -60);
}

/// What was too large, or is not there, is said beside the shapes.
#[test]
fn textures_that_are_not_drawn_are_named() {
    let text = "<mujoco><asset><texture name=\"t\" type=\"2d\" file=\"lost.png\"/><texture name=\"u\" builtin=\"flat\" width=\"9000\"/>
        <material name=\"m\" texture=\"t\" rgba=\"1 0 0 1\"/><material name=\"n\" texture=\"u\"/></asset><worldbody>
        <geom size=\"1\" material=\"m\"/><geom size=\"1\" material=\"n\"/></worldbody></mujoco>";
    let (model, looks) = shown(Path::new("robot.xml"), text.into());
    let scene = Scene::new(&model, &looks, Geoms::Auto);
    assert_eq!(scene.solids[0].color, linear([1.0, 0.0, 0.0]));
    assert!(scene.solids[0].coat.is_none() && scene.solids[1].coat.is_some());
    let said = scene.missing.unwrap();
    assert!(said.starts_with("a texture cannot be drawn: t (robot.xml:1:"), "{said}");
    assert!(said.ends_with("a texture is drawn smaller: u (9000 x 54000 pixels)"), "{said}");
}
