//! Contact candidates: which pairs of geoms may touch, and by which rules.
//!
//! Source: MuJoCo, Computation, "Collision detection" (selection of pairs) and
//! "Contact parameters" (mixing of the two geoms' parameters).

mod candidate;
mod crowd;
mod filter;
mod groups;
mod held;
mod kept_apart;
mod mesh;
mod shape;

use super::context::{Context, MAX_ENTRIES};
use super::error::LowerError;
use super::soft::Spec;
use super::tree::Tree;
use crate::kernels;
use crate::physics::native::tables::{RobotTables, soft};
use candidate::{Candidate, Mix};
use filter::candidates;
use kept_apart::KeptApart;
use ostler_model::{Cone, Field, Model, ShapePair};
use shape::Shapes;

/// Smallest friction coefficient, as MuJoCo's.
const MIN_FRICTION: f64 = 1e-5;
/// Most contacts at once that are kept by body, and as many with Jacobians.
const MAX_SLOTS: usize = 256;

/// Up to these many contacts of a pair and these many degrees of freedom that move it,
/// a contact with the world is cheaper by its Jacobian than as a load on its body that
/// goes down the tree: by a quarter for the half-cheetah (6 degrees of freedom), a
/// twentieth for the ant (8).
const HITS_BY_JACOBIAN: usize = 2;
const PATH_BY_JACOBIAN: usize = 10;

/// Whether all contacts are with the world and few enough for Jacobians.
fn by_jacobian(c: &Context, world: &[&Candidate], moving: &[&Candidate]) -> bool {
    let short = |candidate: &&Candidate| {
        let kinds = ShapePair::new(candidate.geoms.map(|g| c.model.geoms[g].kind));
        let path = |g: usize| c.tree.chain(c.tree.carrier[c.model.geoms[g].body].body).len();
        kinds.hits() <= HITS_BY_JACOBIAN
            && candidate.geoms.into_iter().map(path).sum::<usize>() <= PATH_BY_JACOBIAN
    };
    moving.is_empty() && world.iter().all(short)
}

/// Writes the candidates: those with the world first.
pub(super) fn write(c: &Context, plan: &mut RobotTables) -> Result<(), LowerError> {
    let all = if c.flags.contact {
        candidates(c.model, &c.tree, c.flags.filterparent)?
    } else {
        Vec::new()
    };
    let is_static = |g: usize| c.tree.carrier[c.model.geoms[g].body].body.is_none();
    let (mut world, mut moving): (Vec<_>, Vec<_>) =
        all.iter().partition(|p: &&Candidate| p.geoms.into_iter().any(is_static));
    let kept_apart = KeptApart::find(c, &all);
    kept_apart.write(c, plan);
    // Those of the same bodies side by side, last those that limits keep apart.
    let crowd = crowd::find(c, &world);
    for part in [&mut world, &mut moving] {
        part.sort_by_cached_key(|pair| {
            let key = groups::key(c, pair);
            (!crowd.holds(key), key, kept_apart.holds(pair))
        });
    }
    let by_jacobian = crowd.is_empty() && by_jacobian(c, &world, &moving);
    plan.nwpair = if by_jacobian { 0 } else { world.len() };
    plan.dense = usize::from(!moving.is_empty());
    plan.npair = all.len();
    plan.rubs = usize::from(c.model.varied.iter().any(|v| v.field == Field::Friction));
    let mut shapes = Shapes::new(c, plan);
    plan.pair_path.push(0);
    for candidate in world.iter().chain(&moving) {
        let [a, b] = candidate.geoms;
        // The kernels want the static geom first.
        let flip = is_static(b);
        let [g1, g2] = if flip { [b, a] } else { [a, b] };
        let (first, second) = (shapes.index(g1, plan), shapes.index(g2, plan));
        plan.pair_g1.push(first);
        plan.pair_g2.push(second);
        plan.pair_flip.push(i32::from(flip));
        let kinds = ShapePair::new([a, b].map(|g| c.model.geoms[g].kind));
        plan.pair_kind.push(kinds.code());
        if kinds.iterative() && !(c.flags.multiccd && c.flags.nativeccd) {
            return Err(LowerError::new(
                format!(
                    "option/flag multiccd or nativeccd \"disable\" with {}",
                    names(c.model, candidate.geoms)
                ),
                "task.option.nativeccd = true does without them, as does a file that leaves them out",
            ));
        }
        let rules = &candidate.rules;
        check_adhesion(c, candidate)?;
        plan.pair_pull.push(rules.adhesion);
        plan.nsdir = plan.nsdir.max(rules.condim.saturating_sub(1) as usize);
        let reach = rules.margin + rules.gap;
        let hits = kinds.hits();
        plan.pair_hits.push(hits as i32);
        if is_static(g1) && !by_jacobian {
            plan.nwslot = (plan.nwslot + hits).min(MAX_SLOTS);
        } else {
            plan.npslot = (plan.npslot + hits).min(MAX_SLOTS);
            plan.npdim = plan.npdim.max(candidate.rules.condim as usize);
            write_path(&c.tree, c.model, [g1, g2], plan)?;
        }
        plan.pair_path.push(plan.path_dof.len() as i32);
        write_rules(c, candidate, plan)?;
        if plan.rubs > 0 {
            plan.pair_mix.push(mixed(c, candidate, g1));
        }
        plan.pair_reach.push(reach);
        let kinds = [g1, g2].map(|g| c.model.geoms[g].kind);
        let bounds = [first, second].map(|g| plan.cg_bound[g as usize]);
        plan.pair_near.push(shape::near(kinds, bounds, reach));
    }
    let order: Vec<&Candidate> = world.into_iter().chain(moving).collect();
    groups::write(c, &order, &kept_apart, &crowd, plan);
    plan.npath = plan.pair_path.windows(2).map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0);
    plan.pair_rank = ranks(c.model, &order);
    plan.ncg = plan.cg_type.len();
    plan.sticky = usize::from(plan.pair_pull.iter().any(|pull| *pull != 0.0));
    Ok(())
}

/// The places of candidates in MuJoCo's list of contacts: by their bodies, of two bodies first
/// those of `<pair>`, then by their geoms (`mj_collision`).
fn ranks(model: &Model, order: &[&Candidate]) -> Vec<i32> {
    let key = |i: &usize| {
        let Candidate { mut geoms, mix, .. } = *order[*i];
        geoms.sort();
        let bodies = geoms.map(|g| model.geoms[g].body);
        let own = mix == Mix::Own;
        (bodies, !own, if own { [*i; 2] } else { geoms })
    };
    let mut sorted: Vec<usize> = (0..order.len()).collect();
    sorted.sort_by_cached_key(key);
    let mut ranks = vec![0; order.len()];
    for (rank, pair) in sorted.into_iter().enumerate() {
        ranks[pair] = rank as i32;
    }
    ranks
}

/// Contacts that stick do so where they push.
fn check_adhesion(c: &Context, candidate: &Candidate) -> Result<(), LowerError> {
    let rules = &candidate.rules;
    if rules.adhesion != 0.0 && rules.gap != 0.0 {
        return Err(LowerError::new(
            format!("adhesion across a gap, of {}", names(c.model, candidate.geoms)),
            "give both geoms gap 0: they stick where they touch",
        ));
    }
    // MuJoCo then leaves the force out and keeps what it does to the reference.
    if rules.adhesion != 0.0 && !c.flags.passive() {
        return Err(LowerError::new(
            format!("adhesion without passive forces, of {}", names(c.model, candidate.geoms)),
            "leave option/flag spring or damper on",
        ));
    }
    Ok(())
}

/// Whose friction is a contact's, where `g1` is the first geom in the tables: the table's unless
/// an event changes it.
fn mixed(c: &Context, candidate: &Candidate, g1: usize) -> i32 {
    let varies = |g: &usize| c.varies(Field::Friction, *g);
    match candidate.mix {
        _ if candidate.rules.condim == 1 => kernels::MIX_TABLE,
        Mix::Of(g) if varies(&g) && g == g1 => kernels::MIX_FIRST,
        Mix::Of(g) if varies(&g) => kernels::MIX_SECOND,
        Mix::Larger if candidate.geoms.iter().any(varies) => kernels::MIX_LARGER,
        _ => kernels::MIX_TABLE,
    }
}

/// Degrees of freedom that move one body of a pair but not the other.
///
/// # Errors
/// The pairs have too many of them together.
fn write_path(
    tree: &Tree,
    model: &Model,
    geoms: [usize; 2],
    plan: &mut RobotTables,
) -> Result<(), LowerError> {
    let [first, second] = geoms.map(|g| tree.chain(tree.carrier[model.geoms[g].body].body));
    // Chains have in common what they begin with.
    let common = first.iter().zip(&second).take_while(|(a, b)| a == b);
    let common = common.count();
    let mut path: Vec<(usize, i32)> = Vec::new();
    path.extend(first[common..].iter().map(|d| (*d, -1)));
    path.extend(second[common..].iter().map(|d| (*d, 1)));
    path.sort_unstable();
    for (dof, sign) in path {
        plan.path_dof.push(dof as i32);
        plan.path_sign.push(sign);
    }
    if plan.path_dof.len() > MAX_ENTRIES {
        return Err(LowerError::new(
            format!(
                "more than {MAX_ENTRIES} degrees of freedom between all pairs of geoms that may \
                 touch"
            ),
            "shorten the chains, or give what need not touch contype and conaffinity 0",
        ));
    }
    Ok(())
}

/// Least share of what a body gives way by turning that counts as its giving way.
///
/// MuJoCo's regularisation is by the inverse weight of the centre of mass. Where joints hold that
/// in its place (a gimbal, a balanced wheel) it is 0, the contact's stiffness 1e15 times what the
/// body can take, and single precision loses the mass matrix beside it. With this share the
/// acceleration differs by some 1e-5 of itself.
const LEAST_GIVE: f64 = 1e-5;

/// How far the body of a geom gives way to a force on the geom (1/kg).
fn give(c: &Context, geom: usize) -> f64 {
    let geom = &c.model.geoms[geom];
    let [slides, turns] = c.weights.body[geom.body];
    let arm = held::norm(held::from_to(c.model.bodies[geom.body].ipos, geom.pos))
        + shape::bound(c.model, geom);
    slides.max(LEAST_GIVE * turns * arm * arm)
}

/// Softness and friction of one candidate.
fn write_rules(
    c: &Context,
    candidate: &Candidate,
    plan: &mut RobotTables,
) -> Result<(), LowerError> {
    let rules = &candidate.rules;
    if ![1, 3, 4, 6].contains(&rules.condim) {
        let of = names(c.model, candidate.geoms);
        return Err(LowerError::new(
            format!("condim {} of {of}", rules.condim),
            "write 1, 3, 4 or 6",
        ));
    }
    let elliptic = c.cone == Cone::Elliptic;
    let impratio = c.model.options.impratio.max(super::soft::MIN_VALUE);
    let friction = rules.friction.map(|f| f.max(MIN_FRICTION));
    let translation: f64 = candidate.geoms.iter().map(|&g| give(c, g)).sum();
    let slide = friction[0] * friction[0];
    // All edges of a pyramid share one regularisation, that of the elliptic cone.
    let diag = if rules.condim == 1 || elliptic {
        translation
    } else {
        2.0 * slide / impratio * (1.0 + slide) * translation
    };
    let of = names(c.model, candidate.geoms);
    let spec = Spec { of: &of, solref: rules.solref, solimp: rules.solimp };
    let packed: [f64; soft::LEN] = c.packer.position(spec, rules.margin, diag)?;
    plan.pair_soft.extend(packed);
    plan.pair_fricb.push(c.packer.friction_damping(spec, rules.solref_friction));
    plan.pair_dim.push(rules.condim as i32);
    plan.pair_mu.extend(friction);
    plan.pair_dfri.extend(friction.map(|f| impratio * f * f / slide));
    let cone2 = friction[0] * friction[0] / impratio;
    plan.pair_cone.extend([cone2.sqrt(), cone2, 1.0 / (cone2 * (1.0 + cone2))]);
    Ok(())
}

fn names(model: &Model, [a, b]: [usize; 2]) -> String {
    format!("the contact of geoms \"{}\" and \"{}\"", model.geoms[a].name, model.geoms[b].name)
}
