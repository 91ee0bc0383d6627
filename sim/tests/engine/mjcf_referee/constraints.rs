//! Tendons and equality constraints, field by field.

use super::{Check, row};
use ostler_sim::model::{EqualityKind, GeomKind, Model, PathPart, TendonKind};

pub fn compare(m: &Model, c: &Check) {
    // Spatial tendons without force are left out.
    if !m.ignored.iter().any(|i| i.what.contains("<spatial>")) {
        tendons(m, c);
    }
    equalities(m, c);
}

fn tendons(m: &Model, c: &Check) {
    c.names("tendon", m.tendons.iter().map(|t| t.name.as_str()));
    for (i, t) in m.tendons.iter().enumerate() {
        c.range("tendon_limited", "tendon_range", i, t.range);
        c.range("tendon_actfrclimited", "tendon_actfrcrange", i, t.actfrcrange);
        c.field("tendon_margin", i, &[t.margin]);
        c.field("tendon_stiffness", i, &[t.stiffness]);
        c.field("tendon_damping", i, &[t.damping]);
        c.field("tendon_frictionloss", i, &[t.frictionloss]);
        c.field("tendon_armature", i, &[t.armature]);
        c.field("tendon_lengthspring", i, &t.springlength);
        c.field("tendon_length0", i, &[t.length0]);
        c.field("tendon_solref_lim", i, &t.solref_limit);
        c.field("tendon_solimp_lim", i, &t.solimp_limit);
        c.field("tendon_solref_fri", i, &t.solref_friction);
        c.field("tendon_solimp_fri", i, &t.solimp_friction);
        // MuJoCo's (wrap_type, wrap_objid, wrap_prm).
        let path: Vec<[f64; 3]> = match &t.kind {
            TendonKind::Fixed(joints) => {
                let part = |(j, coef): &(usize, f64)| [1.0, *j as f64, *coef];
                joints.iter().map(part).collect()
            }
            TendonKind::Spatial(path) => path.iter().map(|p| part(m, p)).collect(),
        };
        c.field("tendon_num", i, &[path.len() as f64]);
        let adr = row(c.theirs, "tendon_adr", i)[0] as usize;
        for (k, [kind, object, prm]) in path.into_iter().enumerate() {
            c.field("wrap_type", adr + k, &[kind]);
            c.field("wrap_objid", adr + k, &[object]);
            c.field("wrap_prm", adr + k, &[prm]);
        }
    }
}

fn part(m: &Model, part: &PathPart) -> [f64; 3] {
    match *part {
        PathPart::Pulley(divisor) => [2.0, -1.0, divisor],
        PathPart::Site(site) => [3.0, site as f64, 0.0],
        PathPart::Geom { geom, side } => {
            let sphere = m.geoms[geom].kind == GeomKind::Sphere;
            let side = side.map_or(-1.0, |s| s as f64);
            [if sphere { 4.0 } else { 5.0 }, geom as f64, side]
        }
    }
}

fn equalities(m: &Model, c: &Check) {
    c.names("equality", m.equalities.iter().map(|e| e.name.as_str()));
    for (i, e) in m.equalities.iter().enumerate() {
        c.field("eq_active0", i, &[f64::from(e.active)]);
        c.field("eq_solref", i, &e.solref);
        c.field("eq_solimp", i, &e.solimp);
        let ids = [row(c.theirs, "eq_obj1id", i)[0], row(c.theirs, "eq_obj2id", i)[0]];
        let data = row(c.theirs, "eq_data", i);
        let sites = row(c.theirs, "eq_objtype", i)[0] == 6.0;
        let (kind, ours) = match e.kind {
            EqualityKind::Connect { body1, body2, .. } => (0.0, [Some(body1), Some(body2)]),
            EqualityKind::Weld { body1, body2, .. } => (1.0, [Some(body1), Some(body2)]),
            EqualityKind::Joint { joint1, joint2, .. } => (2.0, [Some(joint1), joint2]),
            EqualityKind::Tendon { tendon1, tendon2, .. } => (3.0, [Some(tendon1), tendon2]),
        };
        c.field("eq_type", i, &[kind]);
        let ours = ours.map(|x| x.map_or(-1.0, |x| x as f64));
        let site = |field: &str, k: usize| row(c.theirs, field, ids[k] as usize);
        if sites {
            let bodies = [0, 1].map(|k| site("site_bodyid", k)[0]);
            c.same("bodies of the sites", &ours, &bodies);
        } else {
            c.same("eq_objid", &ours, &ids);
        }
        match e.kind {
            EqualityKind::Connect { anchor1, anchor2, .. } if sites => {
                c.same("anchor1", &anchor1, &site("site_pos", 0));
                c.same("anchor2", &anchor2, &site("site_pos", 1));
            }
            EqualityKind::Connect { anchor1, anchor2, .. } => {
                c.same("eq_data", &[anchor1, anchor2].concat(), &data[..6])
            }
            EqualityKind::Weld { anchor, relpos, relquat, torquescale, .. } => {
                // The next numbers say whether the pose was derived.
                c.same("torquescale", &[torquescale], &data[10..11]);
                if sites {
                    c.same("anchor", &anchor, &site("site_pos", 1));
                    c.same("relpos", &relpos, &site("site_pos", 0));
                    let [one, two] = [0, 1].map(|k| {
                        let q = site("site_quat", k);
                        nalgebra::UnitQuaternion::new_normalize(nalgebra::Quaternion::new(
                            q[0], q[1], q[2], q[3],
                        ))
                    });
                    let q =
                        nalgebra::Quaternion::new(relquat[0], relquat[1], relquat[2], relquat[3]);
                    let ours = nalgebra::UnitQuaternion::new_normalize(q);
                    assert!(ours.angle_to(&(one * two.inverse())) < 1e-7);
                } else {
                    let turn = |q: &[f64]| q.iter().map(|x| x * q[0].signum()).collect::<Vec<_>>();
                    c.same("eq_data", &[anchor, relpos].concat(), &data[..6]);
                    c.same("relquat", &turn(&relquat), &turn(&data[6..10]));
                }
            }
            EqualityKind::Joint { polycoef, .. } | EqualityKind::Tendon { polycoef, .. } => {
                c.same("polycoef", &polycoef, &data[..5]);
            }
        }
    }
}
