//! Which elements and attributes MJCF has, and what this reader does with each.

/// What happens to an element.
pub(super) enum Role {
    /// Its attributes and children are looked at.
    Read,
    /// Accepted with everything in it and listed, with the reason.
    Ignored(&'static str),
    /// Not supported, with the reason or remedy.
    Refused(&'static str),
}

/// An element: names are separated by spaces.
pub(super) struct Node {
    pub name: &'static str,
    pub role: Role,
    /// Attributes that are read.
    pub reads: &'static [&'static str],
    /// Attributes without effect on the dynamics, and why.
    pub ignores: &'static [(&'static str, &'static str)],
    /// Attributes that are not supported, and why; their value for "off" passes.
    pub refuses: &'static [(&'static str, &'static str)],
    pub children: &'static [&'static Node],
}

const LEAF: Node = Node {
    name: "",
    role: Role::Read,
    reads: &[],
    ignores: &[],
    refuses: &[],
    children: &[],
};

const DRAWING: &str = "only for drawing";
const SENSING: &str = "only for sensors; tasks read the state itself";
const USER: &str = "user data has no effect on the dynamics";
const FILES: &str = "no meshes or textures are read";
const ROUNDING: &str = "chooses how MuJoCo computes, not what";

const ORIENTATION: &str = "pos quat axisangle euler xyaxes zaxis";
const JOINT: &str = "type pos axis ref springref limited range actuatorfrclimited \
                     actuatorfrcrange damping stiffness armature frictionloss margin springdamper \
                     solreflimit solimplimit solreffriction solimpfriction";
const GEOM: &str = "type fromto size contype conaffinity condim friction priority solmix solref \
                    solimp margin gap group rgba material mass density shellinertia mesh hfield";
const PAIR: &str = "condim friction solref solreffriction solimp margin gap";
const ACTUATOR: &str = "gear ctrllimited ctrlrange forcelimited forcerange";
const TENDON: &str = "stiffness damping frictionloss armature range limited";
const NAMED: &str = "name class";

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
        $(static $id: Node = Node {
            name: $name,
            reads: &[NAMED, ACTUATOR, "joint jointinparent", $own],
            ignores: ACTUATOR_IGNORES,
            refuses: ACTUATOR_REFUSES,
            ..LEAF
        };
        static $default: Node = Node {
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

macro_rules! nodes {
    ($($id:ident $name:literal $role:expr;)*) => {
        $(static $id: Node = Node { name: $name, role: $role, ..LEAF };)*
    };
}
nodes! {
    INTVELOCITY "intvelocity" Role::Refused(MUSCLE);
    ORIENTATION_SERVO "orientation" Role::Refused(MUSCLE);
    PID "pid" Role::Refused(MUSCLE);
    CYLINDER "cylinder" Role::Refused(MUSCLE);
    MUSCLES "muscle" Role::Refused(MUSCLE);
    ADHESION "adhesion" Role::Refused(MUSCLE);
    DCMOTOR "dcmotor" Role::Refused(MUSCLE);
    ACTUATOR_PLUGIN "plugin" Role::Refused("MuJoCo's plugins do not run here");
    BODY_PLUGIN "plugin" Role::Refused("MuJoCo's plugins do not run here");
    EXTENSION "extension" Role::Refused("MuJoCo's plugins do not run here");
    DEFORMABLE "deformable" Role::Refused("only rigid bodies are supported");
    FLEXCOMP "flexcomp" Role::Refused("only rigid bodies are supported");
    COMPOSITE "composite" Role::Refused("write the bodies out");
    REPLICATE "replicate" Role::Refused("write the copies out");
    ATTACH "attach" Role::Refused("write the bodies out, or use <include>");
    CAMERA "camera" Role::Ignored(DRAWING);
    LIGHT "light" Role::Ignored(DRAWING);
    VISUAL "visual" Role::Ignored(DRAWING);
    STATISTIC "statistic" Role::Ignored("only scales drawings and MuJoCo's solver tolerance");
    SIZE "size" Role::Ignored("memory is sized from the model itself");
    CUSTOM "custom" Role::Ignored(USER);
    TEXTURE "texture" Role::Ignored(DRAWING);
    SKIN "skin" Role::Ignored(DRAWING);
    MESH "mesh" Role::Ignored("mesh geoms that collide or have mass are refused where they are used");
    HFIELD "hfield" Role::Ignored("height-field geoms are refused where they are used");
    MODEL_ASSET "model" Role::Ignored("<attach> is refused where it is used");
    SENSOR "sensor" Role::Ignored(SENSING);
    EQUALITY_DEFAULT "equality" Role::Ignored("equality constraints are refused where they are used");
    LENGTHRANGE "lengthrange" Role::Ignored("only muscles use it");
    CONNECT "connect" Role::Refused("equality constraints are not supported");
    WELD "weld" Role::Refused("equality constraints are not supported; make it one body");
    EQUALITY_JOINT "joint" Role::Refused("equality constraints are not supported");
    EQUALITY_TENDON "tendon" Role::Refused("equality constraints are not supported");
    EQUALITY_FLEX "flex" Role::Refused("only rigid bodies are supported");
    FLEXVERT "flexvert" Role::Refused("only rigid bodies are supported");
    FLEXSTRAIN "flexstrain" Role::Refused("only rigid bodies are supported");
}

static COMPILER: Node = Node {
    name: "compiler",
    reads: &[
        "angle autolimits balanceinertia inertiafromgeom inertiagrouprange settotalmass \
         boundmass boundinertia coordinate eulerseq",
    ],
    ignores: &[
        ("meshdir texturedir assetdir strippath", FILES),
        ("usethread", ROUNDING),
        ("saveinertial", "says how MuJoCo saves the file"),
        ("discardvisual", "geoms that do not collide are kept"),
        ("fitaabb", "only for meshes fitted by primitives"),
        ("conflict", "only for attached models"),
    ],
    refuses: &[
        ("fusestatic", "bodies stay as they are written; remove it"),
        (
            "alignfree",
            "free bodies stay as they are written; remove it",
        ),
    ],
    children: &[&LENGTHRANGE],
    ..LEAF
};

static OPTION: Node = Node {
    name: "option",
    reads: &[
        "timestep gravity density viscosity wind impratio integrator cone solver iterations \
         tolerance ls_iterations ls_tolerance ccd_iterations ccd_tolerance",
    ],
    ignores: &[
        ("jacobian", ROUNDING),
        ("magnetic", SENSING),
        (
            "o_margin o_solref o_solimp o_friction",
            "only with flag override, which is refused",
        ),
        (
            "noslip_tolerance",
            "only with noslip_iterations, which is refused",
        ),
        ("sleep_tolerance", "only with flag sleep, which is refused"),
        (
            "sdf_iterations sdf_initpoints",
            "only for signed distance fields",
        ),
        ("apirate", "has no effect since MuJoCo 3"),
    ],
    refuses: &[
        (
            "noslip_iterations",
            "the no-slip solver is not supported; raise impratio instead",
        ),
        ("actuatorgroupdisable", "remove the actuators instead"),
    ],
    children: &[&FLAG],
    ..LEAF
};

// options.rs reads all of them and refuses the two that matter.
static FLAG: Node = Node {
    name: "flag",
    reads: &super::options::FLAGS,
    ..LEAF
};

static JOINT_NODE: Node = Node {
    name: "joint",
    reads: &[NAMED, JOINT],
    ignores: &[("group", DRAWING), ("user", USER)],
    refuses: &[
        ("actuatorgravcomp", "gravity compensation is not supported"),
        ("align", "free bodies stay as they are written"),
    ],
    ..LEAF
};
static JOINT_DEFAULT: Node = Node {
    name: "joint",
    reads: &[JOINT],
    ignores: &[("group", DRAWING), ("user", USER)],
    refuses: &[
        ("actuatorgravcomp", "gravity compensation is not supported"),
        ("align", "free bodies stay as they are written"),
    ],
    ..LEAF
};
static FREEJOINT: Node = Node {
    name: "freejoint",
    reads: &["name"],
    ignores: &[("group", DRAWING)],
    refuses: &[("align", "free bodies stay as they are written")],
    ..LEAF
};

const GEOM_IGNORES: &[(&str, &str)] = &[
    ("user", USER),
    ("fitscale", "only for meshes fitted by primitives"),
    (
        "fluidcoef",
        "only with fluidshape=\"ellipsoid\", which is refused",
    ),
];
const GEOM_REFUSES: &[(&str, &str)] = &[
    (
        "fluidshape",
        "only MuJoCo's fluid model by bodies is supported",
    ),
    ("surfacevel", "moving surfaces are not supported"),
    ("adhesion", "adhesion is not supported"),
];
static GEOM_NODE: Node = Node {
    name: "geom",
    reads: &[NAMED, ORIENTATION, GEOM],
    ignores: GEOM_IGNORES,
    refuses: GEOM_REFUSES,
    children: &[&BODY_PLUGIN],
    ..LEAF
};
static GEOM_DEFAULT: Node = Node {
    name: "geom",
    reads: &[ORIENTATION, GEOM],
    ignores: GEOM_IGNORES,
    refuses: GEOM_REFUSES,
    ..LEAF
};

const SITE_IGNORES: &[(&str, &str)] = &[("type size group material rgba", DRAWING), ("user", USER)];
static SITE_NODE: Node = Node {
    name: "site",
    reads: &[NAMED, ORIENTATION, "fromto"],
    ignores: SITE_IGNORES,
    ..LEAF
};
static SITE_DEFAULT: Node = Node {
    name: "site",
    reads: &[ORIENTATION, "fromto"],
    ignores: SITE_IGNORES,
    ..LEAF
};

static INERTIAL: Node = Node {
    name: "inertial",
    reads: &[ORIENTATION, "mass diaginertia fullinertia"],
    ..LEAF
};

static BODY: Node = Node {
    name: "body",
    reads: &["name childclass", ORIENTATION],
    ignores: &[
        ("user", USER),
        ("simple", ROUNDING),
        ("sleep", "bodies never sleep here"),
    ],
    refuses: &[
        ("mocap", "bodies moved from outside are not supported"),
        ("gravcomp", "gravity compensation is not supported"),
    ],
    children: &BODY_CHILDREN,
    ..LEAF
};
static FRAME: Node = Node {
    name: "frame",
    reads: &["name childclass", ORIENTATION],
    children: &BODY_CHILDREN,
    ..LEAF
};
static WORLDBODY: Node = Node {
    name: "worldbody",
    children: &BODY_CHILDREN,
    ..LEAF
};
static BODY_CHILDREN: [&Node; 14] = [
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

static PAIR_NODE: Node = Node {
    name: "pair",
    reads: &[NAMED, "geom1 geom2", PAIR],
    refuses: &[("adhesion", "adhesion is not supported")],
    ..LEAF
};
static PAIR_DEFAULT: Node = Node {
    name: "pair",
    reads: &[PAIR],
    refuses: &[("adhesion", "adhesion is not supported")],
    ..LEAF
};
static EXCLUDE: Node = Node {
    name: "exclude",
    reads: &["name body1 body2"],
    ..LEAF
};
static CONTACT: Node = Node {
    name: "contact",
    children: &[&PAIR_NODE, &EXCLUDE],
    ..LEAF
};

// Tendons that exert no force are listed as ignored by tendon.rs.
const TENDON_REST: &str = "group width material margin rgba user springlength solreflimit \
                           solimplimit solreffriction solimpfriction actuatorfrclimited \
                           actuatorfrcrange";
static SPATIAL: Node = Node {
    name: "spatial",
    reads: &[NAMED, TENDON, TENDON_REST],
    children: &[&SPATIAL_SITE, &SPATIAL_GEOM, &PULLEY],
    ..LEAF
};
static SPATIAL_SITE: Node = Node {
    name: "site",
    reads: &["site"],
    ..LEAF
};
static SPATIAL_GEOM: Node = Node {
    name: "geom",
    reads: &["geom sidesite"],
    ..LEAF
};
static PULLEY: Node = Node {
    name: "pulley",
    reads: &["divisor"],
    ..LEAF
};
static FIXED: Node = Node {
    name: "fixed",
    reads: &[NAMED, TENDON, TENDON_REST],
    children: &[&FIXED_JOINT],
    ..LEAF
};
static FIXED_JOINT: Node = Node {
    name: "joint",
    reads: &["joint coef"],
    ..LEAF
};
static TENDON_NODE: Node = Node {
    name: "tendon",
    children: &[&SPATIAL, &FIXED],
    ..LEAF
};
static TENDON_DEFAULT: Node = Node {
    name: "tendon",
    reads: &[TENDON, TENDON_REST],
    ..LEAF
};

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

static ACTUATOR_NODE: Node = Node {
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
    ignores: &[(
        "texture texrepeat texuniform emission specular shininess reflectance metallic roughness \
         rgba",
        DRAWING,
    )],
    ..LEAF
};
nodes! {
    LAYER "layer" Role::Ignored(DRAWING);
}
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
        &MESH,
        &CAMERA,
        &LIGHT,
        &MOTOR_DEFAULT,
        &POSITION_DEFAULT,
        &VELOCITY_DEFAULT,
        &DAMPER_DEFAULT,
        &GENERAL_DEFAULT,
        &INTVELOCITY,
        &ORIENTATION_SERVO,
        &PID,
        &CYLINDER,
        &MUSCLES,
        &ADHESION,
        &DCMOTOR,
    ],
    ..LEAF
};

static KEY: Node = Node {
    name: "key",
    reads: &["name qpos qvel ctrl"],
    ignores: &[("time", "episodes start at 0")],
    refuses: &[
        ("act", "actuators have no state"),
        ("mpos mquat", "bodies moved from outside are not supported"),
    ],
    ..LEAF
};
static KEYFRAME: Node = Node {
    name: "keyframe",
    children: &[&KEY],
    ..LEAF
};

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
