//! Actuators in the schema.

use super::{LEAF, NAMED, Node, Role, USER};

const ACTUATOR: &str = "gear ctrllimited ctrlrange forcelimited forcerange";

nodes! {
    INTVELOCITY "intvelocity" Role::Refused(MUSCLE);
    ORIENTATION_SERVO "orientation" Role::Refused(MUSCLE);
    PID "pid" Role::Refused(MUSCLE);
    CYLINDER "cylinder" Role::Refused(MUSCLE);
    MUSCLES "muscle" Role::Refused(MUSCLE);
    ADHESION "adhesion" Role::Refused(MUSCLE);
    DCMOTOR "dcmotor" Role::Refused(MUSCLE);
    ACTUATOR_PLUGIN "plugin" Role::Refused("MuJoCo's plugins do not run here");
}

const NO_STATE: &str = "delayed or filtered actuators are not supported";
const NO_TRANSMISSION: &str = "only actuators on joints are supported; use joint=\"...\"";
const NO_ACTUATOR_DAMPING: &str = "write it as the joint's own damping or armature";
const MUSCLE: &str = "use motor, position, velocity or general";

const ACTUATOR_IGNORES: &[(&str, &str)] = &[
    ("group", "actuators are never switched off by group"),
    ("user", USER),
    ("lengthrange", "only muscles use it"),
    ("interp", "without delay there is nothing to interpolate"),
];
const ACTUATOR_REFUSES: &[(&str, &str)] = &[
    ("nsample delay", NO_STATE),
    ("damping armature", NO_ACTUATOR_DAMPING),
    (
        "tendon site refsite cranksite slidersite cranklength body",
        NO_TRANSMISSION,
    ),
    ("dampratio", "write the damping itself as kv"),
    ("timeconst", NO_STATE),
    ("actlimited actrange actearly dynprm", NO_STATE),
    ("input velrange ffrange", MUSCLE),
];
const ACTUATOR_DEFAULT_IGNORES: &[(&str, &str)] = &[
    ("group", "actuators are never switched off by group"),
    ("user", USER),
    ("lengthrange", "only muscles use it"),
    ("interp", "without delay there is nothing to interpolate"),
    ("dynprm", "actuators without state do not use it"),
];

macro_rules! actuators {
    ($($id:ident $default:ident $name:literal $own:literal;)*) => {
        $(pub(super) static $id: Node = Node {
            name: $name,
            reads: &[NAMED, ACTUATOR, "joint jointinparent", $own],
            ignores: ACTUATOR_IGNORES,
            refuses: ACTUATOR_REFUSES,
            ..LEAF
        };
        pub(super) static $default: Node = Node {
            name: $name,
            reads: &[ACTUATOR, $own],
            ignores: ACTUATOR_DEFAULT_IGNORES,
            refuses: ACTUATOR_REFUSES,
            ..LEAF
        };)*
    };
}
actuators! {
    MOTOR MOTOR_DEFAULT "motor" "";
    POSITION POSITION_DEFAULT "position" "kp kv inheritrange";
    VELOCITY VELOCITY_DEFAULT "velocity" "kv";
    DAMPER DAMPER_DEFAULT "damper" "kv";
    GENERAL GENERAL_DEFAULT "general" "dyntype gaintype biastype gainprm biasprm";
}

pub(super) static ACTUATOR_NODE: Node = Node {
    name: "actuator",
    children: &[
        &MOTOR,
        &POSITION,
        &VELOCITY,
        &DAMPER,
        &GENERAL,
        &INTVELOCITY,
        &ORIENTATION_SERVO,
        &PID,
        &CYLINDER,
        &MUSCLES,
        &ADHESION,
        &DCMOTOR,
        &ACTUATOR_PLUGIN,
    ],
    ..LEAF
};
