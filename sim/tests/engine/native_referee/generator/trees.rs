//! Bodies with their joints and geoms.

use super::super::xml::Node;
use super::dice::Dice;
use super::{Names, solimp, solref, surface};

pub fn geom(dice: &mut Dice, names: &mut Names, scale: f64) -> Node {
    let kind = dice.pick(&[
        "sphere",
        "sphere",
        "capsule",
        "capsule",
        "capsule",
        "box",
        "box",
        "cylinder",
        "ellipsoid",
    ]);
    let r = [0.25 * scale, 0.6 * scale];
    let size = match kind {
        "sphere" => dice.reals(&[r]),
        "capsule" => dice.reals(&[[0.15 * scale, 0.3 * scale], [0.3 * scale, 1.2 * scale]]),
        "cylinder" => dice.reals(&[r, r]),
        _ => dice.reals(&[r, r, r]),
    };
    let name = format!("g{}", names.geoms);
    names.geoms += 1;
    let mut geom = Node::new("geom")
        .with("name", name)
        .with("type", kind)
        .with("size", size)
        .with("pos", dice.vector(0.3 * scale));
    if dice.chance(0.7) {
        geom.set("quat", dice.reals(&[[0.3, 1.0], [-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]]));
    }
    geom
}

pub fn tree(dice: &mut Dice, names: &mut Names, depth: usize, x: f64) -> Node {
    let name = format!("b{}", names.bodies);
    names.bodies += 1;
    let pos = match depth {
        0 => format!("{} {}", x, dice.reals(&[[-0.2, 0.2], [0.15, 0.7]])),
        _ => dice.vector(0.35),
    };
    let mut body = Node::new("body").with("name", name).with("pos", pos);
    if dice.chance(0.3) {
        body.set("quat", dice.reals(&[[0.3, 1.0], [-0.5, 0.5], [-0.5, 0.5], [-0.5, 0.5]]));
    }
    joints(dice, names, &mut body, depth);
    for _ in 0..1 + usize::from(dice.chance(0.3)) {
        let mut geom = geom(dice, names, 0.25);
        geom.set("density", dice.real(300.0, 3000.0));
        surface(dice, &mut geom);
        if dice.chance(0.3) {
            geom.set("contype", dice.below(4));
            geom.set("conaffinity", dice.below(4));
        }
        body.children.push(geom);
    }
    if depth < 4 {
        let children = [0, 1, 1, 2, 2][dice.below(5)];
        for _ in 0..children {
            body.children.push(tree(dice, names, depth + 1, 0.0));
        }
    }
    body
}

fn joints(dice: &mut Dice, names: &mut Names, body: &mut Node, depth: usize) {
    if depth == 0 && dice.chance(0.5) {
        body.children.push(Node::new("freejoint"));
        return;
    }
    // Never two that turn about the same axis without inertia of their own.
    let kinds: &[&str] = match dice.below(8) {
        0 if depth > 0 => &[],
        1 => &["ball"],
        2 => &["slide"],
        3 => &["hinge", "hinge"],
        4 => &["slide", "hinge"],
        _ => &["hinge"],
    };
    for kind in kinds {
        let number = names.joints.len() + names.balls.len();
        let name = format!("j{number}");
        let mut joint = Node::new("joint").with("name", &name).with("type", *kind);
        if dice.chance(0.5) {
            joint.set("pos", dice.vector(0.1));
        }
        joint.set("armature", dice.real(0.0, 0.05) + 0.002);
        if dice.chance(0.5) {
            joint.set("damping", dice.real(0.0, 1.0));
        }
        if dice.chance(0.25) {
            joint.set("stiffness", dice.real(0.0, 20.0));
        }
        if dice.chance(0.2) {
            joint.set("frictionloss", dice.real(0.0, 0.5));
        }
        if *kind == "ball" {
            if dice.chance(0.3) {
                joint.set("range", format!("0 {}", dice.real(0.2, 1.5)));
            }
            names.balls.push(name);
        } else {
            scalar_joint(dice, &mut joint);
            names.joints.push(name);
        }
        body.children.push(joint);
    }
}

fn scalar_joint(dice: &mut Dice, joint: &mut Node) {
    joint.set("axis", dice.axis());
    if dice.chance(0.2) {
        joint.set("springref", dice.real(-0.5, 0.5));
    }
    if dice.chance(0.1) {
        joint.set("ref", dice.real(-0.2, 0.2));
    }
    if dice.chance(0.5) {
        joint.set("range", dice.reals(&[[-1.2, -0.1], [0.1, 1.2]]));
        if dice.chance(0.3) {
            joint.set("margin", dice.real(0.0, 0.1));
            joint.set("solreflimit", solref(dice));
            joint.set("solimplimit", solimp(dice, &[1.0, 2.0, 3.0, 4.0]));
        }
    }
    if dice.chance(0.1) {
        joint.set("actuatorfrcrange", dice.reals(&[[-3.0, -0.5], [0.5, 3.0]]));
    }
}
