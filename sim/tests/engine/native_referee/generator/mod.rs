//! Random models: trees of bodies, joints, geoms, actuators, tendons, equalities,
//! options. The same seed gives the same model.

pub mod dice;
mod sections;
mod trees;

use super::xml::Node;
use dice::Dice;
use sections::sections;
use trees::{geom, tree};

/// How many seeds are compared.
pub const MODELS: u64 = 500;

/// Names given so far.
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
    dice.fractions = dice.chance(0.1);
    let mut names = Names::default();
    let mut root = Node::new("mujoco").with("model", format!("generated_{seed}"));
    root.children.push(Node::new("compiler").with("angle", "radian"));
    root.children.push(options(dice));
    let mut world = Node::new("worldbody");
    if dice.chance(0.8) {
        let mut floor =
            Node::new("geom").with("name", "floor").with("type", "plane").with("size", "0 0 1");
        if dice.chance(0.2) {
            floor.set("quat", dice.reals(&[[0.9, 1.0], [-0.2, 0.2], [-0.2, 0.2], [-0.2, 0.2]]));
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
    option.set("integrator", dice.pick(&["Euler", "Euler", "implicitfast", "RK4"]));
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
        option.children.push(Node::new("flag").with(flag, "disable"));
    }
    option
}

/// Contact parameters.
fn surface(dice: &mut Dice, geom: &mut Node) {
    if dice.chance(0.4) {
        geom.set("condim", dice.pick(&["1", "3", "4", "6"]));
    }
    if dice.chance(0.4) {
        geom.set("friction", dice.reals(&[[0.1, 1.5], [0.001, 0.1], [0.001, 0.1]]));
    }
    if dice.chance(0.2) {
        geom.set("margin", dice.real(0.0, 0.03));
        geom.set("gap", dice.real(0.0, 0.01));
    }
    if dice.chance(0.2) {
        geom.set("solref", solref(dice));
        geom.set("solimp", solimp(dice, &[2.0]));
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

/// Powers: any of `whole`, or any number in a model that draws fractions. Those of two
/// geoms are mixed, into fractions if they differ.
fn solimp(dice: &mut Dice, whole: &[f64]) -> String {
    let power = match dice.fractions {
        true => dice.real(1.0, 4.0),
        false => whole[dice.below(whole.len())],
    };
    let rest = dice.reals(&[[0.1, 0.9], [0.9, 0.99], [0.001, 0.1], [0.1, 0.9]]);
    format!("{rest} {power}")
}

#[test]
fn a_seed_is_a_model() {
    assert_eq!(generate(3), generate(3));
    assert_ne!(generate(3), generate(4));
}

#[test]
#[ignore = "writes the models for other programs, to OSTLER_GENERATED_OUT=folder"]
fn models_can_be_written_out() {
    let folder = std::env::var_os("OSTLER_GENERATED_OUT").unwrap();
    for seed in 0..MODELS {
        let path = std::path::Path::new(&folder).join(format!("generated_{seed}.xml"));
        std::fs::write(path, generate(seed).to_string()).unwrap();
    }
}
