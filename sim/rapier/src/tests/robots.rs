//! Small models, written by hand.

use ostler_model::{
    Actuator, Body, Dynamics, Geom, GeomKind, Given, Joint, JointKind, Model, Transmission,
};

/// A world with nothing in it.
pub(super) fn empty(timestep: f64) -> Model {
    let text =
        format!(r#"<mujoco model="test"><option timestep="{timestep}"/><worldbody/></mujoco>"#);
    ostler_model::mjcf::parse(std::path::Path::new("test.xml"), text).unwrap()
}

/// Adds a body at `pos` in its parent's frame; returns its index.
pub(super) fn body(m: &mut Model, parent: usize, pos: [f64; 3], mass: f64, inertia: f64) -> usize {
    let (j, g) = (m.joints.len(), m.geoms.len());
    m.bodies.push(Body {
        name: format!("body{}", m.bodies.len()),
        parent,
        pos,
        quat: [1.0, 0.0, 0.0, 0.0],
        mass,
        ipos: [0.0; 3],
        iquat: [1.0, 0.0, 0.0, 0.0],
        inertia: [inertia; 3],
        joints: j..j,
        geoms: g..g,
        mocap: false,
        gravcomp: 0.0,
        simple: true,
        weld: m.bodies[parent].weld,
        more_seen: false,
    });
    m.bodies.len() - 1
}

/// Adds a joint to the last body; returns its index.
pub(super) fn joint(m: &mut Model, kind: JointKind, pos: [f64; 3], axis: [f64; 3]) -> usize {
    let b = m.bodies.len() - 1;
    let i = m.joints.len();
    m.joints.push(Joint {
        name: format!("joint{i}"),
        kind,
        body: b,
        pos,
        axis,
        reference: 0.0,
        range: None,
        damping: 0.0,
        stiffness: 0.0,
        springref: 0.0,
        armature: 0.0,
        frictionloss: 0.0,
        actfrcrange: None,
        actuator_gravcomp: false,
        margin: 0.0,
        solref_limit: [0.02, 1.0],
        solimp_limit: [0.9, 0.95, 0.001, 0.5, 2.0],
        solref_friction: [0.02, 1.0],
        solimp_friction: [0.9, 0.95, 0.001, 0.5, 2.0],
        qpos_adr: m.nq,
        dof_adr: m.nv,
    });
    m.bodies[b].joints.end = i + 1;
    m.bodies[b].weld = b;
    m.nq += kind.nq();
    m.nv += kind.nv();
    let mut q0 = vec![0.0; kind.nq()];
    match kind {
        JointKind::Free => {
            q0[..3].copy_from_slice(&m.bodies[b].pos);
            q0[3] = 1.0;
        }
        JointKind::Ball => q0[0] = 1.0,
        _ => {}
    }
    m.qpos0.extend(q0);
    i
}

/// Adds a geom to the last body (or to the world while it is alone).
pub(super) fn geom(m: &mut Model, kind: GeomKind, size: [f64; 3]) -> usize {
    let b = m.bodies.len() - 1;
    let i = m.geoms.len();
    m.geoms.push(Geom {
        name: format!("geom{i}"),
        kind,
        body: b,
        pos: [0.0; 3],
        quat: [1.0, 0.0, 0.0, 0.0],
        size,
        contype: 1,
        conaffinity: 1,
        condim: 3,
        friction: [1.0, 0.005, 0.0001],
        priority: 0,
        solmix: 1.0,
        solref: [0.02, 1.0],
        solimp: [0.9, 0.95, 0.001, 0.5, 2.0],
        margin: 0.0,
        gap: 0.0,
        adhesion: 0.0,
        fluid: None,
        group: 0,
        rgba: [0.5; 4],
        unseen: false,
    });
    m.bodies[b].geoms.end = i + 1;
    i
}

pub(super) fn motor(m: &mut Model, joint: usize, gear: f64) -> usize {
    m.actuators.push(Actuator {
        name: format!("motor{}", m.actuators.len()),
        element: "motor",
        transmission: Transmission::Joint(joint),
        gear: [gear, 0.0, 0.0, 0.0, 0.0, 0.0],
        ctrlrange: None,
        forcerange: None,
        gain: [1.0, 0.0, 0.0],
        bias: [0.0; 3],
        dynamics: Dynamics::None,
        dynprm: [1.0, 0.0, 0.0],
        actrange: None,
        actearly: false,
        muscle: None,
        enabled: true,
        motor: None,
        given: Given::File,
        act_adr: None,
    });
    m.actuators.len() - 1
}

/// Cart (1 kg) on x, pole (0.2 kg at 0.5 m, point-like) on a hinge about y.
pub(super) fn cartpole() -> Model {
    let mut m = empty(0.01);
    body(&mut m, 0, [0.0; 3], 1.0, 0.01);
    let slide = joint(&mut m, JointKind::Slide, [0.0; 3], [1.0, 0.0, 0.0]);
    body(&mut m, 1, [0.0; 3], 0.2, 1e-6);
    m.bodies[2].ipos = [0.0, 0.0, 0.5];
    joint(&mut m, JointKind::Hinge, [0.0; 3], [0.0, 1.0, 0.0]);
    motor(&mut m, slide, 1.0);
    m
}

/// A ball of radius 0.1 m and 1 kg over a floor, its centre of mass where told.
pub(super) fn free_ball(com: [f64; 3]) -> Model {
    let mut m = empty(0.002);
    geom(&mut m, GeomKind::Plane, [0.0; 3]);
    body(&mut m, 0, [0.0, 0.0, 1.0], 1.0, 0.004);
    m.bodies[1].ipos = com;
    joint(&mut m, JointKind::Free, [0.0; 3], [0.0, 0.0, 1.0]);
    geom(&mut m, GeomKind::Sphere, [0.1, 0.0, 0.0]);
    m
}

/// A trunk with four two-joint legs over a floor: 8 motors.
pub(super) fn walker() -> Model {
    let mut m = empty(0.005);
    geom(&mut m, GeomKind::Plane, [0.0; 3]);
    body(&mut m, 0, [0.0, 0.0, 0.5], 4.0, 0.1);
    m.bodies[1].ipos = [0.02, -0.01, 0.03];
    joint(&mut m, JointKind::Free, [0.0; 3], [0.0, 0.0, 1.0]);
    geom(&mut m, GeomKind::Sphere, [0.2, 0.0, 0.0]);
    for (x, y) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
        let hip = body(&mut m, 1, [0.25 * x, 0.25 * y, 0.0], 0.5, 0.01);
        let j = joint(&mut m, JointKind::Hinge, [0.0; 3], [0.0, 0.0, 1.0]);
        m.joints[j].range = Some([-0.5, 0.5]);
        m.joints[j].armature = 0.01;
        m.joints[j].damping = 0.1;
        motor(&mut m, j, 5.0);
        m.actuators.last_mut().unwrap().ctrlrange = Some([-1.0, 1.0]);
        body(&mut m, hip, [0.1 * x, 0.1 * y, 0.0], 0.3, 0.005);
        let j = joint(&mut m, JointKind::Hinge, [0.0; 3], [y, -x, 0.0].map(|c| c * 0.5_f64.sqrt()));
        m.joints[j].range = Some([-0.2, 1.2]);
        m.joints[j].armature = 0.01;
        m.joints[j].damping = 0.1;
        motor(&mut m, j, 5.0);
        m.actuators.last_mut().unwrap().ctrlrange = Some([-1.0, 1.0]);
        let g = geom(&mut m, GeomKind::Capsule, [0.05, 0.15, 0.0]);
        m.geoms[g].pos = [0.1 * x, 0.1 * y, -0.15];
    }
    m
}
