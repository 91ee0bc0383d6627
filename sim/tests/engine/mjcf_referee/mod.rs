//! MuJoCo as referee: a file means here what it means there, field by field.
//!
//! Needs the referees' Python (`OSTLER_REFEREE_PYTHON`); without it the tests say
//! that they were skipped.

use crate::support::script::numbers;
use ostler_sim::model::{GeomKind, JointKind, Model, Transmission, mjcf};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub mod attached;
mod constraints;
mod features;
mod foreign;
mod laws;
mod meshes;
mod polygons;
mod rays;
mod sensors;
mod urdf;

/// Largest relative difference that counts as equal.
const TOLERANCE: f64 = 1e-12;

/// MuJoCo's answers about the files, by path; `None` without a referee.
fn referee(args: &[PathBuf]) -> Option<serde_json::Map<String, Value>> {
    ask("dump.py", args)
}

/// The answer of one of the scripts beside this file.
fn ask(script: &str, args: &[PathBuf]) -> Option<serde_json::Map<String, Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/mjcf_referee");
    crate::support::script::answer(&folder.join(script), args)
}

fn robots() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "xml"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn shipped_robots_mean_what_mujoco_says() {
    let paths = robots();
    assert!(paths.len() >= 6);
    let Some(answer) = referee(&paths) else {
        return;
    };
    for (path, theirs) in &answer {
        let model = mjcf::load(Path::new(path)).unwrap_or_else(|e| panic!("{e}"));
        compare(&model, theirs);
    }
    assert_eq!(answer.len(), paths.len());
}

#[test]
fn gymnasiums_files_load_and_mean_what_mujoco_says() {
    let Some(answer) = referee(&["gymnasium".into()]) else {
        return;
    };
    assert!(answer.len() >= 14);
    for (path, theirs) in &answer {
        let model = mjcf::load(Path::new(path)).unwrap_or_else(|e| panic!("{e}"));
        compare(&model, theirs);
        for ignored in &model.ignored {
            assert!(!ignored.why.is_empty() && ignored.place.contains(".xml:"), "{ignored:?}");
        }
        if path.contains("humanoid.xml") {
            assert_eq!(model.tendons.len(), 2);
        }
    }
}

/// Our own files move as Gymnasium's do, by MuJoCo's own dynamics.
#[test]
fn shipped_robots_move_like_gymnasiums() {
    let pairs = [
        ("cartpole", "inverted_pendulum", false),
        ("double_pendulum", "inverted_double_pendulum", false),
        ("hopper", "hopper", true),
        ("half_cheetah", "half_cheetah", true),
        ("ant", "ant", true),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots");
    let path = |name: &str| folder.join(format!("{name}.xml"));
    let args: Vec<PathBuf> =
        pairs.iter().flat_map(|(ours, theirs, _)| [path(ours), PathBuf::from(theirs)]).collect();
    let Some(answer) = ask("same_dynamics.py", &args) else {
        return;
    };
    for (ours, _, touches) in pairs {
        let result = &answer[&path(ours).display().to_string()];
        assert!(result["error"].as_f64().unwrap() < 1e-11, "{ours}: {result}");
        assert_eq!(result["contacts"].as_u64().unwrap() > 100, touches, "{ours}: {result}");
    }
}

#[test]
fn every_feature_means_what_mujoco_says() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in features::PARTS.iter().chain(attached::PARTS) {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    for (name, bytes) in meshes::files() {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let paths: Vec<_> = features::MODELS
        .iter()
        .chain(meshes::MODELS)
        .chain(urdf::MODELS)
        .chain(attached::MODELS)
        .map(|(name, text)| {
            let path = folder.path().join(format!("{name}.xml"));
            std::fs::write(&path, text).unwrap();
            path
        })
        .collect();
    let Some(answer) = referee(&paths) else {
        return;
    };
    for (path, theirs) in &answer {
        if let Some(error) = theirs.get("error") {
            panic!("MuJoCo refuses {path}: {error}");
        }
        let model = mjcf::load(Path::new(path)).unwrap_or_else(|e| panic!("{e}"));
        compare(&model, theirs);
    }
}

#[test]
fn both_refuse_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = features::WRONG
        .iter()
        .map(|(name, text)| {
            let path = folder.path().join(format!("{name}.xml"));
            std::fs::write(&path, text).unwrap();
            path
        })
        .collect();
    for path in &paths {
        assert!(mjcf::load(path).is_err(), "accepted: {}", path.display());
    }
    let Some(answer) = referee(&paths) else {
        return;
    };
    let accepted: Vec<_> = answer
        .iter()
        .filter(|(_, theirs)| theirs.get("error").is_none())
        .map(|(path, _)| path)
        .collect();
    assert!(accepted.is_empty(), "MuJoCo accepts {accepted:?}");
}

/// Row `i` of a field.
fn row(theirs: &Value, field: &str, i: usize) -> Vec<f64> {
    match &theirs[field][i] {
        Value::Null => panic!("no {field}[{i}]"),
        value => numbers(value),
    }
}

struct Check<'a> {
    file: &'a str,
    theirs: &'a Value,
}

impl Check<'_> {
    #[track_caller]
    fn same(&self, what: &str, ours: &[f64], theirs: &[f64]) {
        let what = format!("{}: {what}", self.file);
        crate::support::script::same(TOLERANCE, &what, ours, theirs);
    }

    #[track_caller]
    fn field(&self, field: &str, i: usize, ours: &[f64]) {
        let theirs = row(self.theirs, field, i);
        self.same(&format!("{field}[{i}]"), ours, &theirs);
    }

    /// The same rotation: q and -q are.
    #[track_caller]
    fn quat(&self, field: &str, i: usize, ours: [f64; 4]) {
        let theirs = row(self.theirs, field, i);
        let sign = ours.iter().zip(&theirs).map(|(a, b)| a * b).sum::<f64>().signum();
        self.same(&format!("{field}[{i}]"), &ours.map(|x| sign * x), &theirs);
    }

    #[track_caller]
    fn range(&self, limited: &str, field: &str, i: usize, ours: Option<[f64; 2]>) {
        let on = row(self.theirs, limited, i)[0] != 0.0;
        assert_eq!(ours.is_some(), on, "{}: {limited}[{i}]", self.file);
        if let Some(range) = ours {
            self.field(field, i, &range);
        }
    }

    fn names<'n>(&self, kind: &str, ours: impl Iterator<Item = &'n str>) {
        let theirs = self.theirs["names"][kind].as_array().unwrap();
        let ours: Vec<_> = ours.collect();
        assert_eq!(ours.len(), theirs.len(), "{}: number of {kind}", self.file);
        for (ours, theirs) in ours.iter().zip(theirs) {
            if let Some(name) = theirs.as_str().filter(|n| !n.is_empty()) {
                assert_eq!(*ours, name, "{}: {kind}", self.file);
            }
        }
    }
}

fn compare(m: &Model, theirs: &Value) {
    let c = Check { file: &m.name, theirs };
    assert!(theirs.get("error").is_none(), "{theirs}");
    let size = |f: &str| theirs[f].as_f64().unwrap() as usize;
    assert_eq!(
        (m.nq, m.nv, m.nu(), m.na),
        (size("nq"), size("nv"), size("nu"), size("na")),
        "{}",
        m.name
    );
    options(m, &c);
    bodies(m, &c);
    joints(m, &c);
    geoms(m, &c);
    constraints::compare(m, &c);
    actuators(m, &c);
    c.names("site", m.sites.iter().map(|s| s.name.as_str()));
    for (i, s) in m.sites.iter().enumerate() {
        c.field("site_bodyid", i, &[s.body as f64]);
        c.field("site_pos", i, &s.pos);
        c.quat("site_quat", i, s.quat);
        let (kind, sizes) = shape(s.kind);
        c.field("site_type", i, &[kind]);
        // MuJoCo keeps what the shape has no use for.
        let theirs = &row(c.theirs, "site_size", i)[..sizes];
        c.same("site_size", &s.size[..sizes], theirs);
    }
    sensors::compare(m, &c);
    // <size nkey="5"> makes MuJoCo add empty ones.
    if !m.ignored.iter().any(|i| i.what == "<size>") {
        c.names("key", m.keyframes.iter().map(|k| k.name.as_str()));
    }
    for (i, k) in m.keyframes.iter().enumerate() {
        c.field("key_qpos", i, &k.qpos);
        c.field("key_qvel", i, &k.qvel);
        c.field("key_act", i, &k.act);
        c.field("key_ctrl", i, &k.ctrl);
    }
    assert_eq!(m.excludes.len(), theirs["exclude_signature"].as_array().unwrap().len());
    for (a, b) in &m.excludes {
        let signature = ((a << 16) + b) as f64;
        let found = theirs["exclude_signature"].as_array().unwrap();
        assert!(
            found.iter().any(|s| s[0].as_f64() == Some(signature)),
            "{}: exclude {a} {b}",
            m.name
        );
    }
}

fn options(m: &Model, c: &Check) {
    let o = &m.options;
    let option = |name: &str, ours: &[f64]| {
        let theirs: Vec<f64> = serde_json::from_value(c.theirs["option"][name].clone()).unwrap();
        c.same(name, ours, &theirs);
    };
    option("timestep", &[o.timestep]);
    option("gravity", &o.gravity);
    option("wind", &o.wind);
    option("magnetic", &o.magnetic);
    option("density", &[o.density]);
    option("viscosity", &[o.viscosity]);
    option("impratio", &[o.impratio]);
    option("integrator", &[o.integrator as u32 as f64]);
    option("cone", &[o.cone as u32 as f64]);
    option("solver", &[o.solver as u32 as f64]);
    option("iterations", &[o.iterations.into()]);
    option("tolerance", &[o.tolerance]);
    option("ls_iterations", &[o.ls_iterations.into()]);
    option("ls_tolerance", &[o.ls_tolerance]);
    option("ccd_iterations", &[o.ccd_iterations.into()]);
    option("ccd_tolerance", &[o.ccd_tolerance]);
    let mut theirs: Vec<(String, bool)> =
        serde_json::from_value(c.theirs["flags"].clone()).unwrap();
    let mut ours = o.flags.clone();
    theirs.sort();
    ours.sort();
    assert_eq!(ours, theirs, "{}: flags", m.name);
}

fn bodies(m: &Model, c: &Check) {
    c.names("body", m.bodies.iter().map(|b| b.name.as_str()));
    for (i, b) in m.bodies.iter().enumerate() {
        c.field("body_parentid", i, &[b.parent as f64]);
        c.field("body_weldid", i, &[b.weld as f64]);
        c.field("body_pos", i, &b.pos);
        c.quat("body_quat", i, b.quat);
        let fitted = c.theirs["fitted"].as_bool().unwrap();
        if fitted {
            meshes::near("body_mass", &[b.mass], &row(c.theirs, "body_mass", i), c);
        } else {
            c.field("body_mass", i, &[b.mass]);
        }
        c.field("body_gravcomp", i, &[b.gravcomp]);
        c.field("body_jntnum", i, &[b.joints.len() as f64]);
        c.field("body_geomnum", i, &[b.geoms.len() as f64]);
        if !b.joints.is_empty() {
            c.field("body_jntadr", i, &[b.joints.start as f64]);
        }
        if !b.geoms.is_empty() {
            c.field("body_geomadr", i, &[b.geoms.start as f64]);
        }
        if b.mass > 0.0 {
            let ours = tensor(b.iquat, b.inertia);
            if fitted {
                meshes::near("body_ipos", &b.ipos, &row(c.theirs, "body_ipos", i), c);
                meshes::near("tensor", &ours, &row(c.theirs, "tensor", i), c);
            } else {
                c.field("body_ipos", i, &b.ipos);
                c.field("tensor", i, &ours);
            }
        }
    }
}

/// Inertia about the body's axes, row by row.
fn tensor(quat: [f64; 4], moments: [f64; 3]) -> Vec<f64> {
    let q = nalgebra::UnitQuaternion::new_normalize(nalgebra::Quaternion::new(
        quat[0], quat[1], quat[2], quat[3],
    ));
    let r = q.to_rotation_matrix();
    let t = r.matrix() * nalgebra::Matrix3::from_diagonal(&moments.into()) * r.matrix().transpose();
    t.transpose().iter().copied().collect()
}

fn joints(m: &Model, c: &Check) {
    c.names("joint", m.joints.iter().map(|j| j.name.as_str()));
    let qpos0: Vec<f64> = (0..m.nq).map(|i| row(c.theirs, "qpos0", i)[0]).collect();
    c.same("qpos0", &m.qpos0, &qpos0);
    for (i, j) in m.joints.iter().enumerate() {
        let kind = match j.kind {
            JointKind::Free => 0.0,
            JointKind::Ball => 1.0,
            JointKind::Slide => 2.0,
            JointKind::Hinge => 3.0,
        };
        c.field("jnt_type", i, &[kind]);
        c.field("jnt_bodyid", i, &[j.body as f64]);
        c.field("jnt_qposadr", i, &[j.qpos_adr as f64]);
        c.field("jnt_dofadr", i, &[j.dof_adr as f64]);
        c.field("jnt_pos", i, &j.pos);
        c.field("jnt_axis", i, &j.axis);
        c.range("jnt_limited", "jnt_range", i, j.range);
        c.range("jnt_actfrclimited", "jnt_actfrcrange", i, j.actfrcrange);
        c.field("jnt_actgravcomp", i, &[f64::from(j.actuator_gravcomp)]);
        c.field("jnt_margin", i, &[j.margin]);
        // A polynomial in MuJoCo 4; its other coefficients are refused.
        c.same("jnt_stiffness", &[j.stiffness], &row(c.theirs, "jnt_stiffness", i)[..1]);
        c.field("jnt_solref", i, &j.solref_limit);
        c.field("jnt_solimp", i, &j.solimp_limit);
        for dof in j.dof_adr..j.dof_adr + j.kind.nv() {
            c.same("dof_damping", &[j.damping], &row(c.theirs, "dof_damping", dof)[..1]);
            c.field("dof_armature", dof, &[j.armature]);
            c.field("dof_frictionloss", dof, &[j.frictionloss]);
            c.field("dof_solref", dof, &j.solref_friction);
            c.field("dof_solimp", dof, &j.solimp_friction);
        }
        if matches!(j.kind, JointKind::Hinge | JointKind::Slide) {
            c.field("qpos_spring", j.qpos_adr, &[j.springref]);
        }
    }
}

/// MuJoCo's number of a shape, and how many sizes it has.
fn shape(kind: GeomKind) -> (f64, usize) {
    match kind {
        GeomKind::Plane => (0.0, 3),
        GeomKind::Sphere => (2.0, 1),
        GeomKind::Capsule => (3.0, 2),
        GeomKind::Ellipsoid => (4.0, 3),
        GeomKind::Cylinder => (5.0, 2),
        GeomKind::Box => (6.0, 3),
        GeomKind::Mesh(_) => (7.0, 3),
        GeomKind::Hfield(_) | GeomKind::Terrain => (1.0, 3),
    }
}

fn geoms(m: &Model, c: &Check) {
    c.names("geom", m.geoms.iter().map(|g| g.name.as_str()));
    for (i, g) in m.geoms.iter().enumerate() {
        let (kind, sizes) = shape(g.kind);
        c.field("geom_type", i, &[kind]);
        c.field("geom_bodyid", i, &[g.body as f64]);
        if let GeomKind::Mesh(mesh) = g.kind {
            meshes::same_hull(m, g, mesh, i, c);
        } else if m.meshes.is_empty() && !c.theirs["fitted"].as_bool().unwrap() {
            c.field("geom_pos", i, &g.pos);
            c.quat("geom_quat", i, g.quat);
            c.same("geom_size", &g.size[..sizes], &row(c.theirs, "geom_size", i)[..sizes]);
        } else {
            meshes::same_place(g, &g.size[..sizes], i, c);
        }
        if let GeomKind::Hfield(h) = g.kind {
            meshes::same_field(&m.hfields[h], i, c);
        }
        c.field("geom_contype", i, &[g.contype.into()]);
        c.field("geom_conaffinity", i, &[g.conaffinity.into()]);
        c.field("geom_condim", i, &[g.condim.into()]);
        c.field("geom_friction", i, &g.friction);
        c.field("geom_priority", i, &[g.priority.into()]);
        c.field("geom_solmix", i, &[g.solmix]);
        c.field("geom_solref", i, &g.solref);
        c.field("geom_solimp", i, &g.solimp);
        c.field("geom_margin", i, &[g.margin]);
        c.field("geom_gap", i, &[g.gap]);
        c.field("geom_adhesion", i, &[g.adhesion]);
        let fluid = row(c.theirs, "geom_fluid", i);
        assert_eq!(g.fluid.is_some(), fluid[0] != 0.0, "{}", g.name);
        if let Some(ours) = g.fluid {
            for part in [0..5, 5..8, 8..11] {
                let (ours, theirs) = (&ours[part.clone()], &fluid[1..][part]);
                if c.theirs["fitted"].as_bool().unwrap() {
                    meshes::near("geom_fluid", ours, theirs, c);
                } else {
                    c.same("geom_fluid", ours, theirs);
                }
            }
        }
        c.field("geom_group", i, &[g.group.into()]);
    }
    // MuJoCo sorts pairs by bodies: find each of ours among theirs.
    let pairs = c.theirs["pair_geom1"].as_array().unwrap().len();
    assert_eq!(pairs, m.pairs.len(), "{}: pairs", m.name);
    for p in &m.pairs {
        let i = (0..pairs)
            .find(|i| {
                row(c.theirs, "pair_geom1", *i)[0] == p.geom1 as f64
                    && row(c.theirs, "pair_geom2", *i)[0] == p.geom2 as f64
            })
            .unwrap_or_else(|| panic!("{}: {p:?}", m.name));
        c.field("pair_dim", i, &[p.condim.into()]);
        c.field("pair_friction", i, &p.friction);
        c.field("pair_solref", i, &p.solref);
        c.field("pair_solreffriction", i, &p.solref_friction);
        c.field("pair_solimp", i, &p.solimp);
        c.field("pair_margin", i, &[p.margin]);
        c.field("pair_gap", i, &[p.gap]);
        c.field("pair_adhesion", i, &[p.adhesion]);
    }
}

fn actuators(m: &Model, c: &Check) {
    c.names("actuator", m.actuators.iter().map(|a| a.name.as_str()));
    for (i, a) in m.actuators.iter().enumerate() {
        let (kind, ids) = match a.transmission {
            Transmission::Joint(j) => (0, vec![j]),
            Transmission::JointInParent(j) => (1, vec![j]),
            Transmission::SliderCrank { crank, slider, length } => {
                c.field("actuator_cranklength", i, &[length]);
                (2, vec![crank, slider])
            }
            Transmission::Tendon(t) => (3, vec![t]),
            Transmission::Site { site, reference: Some(reference) } => (4, vec![site, reference]),
            Transmission::Site { site, .. } => (4, vec![site]),
            Transmission::Body(body) => (5, vec![body]),
        };
        // In the parent's frame or not is one for hinges and slides.
        let theirs = row(c.theirs, "actuator_trntype", i)[0];
        let scalar = a.joint().is_some_and(|j| m.joints[j].is_scalar());
        assert!(theirs == f64::from(kind) || scalar && theirs < 2.0, "{a:?}");
        let ids: Vec<f64> = ids.into_iter().map(|x| x as f64).collect();
        let theirs = row(c.theirs, "actuator_trnid", i);
        c.same("actuator_trnid", &ids, &theirs[..ids.len()]);
        c.field("actuator_dyntype", i, &[f64::from(a.dynamics as u8)]);
        c.same("dynprm", &a.dynprm, &row(c.theirs, "actuator_dynprm", i)[..3]);
        c.range("actuator_actlimited", "actuator_actrange", i, a.actrange);
        c.field("actuator_actearly", i, &[f64::from(a.actearly)]);
        let adr = a.act_adr.map_or(-1.0, |x| x as f64);
        c.field("actuator_actadr", i, &[adr]);
        c.field("actuator_gear", i, &a.gear);
        c.range("actuator_ctrllimited", "actuator_ctrlrange", i, a.ctrlrange);
        c.range("actuator_forcelimited", "actuator_forcerange", i, a.forcerange);
        let gain = row(c.theirs, "actuator_gainprm", i);
        let affine = row(c.theirs, "actuator_gaintype", i)[0] != 0.0;
        let theirs = if affine { [gain[0], gain[1], gain[2]] } else { [gain[0], 0.0, 0.0] };
        c.same("gain", &a.gain, &theirs);
        let bias = row(c.theirs, "actuator_biasprm", i);
        let affine = row(c.theirs, "actuator_biastype", i)[0] != 0.0;
        let theirs = if affine { [bias[0], bias[1], bias[2]] } else { [0.0; 3] };
        c.same("bias", &a.bias, &theirs);
    }
}
