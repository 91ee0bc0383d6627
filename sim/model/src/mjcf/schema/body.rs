//! Bodies and their elements, in the schema.

use super::node::{AWAKE, DRAWING, LEAF, NAMED, Node, PLASTIC, Role, USER};

const ORIENTATION: &str = "pos quat axisangle euler xyaxes zaxis";
const JOINT: &str = "type pos axis ref springref limited range actuatorfrclimited \
                     actuatorfrcrange damping stiffness armature frictionloss margin springdamper \
                     solreflimit solimplimit solreffriction solimpfriction actuatorgravcomp";
const GEOM: &str = "type fromto size contype conaffinity condim friction priority solmix solref \
                    solimp margin gap adhesion group rgba material mass density shellinertia mesh hfield \
                    fitscale fluidshape fluidcoef";

nodes! {
    CAMERA "camera" Role::Ignored(DRAWING);
    LIGHT "light" Role::Ignored(DRAWING);
    BODY_PLUGIN "plugin" Role::Refused("MuJoCo's plugins do not run here");
    FLEXCOMP "flexcomp" Role::Refused("only rigid bodies are supported");
    COMPOSITE "composite" Role::Refused("write the bodies out");
}

const JOINT_IGNORES: &[(&str, &str)] = &[("group", DRAWING), ("user", USER)];
const JOINT_REFUSES: &[(&str, &str)] = &[PLASTIC];
pub(super) static JOINT_NODE: Node = Node {
    name: "joint",
    reads: &[NAMED, JOINT],
    ignores: JOINT_IGNORES,
    refuses: JOINT_REFUSES,
    ..LEAF
};
pub(super) static JOINT_DEFAULT: Node =
    Node { name: "joint", reads: &[JOINT], ignores: JOINT_IGNORES, refuses: JOINT_REFUSES, ..LEAF };
pub(super) static FREEJOINT: Node =
    Node { name: "freejoint", reads: &["name align"], ignores: &[("group", DRAWING)], ..LEAF };

const GEOM_IGNORES: &[(&str, &str)] = &[("castshadow", DRAWING), ("user", USER)];
const GEOM_REFUSES: &[(&str, &str)] = &[("surfacevel", "moving surfaces are not supported")];
pub(super) static GEOM_NODE: Node = Node {
    name: "geom",
    reads: &[NAMED, ORIENTATION, GEOM],
    ignores: GEOM_IGNORES,
    refuses: GEOM_REFUSES,
    children: &[&BODY_PLUGIN],
    ..LEAF
};
pub(super) static GEOM_DEFAULT: Node = Node {
    name: "geom",
    reads: &[ORIENTATION, GEOM],
    ignores: GEOM_IGNORES,
    refuses: GEOM_REFUSES,
    ..LEAF
};

const SITE_REFUSES: &[(&str, &str)] =
    &[("mesh", "give the site a type and a size; its shape is only for touch sensors and tendons")];
const SITE_IGNORES: &[(&str, &str)] = &[("group material rgba", DRAWING), ("user", USER)];
pub(super) static SITE_NODE: Node = Node {
    name: "site",
    reads: &[NAMED, ORIENTATION, "fromto type size"],
    ignores: SITE_IGNORES,
    refuses: SITE_REFUSES,
    ..LEAF
};
pub(super) static SITE_DEFAULT: Node = Node {
    name: "site",
    reads: &[ORIENTATION, "fromto type size"],
    ignores: SITE_IGNORES,
    refuses: SITE_REFUSES,
    ..LEAF
};

pub(super) static INERTIAL: Node =
    Node { name: "inertial", reads: &[ORIENTATION, "mass diaginertia fullinertia"], ..LEAF };

pub(super) static BODY: Node = Node {
    name: "body",
    reads: &["name childclass mocap gravcomp simple fuse", ORIENTATION],
    ignores: &[("user", USER), ("sleep", AWAKE)],
    children: &BODY_CHILDREN,
    ..LEAF
};
pub(super) static FRAME: Node = Node {
    name: "frame",
    reads: &["name childclass", ORIENTATION],
    children: &BODY_CHILDREN,
    ..LEAF
};
static REPLICATE: Node = Node {
    name: "replicate",
    reads: &["count offset euler sep childclass"],
    // No joints and inertia, as in MuJoCo: they belong to a body.
    children: &[
        &BODY,
        &FRAME,
        &GEOM_NODE,
        &SITE_NODE,
        &CAMERA,
        &LIGHT,
        &REPLICATE,
        &ATTACH,
        &COMPOSITE,
        &FLEXCOMP,
        &BODY_PLUGIN,
    ],
    ..LEAF
};
static ATTACH: Node = Node { name: "attach", reads: &["model body frame prefix"], ..LEAF };
pub(super) static WORLDBODY: Node = Node { name: "worldbody", children: &BODY_CHILDREN, ..LEAF };
pub(super) static BODY_CHILDREN: [&Node; 14] = [
    &BODY,
    &FRAME,
    &INERTIAL,
    &JOINT_NODE,
    &FREEJOINT,
    &GEOM_NODE,
    &SITE_NODE,
    &CAMERA,
    &LIGHT,
    &REPLICATE,
    &ATTACH,
    &COMPOSITE,
    &FLEXCOMP,
    &BODY_PLUGIN,
];
