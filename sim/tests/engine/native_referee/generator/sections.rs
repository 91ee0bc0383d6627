//! Tendons, equalities, contact rules, actuators.

use super::super::xml::Node;
use super::dice::Dice;
use super::{Names, solimp, solref};

/// Tendons, equalities, contact rules, actuators.
pub fn sections(dice: &mut Dice, names: &Names, root: &mut Node) {
    let mut tendons = Vec::new();
    if names.joints.len() > 1 && dice.chance(0.4) {
        let mut section = Node::new("tendon");
        for i in 0..1 + dice.below(2) {
            let name = format!("t{i}");
            section.children.push(tendon(dice, names, &name));
            tendons.push(name);
        }
        root.children.push(section);
    }
    if dice.chance(0.3) {
        let section = equalities(dice, names, &tendons);
        if !section.children.is_empty() {
            root.children.push(section);
        }
    }
    if names.bodies > 1 && dice.chance(0.3) {
        root.children.push(contacts(dice, names));
    }
    let mut section = Node::new("actuator");
    for joint in &names.joints {
        if dice.chance(0.6) {
            section.children.push(actuator(dice, "joint", joint));
        }
    }
    for tendon in &tendons {
        if dice.chance(0.5) {
            section.children.push(actuator(dice, "tendon", tendon));
        }
    }
    if !section.children.is_empty() {
        root.children.push(section);
    }
}

fn tendon(dice: &mut Dice, names: &Names, name: &str) -> Node {
    let mut tendon = Node::new("fixed").with("name", name);
    if dice.chance(0.4) {
        tendon.set("stiffness", dice.real(0.0, 10.0));
    }
    if dice.chance(0.4) {
        tendon.set("damping", dice.real(0.0, 1.0));
    }
    if dice.chance(0.3) {
        tendon.set("springlength", dice.reals(&[[-0.5, 0.0], [0.0, 0.5]]));
    }
    if dice.chance(0.4) {
        tendon.set("range", dice.reals(&[[-1.0, -0.1], [0.1, 1.0]]));
    }
    if dice.chance(0.2) {
        tendon.set("frictionloss", dice.real(0.0, 0.5));
    }
    if dice.chance(0.1) {
        tendon.set("armature", dice.real(0.0, 0.2));
    }
    let first = dice.below(names.joints.len());
    for i in 0..2 {
        let joint = &names.joints[(first + i) % names.joints.len()];
        let coef = dice.real(0.2, 1.5) * if dice.chance(0.4) { -1.0 } else { 1.0 };
        tendon.children.push(Node::new("joint").with("joint", joint).with("coef", coef));
    }
    tendon
}

fn equalities(dice: &mut Dice, names: &Names, tendons: &[String]) -> Node {
    let mut section = Node::new("equality");
    for _ in 0..1 + dice.below(2) {
        let body = |dice: &mut Dice| format!("b{}", dice.below(names.bodies));
        let mut node = match dice.below(4) {
            0 if names.joints.len() > 1 => {
                let first = dice.below(names.joints.len() - 1);
                Node::new("joint")
                    .with("joint1", &names.joints[first])
                    .with("joint2", &names.joints[first + 1])
                    .with("polycoef", dice.reals(&[[-0.3, 0.3]; 5]))
            }
            1 => Node::new("connect").with("body1", body(dice)).with("anchor", dice.vector(0.2)),
            2 => {
                Node::new("weld").with("body1", body(dice)).with("torquescale", dice.real(0.3, 2.0))
            }
            3 if !tendons.is_empty() => Node::new("tendon")
                .with("tendon1", &tendons[0])
                .with("polycoef", dice.reals(&[[-0.3, 0.3]; 5])),
            _ => continue,
        };
        if dice.chance(0.3) {
            node.set("solref", solref(dice));
            node.set("solimp", solimp(dice, &[1.0, 2.0, 3.0, 4.0]));
        }
        section.children.push(node);
    }
    section
}

fn contacts(dice: &mut Dice, names: &Names) -> Node {
    let mut section = Node::new("contact");
    let first = dice.below(names.bodies - 1);
    section.children.push(
        Node::new("exclude")
            .with("body1", format!("b{first}"))
            .with("body2", format!("b{}", first + 1)),
    );
    if dice.chance(0.5) && names.geoms > 1 {
        let first = dice.below(names.geoms - 1);
        section.children.push(
            Node::new("pair")
                .with("geom1", format!("g{first}"))
                .with("geom2", format!("g{}", names.geoms - 1))
                .with("condim", dice.pick(&["1", "3", "4", "6"]))
                .with(
                    "friction",
                    dice.reals(&[[0.1, 1.0], [0.1, 1.0], [0.01, 0.1], [0.01, 0.1], [0.01, 0.1]]),
                ),
        );
    }
    section
}

fn actuator(dice: &mut Dice, on: &'static str, target: &str) -> Node {
    let mut node = match dice.below(7) {
        0 => Node::new("position").with("kp", dice.real(1.0, 50.0)).with("kv", dice.real(0.0, 2.0)),
        1 => Node::new("velocity").with("kv", dice.real(0.1, 3.0)),
        2 => Node::new("general")
            .with("gaintype", "affine")
            .with("gainprm", dice.reals(&[[0.5, 3.0], [-1.0, 1.0], [-0.3, 0.3]]))
            .with("biastype", "affine")
            .with("biasprm", dice.reals(&[[-1.0, 1.0], [-5.0, 0.0], [-1.0, 0.0]])),
        3 => {
            let mut node = Node::new("general")
                .with("dyntype", dice.pick(&["integrator", "filter", "filterexact"]))
                .with("dynprm", dice.real(0.01, 0.2))
                .with("gainprm", dice.real(0.5, 5.0));
            if dice.chance(0.4) {
                node.set("actrange", dice.reals(&[[-1.0, -0.1], [0.1, 1.0]]));
            }
            if dice.chance(0.3) {
                node.set("actearly", "true");
            }
            node
        }
        _ => Node::new("motor"),
    };
    node.set(on, target);
    if dice.chance(0.4) {
        node.set("gear", dice.real(-5.0, 20.0));
    }
    if dice.chance(0.5) {
        node.set("ctrlrange", dice.reals(&[[-2.0, -0.2], [0.2, 2.0]]));
    }
    if dice.chance(0.2) {
        node.set("forcerange", dice.reals(&[[-3.0, -0.3], [0.3, 3.0]]));
    }
    node
}
