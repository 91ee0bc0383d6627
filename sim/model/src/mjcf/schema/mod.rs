//! The elements and attributes of MJCF, and this reader's treatment of each.

/// Elements without attributes of interest.
macro_rules! nodes {
    ($($id:ident $name:literal $role:expr;)*) => {
        $(pub(super) static $id: Node = Node { name: $name, role: $role, ..LEAF };)*
    };
}

mod actuator;
mod body;
mod node;

use actuator::*;
use body::*;
use node::{AWAKE, DRAWING, LEAF, NAMED, PLASTIC, USER};
pub(super) use node::{Node, Role};

const ROUNDING: &str = "chooses how MuJoCo computes, not what";

const PAIR: &str = "condim friction solref solreffriction solimp margin gap adhesion";

nodes! {
    EXTENSION "extension" Role::Refused("MuJoCo's plugins do not run here");
    VISUAL "visual" Role::Ignored(DRAWING);
    STATISTIC "statistic" Role::Ignored("only scales drawings and MuJoCo's solver tolerance");
    SIZE "size" Role::Ignored("memory is sized from the model itself");
    CUSTOM "custom" Role::Ignored(USER);
    TEXTURE "texture" Role::Ignored(DRAWING);
    SKIN "skin" Role::Ignored(DRAWING);
    SENSOR "sensor" Role::Apart;
    EQUALITY_FLEX "flex" Role::Refused("only rigid bodies are supported");
    FLEXVERT "flexvert" Role::Refused("only rigid bodies are supported");
    FLEXSTRAIN "flexstrain" Role::Refused("only rigid bodies are supported");
}

static LENGTHRANGE: Node = Node {
    name: "lengthrange",
    reads: &["uselimit useexisting"],
    ignores: &[(
        "mode accel maxforce timeconst timestep inttotal interval tolrange",
        "only for the simulation that finds lengths, which muscles have to give here",
    )],
    ..LEAF
};
static COMPILER: Node = Node {
    name: "compiler",
    reads: &["angle autolimits balanceinertia inertiafromgeom inertiagrouprange settotalmass \
         boundmass boundinertia coordinate eulerseq alignfree \
         fusestatic discardvisual fitaabb meshdir assetdir strippath conflict"],
    ignores: &[
        ("texturedir", DRAWING),
        ("usethread", ROUNDING),
        ("saveinertial savecompiled savecanonical", "says how MuJoCo saves the file"),
        ("passthrough", DRAWING),
    ],
    children: &[&LENGTHRANGE],
    ..LEAF
};

static OPTION: Node = Node {
    name: "option",
    reads: &[
        "timestep gravity density viscosity wind magnetic impratio integrator cone solver iterations \
         tolerance ls_iterations ls_tolerance ccd_iterations ccd_tolerance noslip_iterations \
         noslip_tolerance actuatorgroupdisable",
    ],
    ignores: &[
        ("jacobian", ROUNDING),
        ("o_margin o_solref o_solimp o_friction", "only with flag override, which is refused"),
        ("sleep_tolerance", AWAKE),
        ("sdf_iterations sdf_initpoints", "only for signed distance fields"),
        ("apirate", "has no effect since MuJoCo 3"),
    ],
    children: &[&FLAG],
    ..LEAF
};

// options.rs reads all of them and refuses the one that matters.
static FLAG: Node =
    Node { name: "flag", reads: &super::options::FLAGS, ignores: &[("sleep", AWAKE)], ..LEAF };

static PAIR_NODE: Node = Node { name: "pair", reads: &[NAMED, "geom1 geom2", PAIR], ..LEAF };
static PAIR_DEFAULT: Node = Node { name: "pair", reads: &[PAIR], ..LEAF };
static EXCLUDE: Node = Node { name: "exclude", reads: &["name body1 body2"], ..LEAF };
static CONTACT: Node = Node { name: "contact", children: &[&PAIR_NODE, &EXCLUDE], ..LEAF };

const TENDON: &str = "stiffness damping frictionloss armature range limited margin springlength \
                      solreflimit solimplimit solreffriction solimpfriction actuatorfrclimited \
                      actuatorfrcrange";
const TENDON_REFUSES: &[(&str, &str)] = &[PLASTIC];
const TENDON_IGNORES: &[(&str, &str)] = &[("group width material rgba", DRAWING), ("user", USER)];
static SPATIAL: Node = Node {
    name: "spatial",
    reads: &[NAMED, TENDON],
    ignores: TENDON_IGNORES,
    refuses: TENDON_REFUSES,
    children: &[&SPATIAL_SITE, &SPATIAL_GEOM, &PULLEY],
    ..LEAF
};
static SPATIAL_SITE: Node = Node { name: "site", reads: &["site"], ..LEAF };
static SPATIAL_GEOM: Node = Node { name: "geom", reads: &["geom sidesite"], ..LEAF };
static PULLEY: Node = Node { name: "pulley", reads: &["divisor"], ..LEAF };
static FIXED: Node = Node {
    name: "fixed",
    reads: &[NAMED, TENDON],
    ignores: TENDON_IGNORES,
    refuses: TENDON_REFUSES,
    children: &[&FIXED_JOINT],
    ..LEAF
};
static FIXED_JOINT: Node = Node { name: "joint", reads: &["joint coef"], ..LEAF };
static TENDON_NODE: Node = Node { name: "tendon", children: &[&SPATIAL, &FIXED], ..LEAF };
static TENDON_DEFAULT: Node = Node {
    name: "tendon",
    reads: &[TENDON],
    ignores: TENDON_IGNORES,
    refuses: TENDON_REFUSES,
    ..LEAF
};

const EQUALITY_BASE: &str = "active solref solimp";
static EQUALITY_DEFAULT: Node = Node { name: "equality", reads: &[EQUALITY_BASE], ..LEAF };
static CONNECT: Node = Node {
    name: "connect",
    reads: &[NAMED, EQUALITY_BASE, "body1 body2 anchor site1 site2"],
    ..LEAF
};
static WELD: Node = Node {
    name: "weld",
    reads: &[NAMED, EQUALITY_BASE, "body1 body2 anchor relpose site1 site2 torquescale"],
    ..LEAF
};
static EQUALITY_JOINT: Node =
    Node { name: "joint", reads: &[NAMED, EQUALITY_BASE, "joint1 joint2 polycoef"], ..LEAF };
static EQUALITY_TENDON: Node =
    Node { name: "tendon", reads: &[NAMED, EQUALITY_BASE, "tendon1 tendon2 polycoef"], ..LEAF };
static EQUALITY: Node = Node {
    name: "equality",
    children: &[
        &CONNECT,
        &WELD,
        &EQUALITY_JOINT,
        &EQUALITY_TENDON,
        &EQUALITY_FLEX,
        &FLEXVERT,
        &FLEXSTRAIN,
    ],
    ..LEAF
};

static DEFORMABLE: Node = Node { name: "deformable", children: &[&EQUALITY_FLEX, &SKIN], ..LEAF };

static MATERIAL: Node = Node {
    name: "material",
    reads: &["name class rgba"],
    ignores: &[(
        "texture texrepeat texuniform emission specular shininess reflectance metallic roughness",
        DRAWING,
    )],
    children: &[&LAYER],
    ..LEAF
};
static MATERIAL_DEFAULT: Node = Node {
    name: "material",
    reads: &["rgba"],
    ignores: &[(
        "texture texrepeat texuniform emission specular shininess reflectance metallic roughness",
        DRAWING,
    )],
    children: &[&LAYER],
    ..LEAF
};
nodes! {
    MESH_PLUGIN "plugin" Role::Refused("MuJoCo's plugins do not run here");
    LAYER "layer" Role::Ignored(DRAWING);
}
const MESH_BASE: &str = "scale inertia maxhullvert";
const MESH_IGNORES: &[(&str, &str)] = &[
    ("normal texcoord smoothnormal material", DRAWING),
    ("content_type", "the file's name says what it is"),
];
static MESH: Node = Node {
    name: "mesh",
    reads: &[NAMED, MESH_BASE, "file vertex face refpos refquat"],
    ignores: MESH_IGNORES,
    refuses: &[("builtin params", "write the vertices out, or use a primitive geom")],
    children: &[&MESH_PLUGIN],
    ..LEAF
};
static MESH_DEFAULT: Node =
    Node { name: "mesh", reads: &[MESH_BASE], ignores: MESH_IGNORES, ..LEAF };
static HFIELD: Node = Node {
    name: "hfield",
    reads: &["name file nrow ncol size elevation"],
    ignores: &[("content_type", "the file's name says what it is")],
    ..LEAF
};
static MODEL_ASSET: Node = Node {
    name: "model",
    reads: &["name file"],
    ignores: &[("content_type", "the file's root says what it is")],
    ..LEAF
};
static ASSET: Node = Node {
    name: "asset",
    children: &[&MESH, &HFIELD, &SKIN, &TEXTURE, &MATERIAL, &MODEL_ASSET],
    ..LEAF
};

static DEFAULT: Node = Node {
    name: "default",
    reads: &["class"],
    children: &[
        &DEFAULT,
        &JOINT_DEFAULT,
        &GEOM_DEFAULT,
        &SITE_DEFAULT,
        &PAIR_DEFAULT,
        &TENDON_DEFAULT,
        &EQUALITY_DEFAULT,
        &MATERIAL_DEFAULT,
        &MESH_DEFAULT,
        &TEXTURE,
        &CAMERA,
        &LIGHT,
        &MOTOR_DEFAULT,
        &POSITION_DEFAULT,
        &VELOCITY_DEFAULT,
        &INTVELOCITY_DEFAULT,
        &DAMPER_DEFAULT,
        &CYLINDER_DEFAULT,
        &GENERAL_DEFAULT,
        &ORIENTATION_SERVO,
        &PID,
        &MUSCLE_DEFAULT,
        &ADHESION_DEFAULT,
        &DCMOTOR_DEFAULT,
    ],
    ..LEAF
};

static KEY: Node = Node {
    name: "key",
    reads: &["name qpos qvel act ctrl mpos mquat"],
    ignores: &[("time", "episodes start at 0")],
    refuses: &[("plastic", "springs do not yield here")],
    ..LEAF
};
static KEYFRAME: Node = Node { name: "keyframe", children: &[&KEY], ..LEAF };

/// The root element.
pub(super) static MUJOCO: Node = Node {
    name: "mujoco",
    reads: &["model"],
    children: &[
        &COMPILER,
        &OPTION,
        &SIZE,
        &STATISTIC,
        &VISUAL,
        &DEFAULT,
        &ASSET,
        &WORLDBODY,
        &CONTACT,
        &EQUALITY,
        &TENDON_NODE,
        &ACTUATOR_NODE,
        &SENSOR,
        &KEYFRAME,
        &CUSTOM,
        &EXTENSION,
        &DEFORMABLE,
    ],
    ..LEAF
};
