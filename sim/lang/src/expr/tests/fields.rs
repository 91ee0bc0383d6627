//! Numbers of the robot that events change, and what they draw, against formulas in f64.

use super::fixture::World;
use super::golden::Formula;
use super::view::{V3, View, add, apply, cross, matrix, norm, transpose};
use crate::expr::Program;
use ostler_model::{Field, Varied};

const TORSO: usize = 1;
const FOOT_2: usize = 3;

/// What the formulas below have of each environment.
pub const VARIED: [Varied; 15] = {
    const fn of(field: Field, element: usize) -> Varied {
        Varied { field, element }
    }
    [
        of(Field::Gravity, 0),
        of(Field::Mass, TORSO),
        of(Field::Com, TORSO),
        of(Field::Moments, TORSO),
        of(Field::Mass, FOOT_2),
        of(Field::Com, FOOT_2),
        of(Field::Tensor, FOOT_2),
        of(Field::Friction, 3),
        of(Field::Armature, 1),
        of(Field::Damping, 2),
        of(Field::Frictionloss, 3),
        of(Field::Stiffness, 1),
        of(Field::Qpos0, 1),
        of(Field::Kp, 0),
        of(Field::Wrench, TORSO),
    ]
};

fn own(v: &View<'_>, field: Field, element: usize) -> Vec<f64> {
    let first = v.w.model.varied_row(field, element).unwrap();
    v.rows(&v.w.state.varied, first..first + field.width())
}

fn own3(v: &View<'_>, field: Field, element: usize) -> V3 {
    own(v, field, element).try_into().unwrap()
}

/// Masses and centres of mass in the world, and their velocities, of the moving bodies.
fn bodies(v: &View<'_>) -> Vec<(f64, V3, V3)> {
    let at = [own3(v, Field::Com, TORSO), [0.0, 0.05, 0.0], own3(v, Field::Com, FOOT_2), [0.0; 3]];
    let mass = [own(v, Field::Mass, TORSO)[0], 1.0, own(v, Field::Mass, FOOT_2)[0], 0.5];
    let each = at.iter().zip(mass).zip(1..);
    each.map(|((at, m), b)| (m, v.point(b, *at), v.point_vel(b, *at))).collect()
}

fn mean(parts: &[(f64, V3)]) -> V3 {
    let total: f64 = parts.iter().map(|p| p.0).sum();
    std::array::from_fn(|k| parts.iter().map(|(m, x)| m * x[k]).sum::<f64>() / total)
}

/// The robot's numbers, of which some differ between environments.
pub const GOLDEN: &[(&str, Formula)] = &[
    ("gravity", |v| own(v, Field::Gravity, 0)),
    ("mass(torso, foot_1)", |v| vec![own(v, Field::Mass, TORSO)[0], 1.0]),
    ("mass", |v| vec![bodies(v).iter().map(|b| b.0).sum()]),
    ("com_offset(torso, foot_1)", |v| [own(v, Field::Com, TORSO), vec![0.0, 0.05, 0.0]].concat()),
    ("com(torso)", |v| bodies(v)[0].1.to_vec()),
    ("com", |v| {
        let all: Vec<_> = bodies(v).iter().map(|b| (b.0, b.1)).collect();
        mean(&all).to_vec()
    }),
    ("com_vel([torso, foot_1, foot_2, \"tail-tip\"])", |v| {
        let all: Vec<_> = bodies(v).iter().map(|b| (b.0, b.2)).collect();
        mean(&all).to_vec()
    }),
    // The torso's axes of inertia are its own; all of one foot is the environment's.
    ("inertia(torso)", |v| [own(v, Field::Moments, TORSO), vec![0.0; 3]].concat()),
    ("inertia(foot_1, foot_2)", |v| {
        let one = vec![0.1, 0.1, 0.1, 0.0, 0.0, 0.0];
        [one, own(v, Field::Tensor, FOOT_2)].concat()
    }),
    ("friction(foot_1, foot_2)", |v| {
        [own(v, Field::Friction, 3), vec![1.0, 0.005, 0.0001]].concat()
    }),
    ("friction(foot_1)[0]", |v| vec![own(v, Field::Friction, 3)[0]]),
    ("armature", |v| vec![own(v, Field::Armature, 1)[0], 0.0, 0.0]),
    ("damping(hip_2)", |v| own(v, Field::Damping, 2)),
    ("frictionloss([hip_1, rail])", |v| vec![0.0, own(v, Field::Frictionloss, 3)[0]]),
    ("stiffness(hip_1)", |v| own(v, Field::Stiffness, 1)),
    ("joint_offset", |v| vec![own(v, Field::Qpos0, 1)[0], 0.0, 0.0]),
    ("kp(motor_1)", |v| own(v, Field::Kp, 0)),
    ("kd(motor_1)", |_| vec![1.5]),
    ("effort_limit", |_| vec![5.0, f64::INFINITY, f64::INFINITY]),
    ("actuator_delay(push)", |_| vec![0.0]),
    ("external_force(torso)", |v| own(v, Field::Wrench, TORSO)[..3].to_vec()),
    ("external_torque(torso, foot_1)", |v| {
        let torso = own(v, Field::Wrench, TORSO);
        [torso[3..].to_vec(), vec![0.0; 3]].concat()
    }),
    ("projected_gravity(torso)", |v| {
        let g = own3(v, Field::Gravity, 0);
        let size = norm(&g);
        apply(transpose(v.mat(TORSO)), g.map(|x| x / size)).to_vec()
    }),
    ("event.push", |v| v.rows(&v.w.shown, 0..3)),
    ("event.gain[1] + 1 * event.push.x", |v| {
        vec![v.rows(&v.w.shown, 4..5)[0] + v.rows(&v.w.shown, 0..1)[0]]
    }),
];

#[test]
fn the_robots_numbers_are_those_of_each_environment() {
    let world = World::varied(&VARIED, 101, 7);
    for &(text, formula) in GOLDEN {
        for (e, row) in world.eval(text).iter().enumerate() {
            let expected = formula(&View { w: &world, e });
            assert_eq!(row.len(), expected.len(), "{text}");
            for (got, want) in row.iter().zip(&expected) {
                let got = f64::from(*got);
                let near = got == *want || (got - want).abs() <= 3e-5 * (1.0 + want.abs());
                assert!(near, "{text}, {e}: {row:?}, expected {expected:?}");
            }
        }
    }
    assert_eq!(world.events.places(), [Some(0), Some(3), None]);
}

/// What no event changes stays in the code.
#[test]
fn numbers_that_do_not_vary_are_constants() {
    let (plain, varied) = (World::new(3, 1), World::varied(&VARIED, 3, 1));
    let steps = |program: Program| program.steps();
    for (text, of) in [
        ("mass", 1),
        ("mass(torso)", 1),
        ("friction(foot_1)[0]", 1),
        ("damping", 3),
        ("inertia(torso)[0]", 1),
    ] {
        assert_eq!(steps(plain.compile(text).unwrap()), of, "{text}");
    }
    assert_eq!(plain.eval("mass")[0], [6.5]);
    // Three bodies: one constant for those that stay, two loads, two sums.
    assert_eq!(steps(varied.compile("mass").unwrap()), 5);
}

/// Gravity that is gone points where it did.
#[test]
fn without_gravity_down_is_down() {
    let mut world = World::varied(&VARIED, 1, 3);
    world.state.varied[..3].fill(0.0);
    let down = apply(transpose(matrix(View { w: &world, e: 0 }.quat(TORSO))), [0.0, 0.0, -1.0]);
    for (got, want) in world.eval("projected_gravity(torso)")[0].iter().zip(down) {
        assert!((f64::from(*got) - want).abs() < 1e-6);
    }
}

/// The angular momentum of two bodies whose masses, centres and inertias differ.
#[test]
fn momentum_follows_the_inertia_of_each_environment() {
    const SENSOR: &str = "<user name=\"wrist\" dim=\"2\"/>";
    let sensors = "<subtreeangmom name=\"wrist\" body=\"torso\"/>\
                   <subtreecom name=\"middle\" body=\"torso\"/>";
    let world = World::with(SENSOR, sensors, &VARIED, 40, 11);
    let (momentum, middle) = (world.eval("sensor(wrist)"), world.eval("sensor(middle)"));
    for (e, (got, centre)) in momentum.iter().zip(&middle).enumerate() {
        let v = View { w: &world, e };
        let all = bodies(&v);
        let places: Vec<_> = all.iter().map(|b| (b.0, b.1)).collect();
        let speeds: Vec<_> = all.iter().map(|b| (b.0, b.2)).collect();
        let (c, drift) = (mean(&places), mean(&speeds));
        let mut total = [0.0; 3];
        for ((m, p, u), b) in all.iter().zip(1..) {
            let [xx, yy, zz, xy, xz, yz] = match b {
                TORSO => [own(&v, Field::Moments, b), vec![0.0; 3]].concat(),
                FOOT_2 => own(&v, Field::Tensor, b),
                _ => vec![0.1, 0.1, 0.1, 0.0, 0.0, 0.0],
            }
            .try_into()
            .unwrap();
            let inertia = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]];
            let arm = std::array::from_fn(|k| p[k] - c[k]);
            let moving: V3 = std::array::from_fn(|k| m * (u[k] - drift[k]));
            let local = apply(transpose(v.mat(b)), v.omega(b));
            let spin = apply(v.mat(b), apply(inertia, local));
            total = add(total, add(cross(arm, moving), spin));
        }
        for k in 0..3 {
            let near = |a: f32, b: f64| (f64::from(a) - b).abs() < 1e-4 * (1.0 + b.abs());
            assert!(near(got[k], total[k]), "{e}: {got:?}, {total:?}");
            assert!(near(centre[k], c[k]), "{e}: {centre:?}, {c:?}");
        }
    }
}
