//! General rows and tendons of small models, without a referee.

use super::tests::{model, near};
use super::*;
use crate::physics::native::tables::{UNLIMITED, soft};

fn plan(text: &str) -> RobotTables {
    lower(&model(text), &LowerOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Degrees of freedom of row `r`.
fn dofs(p: &RobotTables, r: usize) -> &[i32] {
    &p.row_dof[p.row_adr[r] as usize..p.row_adr[r + 1] as usize]
}

/// (entry, degree of freedom) of list `which` (0, 1) of item `i`.
fn list(p: &RobotTables, i: usize, which: usize) -> Vec<(i32, i32)> {
    let at = 2 * i + which;
    let range = p.item_path[at] as usize..p.item_path[at + 1] as usize;
    let dofs = p.ipath_dof[range.clone()].iter().copied();
    p.ipath_entry[range].iter().copied().zip(dofs).collect()
}

/// Two branches on a free body.
const BRANCHES: &str = r#"<compiler angle="radian"/><worldbody><body name="root" pos="0 0 1"><freejoint/><geom size="0.1" contype="0" conaffinity="0"/>
    <body name="a" pos="1 0 0"><joint name="a" axis="0 1 0" ref="0.2"/><geom size="0.1" contype="0" conaffinity="0"/>
      <body name="tip" pos="1 0 0" quat="0 0 0 1"><geom size="0.1" contype="0" conaffinity="0"/></body></body>
    <body name="b" pos="-1 0 0"><joint name="b" axis="0 1 0"/><geom size="0.1" contype="0" conaffinity="0"/>
      <body name="c" pos="-1 0 0"><joint name="c" axis="0 1 0"/><geom size="0.1" contype="0" conaffinity="0"/></body></body>
  </body></worldbody>"#;

#[test]
fn a_joint_equality_couples_two_branches() {
    let p = plan(&format!(
        r#"{BRANCHES}<equality><joint joint1="c" joint2="a" polycoef="0.1 2 3 4 5"/><joint joint1="b"/></equality>"#
    ));
    assert_eq!((p.nitem, p.nrow, p.nrowj), (2, 2, 3));
    assert_eq!((dofs(&p, 0), dofs(&p, 1)), (&[6, 8][..], &[7][..]));
    // The row is sorted by degree of freedom, the lists by what they belong to.
    assert_eq!((list(&p, 0, 0), list(&p, 0, 1)), (vec![(1, 8)], vec![(0, 6)]));
    assert_eq!((list(&p, 1, 0), list(&p, 1, 1)), (vec![(0, 7)], vec![]));
    assert_eq!(p.item_int, [9, 7, 0, 0, 8, -1, 0, 0]);
    near(&p.item_real[..7], &[0.1, 2.0, 3.0, 4.0, 5.0, 0.0, 0.2]);
    // Coupling 8 with 6 fills in what eliminating 8 leaves: 6 with 7.
    let row = |i: usize| &p.hrow_col[p.hrow_adr[i] as usize..p.hrow_adr[i + 1] as usize];
    assert_eq!(row(8), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(row(7), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(p.mrow_adr[9], p.hrow_adr[9] - 2);
}

#[test]
fn connect_is_given_in_the_carriers_frames() {
    let p = plan(&format!(
        r#"{BRANCHES}<equality><connect body1="tip" body2="c" anchor="0.5 0.2 0"/>
          <connect body1="root" anchor="0 0 0.5"/></equality>"#
    ));
    assert_eq!((p.nitem, p.nrow, &p.item_kind), (2, 6, &vec![2, 2]));
    assert_eq!(p.item_row, [0, 3]);
    assert_eq!((p.item_int[0], p.item_int[1]), (1, 3));
    // On the carrier "a", at whose (1, 0, 0) the tip is turned half a turn.
    near(&p.item_real[..3], &[0.5, -0.2, 0.0]);
    // In the initial pose that is x = 1.5, and the body c is at x = -2.
    near(&p.item_real[3..6], &[3.5, -0.2, 0.0]);
    assert_eq!(dofs(&p, 2), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(list(&p, 0, 0).last(), Some(&(6, 6)));
    assert_eq!(list(&p, 0, 1).last(), Some(&(8, 8)));
    assert_eq!((p.item_int[4], p.item_int[5]), (0, -1));
    assert_eq!(list(&p, 1, 1), vec![]);
    near(&p.item_real[16 + 3..16 + 6], &[0.0, 0.0, 1.5]);
}

#[test]
fn weld_carries_both_orientations_and_weighs_rotation_by_itself() {
    let p = plan(&format!(
        r#"{BRANCHES}<equality><weld body1="tip" body2="c" torquescale="0.7"/></equality>"#
    ));
    assert_eq!((p.nitem, p.nrow), (1, 6));
    // conj(B) q2^-1 q1 A is one in the initial pose, where q1 and q2 are.
    near(&p.item_real[6..14], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0].map(f64::abs));
    near(&[p.item_real[14]], &[0.7]);
    let diag = |r: usize| p.row_soft[r * soft::LEN + soft::DIAG];
    assert_eq!((diag(0), diag(3)), (diag(2), diag(5)));
    assert!(diag(3) > 2.0 * diag(0));
}

#[test]
fn what_is_welded_already_makes_no_rows() {
    let p = plan(&format!(
        r#"{BRANCHES}<equality><weld body1="tip" body2="a"/><connect body1="b" body2="c" anchor="0 0 0" active="false"/></equality>"#
    ));
    assert_eq!((p.nitem, p.nrow), (0, 0));
    assert_eq!(p.item_path, [0]);
}

#[test]
fn tendons_act_through_springs_limits_friction_and_each_other() {
    let p = plan(&format!(
        r#"{BRANCHES}<tendon>
          <fixed name="s" stiffness="3" damping="2" springlength="0.1 0.4" range="-1 1" limited="true" margin="0.01"
            frictionloss="0.6"><joint joint="c" coef="2"/><joint joint="a" coef="-1"/></fixed>
          <fixed name="t"><joint joint="b" coef="0.5"/></fixed></tendon>
          <equality><tendon tendon1="t" tendon2="s" polycoef="0 1 0 0 0"/></equality>
          <actuator><position tendon="s" kp="7" gear="3"/></actuator>"#
    ));
    assert_eq!((p.nten, &p.ten_adr), (2, &vec![0, 2, 3]));
    assert_eq!(p.ten_dof, [6, 8, 7]);
    near(&p.ten_coef, &[-1.0, 2.0, 0.5]);
    near(&[p.ten_stiffness[0], p.ten_damping[0], p.ten_lo[0], p.ten_hi[0]], &[3.0, 2.0, 0.1, 0.4]);
    // Equality, friction, limit: MuJoCo's order.
    assert_eq!(p.item_kind, [1, 5, 4]);
    assert_eq!(p.row_kind, [0, 1, 2]);
    near(&p.row_loss, &[0.0, 0.6, 0.0]);
    assert_eq!(list(&p, 0, 0), vec![(1, 7)]);
    assert_eq!(list(&p, 0, 1), vec![(0, 6), (2, 8)]);
    // The initial length of s: joint a starts at 0.2.
    near(&p.item_real[5..7], &[0.0, -0.2]);
    near(&p.item_real[32..34], &[-1.0, 1.0]);
    near(&[p.row_soft[2 * soft::LEN + soft::MARGIN]], &[0.01]);
    near(&[p.row_soft[soft::LEN + soft::K]], &[0.0]);
    // The actuator pulls at the tendon's joints.
    let mut arms: Vec<_> = p.act_dof.iter().zip(&p.act_coef).map(|(d, x)| (*d, *x)).collect();
    arms.sort_by_key(|a| a.0);
    assert_eq!(arms, [(6, -3.0), (8, 6.0)]);
}

#[test]
fn a_ball_limit_is_one_row_of_three_entries() {
    let p = plan(
        r#"<worldbody><body><joint type="ball" range="0 60" limited="true" margin="0.1"/>
          <inertial mass="1" pos="0 0 0" diaginertia="0.5 0.5 0.5"/></body></worldbody>"#,
    );
    assert_eq!((p.nlim, p.nitem, &p.item_kind, &p.row_kind), (0, 1, &vec![6], &vec![2]));
    assert_eq!(dofs(&p, 0), [0, 1, 2]);
    near(&[p.item_real[0]], &[60.0_f64.to_radians()]);
    near(&[p.row_soft[soft::DIAG], p.row_soft[soft::MARGIN]], &[2.0, 0.1]);
}

#[test]
fn a_tendon_whose_margins_overlap_has_a_row_for_each_side() {
    let p = plan(
        r#"<worldbody><body><joint name="j"/><geom size="0.1"/></body></worldbody>
          <tendon><fixed range="-0.1 0.1" limited="true" margin="0.2"><joint joint="j" coef="1"/></fixed></tendon>"#,
    );
    assert_eq!((p.nitem, p.nrow), (2, 2));
    near(&p.item_real[..2], &[-0.1, UNLIMITED]);
    near(&p.item_real[16..18], &[-UNLIMITED, 0.1]);
}

#[test]
fn actuators_with_a_state_grow_by_their_own_step() {
    let p = plan(
        r#"<option timestep="0.1"/><worldbody><body><joint name="j"/><geom size="0.1"/></body></worldbody>
          <actuator><motor joint="j"/>
            <general joint="j" dyntype="integrator" actrange="-1 2" actlimited="true"/>
            <general joint="j" dyntype="filter" dynprm="0.3" actearly="true"/>
            <general joint="j" dyntype="filterexact" dynprm="0.3"/></actuator>"#,
    );
    assert_eq!((p.na, &p.act_dyn, &p.act_state), (3, &vec![0, 1, 2, 3], &vec![-1, 0, 1, 2]));
    assert_eq!(p.act_early, [0, 0, 1, 0]);
    let exact = 0.3 * (1.0 - (-0.1_f64 / 0.3).exp());
    near(&p.act_step[1..], &[0.1, 0.1, exact]);
    near(&[p.act_prm[6], p.act_prm[9]], &[0.3, 0.3]);
    assert_eq!((p.act_lo[1], p.act_hi[1], p.act_hi[2]), (-1.0, 2.0, UNLIMITED));
}

#[test]
fn without_equality_friction_or_limits_there_are_no_rows() {
    let text = |flag: &str| {
        format!(
            r#"<option><flag {flag}="disable"/></option>{BRANCHES}
            <tendon><fixed name="s" range="-1 1" limited="true" frictionloss="0.6"><joint joint="c" coef="2"/></fixed></tendon>
            <equality><joint joint1="b"/></equality>"#
        )
    };
    assert_eq!(plan(&text("equality")).item_kind, [5, 4]);
    assert_eq!(plan(&text("frictionloss")).item_kind, [0, 4]);
    assert_eq!(plan(&text("limit")).item_kind, [0, 5]);
    assert_eq!(plan(&text("constraint")).nitem, 0);
}
