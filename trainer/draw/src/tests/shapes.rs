//! Robots as laboratories have them: meshes to look at, hidden shapes that collide.

use super::*;

/// A robot that is only seen in red and only felt in blue, over an endless floor. Its
/// mesh is an L: two bars of a quarter of its box, which is the blue one's.
fn dog(more: &str) -> (Model, Looks) {
    read(&format!(
        r#"<mujoco><asset><mesh name="l" file="l.obj"/></asset>
        <default><default class="seen"><geom type="mesh" mesh="l" group="2" contype="0" conaffinity="0" mass="0" rgba=".9 .1 .1 1"/></default>
        <default class="felt"><geom type="box" size=".5 .5 .5" group="3" rgba=".1 .1 .9 1"/></default></default>
        <worldbody><geom type="plane" size="0 0 .05"/><body name="trunk" pos="0 0 1"><freejoint/>
        <geom class="seen"/><geom class="felt" name="box"/>{more}</body></worldbody></mujoco>"#
    ))
}

/// An L in the plane y, z as the walls of a prism; the notch is at +y, +z.
const L: &str = "v -.5 -.5 -.5\nv -.5 .5 -.5\nv -.5 .5 0\nv -.5 0 0\nv -.5 0 .5\nv -.5 -.5 .5\n\
v .5 -.5 -.5\nv .5 .5 -.5\nv .5 .5 0\nv .5 0 0\nv .5 0 .5\nv .5 -.5 .5\n\
f 1 4 3 2\nf 1 6 5 4\nf 7 8 9 10\nf 7 10 11 12\nf 1 2 8 7\nf 2 3 9 8\nf 3 4 10 9\nf 4 5 11 10\n\
f 5 6 12 11\nf 6 1 7 12\n";

fn read(text: &str) -> (Model, Looks) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("l.obj"), L).unwrap();
    shown(&folder.path().join("dog.xml"), text.into())
}

/// The picture from ahead (+x), and whether the robot is in it.
fn ahead((model, looks): &(Model, Looks), geoms: Geoms) -> (Image, bool) {
    let view = View::look_at(v3(0.0, 0.0, 1.0), std::f32::consts::PI, 0.0, 4.0);
    let scene = Scene::new(model, looks, geoms);
    let light = Camera::new(&scene, 4.0 / 3.0).light();
    let mut image = Image::new(160, 120, [0; 3]);
    let mut renderer = Renderer::new(&scene, light, 160, 120);
    let seen = renderer.draw(&Poses::initial(model), &view, &mut image);
    (image, seen)
}

/// Pixels that are red, and blue; the sky is neither, and the ground fades to it.
fn colours(image: &Image) -> [usize; 2] {
    let count = |is: fn([u32; 3]) -> bool| {
        let pixels = image.data.chunks_exact(3);
        pixels.filter(|c| is([c[0], c[1], c[2]].map(u32::from))).count()
    };
    [count(|[r, g, b]| r > g + 12 && r > b + 8), count(|[r, g, b]| b > 2 * r && b > 2 * g)]
}

#[test]
fn meshes_are_drawn_and_what_collides_where_it_is_asked_for() {
    let robot = dog("");
    let drawn = |geoms| {
        let (image, seen) = ahead(&robot, geoms);
        assert!(seen, "{geoms:?}");
        (colours(&image), image)
    };
    let ([red, blue], image) = drawn(Geoms::Auto);
    assert!(red > 500 && blue == 0, "{red} red, {blue} blue");
    let ([_, all], _) = drawn(Geoms::Collision);
    // Three quarters of the square: the triangles, not their hull.
    let share = red as f32 / all as f32;
    assert!((share - 0.75).abs() < 0.03, "{share}");
    // From ahead +y is at the right.
    let at = |y: f32, z: f32| {
        let view = View::look_at(v3(0.0, 0.0, 1.0), std::f32::consts::PI, 0.0, 4.0);
        let (px, py, _) = view.project(v3(0.5, y, 1.0 + z), 160.0, 120.0);
        image.get(px as usize, py as usize)
    };
    assert!(is_red(at(-0.25, 0.25)) && is_red(at(0.25, -0.25)) && is_red(at(-0.25, -0.25)));
    assert!(!is_red(at(0.25, 0.25)));
    assert_eq!(drawn(Geoms::Visual).0, [red, 0]);
    let ([red, blue], _) = drawn(Geoms::Collision);
    assert!(red == 0 && blue > 500, "{red} red, {blue} blue");
    let ([_, blue], _) = drawn(Geoms::All);
    assert!(blue > 100, "the notch shows the box: {blue}");
}

#[test]
fn what_collides_stands_in_for_what_cannot_be_shown() {
    // A leg whose mesh is missing, one that has none: both are seen; the trunk as before.
    let leg = |y: f32, seen: &str| {
        format!(r#"<body pos="0 {y} 0"><joint/>{seen}<geom class="felt" size=".1 .1 .4"/></body>"#)
    };
    let lost = leg(1.0, r#"<geom class="seen" mesh="nowhere"/>"#);
    let robot = dog(&(lost + &leg(-1.0, "")));
    let (image, _) = ahead(&robot, Geoms::Auto);
    let [red, blue] = colours(&image);
    assert!(red > 500 && blue > 500, "{red} red, {blue} blue");
    let scene = Scene::new(&robot.0, &robot.1, Geoms::Auto);
    let missing = scene.missing.unwrap();
    assert!(missing.contains("a shape cannot be drawn: nowhere (dog.xml:"), "{missing}");
    assert_eq!(scene.nothing, None);
    assert_eq!(colours(&ahead(&robot, Geoms::Visual).0)[1], 0);
    // The hull of what collides as a mesh.
    let text = r#"<mujoco><asset><mesh name="l" file="l.obj"/></asset><worldbody><body pos="0 0 1"><freejoint/>
        <geom type="mesh" mesh="l" group="3" rgba=".9 .1 .1 1"/></body></worldbody></mujoco>"#;
    let felt = read(text);
    let red = |geoms| colours(&ahead(&felt, geoms).0)[0];
    let (surface, hull) = (red(Geoms::Auto), red(Geoms::Collision));
    let share = surface as f32 / hull as f32;
    assert!((share - 6.0 / 7.0).abs() < 0.03, "{share}");
}

#[test]
fn pictures_without_the_robot_say_why() {
    let clip = |robot: &(Model, Looks), geoms, change: fn(&mut Poses)| {
        let mut clip = Clip::new(&robot.0, &robot.1, geoms, 0.02);
        for k in 0..3 {
            let mut poses = Poses::initial(&robot.0);
            if k > 0 {
                change(&mut poses);
            }
            clip.push(poses, String::new(), true);
        }
        let all = [0, 1, 2];
        clip.render(&all, 48, 36, |_, _| Ok::<(), ()>(())).unwrap()
    };
    let robot = dog("");
    let unseen = clip(&robot, Geoms::Auto, |_| {});
    assert_eq!((unseen.count, unseen.of), (0, 3));
    let unseen = clip(&robot, Geoms::Auto, |p| p.pos[4] = f32::NAN);
    assert_eq!(unseen.count, 2);
    assert!(unseen.why.contains("not finite"), "{unseen:?}");
    let unseen = clip(&robot, Geoms::Auto, |p| p.pos[5] = -0.7);
    assert!(unseen.count == 2 && unseen.why.contains("below the floor"), "{unseen:?}");
    let hidden = |attrs: &str, geoms| {
        let text = format!(
            r#"<mujoco><worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 1"><freejoint/><geom size=".3" {attrs}/></body></worldbody></mujoco>"#
        );
        clip(&read(&text), geoms, |_| {})
    };
    let unseen = hidden(r#"group="4""#, Geoms::Visual);
    assert!(unseen.count == 3 && unseen.why.contains("--geoms collision"), "{unseen:?}");
    let unseen = hidden(r#"rgba="1 1 1 0" contype="0" conaffinity="0""#, Geoms::Auto);
    assert!(unseen.count == 3 && unseen.why.contains("transparent"), "{unseen:?}");
    assert_eq!(hidden(r#"rgba="1 1 1 0""#, Geoms::Auto).count, 0);
    let unseen = hidden(r#"contype="0" conaffinity="0""#, Geoms::Collision);
    assert!(unseen.count == 3 && unseen.why.contains("collides"), "{unseen:?}");
}

#[test]
fn terrains_and_walls_are_drawn() {
    // A ridge across the view, only seen or felt as well, in red; a ball far behind it.
    for bits in ["", r#"contype="0" conaffinity="0""#] {
        let text = format!(
            r#"<mujoco><asset><hfield name="h" nrow="3" ncol="5" elevation="0 0 1 0 0 0 0 1 0 0 0 0 1 0 0" size="2 2 1 .1"/></asset>
            <worldbody><geom type="hfield" hfield="h" rgba=".9 .1 .1 1" {bits}/>
            <body pos="-1.5 0 .5"><freejoint/><geom size=".3" rgba=".1 .1 .9 1"/></body></worldbody></mujoco>"#
        );
        let robot = read(&text);
        let (image, seen) = ahead(&robot, Geoms::Auto);
        let [red, blue] = colours(&image);
        assert!(red > 1000 && blue == 0 && !seen, "{red} red, {blue} blue {bits}");
        // The floor beneath is decoration: it hides nothing of the terrain.
        let scene = Scene::new(&robot.0, &robot.1, Geoms::Auto);
        assert!(scene.floor.pos.z < -0.01, "{}", scene.floor.pos.z);
        // The terrain does not decide on the camera.
        assert!(scene.size() < 2.0, "{}", scene.size());
    }
    // An endless wall behind the robot, before the floor in the file.
    let text = r#"<mujoco><worldbody><geom type="plane" size="0 0 1" zaxis="1 0 0" pos="-2 0 0" rgba=".9 .1 .1 1"/>
        <geom type="plane" size="0 0 1"/><body pos="0 0 1"><freejoint/><geom size=".3" rgba=".1 .1 .9 1"/></body></worldbody></mujoco>"#;
    let wall = read(text);
    let (image, seen) = ahead(&wall, Geoms::Auto);
    let [red, blue] = colours(&image);
    assert!(
        seen && red > 4000 && blue > 100,
        "{seen} {red} red, {blue} blue, {:?} {:?}",
        &image.data[..3],
        &image.data[3 * (160 * 60)..3 * (160 * 60) + 3]
    );
    let floor = Scene::new(&wall.0, &wall.1, Geoms::Auto).floor;
    assert!(floor.rot.c[2].z > 0.99);
    // A floor that is called collision is still what the robot stands on.
    let text = text.replace(r#"size="0 0 1"/>"#, r#"size="0 0 1" group="3" pos="0 0 -1"/>"#);
    let scene = Scene::new(&read(&text).0, &Looks::default(), Geoms::Auto);
    assert!((scene.floor.pos.z + 1.0).abs() < 1e-6, "{:?}", scene.floor);
}
