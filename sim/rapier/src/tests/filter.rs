//! Which geoms may touch: MuJoCo's rule, told independently of the encoding.

use super::super::filter::Filter;
use super::robots::{body, empty, geom, joint, walker};
use ostler_model::{GeomKind, JointKind, Model};

/// A table of pairs, checked against rapier's encoding throughout.
fn table(m: &Model) -> Vec<Vec<bool>> {
    let filter = Filter::new(m).unwrap();
    let n = m.geoms.len();
    (0..n)
        .map(|a| {
            (0..n)
                .map(|b| {
                    assert_eq!(filter.encoded(a, b).unwrap(), filter.allows(a, b), "{a} {b}");
                    filter.allows(a, b)
                })
                .collect()
        })
        .collect()
}

/// World floor, then a chain torso - (massless link) - thigh - shin, each with a
/// ball, and a second geom welded to the shin.
fn chain() -> Model {
    let mut m = empty(0.01);
    geom(&mut m, GeomKind::Plane, [0.0; 3]);
    let mut parent = 0;
    for _ in 0..3 {
        parent = body(&mut m, parent, [0.0, 0.0, 0.3], 1.0, 0.01);
        // Two hinges: rapier needs a massless link between.
        joint(&mut m, JointKind::Hinge, [0.0; 3], [1.0, 0.0, 0.0]);
        joint(&mut m, JointKind::Hinge, [0.0; 3], [0.0, 1.0, 0.0]);
        geom(&mut m, GeomKind::Sphere, [0.1, 0.0, 0.0]);
    }
    body(&mut m, parent, [0.0, 0.0, 0.1], 0.1, 0.001);
    geom(&mut m, GeomKind::Sphere, [0.1, 0.0, 0.0]);
    m
}

#[test]
fn neighbours_and_welded_bodies_do_not_touch() {
    let t = table(&chain());
    // floor 0, torso 1, thigh 2, shin 3, foot (welded to the shin) 4
    let touching: Vec<(usize, usize)> =
        (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b))).filter(|(a, b)| t[*a][*b]).collect();
    // The floor is the torso's parent, but the world does not count as one.
    assert_eq!(touching, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 3), (1, 4)]);
}

#[test]
fn excludes_and_the_parent_flag_are_obeyed() {
    let mut m = chain();
    m.excludes.push((1, 3));
    let t = table(&m);
    assert!(!t[1][3] && !t[3][1]);
    assert!(t[1][4], "the foot is another body");
    let mut m = chain();
    m.options.flags.push(("filterparent".to_string(), false));
    let t = table(&m);
    assert!(t[1][2] && t[2][3] && t[2][4]);
    assert!(!t[3][4], "welded bodies never touch");
}

#[test]
fn contype_and_conaffinity_need_one_match_in_one_direction() {
    let mut m = chain();
    m.options.flags.push(("filterparent".to_string(), false));
    let bits = [(1, 0), (0, 1), (2, 1), (0, 0), (4, 2)];
    for (g, (contype, conaffinity)) in m.geoms.iter_mut().zip(bits) {
        (g.contype, g.conaffinity) = (contype, conaffinity);
    }
    let t = table(&m);
    let touching: Vec<(usize, usize)> =
        (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b))).filter(|(a, b)| t[*a][*b]).collect();
    assert_eq!(touching, [(0, 1), (0, 2), (2, 4)]);
}

#[test]
fn legs_do_not_collide_with_their_own_trunk() {
    let mut w = super::worlds(walker(), 1, 1);
    // Lifted off the floor: any contact would be with itself.
    let mut q: Vec<f32> = walker().qpos0.iter().map(|x| *x as f32).collect();
    q[2] = 50.0;
    w.reset(&[1], &q, &vec![0.0; walker().nv]);
    for t in 0..50 {
        w.step(&super::controls(&[0], 8, t), 2);
        assert!(w.state().contact_force.iter().all(|f| *f == 0.0));
    }
}

#[test]
fn more_classes_than_groups_fall_back_to_a_hook() {
    // 40 balls on one line of slides, each excluded from the next but one: all rows
    // of the table differ.
    let mut m = empty(0.01);
    m.options.gravity = [0.0; 3];
    for i in 0..40 {
        body(&mut m, 0, [0.15 * i as f64, 0.0, 0.0], 1.0, 0.01);
        joint(&mut m, JointKind::Slide, [0.0; 3], [1.0, 0.0, 0.0]);
        geom(&mut m, GeomKind::Sphere, [0.1, 0.0, 0.0]);
    }
    for i in 1..40 {
        if i != 20 {
            m.excludes.push((i, i + 1));
        }
    }
    assert_eq!(Filter::new(&m).unwrap().encoded(0, 1), None);
    let mut w = super::worlds(m, 1, 1);
    w.step(&[], 5);
    // Neighbours overlap by 5 cm; only the pair that is not excluded moves apart.
    let moved: Vec<usize> = (0..40).filter(|i| w.state().qpos[*i] != 0.0).collect();
    assert_eq!(moved, [19, 20]);
}
