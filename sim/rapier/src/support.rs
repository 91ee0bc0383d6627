//! Limits of this engine, and its differences from MuJoCo.

use ostler_engine::physics::PhysicsError;
use ostler_model::{Dynamics, Geom, GeomKind, JointKind, Model, Transmission};

/// Refuses features without which it would be another robot.
pub(super) fn check(model: &Model) -> Result<(), PhysicsError> {
    let refuse = |what: String| Err(PhysicsError::Unsupported { engine: "rapier", what });
    let options = &model.options;
    if options.density > 0.0 || options.viscosity > 0.0 {
        return refuse("forces of a fluid (option density, viscosity)".to_string());
    }
    if options.stops_early {
        return refuse("task.option.iterations (its own are sim.rapier.solver_iterations)".into());
    }
    if let Some(equality) = model.equalities.iter().find(|e| e.active) {
        return refuse(format!("equality constraint \"{}\"", equality.name));
    }
    if let Some(body) = model.bodies.iter().find(|b| b.gravcomp != 0.0) {
        return refuse(format!("gravcomp of body \"{}\"", body.name));
    }
    let sticky = |g: &Geom| g.adhesion != 0.0;
    if let Some(geom) = model.geoms.iter().find(|g| sticky(g)) {
        return refuse(format!("adhesion of geom \"{}\"", geom.name));
    }
    for tendon in &model.tendons {
        let forces = [tendon.stiffness, tendon.damping, tendon.frictionloss, tendon.armature];
        if tendon.range.is_some() || forces.iter().any(|f| *f != 0.0) {
            return refuse(format!(
                "tendon \"{}\" with a spring, damper, friction, inertia or limit",
                tendon.name
            ));
        }
    }
    for actuator in &model.actuators {
        if actuator.dynamics != Dynamics::None {
            return refuse(format!("actuator \"{}\" with a state of its own", actuator.name));
        }
        if actuator.motor.is_some() {
            return refuse(format!(
                "actuator \"{}\" with a delay, a motor's curve or a network",
                actuator.name
            ));
        }
        if actuator.muscle.is_some() {
            return refuse(format!("muscle \"{}\"", actuator.name));
        }
        let joint = actuator.joint().map(|j| model.joints[j].kind);
        let turned = matches!(joint, Some(JointKind::Ball | JointKind::Free))
            && matches!(actuator.transmission, Transmission::JointInParent(_));
        if joint.is_none() || turned {
            return refuse(format!(
                "actuator \"{}\" on {}; only joints are driven",
                actuator.name,
                model.target(actuator)
            ));
        }
    }
    for joint in &model.joints {
        let scalar = matches!(joint.kind, JointKind::Slide | JointKind::Hinge);
        if !scalar && joint.range.is_some() {
            return refuse(format!("the range of ball joint \"{}\"", joint.name));
        }
        if !scalar && joint.stiffness != 0.0 {
            return refuse(format!("stiffness of ball or free joint \"{}\"", joint.name));
        }
        if joint.stiffness < 0.0 || joint.damping < 0.0 {
            return refuse(format!("negative stiffness or damping of joint \"{}\"", joint.name));
        }
    }
    for geom in &model.geoms {
        if geom.kind == GeomKind::Plane && model.bodies[geom.body].weld != 0 {
            return refuse(format!("plane \"{}\" on a moving body", geom.name));
        }
    }
    // A joint whose link, and all links after it, weigh nothing has no dynamics.
    for (b, body) in model.bodies.iter().enumerate().skip(1) {
        let heavy = model.bodies[b..]
            .iter()
            .enumerate()
            .any(|(i, other)| other.mass > 0.0 && descends(model, b + i, b));
        let armature = body.joints.clone().all(|j| model.joints[j].armature > 0.0);
        if !body.joints.is_empty() && !heavy && !armature {
            return refuse(format!("moving body \"{}\" without mass", body.name));
        }
    }
    Ok(())
}

fn descends(model: &Model, mut body: usize, ancestor: usize) -> bool {
    while body > ancestor {
        body = model.bodies[body].parent;
    }
    body == ancestor
}

/// Differences of this engine from MuJoCo with this model, one line each.
pub(super) fn notes(model: &Model) -> Vec<String> {
    let mut notes = vec![
        "contacts: rapier's own compliance (option, solref, solimp and impratio have no effect)"
            .to_string(),
        "integrator: rapier's semi-implicit Euler with Coriolis terms made implicit, first order and dissipative"
            .to_string(),
    ];
    let mut note = |some: bool, text: &str| {
        if some {
            notes.push(text.to_string());
        }
    };
    let touching = |g: &&ostler_model::Geom| g.contype != 0 || g.conaffinity != 0;
    let geoms = || model.geoms.iter().filter(touching);
    note(
        model.joints.iter().any(|j| j.range.is_some()),
        "joint limits: a spring and damper from solreflimit; solimplimit and margin have no effect",
    );
    note(
        model.joints.iter().any(|j| j.frictionloss > 0.0),
        "frictionloss: a bounded constraint; solreffriction and solimpfriction have no effect",
    );
    note(
        geoms().any(|g| g.condim > 3),
        "condim 4 and 6: torsional and rolling friction have no effect",
    );
    note(
        geoms().any(|g| g.condim == 1) && geoms().any(|g| g.condim > 1),
        "condim: pairs that MuJoCo treats with the larger condim; two frictionless geoms that also meet others keep their friction",
    );
    note(
        geoms().any(|g| g.margin != 0.0 || g.gap != 0.0),
        "geom margin and gap: contacts begin where shapes touch",
    );
    note(geoms().any(|g| g.priority != 0), "geom priority: friction is the larger of the two");
    note(!model.pairs.is_empty(), "contact pairs: they touch, with the friction of their geoms");
    note(geoms().any(|g| g.kind == GeomKind::Ellipsoid), "ellipsoids: convex hulls of 114 points");
    note(
        model.joints.iter().any(|j| {
            matches!(j.kind, JointKind::Free | JointKind::Ball)
                && (j.damping > 0.0 || j.armature > 0.0 || j.frictionloss > 0.0)
        }),
        "free and ball joints: damping, armature and frictionloss act on the velocity of the centre of mass and in the parent's frame",
    );
    notes
}
