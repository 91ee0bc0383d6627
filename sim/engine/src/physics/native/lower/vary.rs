//! Numbers that differ between environments ([`Model::varied`](ostler_model::Model)), and
//! what follows from them: `kernels/vary.cuh` and `kernels/derive.cuh`.
//!
//! The rows of `vary` are those of the model, behind them ten numbers for each moving body
//! whose inertia follows (`lump`), then inverse weights.

use super::context::Context;
use super::error::LowerError;
use super::rows::Written;
use super::tree::RigidMass;
use crate::kernels;
use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::{matrix, turned};
use ostler_model::simple::only_slides;
use ostler_model::{EqualityKind, Field, MotorLaw};
use std::collections::BTreeMap;

/// An inverse weight of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weigh {
    /// Of a body's translation.
    Shift(usize),
    /// Of its rotation.
    Turn(usize),
    /// Of a degree of freedom.
    Dof(usize),
    Tendon(usize),
}

impl Context<'_> {
    /// Whether a field of an element differs between environments.
    pub(super) fn varies(&self, field: Field, element: usize) -> bool {
        self.model.varied_row(field, element).is_some()
    }

    /// Whether the field varies of any element.
    fn any(&self, field: impl Fn(Field) -> bool) -> bool {
        self.model.varied.iter().any(|v| field(v.field))
    }

    /// For each of `count` elements, the row of its field, or -1.
    fn rows(&self, field: Field, elements: impl Iterator<Item = usize>) -> Vec<i32> {
        elements.map(|e| self.row(field, e)).collect()
    }

    pub(super) fn row(&self, field: Field, element: usize) -> i32 {
        let row = self.model.varied_row(field, element);
        row.map_or(-1, |r| r as i32)
    }
}

/// Refuses what would not follow.
pub(super) fn check(c: &Context) -> Result<(), LowerError> {
    let o = &c.model.options;
    let inertia = c.any(Field::is_inertia);
    let refused = |what: &str, remedy: &str| Err(LowerError::new(what, remedy));
    if inertia && (o.density != 0.0 || o.viscosity != 0.0) {
        return refused(
            "masses and inertias that differ between environments in a medium",
            "leave out the event, or the medium's density and viscosity",
        );
    }
    let carried = |b: &ostler_model::Body| b.gravcomp != 0.0;
    if inertia && c.model.bodies.iter().any(carried) {
        return refused(
            "masses and inertias that differ between environments with gravcomp",
            "leave out the event, or gravcomp",
        );
    }
    let felt = |s: &ostler_model::Sensor| {
        matches!(
            s.kind,
            ostler_model::SensorKind::Force { .. } | ostler_model::SensorKind::Torque { .. }
        )
    };
    if (inertia || c.any(|f| f == Field::Wrench)) && c.model.sensors.iter().any(felt) {
        return refused(
            "masses or outside forces that differ between environments with force and torque sensors",
            "leave out the event, or the sensors",
        );
    }
    if c.any(Field::weighs) && c.model.actuators.iter().any(|a| a.muscle.is_some()) {
        return refused(
            "masses, inertias or joint offsets that differ between environments with muscles",
            "leave out the event",
        );
    }
    let tied = |e: &ostler_model::Equality| matches!(e.kind, EqualityKind::Tendon { .. });
    if c.any(|f| f == Field::Qpos0) && c.model.equalities.iter().any(tied) {
        return refused(
            "joint offsets that differ between environments with tendon equalities",
            "leave out the event",
        );
    }
    for varied in &c.model.varied {
        let body = || &c.model.bodies[varied.element];
        let moves = || c.tree.carrier[varied.element].body.is_some();
        let on_body = varied.field.is_inertia() || varied.field == Field::Wrench;
        if on_body && !moves() {
            return refused(
                &format!("a change of body \"{}\", which does not move", body().name),
                "name a body with joints, or one that is fixed to such a body",
            );
        }
        if varied.field == Field::Qpos0 && !c.model.joints[varied.element].is_scalar() {
            let name = &c.model.joints[varied.element].name;
            return refused(
                &format!("an offset of the ball or free joint \"{name}\""),
                "hinges and slides have offsets",
            );
        }
    }
    Ok(())
}

/// Writes which numbers vary and what follows from them.
pub(super) fn write(c: &Context, rows: &Written, plan: &mut RobotTables) {
    plan.impratio = c.model.options.impratio.max(super::soft::MIN_VALUE);
    plan.impratio_root = 1.0 / plan.impratio.sqrt();
    let model = c.model;
    plan.nvary = model.nvaried();
    if plan.nvary == 0 {
        return;
    }
    if c.flags.gravity {
        plan.gravity_at = (1 + c.row(Field::Gravity, 0)) as usize;
    }
    direct(c, plan);
    if plan.rubs > 0 {
        let geoms: Vec<usize> = plan.cg_geom.iter().map(|g| *g as usize).collect();
        plan.vary_friction = c.rows(Field::Friction, geoms.iter().copied());
        for &g in &geoms {
            plan.cg_friction.extend(model.geoms[g].friction);
        }
        let body = |g: i32| model.geoms[plan.cg_geom[g as usize] as usize].body;
        let pairs = plan.pair_g1.iter().zip(&plan.pair_g2);
        let weight = |g: i32| c.weights.body[body(g)][0];
        plan.pair_shift = pairs.map(|(a, b)| weight(*a) + weight(*b)).collect();
    }
    let mut lumps = Lumps::new(c, plan);
    if c.any(Field::weighs) {
        weights(c, rows, &mut lumps, plan);
    }
    lumps.write(c, plan);
    plan.nderive = 10 * plan.nlump + plan.nweigh;
    forced(c, &lumps, plan);
}

/// Numbers that kernels read as they are.
fn direct(c: &Context, plan: &mut RobotTables) {
    let joints = 0..c.model.joints.len();
    let none = |on: bool, rows: Vec<i32>| if on { rows } else { vec![-1; rows.len()] };
    plan.vary_stiffness = none(c.flags.spring, c.rows(Field::Stiffness, joints));
    let of_dof = || c.tree.dof_joint.iter().copied();
    plan.vary_damping = none(c.flags.damper, c.rows(Field::Damping, of_dof()));
    plan.vary_armature = c.rows(Field::Armature, of_dof());
    let damped = plan.vary_damping.iter().any(|r| *r >= 0);
    plan.eulerdamp |= usize::from(damped && c.flags.eulerdamp);
    let fric = plan.fric_dof.iter().map(|d| c.tree.dof_joint[*d as usize]);
    plan.vary_loss = c.rows(Field::Frictionloss, fric);
    plan.vary_qpos0 = vec![-1; plan.nq];
    for (j, joint) in c.model.joints.iter().enumerate() {
        plan.vary_qpos0[joint.qpos_adr] = c.row(Field::Qpos0, j);
    }
    let on = c.flags.actuation;
    let actuators = |field: Field| {
        // Laws of their own read what varies themselves.
        let law = |u: usize| c.model.actuators[u].motor.as_ref().map(|m| &m.law);
        let rows = (0..c.model.nu()).map(|u| match law(u) {
            None | Some(MotorLaw::MuJoCo) => c.row(field, u),
            Some(_) => -1,
        });
        none(on, rows.collect())
    };
    plan.vary_kp = actuators(Field::Kp);
    plan.vary_kd = actuators(Field::Kd);
    plan.vary_gain = actuators(Field::Gain);
    plan.vary_effort = actuators(Field::Effort);
}

/// Moving bodies whose inertia is put together in every environment.
struct Lumps {
    /// For each moving body its lump.
    of: BTreeMap<usize, usize>,
    /// For each body of the model that varies its piece.
    pieces: BTreeMap<usize, usize>,
}

impl Lumps {
    /// Bodies of the model with numbers of their own.
    fn new(c: &Context, plan: &mut RobotTables) -> Self {
        let (mut of, mut pieces) = (BTreeMap::new(), BTreeMap::new());
        for varied in c.model.varied.iter().filter(|v| v.field.is_inertia()) {
            let b = varied.element;
            let Some(moving) = c.tree.carrier[b].body else {
                continue;
            };
            let next = of.len();
            of.entry(moving).or_insert(next);
            if pieces.contains_key(&b) {
                continue;
            }
            pieces.insert(b, pieces.len());
            let (body, pose) = (&c.model.bodies[b], c.tree.carrier[b].pose);
            plan.piece_lump.push(of[&moving] as i32);
            plan.piece_mass.push(c.row(Field::Mass, b));
            plan.piece_com.push(c.row(Field::Com, b));
            plan.piece_moments.push(c.row(Field::Moments, b));
            plan.piece_tensor.push(c.row(Field::Tensor, b));
            plan.piece_pos.extend(pose.pos);
            plan.piece_mat.extend(matrix(pose.quat).concat());
            plan.piece_own.push(body.mass);
            plan.piece_own.extend(body.ipos);
            plan.piece_own.extend(turned(body.inertia, body.iquat));
            plan.piece_axes.extend(matrix(body.iquat).concat());
        }
        plan.npiece = pieces.len();
        Self { of, pieces }
    }

    /// The lump of a moving body, made if there is none.
    fn index(&mut self, moving: usize) -> usize {
        let next = self.of.len();
        *self.of.entry(moving).or_insert(next)
    }

    fn piece(&self, body: usize) -> i32 {
        self.pieces.get(&body).map_or(-1, |p| *p as i32)
    }

    /// Bodies, and the part of their inertia that does not vary.
    fn write(&self, c: &Context, plan: &mut RobotTables) {
        plan.nlump = self.of.len();
        plan.vary_body = vec![-1; plan.nb];
        plan.lump_body = vec![0; plan.nlump];
        let mut rest = vec![RigidMass::default(); plan.nlump];
        for (&moving, &lump) in &self.of {
            plan.vary_body[moving] = (plan.nvary + 10 * lump) as i32;
            plan.lump_body[lump] = moving as i32;
        }
        for (b, carrier) in c.tree.carrier.iter().enumerate() {
            let lump = carrier.body.and_then(|m| self.of.get(&m));
            if let (Some(&lump), false) = (lump, self.pieces.contains_key(&b)) {
                rest[lump].add(&RigidMass::of(c.model, b, carrier.pose));
            }
        }
        for lump in rest {
            plan.lump_rest.push(lump.mass);
            plan.lump_rest.extend(lump.first);
            plan.lump_rest.extend(lump.inertia);
        }
        // The weights stand behind the lumps.
        let first = (plan.nvary + 10 * plan.nlump) as i32;
        let tables = [
            &mut plan.lim_weight,
            &mut plan.fric_weight,
            &mut plan.row_weight,
            &mut plan.pair_weight,
        ];
        for entry in tables.into_iter().flatten().filter(|w| **w >= 0) {
            *entry += first;
        }
    }
}

/// Inverse weights that constraints use, each once.
struct Weighs<'a, 'm> {
    c: &'a Context<'m>,
    known: BTreeMap<Weigh, i32>,
}

impl Weighs<'_, '_> {
    /// Its number; -1 where it is 0 for ever.
    fn index(&mut self, w: Weigh, lumps: &mut Lumps, plan: &mut RobotTables) -> i32 {
        let (c, model) = (self.c, self.c.model);
        // The axes of ball and free joints are a choice: the mean stands for all.
        let w = match w {
            Weigh::Dof(d) => {
                let joint = &model.joints[c.tree.dof_joint[d]];
                Weigh::Dof(joint.dof_adr + (d - joint.dof_adr) / 3 * 3)
            }
            other => other,
        };
        if let Some(known) = self.known.get(&w) {
            return *known;
        }
        let slides = |b: usize| only_slides(model, b);
        let (mut piece, mut pos) = (-1, [0.0; 3]);
        let (kind, what, count) = match w {
            Weigh::Shift(b) | Weigh::Turn(b) => {
                let Some(moving) = c.tree.carrier[b].body else {
                    return -1;
                };
                match (w, slides(b)) {
                    (Weigh::Turn(_), true) => return -1,
                    (_, true) => (kernels::WEIGH_MASS, lumps.index(moving), 1),
                    (Weigh::Turn(_), false) => (kernels::WEIGH_TURN, moving, 3),
                    _ => {
                        piece = lumps.piece(b);
                        pos = c.tree.carrier[b].pose.point(model.bodies[b].ipos);
                        (kernels::WEIGH_SHIFT, moving, 3)
                    }
                }
            }
            Weigh::Dof(d) => {
                let joint = &model.joints[c.tree.dof_joint[d]];
                match (slides(joint.body), c.tree.carrier[joint.body].body) {
                    (true, Some(moving)) => (kernels::WEIGH_MASS, lumps.index(moving), 1),
                    _ if joint.is_scalar() => (kernels::WEIGH_DOF, d, 1),
                    _ => (kernels::WEIGH_DOF, d, 3),
                }
            }
            Weigh::Tendon(t) => (kernels::WEIGH_TENDON, t, 1),
        };
        let index = plan.weigh_kind.len() as i32;
        plan.weigh_kind.push(kind);
        plan.weigh_what.push(what as i32);
        plan.weigh_count.push(count);
        plan.weigh_piece.push(piece);
        plan.weigh_pos.extend(pos);
        self.known.insert(w, index);
        index
    }
}

/// The weights of limits, dry friction, general rows and contacts.
fn weights(c: &Context, rows: &Written, lumps: &mut Lumps, plan: &mut RobotTables) {
    let mut all = Weighs { c, known: BTreeMap::new() };
    let dofs = [plan.lim_dof.clone(), plan.fric_dof.clone()];
    let [limits, friction] = dofs.map(|dofs| -> Vec<i32> {
        let each = dofs.into_iter();
        each.map(|d| all.index(Weigh::Dof(d as usize), lumps, plan)).collect()
    });
    plan.lim_weight = limits;
    plan.fric_weight = friction;
    for pair in &rows.weigh {
        for w in pair {
            let index = w.map_or(-1, |w| all.index(w, lumps, plan));
            plan.row_weight.push(index);
        }
    }
    for i in 0..plan.npair {
        for g in [plan.pair_g1[i], plan.pair_g2[i]] {
            let body = c.model.geoms[plan.cg_geom[g as usize] as usize].body;
            let index = all.index(Weigh::Shift(body), lumps, plan);
            plan.pair_weight.push(index);
        }
    }
    plan.nweigh = plan.weigh_kind.len();
}

/// Bodies that forces from outside act on.
fn forced(c: &Context, lumps: &Lumps, plan: &mut RobotTables) {
    for varied in c.model.varied.iter().filter(|v| v.field == Field::Wrench) {
        let (b, carrier) = (varied.element, c.tree.carrier[varied.element]);
        plan.forced_body.push(carrier.index());
        plan.forced_at.push(c.row(Field::Wrench, b));
        plan.forced_piece.push(lumps.piece(b));
        plan.forced_pos.extend(carrier.pose.point(c.model.bodies[b].ipos));
    }
    plan.nforced = plan.forced_body.len();
}
