//! Actuators in the schema.

use super::node::{LEAF, NAMED, Node, Role, USER};

const ACTUATOR: &str = "gear ctrllimited ctrlrange forcelimited forcerange cranklength group \
                        lengthrange damping armature";
const TARGET: &str = "joint jointinparent tendon site refsite cranksite slidersite";

nodes! {
    ORIENTATION_SERVO "orientation" Role::Refused(OTHER);
    PID "pid" Role::Refused(OTHER);
    ACTUATOR_PLUGIN "plugin" Role::Refused("MuJoCo's plugins do not run here");
}

const NO_DELAY: &str = "delayed actuators are not read from a file; leave this out, and give \
                        `delay` of the task's [[task.action]] (in control steps) or \
                        [[task.actuator]] (in physics steps)";
const NO_BODY: &str = "<adhesion> and <general> act on bodies; use joint=\"...\"";
const OTHER: &str = "use motor, position, velocity, intvelocity, cylinder, damper, muscle, \
                     adhesion, dcmotor or general";

const ACTUATOR_IGNORES: &[(&str, &str)] =
    &[("user", USER), ("interp", "without delay there is nothing to interpolate")];
const ACTUATOR_REFUSES: &[(&str, &str)] =
    &[("nsample delay", NO_DELAY), ("body", NO_BODY), ("velrange ffrange", OTHER)];
macro_rules! actuators {
    ($($id:ident $default:ident $name:literal $own:literal;)*) => {
        $(pub(super) static $id: Node = Node {
            name: $name,
            reads: &[NAMED, ACTUATOR, TARGET, $own],
            ignores: ACTUATOR_IGNORES,
            refuses: ACTUATOR_REFUSES,
            ..LEAF
        };
        pub(super) static $default: Node = Node {
            name: $name,
            reads: &[ACTUATOR, $own],
            ignores: ACTUATOR_IGNORES,
            refuses: ACTUATOR_REFUSES,
            ..LEAF
        };)*
    };
}
actuators! {
    MOTOR MOTOR_DEFAULT "motor" "";
    POSITION POSITION_DEFAULT "position" "kp kv dampratio timeconst inheritrange";
    VELOCITY VELOCITY_DEFAULT "velocity" "kv";
    INTVELOCITY INTVELOCITY_DEFAULT "intvelocity"
        "kp kv dampratio inheritrange actlimited actrange";
    DAMPER DAMPER_DEFAULT "damper" "kv";
    CYLINDER CYLINDER_DEFAULT "cylinder" "timeconst area diameter bias";
    MUSCLE MUSCLE_DEFAULT "muscle"
        "timeconst tausmooth range force scale lmin lmax vmax fpmax fvmax";
    DCMOTOR DCMOTOR_DEFAULT "dcmotor"
        "motorconst resistance nominal saturation inductance cogging controller thermal lugre input";
    ADHESION ADHESION_DEFAULT "adhesion" "body gain";
    GENERAL GENERAL_DEFAULT "general"
        "body dyntype gaintype biastype dynprm gainprm biasprm actlimited actrange actearly actdim \
         input inheritrange";
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
        &MUSCLE,
        &ADHESION,
        &DCMOTOR,
        &ACTUATOR_PLUGIN,
    ],
    ..LEAF
};
