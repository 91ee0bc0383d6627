//! Which geoms may touch: MuJoCo's rule, as rapier's collision groups.
//!
//! Source of the rule: MuJoCo, Computation, "Collision detection", selection. The
//! full table of pairs is computed, then geoms with equal rows share one of rapier's
//! 32 groups; that is exact, and costs nothing per step. Scenes with more than 32
//! different rows get a hook that looks the pair up.

use ostler_engine::physics::PhysicsError;
use ostler_model::Model;
use rapier3d::prelude::{
    ActiveHooks, ColliderHandle, ColliderSet, Group, InteractionGroups, InteractionTestMode,
    PairFilterContext, PhysicsHooks, SolverFlags,
};
use std::collections::HashSet;

/// Pairs of geoms that may touch, and their encoding.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    ngeom: usize,
    allowed: Vec<bool>,
    groups: Option<Vec<InteractionGroups>>,
}

/// Most geoms: the table of pairs has an entry for each two of them.
const MAX_GEOMS: usize = 4096;

impl Filter {
    /// # Errors
    /// There are too many geoms.
    pub(super) fn new(model: &Model) -> Result<Self, PhysicsError> {
        if model.geoms.len() > MAX_GEOMS {
            return Err(PhysicsError::Unsupported {
                engine: "rapier",
                what: format!("{} geoms, up to {MAX_GEOMS} are supported", model.geoms.len()),
            });
        }
        Ok(Self::of(model))
    }

    fn of(model: &Model) -> Self {
        let ngeom = model.geoms.len();
        let parent_filter =
            !model.options.flags.iter().any(|(name, on)| name == "filterparent" && !on);
        let mut allowed = vec![false; ngeom * ngeom];
        let excludes: HashSet<(usize, usize)> = model.excludes.iter().copied().collect();
        for a in 0..ngeom {
            for b in 0..ngeom {
                allowed[a * ngeom + b] = may_touch(model, &excludes, parent_filter, a, b);
            }
        }
        // Explicit pairs obey no filter; geoms that cannot move apart stay out.
        for pair in &model.pairs {
            let (a, b) = (pair.geom1, pair.geom2);
            if weld(model, model.geoms[a].body) != weld(model, model.geoms[b].body) {
                allowed[a * ngeom + b] = true;
                allowed[b * ngeom + a] = true;
            }
        }
        let groups = encode(&allowed, ngeom);
        Self { ngeom, allowed, groups }
    }

    /// Whether geoms `a` and `b` may touch.
    pub(super) fn allows(&self, a: usize, b: usize) -> bool {
        self.allowed[a * self.ngeom + b]
    }

    /// Geoms that `a` may touch.
    pub(super) fn partners(&self, a: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.ngeom).filter(move |b| self.allows(a, *b))
    }

    /// Collision groups and hooks for geom `a`.
    pub(super) fn collider(&self, a: usize) -> (InteractionGroups, ActiveHooks) {
        match &self.groups {
            Some(groups) => (groups[a], ActiveHooks::empty()),
            None if self.partners(a).next().is_none() => {
                (InteractionGroups::none(), ActiveHooks::empty())
            }
            None => (InteractionGroups::all(), ActiveHooks::FILTER_CONTACT_PAIRS),
        }
    }
}

fn weld(model: &Model, body: usize) -> usize {
    model.bodies[body].weld
}

fn may_touch(
    model: &Model,
    excludes: &HashSet<(usize, usize)>,
    parent_filter: bool,
    a: usize,
    b: usize,
) -> bool {
    let (ga, gb) = (&model.geoms[a], &model.geoms[b]);
    if ga.contype & gb.conaffinity == 0 && gb.contype & ga.conaffinity == 0 {
        return false;
    }
    let weld_parent = |w: usize| weld(model, model.bodies[w].parent);
    let (wa, wb) = (weld(model, ga.body), weld(model, gb.body));
    if wa == wb {
        return false;
    }
    // Bodies next to each other in the tree; the world does not count as a parent.
    if parent_filter && wa != 0 && wb != 0 && (wa == weld_parent(wb) || wb == weld_parent(wa)) {
        return false;
    }
    let pair = (ga.body.min(gb.body), ga.body.max(gb.body));
    !excludes.contains(&pair)
}

/// Groups such that two geoms interact exactly where the table says so, if 32 are
/// enough.
fn encode(allowed: &[bool], ngeom: usize) -> Option<Vec<InteractionGroups>> {
    let row = |a: usize| &allowed[a * ngeom..(a + 1) * ngeom];
    // Geoms with equal rows. Rows are symmetric, so two classes either may touch
    // throughout or not at all.
    let mut classes: Vec<usize> = Vec::new();
    let mut class_of: Vec<Option<usize>> = Vec::with_capacity(ngeom);
    for a in 0..ngeom {
        if !row(a).contains(&true) {
            class_of.push(None);
            continue;
        }
        let known = classes.iter().position(|c| row(*c) == row(a));
        class_of.push(Some(known.unwrap_or(classes.len())));
        if known.is_none() {
            classes.push(a);
            if classes.len() > 32 {
                return None;
            }
        }
    }
    let groups = (0..ngeom).map(|a| {
        let Some(class) = class_of[a] else {
            return InteractionGroups::none();
        };
        let mut filter = Group::NONE;
        for (other, representative) in classes.iter().enumerate() {
            if allowed[a * ngeom + representative] {
                filter |= Group::from_bits_retain(1 << other);
            }
        }
        let member = Group::from_bits_retain(1 << class);
        InteractionGroups::new(member, filter, InteractionTestMode::And)
    });
    Some(groups.collect())
}

impl PhysicsHooks for Filter {
    fn filter_contact_pair(&self, context: &PairFilterContext) -> Option<SolverFlags> {
        let geom = |colliders: &ColliderSet, handle: ColliderHandle| {
            colliders.get(handle).map(|c| c.user_data as usize)
        };
        let a = geom(context.colliders, context.collider1)?;
        let b = geom(context.colliders, context.collider2)?;
        self.allows(a, b).then(SolverFlags::default)
    }
}

#[cfg(test)]
impl Filter {
    /// Whether rapier's encoding lets the pair through.
    pub(super) fn encoded(&self, a: usize, b: usize) -> Option<bool> {
        self.groups.as_ref().map(|g| g[a].test(g[b]))
    }
}
