//! Random models: trees of bodies, joints, geoms, actuators, tendons, equalities,
//! options. The same seed gives the same model.

use super::xml::Node;

/// Random numbers: splitmix64 (Steele, Lea, Flood 2014).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Mixed once: the streams of neighbouring seeds would be one stream, shifted.
        Self(Self(seed).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// In a range, with three decimals.
    fn real(&mut self, low: f64, high: f64) -> f64 {
        ((low + (high - low) * self.unit()) * 1e3).round() / 1e3
    }

    fn reals(&mut self, ranges: &[[f64; 2]]) -> String {
        let all: Vec<String> = ranges
            .iter()
            .map(|[low, high]| self.real(*low, *high).to_string())
            .collect();
        all.join(" ")
    }

    fn vector(&mut self, reach: f64) -> String {
        self.reals(&[[-reach, reach]; 3])
    }

    /// An axis that is not zero.
    fn axis(&mut self) -> String {
        match self.below(4) {
            0 => "1 0 0".into(),
            1 => "0 1 0".into(),
            2 => "0 0 1".into(),
            _ => format!("{} 0.3", self.reals(&[[-1.0, 1.0]; 2])),
        }
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// What has a name by now.
#[derive(Default)]
struct Names {
    bodies: usize,
    geoms: usize,
    /// Hinges and slides.
    joints: Vec<String>,
    balls: Vec<String>,
}

/// The model of a seed.
pub fn generate(seed: u64) -> Node {
    let dice = &mut Dice::new(seed);
    let mut names = Names::default();
    let mut root = Node::new("mujoco").with("model", format!("generated_{seed}"));
    root.children
        .push(Node::new("compiler").with("angle", "radian"));
    root.children.push(options(dice));
    let mut world = Node::new("worldbody");
    if dice.chance(0.8) {
        let mut floor = Node::new("geom")
            .with("name", "floor")
            .with("type", "plane")
            .with("size", "0 0 1");
        if dice.chance(0.2) {
            floor.set(
                "quat",
                dice.reals(&[[0.9, 1.0], [-0.2, 0.2], [-0.2, 0.2], [-0.2, 0.2]]),
            );
        }
        surface(dice, &mut floor);
        world.children.push(floor);
    }
    if dice.chance(0.3) {
        let mut still = geom(dice, &mut names, 0.4);
        surface(dice, &mut still);
        world.children.push(still);
    }
    for i in 0..1 + dice.below(3) {
        let tree = tree(dice, &mut names, 0, i as f64 * 0.4);
        world.children.push(tree);
    }
    root.children.push(world);
    sections(dice, &names, &mut root);
    root
}

fn options(dice: &mut Dice) -> Node {
    let mut option = Node::new("option").with("timestep", dice.real(0.001, 0.01));
    option.set(
        "integrator",
        dice.pick(&["Euler", "Euler", "implicitfast", "RK4"]),
    );
    option.set("cone", dice.pick(&["pyramidal", "pyramidal", "elliptic"]));
    if dice.chance(0.2) {
        option.set("impratio", dice.real(0.5, 5.0));
    }
    if dice.chance(0.2) {
        option.set("gravity", dice.vector(10.0));
    }
    if dice.chance(0.15) {
        option.set("density", dice.real(0.0, 100.0));
        option.set("viscosity", dice.real(0.0, 0.1));
        option.set("wind", dice.vector(2.0));
    }
    if dice.chance(0.15) {
        let flag = dice.pick(&[
            "frictionloss",
            "limit",
            "contact",
            "spring",
            "damper",
            "gravity",
            "clampctrl",
            "filterparent",
            "actuation",
            "refsafe",
            "eulerdamp",
            "equality",
        ]);
        option
            .children
            .push(Node::new("flag").with(flag, "disable"));
    }
    option
}

/// Contact parameters.
fn surface(dice: &mut Dice, geom: &mut Node) {
    if dice.chance(0.4) {
        geom.set("condim", dice.pick(&["1", "3", "4", "6"]));
    }
    if dice.chance(0.4) {
        geom.set(
            "friction",
            dice.reals(&[[0.1, 1.5], [0.001, 0.1], [0.001, 0.1]]),
        );
    }
    if dice.chance(0.2) {
        geom.set("margin", dice.real(0.0, 0.03));
        geom.set("gap", dice.real(0.0, 0.01));
    }
    if dice.chance(0.2) {
        geom.set("solref", solref(dice));
        geom.set("solimp", solimp(dice));
    }
    if dice.chance(0.1) {
        geom.set("solmix", dice.real(0.1, 3.0));
    }
    if dice.chance(0.1) {
        geom.set("priority", dice.below(3));
    }
}

fn solref(dice: &mut Dice) -> String {
    if dice.chance(0.3) {
        dice.reals(&[[-2000.0, -100.0], [-60.0, -5.0]])
    } else {
        dice.reals(&[[0.005, 0.05], [0.5, 1.3]])
    }
}

fn solimp(dice: &mut Dice) -> String {
    dice.reals(&[
        [0.1, 0.9],
        [0.9, 0.99],
        [0.001, 0.1],
        [0.1, 0.9],
        [1.0, 4.0],
    ])
}

fn geom(dice: &mut Dice, names: &mut Names, scale: f64) -> Node {
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
        geom.set(
            "quat",
            dice.reals(&[[0.3, 1.0], [-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]]),
        );
    }
    geom
}

fn tree(dice: &mut Dice, names: &mut Names, depth: usize, x: f64) -> Node {
    let name = format!("b{}", names.bodies);
    names.bodies += 1;
    let pos = match depth {
        0 => format!("{} {}", x, dice.reals(&[[-0.2, 0.2], [0.15, 0.7]])),
        _ => dice.vector(0.35),
    };
    let mut body = Node::new("body").with("name", name).with("pos", pos);
    if dice.chance(0.3) {
        body.set(
            "quat",
            dice.reals(&[[0.3, 1.0], [-0.5, 0.5], [-0.5, 0.5], [-0.5, 0.5]]),
        );
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
            joint.set("solimplimit", solimp(dice));
        }
    }
    if dice.chance(0.1) {
        joint.set("actuatorfrcrange", dice.reals(&[[-3.0, -0.5], [0.5, 3.0]]));
    }
}

/// Tendons, equalities, contact rules, actuators.
fn sections(dice: &mut Dice, names: &Names, root: &mut Node) {
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
        tendon
            .children
            .push(Node::new("joint").with("joint", joint).with("coef", coef));
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
            1 => Node::new("connect")
                .with("body1", body(dice))
                .with("anchor", dice.vector(0.2)),
            2 => Node::new("weld")
                .with("body1", body(dice))
                .with("torquescale", dice.real(0.3, 2.0)),
            3 if !tendons.is_empty() => Node::new("tendon")
                .with("tendon1", &tendons[0])
                .with("polycoef", dice.reals(&[[-0.3, 0.3]; 5])),
            _ => continue,
        };
        if dice.chance(0.3) {
            node.set("solref", solref(dice));
            node.set("solimp", solimp(dice));
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
                    dice.reals(&[
                        [0.1, 1.0],
                        [0.1, 1.0],
                        [0.01, 0.1],
                        [0.01, 0.1],
                        [0.01, 0.1],
                    ]),
                ),
        );
    }
    section
}

fn actuator(dice: &mut Dice, on: &'static str, target: &str) -> Node {
    let mut node = match dice.below(7) {
        0 => Node::new("position")
            .with("kp", dice.real(1.0, 50.0))
            .with("kv", dice.real(0.0, 2.0)),
        1 => Node::new("velocity").with("kv", dice.real(0.1, 3.0)),
        2 => Node::new("general")
            .with("gaintype", "affine")
            .with(
                "gainprm",
                dice.reals(&[[0.5, 3.0], [-1.0, 1.0], [-0.3, 0.3]]),
            )
            .with("biastype", "affine")
            .with(
                "biasprm",
                dice.reals(&[[-1.0, 1.0], [-5.0, 0.0], [-1.0, 0.0]]),
            ),
        3 => {
            let mut node = Node::new("general")
                .with(
                    "dyntype",
                    dice.pick(&["integrator", "filter", "filterexact"]),
                )
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

#[test]
fn a_seed_is_a_model() {
    assert_eq!(generate(3), generate(3));
    assert_ne!(generate(3), generate(4));
}

/// Writes models for other tools: `OSTLER_GENERATED_OUT=folder`.
#[test]
fn models_can_be_written_out() {
    let Some(folder) = std::env::var_os("OSTLER_GENERATED_OUT") else {
        return;
    };
    for seed in 0..20 {
        let path = std::path::Path::new(&folder).join(format!("generated_{seed}.xml"));
        std::fs::write(path, generate(seed).to_string()).unwrap();
    }
}
