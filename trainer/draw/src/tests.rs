//! Properties of whole pictures, of models made by hand.

use super::camera::{Aim, Camera, View};
use super::choice::Geoms;
use super::clip::Clip;
use super::image::Image;
use super::math::{V3, v3};
use super::render::Renderer;
use super::scene::{Mark, Poses, Scene, Travel, linear};
use super::{gif, sheet};
use ostler_sim::Model;
use ostler_sim::model::looks::Looks;
use ostler_sim::model::mjcf;
use std::path::Path;

mod painted;
mod shapes;

/// A model with its looks.
fn shown(path: &Path, text: String) -> (Model, Looks) {
    let reading = mjcf::Reading { text: Some(text), looks: true, ..Default::default() };
    reading.read(path).unwrap()
}

#[test]
fn labels_can_be_read_before_anything() {
    for shade in [0_u8, 40, 90, 150, 255] {
        let image = Image::new(60, 20, [shade; 3]);
        let ink = super::text::ink(&image, 5.0, -3.0, 40.0, 12.0);
        assert!(ink[1].abs_diff(shade) > 75, "{ink:?} on {shade}");
    }
}

/// A free body one metre up with these geoms, and what else the world holds.
fn model(world: &str, geoms: &str) -> Model {
    let xml = format!(
        r#"<mujoco><worldbody>{world}
             <body name="ball" pos="0 0 1"><freejoint/>{geoms}</body>
           </worldbody></mujoco>"#
    );
    mjcf::parse(Path::new("test.xml"), xml).unwrap()
}

fn red_ball() -> Model {
    model(
        r#"<geom type="plane" size="0 0 1"/>"#,
        r#"<geom type="sphere" size="0.25" rgba="0.9 0.1 0.1 1"/>"#,
    )
}

fn is_red(rgb: [u8; 3]) -> bool {
    i32::from(rgb[0]) > 2 * i32::from(rgb[1]) && i32::from(rgb[0]) > 2 * i32::from(rgb[2])
}

fn picture(model: &Model, poses: &Poses, view: &View) -> Image {
    let scene = Scene::new(model, &Looks::default(), Geoms::Auto);
    let light = Camera::new(&scene, 4.0 / 3.0).light();
    let mut image = Image::new(160, 120, [0; 3]);
    Renderer::new(&scene, light, 160, 120).draw(poses, view, &mut image);
    image
}

#[test]
fn a_ball_is_where_the_camera_maths_says_and_as_large() {
    let model = red_ball();
    let poses = Poses::initial(&model);
    let view = View::look_at(v3(0.3, 0.0, 0.8), 1.2, -0.4, 4.0);
    let image = picture(&model, &poses, &view);
    let (cx, cy, depth) = view.project(v3(0.0, 0.0, 1.0), 160.0, 120.0);
    let mut red = 0;
    let (mut sx, mut sy) = (0.0, 0.0);
    let (mut left, mut right) = (160, 0);
    for y in 0..120 {
        for x in 0..160 {
            if is_red(image.get(x, y)) {
                red += 1;
                (left, right) = (x.min(left), x.max(right));
                sx += x as f32 + 0.5;
                sy += y as f32 + 0.5;
            }
        }
    }
    let n = red as f32;
    let wide = right + 1 - left;
    assert!((sx / n - cx).abs() < 0.6 && (sy / n - cy).abs() < 0.6, "{} {}", sx / n, sy / n);
    // As wide and high as the radius over the depth says.
    let edge = view.project(v3(0.0, 0.0, 1.0) + view.up * 0.25, 160.0, 120.0).1;
    let size = 2.0 * (cy - edge);
    assert!(
        (wide as f32 - size).abs() < 1.6,
        "{wide} pixels wide, expected {size} at depth {depth}"
    );
    let area = 0.25 * std::f32::consts::PI * size * size;
    assert!((n / area - 1.0).abs() < 0.1, "{n} pixels, expected {area}");
}

#[test]
fn goals_and_tendons_are_where_they_are() {
    let model = red_ball();
    let view = View::look_at(v3(0.3, 0.0, 0.8), 1.2, -0.4, 4.0);
    let (goal, ends) = (v3(0.0, 0.8, 1.2), [v3(-0.8, -0.6, 1.6), v3(-0.4, 0.6, 1.6)]);
    let mut poses = Poses::initial(&model);
    let plain = picture(&model, &poses, &view);
    let nowhere = v3(f32::NAN, 0.0, 0.0);
    poses.marks = vec![Mark::Goal(goal), Mark::String(ends), Mark::Goal(nowhere)];
    poses.marks.push(Mark::String([nowhere, goal]));
    let image = picture(&model, &poses, &view);
    let at = |image: &Image, p: V3| {
        let (x, y, _) = view.project(p, 160.0, 120.0);
        image.get(x as usize, y as usize)
    };
    let [r, g, b] = at(&image, goal);
    assert!(g > r.saturating_add(40) && g > b.saturating_add(20), "{r} {g} {b}");
    for share in [0.1, 0.5, 0.9] {
        let p = ends[0].lerp(ends[1], share);
        let [then, now] = [&plain, &image].map(|i| at(i, p));
        assert!(i32::from(now[1]) < i32::from(then[1]) - 15, "{share}: {then:?} {now:?}");
    }
}

#[test]
fn the_sky_is_above_the_horizon_and_the_floor_below() {
    let model = red_ball();
    let mut poses = Poses::initial(&model);
    poses.pos[3] = f32::NAN; // no ball in this picture
    // Level camera: the horizon is the middle row.
    let view = View::look_at(v3(0.0, 0.0, 1.0), 1.2, 0.0, 4.0);
    let image = picture(&model, &poses, &view);
    let bluer = |y: usize| i32::from(image.get(80, y)[2]) - i32::from(image.get(80, y)[0]);
    assert!(bluer(2) > 40, "{:?}", image.get(80, 2));
    assert!(bluer(2) > bluer(40) && bluer(40) >= bluer(59));
    // Near the camera the checks differ along a row, in the sky little does.
    let contrast = |y: usize| {
        let all = (0..160).map(|x| image.get(x, y)[1]);
        all.clone().max().unwrap() - all.min().unwrap()
    };
    assert!(contrast(118) > 15 && contrast(30) < 8, "{} {}", contrast(118), contrast(30));
}

#[test]
fn the_floor_hides_what_has_sunk_into_it() {
    let model = red_ball();
    let mut poses = Poses::initial(&model);
    let view = View::look_at(v3(0.0, 0.0, 0.0), 1.2, -0.3, 4.0);
    let count = |poses: &Poses| {
        let image = picture(&model, poses, &view);
        image.data.chunks(3).filter(|c| is_red([c[0], c[1], c[2]])).count()
    };
    poses.pos[5] = 0.25;
    let above = count(&poses);
    poses.pos[5] = 0.0;
    let half = count(&poses);
    poses.pos[5] = -0.3;
    assert!(half < above * 3 / 4 && half > above / 3, "{above} {half}");
    assert_eq!(count(&poses), 0);
}

#[test]
fn the_ball_darkens_the_floor_beneath() {
    let model = red_ball();
    let mut lifted = Poses::initial(&model);
    let mut resting = lifted.clone();
    resting.pos[5] = 0.25;
    lifted.pos[5] = f32::NAN;
    let view = View::look_at(v3(0.0, 0.0, 0.0), 1.2, -0.5, 3.0);
    let light = |image: &Image| image.data.iter().map(|&b| u64::from(b)).sum::<u64>();
    let (with, without) = (picture(&model, &resting, &view), picture(&model, &lifted, &view));
    assert!(light(&with) < light(&without));
    let darker = (0..160 * 120).filter(|&k| {
        let (a, b) = (with.get(k % 160, k / 160), without.get(k % 160, k / 160));
        !is_red(a) && i32::from(a[1]) < i32::from(b[1]) - 20
    });
    assert!(darker.count() > 100);
}

#[test]
fn poses_that_are_not_numbers_do_no_harm() {
    let model = red_ball();
    let scene = Scene::new(&model, &Looks::default(), Geoms::Auto);
    let mut clip = Clip::new(&model, &Looks::default(), Geoms::Auto, 0.02);
    let bad = [f32::NAN, f32::INFINITY, -f32::INFINITY, 3e38, -3e38, 0.0];
    for (k, &value) in bad.iter().cycle().take(40).enumerate() {
        let mut poses = Poses::initial(&model);
        poses.pos[3 + k % 3] = value;
        poses.quat[4 + k % 4] = value;
        clip.push(poses, "x".into(), k % 7 == 0);
    }
    clip.push(Poses { pos: vec![], quat: vec![], marks: vec![] }, String::new(), false);
    let all: Vec<usize> = (0..clip.len() + 3).collect();
    clip.render(&all, 32, 24, |_, _| Ok::<(), ()>(())).unwrap();
    // Sizes that are not numbers are no better.
    let mut broken = model.clone();
    broken.geoms[1].size = [f64::NAN; 3];
    let views = Camera::new(&Scene::new(&broken, &Looks::default(), Geoms::Auto), 1.3).path(
        &[None],
        &[true],
        0.02,
        None,
    );
    picture(&broken, &Poses::initial(&broken), &views[0]);
    assert_eq!(scene.travel, Travel::Free);
}

#[test]
fn a_camera_with_an_aim_has_the_body_in_the_middle_at_its_distance() {
    let model = red_ball();
    let scene = Scene::new(&model, &Looks::default(), Geoms::Auto);
    let aim = Aim { body: Some(1), distance: Some(0.5) };
    let camera = Camera::new(&scene, 4.0 / 3.0).aimed(aim);
    let at = v3(3.0, -1.0, 2.0);
    let view = camera.path(&[Some(at)], &[true], 0.02, None)[0];
    let (x, y, depth) = view.project(at, 320.0, 240.0);
    assert!((x - 160.0).abs() < 1e-2 && (y - 120.0).abs() < 1e-2, "{x} {y}");
    assert!((depth - 0.5).abs() < 1e-4, "{depth}");
    // A clip takes it: from so near the ball fills the picture.
    let reds = |aim: Aim| {
        let mut clip = Clip::new(&model, &Looks::default(), Geoms::Auto, 0.02).aimed(aim);
        clip.push(Poses::initial(&model), String::new(), true);
        let mut count = 0;
        let count_reds = |_: usize, image: &Image| {
            count = image.data.chunks(3).filter(|p| is_red([p[0], p[1], p[2]])).count();
            Ok::<(), ()>(())
        };
        clip.render(&[0], 64, 48, count_reds).unwrap();
        count
    };
    let (near, far) = (reds(aim), reds(Aim { body: None, distance: Some(20.0) }));
    assert!(near > 4 * far.max(1), "{near} {far}");
}

/// A pendulum that begins below its joint and ends above it.
#[test]
fn a_clip_shows_where_a_robot_that_stays_in_its_place_goes() {
    let xml = r#"<mujoco><worldbody><body name="arm" pos="0 0 1"><joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.9" size=".05" rgba="0 0 1 1"/>
        <geom type="sphere" size=".1" pos="0 0 -1" rgba="0.9 0.1 0.1 1"/></body></worldbody></mujoco>"#;
    let model = mjcf::parse("arm.xml".as_ref(), xml.into()).unwrap();
    let mut clip = Clip::new(&model, &Looks::default(), Geoms::Auto, 0.02);
    let below = Poses::initial(&model);
    let mut above = Poses::initial(&model);
    above.quat[4..8].copy_from_slice(&[0.0, 0.0, 1.0, 0.0]);
    let mut reds = Vec::new();
    clip.push(below, String::new(), true);
    clip.push(above, String::new(), false);
    let count = |_: usize, image: &Image| {
        reds.push(image.data.chunks(3).filter(|p| is_red([p[0], p[1], p[2]])).count());
        Ok::<(), ()>(())
    };
    clip.render(&[0, 1], 320, 240, count).unwrap();
    assert!(reds.iter().all(|n| *n > 20), "{reds:?}");
}

/// Goals beside the robot are in the picture, one that is too far leaves it as it was.
#[test]
fn a_clip_shows_the_goals_of_all_its_shots() {
    let model = red_ball();
    let seen = |goals: &[V3]| {
        let mut clip = Clip::new(&model, &Looks::default(), Geoms::Auto, 0.02);
        for (i, goal) in goals.iter().enumerate() {
            let mut poses = Poses::initial(&model);
            poses.marks = vec![Mark::Goal(*goal)];
            clip.push(poses, String::new(), i == 0);
        }
        let (mut green, mut red) = (Vec::new(), 0);
        let all: Vec<usize> = (0..goals.len()).collect();
        let count = |_: usize, image: &Image| {
            let pixels = || image.data.chunks(3).map(|p| [p[0], p[1], p[2]]);
            let is_green =
                |&[r, g, b]: &[u8; 3]| g > r.saturating_add(40) && g > b.saturating_add(20);
            green.push(pixels().filter(is_green).count());
            red = pixels().filter(|p| is_red(*p)).count();
            Ok::<(), ()>(())
        };
        clip.render(&all, 320, 240, count).unwrap();
        (green, red)
    };
    let root = Scene::new(&model, &Looks::default(), Geoms::Auto).root_pos;
    let size = Scene::new(&model, &Looks::default(), Geoms::Auto).size();
    let near = [v3(0.0, 3.0 * size, 0.0), v3(-2.0 * size, 0.0, 2.0 * size)].map(|p| root + p);
    let (green, red) = seen(&near);
    assert!(green.iter().all(|n| *n > 0) && red > 0, "{green:?} {red}");
    let (_, alone) = seen(&[root]);
    let (green, with_far) = seen(&[root + v3(0.0, 100.0 * size, 0.0)]);
    assert!(green == [0] && with_far.abs_diff(alone) < alone / 3, "{green:?} {with_far} {alone}");
}

#[test]
fn the_camera_keeps_the_robot_in_the_picture_and_jumps_at_a_cut() {
    let model = red_ball();
    let scene = Scene::new(&model, &Looks::default(), Geoms::Auto);
    let camera = Camera::new(&scene, 4.0 / 3.0);
    // A sprinter's 10 m/s, then a new episode elsewhere.
    let mut roots: Vec<Option<V3>> =
        (0..200).map(|i| Some(scene.root_pos + v3(0.2, 0.05, 0.0) * i as f32)).collect();
    let far = v3(-50.0, 3.0, 1.0);
    roots.push(Some(far));
    let cuts: Vec<bool> = (0..201).map(|i| i == 0 || i == 200).collect();
    let views = camera.path(&roots, &cuts, 0.02, None);
    let off_center = |i: usize, root: V3| {
        let (x, y, _) = views[i].project(root, 320.0, 240.0);
        (x - 160.0).abs().max((y - 120.0).abs())
    };
    // The path neither lags nor leads, at its ends no more than between them.
    for i in [0, 20, 100, 199] {
        let off = off_center(i, roots[i].unwrap());
        assert!(off < 1.0, "{off} pixels from the middle at {i}");
    }
    let jumped = off_center(200, far);
    assert!(jumped < 1.0, "{jumped} pixels from the middle");
}

#[test]
fn files_decode_to_what_was_asked_for() {
    let model = model(
        "",
        r#"<geom type="box" size="0.2 0.1 0.05"/>
           <geom type="capsule" fromto="0.2 0 0 0.2 0 -0.4" size="0.05"/>"#,
    );
    let mut clip = Clip::new(&model, &Looks::default(), Geoms::Auto, 0.02);
    for k in 0..21 {
        let mut poses = Poses::initial(&model);
        poses.pos[3] += 0.1 * k as f32;
        clip.push(poses, format!("step {k}"), k == 0);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.gif");
    gif::write(&clip, &path, 96, 72, 25.0).unwrap();
    let mut options = ::gif::DecodeOptions::new();
    options.set_color_output(::gif::ColorOutput::Indexed);
    let mut decoder = options.read_info(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!((decoder.width(), decoder.height()), (96, 72));
    assert_eq!(decoder.repeat(), ::gif::Repeat::Infinite);
    let (mut frames, mut hundredths) = (0, 0);
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        frames += 1;
        hundredths += u32::from(frame.delay);
    }
    assert_eq!((frames, hundredths), (11, 44));

    let path = dir.path().join("sheet.png");
    sheet::write(&clip, &path, 4, 2, 80, 60).unwrap();
    let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
    let info = png::Decoder::new(file).read_info().unwrap();
    assert_eq!((info.info().width, info.info().height), (4 * 84 + 4, 2 * 64 + 4));

    let nowhere = dir.path().join("no/such/folder.gif");
    let message = gif::write(&clip, &nowhere, 96, 72, 25.0).unwrap_err().to_string();
    assert!(message.contains("folder.gif"), "{message}");
}
