//! Lowering of small models, without a referee.

use super::*;
use crate::physics::native::tables::{UNLIMITED, soft};
use ostler_model::mjcf;
use ostler_model::rest::Rest;
use ostler_model::{GeomKind, ShapePair};
use std::path::Path;

/// A model from what stands between `<mujoco>` and `</mujoco>`.
pub(super) fn model(text: &str) -> Model {
    let text = format!("<mujoco>{text}</mujoco>");
    mjcf::parse(Path::new("test.xml"), text).unwrap_or_else(|e| panic!("{e}"))
}

pub(super) fn plan(text: &str) -> RobotTables {
    lower(&model(text), &LowerOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(text: &str) -> String {
    match lower(&model(text), &LowerOptions::default()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

pub(super) fn near(a: &[f64], b: &[f64]) {
    let same = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(same, "{a:?} is not {b:?}");
}

#[test]
fn jointless_bodies_become_part_of_what_they_are_welded_to() {
    let p = plan(
        r#"<worldbody><body name="stand" pos="0 0 1">
          <body name="arm" pos="1 0 0" quat="0 0 0 1"><joint axis="0 0 1"/>
            <inertial mass="2" pos="0.5 0 0" diaginertia="1 2 3"/>
            <body name="hand" pos="1 0 0"><inertial mass="1" pos="0 1 0" diaginertia="0.1 0.1 0.1"/>
              <body name="finger" pos="0 0 1"><joint type="slide" axis="1 0 0"/>
                <inertial mass="1" pos="0 0 0" diaginertia="0.1 0.1 0.1"/></body>
            </body></body></body></worldbody>"#,
    );
    assert_eq!((p.nb, p.nframe, p.ntree), (2, 5, 1));
    assert_eq!(p.body_parent, [-1, 0]);
    assert_eq!(p.frame_body, [-1, -1, 0, 0, 1]);
    near(&p.body_pos, &[1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    near(&p.frame_pos[9..12], &[1.0, 0.0, 0.0]);
    near(&p.body_mass, &[3.0, 1.0]);
    // Arm 2 kg at (0.5, 0, 0), hand 1 kg at (1, 1, 0).
    near(&p.body_mcom[..3], &[2.0, 1.0, 0.0]);
    near(
        &p.body_inertia[..6],
        &[1.0 + 0.1 + 1.0, 2.0 + 0.5 + 0.1 + 1.0, 3.0 + 0.5 + 0.1 + 2.0, -1.0, 0.0, 0.0],
    );
}

#[test]
fn joints_of_one_body_chain_and_branches_do_not_couple() {
    let ball = |name: &str, inner: &str| {
        format!(
            r#"<body name="{name}" pos="0 1 0"><joint type="ball"/><geom size="0.1"/>{inner}</body>"#
        )
    };
    let p = plan(&format!(
        r#"<worldbody><body><freejoint/><geom size="0.1"/>{}{}</body>
          <body pos="5 0 0"><joint type="slide" axis="1 0 0"/><joint axis="0 0 1"/><geom size="0.1" pos="0.1 0 0"/></body>
        </worldbody>"#,
        ball("a", ""),
        ball("b", "")
    ));
    assert_eq!((p.nv, p.nj, p.ntree), (14, 5, 2));
    assert_eq!(p.tree_root, [0, 3]);
    assert_eq!(p.body_tree, [0, 0, 0, 1]);
    assert_eq!(p.dof_parent, [-1, 0, 1, 2, 3, 4, 5, 6, 7, 5, 9, 10, -1, 12]);
    assert_eq!(p.dof_nanc, [1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 8, 9, 1, 2]);
    let row = |i: usize| &p.mrow_col[p.mrow_adr[i] as usize..p.mrow_adr[i + 1] as usize];
    assert_eq!(row(9), [0, 1, 2, 3, 4, 5]);
    assert_eq!(row(13), [12]);
    assert_eq!((&p.hrow_adr, &p.hrow_col), (&p.mrow_adr, &p.mrow_col));
    assert_eq!(p.nhess, 14 * 15 / 2);
    assert_eq!(p.body_dof, [0, 6, 9, 12, 14]);
    assert_eq!(p.body_jnt, [0, 1, 2, 3, 5]);
}

#[test]
fn robots_of_one_plane_are_told_from_others() {
    let planar = |joints: &str, quat: &str| {
        plan(&format!(
            r#"<worldbody><body quat="{quat}">{joints}<geom size="0.1"/>
              <body pos="0.1 0.2 0.3"><joint axis="0 -2 0"/><geom size="0.1"/></body>
            </body></worldbody>"#
        ))
        .planar
    };
    let upright = "1 0 0 0";
    assert_eq!(planar(r#"<joint type="slide" axis="1 0 3"/>"#, upright), 2);
    assert_eq!(planar(r#"<joint axis="0 1 0"/>"#, "0.8 0 0.6 0"), 2);
    assert_eq!(planar(r#"<joint axis="0 1 0"/>"#, "0.8 0 0 0.6"), 0);
    assert_eq!(planar(r#"<joint axis="0 1 1e-9"/>"#, upright), 0);
    assert_eq!(planar(r#"<joint type="slide" axis="1 0.1 0"/>"#, upright), 0);
    assert_eq!(planar(r#"<joint type="ball"/>"#, upright), 0);
    assert_eq!(planar("<freejoint/>", upright), 0);
    let slide = |axis: &str| {
        let joint = format!(r#"<joint type="slide" axis="{axis}"/>"#);
        plan(&format!("<worldbody><body>{joint}<geom size='0.1'/></body></worldbody>")).planar
    };
    assert_eq!(["0 1 1", "1 0 1", "1 1 0", "1 1 1"].map(slide), [1, 2, 3, 0]);
}

#[test]
fn a_pendulums_weights_are_its_inverse_inertia() {
    let p = plan(
        r#"<worldbody><body><joint name="j" axis="0 1 0" range="-1 1" limited="true"/>
          <inertial mass="2" pos="0 0 -0.5" diaginertia="0.1 0.1 0.1"/></body></worldbody>"#,
    );
    let inertia = 0.1 + 2.0 * 0.25;
    near(&[p.scale], &[1.0 / inertia]);
    near(&[p.lim_soft[soft::DIAG]], &[1.0 / inertia]);
    assert_eq!((p.lim_lo[0], p.lim_hi[0]), (-1.0_f64.to_radians(), 1.0_f64.to_radians()));
}

#[test]
fn limits_whose_margins_overlap_act_from_each_side_alone() {
    let text = |margin: &str| {
        format!(
            r#"<worldbody><body><joint type="slide" range="-0.1 0.3" limited="true" margin="{margin}"/>
            <geom size="0.1"/></body></worldbody>"#
        )
    };
    let apart = plan(&text("0.2"));
    assert_eq!((apart.nlim, &apart.lim_lo, &apart.lim_hi), (1, &vec![-0.1], &vec![0.3]));
    let both = plan(&text("0.21"));
    assert_eq!(both.nlim, 2);
    assert_eq!(both.lim_lo, [-0.1, -UNLIMITED]);
    assert_eq!(both.lim_hi, [UNLIMITED, 0.3]);
    assert_eq!(both.lim_dof, [0, 0]);
}

#[test]
fn world_contacts_come_first_with_the_static_geom_first() {
    let p = plan(
        r#"<worldbody>
          <geom name="wall" type="box" size="1 1 1"/>
          <body pos="0 0 3"><freejoint/><geom name="a" size="0.1"/></body>
          <body pos="0 0 5"><freejoint/><geom name="b" type="capsule" size="0.1 0.2"/></body>
        </worldbody>"#,
    );
    assert_eq!((p.nwpair, p.npair, p.ncg, p.dense), (2, 3, 3, 1));
    assert_eq!((p.nwslot, p.npslot), (1 + 2, 1));
    // Sphere and capsule come before the box in MuJoCo.
    assert_eq!(p.pair_flip, [1, 1, 0]);
    let (ball, capsule, cuboid) = (GeomKind::Sphere, GeomKind::Capsule, GeomKind::Box);
    let kinds = [[ball, cuboid], [capsule, cuboid], [ball, capsule]];
    assert_eq!(p.pair_kind, kinds.map(|pair| ShapePair::new(pair).code()));
    assert_eq!(p.cg_body, [-1, 0, 1]);
    assert_eq!((p.pair_g1[0], p.pair_g2[0]), (0, 1));
    assert_eq!(p.pair_path, [0, 0, 0, 12]);
    assert_eq!(p.path_sign, [-1, -1, -1, -1, -1, -1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(p.npath, 12);
}

#[test]
fn a_few_contacts_with_the_world_alone_have_jacobians() {
    let of = |geom: &str| {
        plan(&format!(
            r#"<worldbody><geom type="plane" size="1 1 1"/>
              <body pos="0 0 3"><freejoint/>{geom}</body></worldbody>"#
        ))
    };
    let p = of(r#"<geom type="capsule" size="0.1 0.2"/>"#);
    assert_eq!((p.nwpair, p.npair, p.nwslot, p.npslot), (0, 1, 0, 2));
    assert_eq!((p.dense, p.npath, p.npdim), (0, 6, 3));
    assert_eq!(p.path_dof, [0, 1, 2, 3, 4, 5]);
    assert_eq!(p.path_sign, [1; 6]);
    // A box stands on many.
    let p = of(r#"<geom type="box" size="0.1 0.2 0.3"/>"#);
    assert_eq!((p.nwpair, p.npslot, p.npath), (1, 0, 0));
}

#[test]
fn contacts_between_relatives_move_by_the_joints_between_them() {
    let p = plan(
        r#"<worldbody><body><freejoint/><geom name="a" size="0.1"/>
          <body pos="1 0 0"><joint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>
            <body pos="1 0 0"><joint/><geom name="c" type="capsule" size="0.1 0.1"/></body></body>
          </body></worldbody>"#,
    );
    assert_eq!(p.npair, 1);
    assert_eq!(p.path_dof, [6, 7]);
    assert_eq!(p.path_sign, [1, 1]);
}

#[test]
fn elliptic_and_pyramidal_contacts_have_their_own_regularisation() {
    let text = |cone: &str| {
        format!(
            r#"<option cone="{cone}" impratio="4"/><worldbody><geom type="plane" size="1 1 1"/>
            <body><freejoint/><inertial mass="2" pos="0 0 0" diaginertia="1 1 1"/>
              <geom size="0.1" friction="0.5 0.02 0.01" condim="6"/></body></worldbody>"#
        )
    };
    // The plane's friction of 1 is the larger.
    let p = plan(&text("pyramidal"));
    near(&[p.pair_soft[soft::DIAG]], &[2.0 / 4.0 * 2.0 * 0.5]);
    let e = plan(&text("elliptic"));
    near(&[e.pair_soft[soft::DIAG]], &[0.5]);
    near(&e.pair_mu, &[1.0, 1.0, 0.02, 0.01, 0.01]);
    near(&e.pair_dfri, &[4.0, 4.0, 4.0 * 0.0004, 4.0 * 0.0001, 4.0 * 0.0001]);
    assert_eq!((p.elliptic, e.elliptic), (0, 1));
}

/// A plate on a ball joint in its centre of mass, and one a little off it. Its inertia about a
/// diameter is m a^2 / 3, and turning counts by 1e-5 of what a force on its rim does.
#[test]
fn a_body_whose_centre_of_mass_stays_gives_way_by_turning() {
    let diag = |off: f64| {
        plan(&format!(
            r#"<worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><joint type="ball" pos="{off} 0 0"/>
            <geom type="box" size=".2 .2 .005" mass=".3" condim="1" priority="1"/></body></worldbody>"#
        ))
        .pair_soft[soft::DIAG]
    };
    let [flat, upright] =
        [0.2_f64.powi(2) + 0.005_f64.powi(2), 2.0 * 0.2_f64.powi(2)].map(|a2| 3.0 / (0.3 * a2));
    let arm2 = 2.0 * 0.2_f64.powi(2) + 0.005_f64.powi(2);
    near(&[diag(0.0)], &[1e-5 * (2.0 * flat + upright) / 3.0 * arm2]);
    // An inverse weight as any other.
    assert!(diag(0.05) > 100.0 * diag(0.0), "{} {}", diag(0.05), diag(0.0));
}

#[test]
fn margin_makes_contacts_and_gap_only_reports_them() {
    let p = plan(
        r#"<worldbody><geom type="plane" size="1 1 1" margin="0.1" gap="0.02"/>
          <body><freejoint/><geom size="0.1" margin="0.2" gap="0.03"/></body></worldbody>"#,
    );
    near(&[p.pair_soft[soft::MARGIN], p.pair_reach[0]], &[0.3, 0.35]);
}

#[test]
fn flags_switch_parts_off() {
    let text = |flag: &str| {
        format!(
            r#"<option><flag {flag}/></option><worldbody><geom type="plane" size="1 1 1"/>
            <body><joint name="j" damping="1" stiffness="2" frictionloss="3" range="0 1" limited="true"
              actuatorfrcrange="-1 1"/><geom size="0.1"/></body></worldbody>
            <actuator><motor joint="j" ctrlrange="-1 1"/></actuator>"#
        )
    };
    let on = plan(&text(r#"energy="enable""#));
    assert_eq!((on.nlim, on.nfric, on.npair, on.eulerdamp), (1, 1, 1, 1));
    assert_eq!((on.gravity_z, on.act_ctrlhi[0], on.act_gain[0]), (-9.81, 1.0, 1.0));
    let off = |flag: &str| plan(&text(&format!("{flag}=\"disable\"")));
    let none = off("constraint");
    assert_eq!((none.nlim, none.nfric, none.npair), (0, 0, 0));
    assert_eq!(off("limit").nlim, 0);
    assert_eq!(off("frictionloss").nfric, 0);
    assert_eq!(off("contact").npair, 0);
    assert_eq!(off("spring").jnt_stiffness, [0.0]);
    let undamped = off("damper");
    assert_eq!((undamped.dof_damping[0], undamped.eulerdamp), (0.0, 0));
    assert_eq!(off("eulerdamp").eulerdamp, 0);
    assert_eq!(off("gravity").gravity_z, 0.0);
    assert_eq!(off("clampctrl").act_ctrlhi, [UNLIMITED]);
    let idle = off("actuation");
    assert_eq!((idle.act_gain[0], idle.dof_acthi[0]), (0.0, UNLIMITED));
    assert_eq!(on.dof_acthi[0], 1.0);
    let error = refused(&text(r#"diagexact="enable""#));
    assert!(error.contains("diagexact"), "{error}");
}

#[test]
fn the_medium_acts_on_each_body_by_its_own_box() {
    let p = plan(
        r#"<option density="1.2" wind="1 0 0"/><worldbody><body><joint/><geom type="box" size="0.1 0.2 0.3"/>
          <body pos="0 0 1"><geom type="box" size="0.3 0.1 0.2" pos="1 0 0"/></body></body></worldbody>"#,
    );
    assert_eq!((p.nfluid, p.wind_x), (2, 1.0));
    // The equivalent box of a box is itself; MuJoCo sorts principal axes its own way.
    let mut sizes = p.fluid_box[..3].to_vec();
    sizes.sort_by(f64::total_cmp);
    near(&sizes, &[0.2, 0.4, 0.6]);
    near(&p.fluid_pos[3..], &[1.0, 0.0, 1.0]);
    assert_eq!(plan(r#"<worldbody><body><joint/><geom size="1"/></body></worldbody>"#).nfluid, 0);
}

#[test]
fn rows_of_bodies_with_a_diagonal_mass_matrix_couple_with_nothing_in_it() {
    let text = |more: &str| {
        format!(
            r#"<worldbody><body {more}><joint type="slide" axis="1 0 0"/><joint axis="0 0 1"/>
              <geom size="0.1"/></body></worldbody>"#
        )
    };
    let p = plan(&text(""));
    assert_eq!((&p.mrow_adr, &p.hrow_adr), (&vec![0; 3], &vec![0, 0, 1]));
    assert_eq!(plan(&text(r#"simple="false""#)).mrow_adr, [0, 0, 1]);
}

#[test]
fn rows_of_a_time_steps_matrix_are_skew_where_coriolis_forces_are_implicit() {
    let text = |option: &str| {
        format!(
            r#"<option {option}/><worldbody>
              <body><joint/><geom size="1"/></body>
              <body><freejoint/><geom size="1"/><body pos="1 0 0"><geom size="1"/></body></body>
              <body><freejoint/><geom size="1"/><body pos="1 0 0"><joint/><geom size="1"/></body></body>
            </worldbody>"#
        )
    };
    let p = plan(&text(r#"integrator="implicitfast""#));
    assert_eq!((p.slopes, p.body_skew), (2, vec![0, 1, 0, 0]));
    let p = plan(&text(r#"integrator="implicit""#));
    assert_eq!((p.slopes, p.body_skew), (2, vec![1; 4]));
    for explicit in ["Euler", "RK4"] {
        let p = plan(&text(&format!(r#"density="1" integrator="{explicit}""#)));
        assert_eq!((p.slopes, p.body_skew), (0, vec![0; 4]));
    }
    let p = plan(
        r#"<option density="1" integrator="implicitfast"/>
          <worldbody><body><joint/><geom size="1"/></body></worldbody>"#,
    );
    assert_eq!((p.slopes, p.body_skew), (1, vec![0]));
}

#[test]
fn geoms_that_are_ellipsoids_feel_the_medium_in_place_of_their_body() {
    let p = plan(
        r#"<option density="2" viscosity="0.5"/><worldbody><body><joint/>
          <geom type="capsule" size="0.1 0.2" fluidshape="ellipsoid" fluidcoef="0.5 0.25 1.5 1 2"/>
          <geom size="0.1"/><body pos="0 0 1"><geom size="0.1"/></body></body></worldbody>"#,
    );
    assert_eq!((p.nfluid, p.nell), (1, 1));
    // Semi-axes 0.1, 0.1, 0.3; magnus times density times volume.
    let volume = 4.0 / 3.0 * std::f64::consts::PI * 0.003;
    near(&p.ell_real[9..10], &[2.0 * 2.0 * volume]);
    near(&p.ell_real[6..9], &[1.0, 1.0, 1.0 / 9.0]);
}

#[test]
fn weight_is_compensated_by_forces_or_by_actuators() {
    let text = |actuator: &str| {
        format!(
            r#"<worldbody><body gravcomp="0.5"><joint name="j" actuatorgravcomp="true"/><inertial pos="1 0 0" mass="2" diaginertia="1 1 1"/>
              <body gravcomp="1" pos="0 0 3"><inertial pos="0 1 0" mass="4" diaginertia="1 1 1"/></body>
              <body><joint/><geom size="1"/></body></body></worldbody>{actuator}"#
        )
    };
    let p = plan(&text(r#"<actuator><motor joint="j"/></actuator>"#));
    assert_eq!((p.ngrav, &p.grav_body, &p.grav_mass), (1, &vec![0], &vec![5.0]));
    near(&p.grav_mcom, &[1.0, 4.0, 12.0]);
    assert_eq!(p.dof_grav, [1, 0]);
    // MuJoCo computes nothing for actuators where there are none.
    assert_eq!(plan(&text("")).dof_grav, [2, 0]);
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let body = |inner: &str| format!(r#"<worldbody><body name="b">{inner}</body></worldbody>"#);
    for (text, parts) in [
        (
            body(
                "<joint name='hip' range='0 1' limited='true' solimplimit='0.9 0.95 0.01 0.5 101'/><geom size='1'/>",
            ),
            ["hip", "101"],
        ),
        (
            r#"<option><flag nativeccd="disable"/></option><worldbody><geom name="can" type="cylinder" size="1 1"/>
              <body><freejoint/><geom name="egg" type="ellipsoid" size="1 1 2"/></body></worldbody>"#
                .to_string(),
            ["nativeccd", "\"egg\" and \"can\""],
        ),
        (
            format!(
                "<worldbody><geom name='tape' type='plane' size='1 1 1' adhesion='2'/>{}",
                "<body><freejoint/><geom name='egg' size='1' gap='0.1'/></body></worldbody>"
            ),
            ["adhesion across a gap", "\"tape\" and \"egg\""],
        ),
    ] {
        let error = refused(&text);
        assert!(parts.iter().all(|p| error.contains(p)), "{error}");
    }
}

#[test]
fn a_joint_that_nothing_resists_is_named() {
    let mut m = model(
        r#"<worldbody><body name="b"><joint name="first"/><geom size="1"/>
          <body name="c" pos="0 0 1"><joint name="second" axis="0 0 1"/><geom size="0.1"/></body></body></worldbody>"#,
    );
    let c = m.body("c").unwrap();
    m.bodies[c].inertia = [0.0; 3];
    let error = lower(&m, &LowerOptions::default()).unwrap_err().to_string();
    assert!(error.contains("second") && error.contains("\"c\""), "{error}");
}

#[test]
fn a_time_step_of_the_run_replaces_the_models() {
    let m = model(
        r#"<worldbody><body><joint limited="true" range="0 1"/><geom size="1"/></body></worldbody>"#,
    );
    let at =
        |timestep| lower(&m, &LowerOptions { timestep: Some(timestep), ..LowerOptions::default() });
    let p = at(0.05).unwrap();
    assert_eq!(p.timestep, 0.05);
    // refsafe: a time constant of at least two steps.
    near(&[p.lim_soft[soft::B]], &[2.0 / (0.95 * 0.1)]);
    assert!(at(0.0).is_err() && at(f64::NAN).is_err());
}

/// A chain of bodies with `joints` each, and a geom or more.
fn chain(bodies: usize, joints: &str, geoms: &str) -> String {
    let body = format!("<body pos=\"0 0 1\">{joints}{geoms}");
    format!("{}{}", body.repeat(bodies), "</body>".repeat(bodies))
}

/// A model that takes kilobytes to write and gigabytes to prepare.
#[test]
fn entries_of_jacobians_are_counted() {
    let hinges = "<joint axis=\"1 0 0\"/><joint axis=\"0 1 0\"/>";
    let two = "<geom size=\"1\"/><geom size=\"2\"/>";
    let five = format!(
        "{hinges}{}",
        ["1 0 0", "0 1 0", "0 0 1"]
            .map(|a| format!("<joint type=\"slide\" axis=\"{a}\"/>"))
            .concat()
    );
    let deep = chain(120, &five, two);
    let message = refused(&format!("<worldbody>{deep}</worldbody>"));
    assert!(message.contains("between all pairs"), "{message}");

    let quiet = "<geom size=\"1\" contype=\"0\" conaffinity=\"0\"/>";
    let tip = format!("<body name=\"tip\"><joint/>{quiet}</body>");
    let deep = chain(100, hinges, &format!("{quiet}<!-- -->"));
    let deep = deep.replacen("</body>", &format!("{tip}</body>"), 1);
    let connect = "<connect body1=\"tip\" anchor=\"0 0 0\"/>".repeat(7200);
    let message = refused(&format!("<worldbody>{deep}</worldbody><equality>{connect}</equality>"));
    assert!(message.contains("in all constraints"), "{message}");

    let sites = "<site name=\"a\"/>";
    let deep = chain(100, hinges, quiet).replacen("</body>", &format!("{sites}</body>"), 1);
    let path = "<site site=\"a\"/><site site=\"b\"/>".repeat(12_000);
    let message = refused(&format!(
        "<worldbody><site name=\"b\"/>{deep}</worldbody><tendon><spatial>{path}</spatial></tendon>"
    ));
    assert!(message.contains("degrees of freedom move"), "{message}");
}

#[test]
fn bodies_that_ask_for_the_inverse_of_a_large_tree_are_counted() {
    let hinges = "<joint axis=\"1 0 0\"/><joint axis=\"0 1 0\"/>";
    let deep = chain(150, hinges, "<geom size=\"1\"/>");
    let many = "<replicate count=\"5000\"><body/></replicate>";
    let deep = deep.replacen("</body>", &format!("{many}</body>"), 1);
    let message = refused(&format!("<worldbody>{deep}</worldbody>"));
    assert!(message.contains("too much time"), "{message}");
    // As many on trees of their own are no work.
    let one = "<body><freejoint/><geom size=\"1\" contype=\"0\" conaffinity=\"0\"/>";
    let small = format!("{one}<replicate count=\"30\"><body/></replicate></body>");
    plan(&format!("<worldbody>{}</worldbody>", small.repeat(160)));
}

/// Trees are solved one by one: as if all were one matrix.
#[test]
fn weights_of_trees_are_those_of_the_whole() {
    let arm = "<body><joint axis=\"0 1 0\" name=\"A\"/><geom size=\"0.1\" fromto=\"0 0 0 1 0 0\" type=\"capsule\"/>\
               <body pos=\"1 0 0\"><joint axis=\"0 1 0\" name=\"B\"/><geom size=\"0.1\" fromto=\"0 0 0 1 0 0\" type=\"capsule\"/></body></body>";
    let other = arm.replace("\"A\"", "\"C\"").replace("\"B\"", "\"D\"").replace("0.1", "0.2");
    let model = model(&format!(
        "<worldbody>{arm}{other}</worldbody><tendon><fixed><joint joint=\"B\" coef=\"2\"/><joint joint=\"C\" coef=\"3\"/></fixed></tendon>"
    ));
    let found = inverse_weights(&model).unwrap();
    let inverse = Rest::new(&model, &model.qpos0).factor().unwrap().inverse();
    for dof in 0..4 {
        let expected = inverse[(dof, dof)];
        assert!((found.dof[dof] / expected - 1.0).abs() < 1e-12, "{dof}");
    }
    let expected = 4.0 * inverse[(1, 1)] + 9.0 * inverse[(2, 2)];
    assert!((found.tendon[0] / expected - 1.0).abs() < 1e-12);
    assert_eq!(inverse[(1, 2)], 0.0);
}
