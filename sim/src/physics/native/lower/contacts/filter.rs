//! Which geoms may touch, and how their parameters mix.

use super::shape::{code, collide};
use super::{Candidate, Rules};
use crate::model::{Geom, Model};
use crate::physics::native::lower::soft::MIN_VALUE;
use crate::physics::native::lower::tree::Tree;

/// All candidates: those of `<pair>` by their own rules, then those that the
/// filters let through, in the order of the bodies and geoms.
pub(super) fn candidates(model: &Model, tree: &Tree, filter_parent: bool) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for pair in &model.pairs {
        let geoms = ordered(model, [pair.geom1, pair.geom2]);
        let [a, b] = geoms.map(|g| tree.carrier[model.geoms[g].body].body);
        // Welded together: no force can act.
        if a != b && collides(model, geoms) {
            found.push(Candidate {
                geoms,
                rules: Rules::from(pair),
            });
        }
    }
    let explicit: Vec<[usize; 2]> = found.iter().map(|c| c.geoms).collect();
    for b1 in 0..model.bodies.len() {
        for b2 in b1 + 1..model.bodies.len() {
            if !bodies_meet(model, tree, b1, b2, filter_parent) {
                continue;
            }
            for g1 in model.bodies[b1].geoms.clone() {
                for g2 in model.bodies[b2].geoms.clone() {
                    let geoms = ordered(model, [g1, g2]);
                    let [a, b] = geoms.map(|g| &model.geoms[g]);
                    let bits = a.contype & b.conaffinity | b.contype & a.conaffinity;
                    if bits != 0 && collides(model, geoms) && !explicit.contains(&geoms) {
                        found.push(Candidate {
                            geoms,
                            rules: mix(a, b),
                        });
                    }
                }
            }
        }
    }
    found
}

/// MuJoCo's order: by type, then by number.
fn ordered(model: &Model, [a, b]: [usize; 2]) -> [usize; 2] {
    if code(model.geoms[a].kind) > code(model.geoms[b].kind) {
        [b, a]
    } else {
        [a, b]
    }
}

fn collides(model: &Model, geoms: [usize; 2]) -> bool {
    collide(geoms.map(|g| code(model.geoms[g].kind)))
}

/// Whether MuJoCo's filters by bodies let the two through.
fn bodies_meet(model: &Model, tree: &Tree, b1: usize, b2: usize, filter_parent: bool) -> bool {
    let [m1, m2] = [b1, b2].map(|b| tree.carrier[b].body);
    if m1 == m2 || model.excludes.contains(&(b1, b2)) {
        return false;
    }
    // Bodies of which one carries the other; the world is no parent here.
    let [w1, w2] = [b1, b2].map(|b| held_by(model, b));
    let carries = |a: usize, b: usize| held_by(model, model.bodies[b].parent) == a;
    !(filter_parent && w1 != 0 && w2 != 0 && (carries(w1, w2) || carries(w2, w1)))
}

/// The body that moves, is moved from outside or is the world, to which `b` is welded.
fn held_by(model: &Model, mut b: usize) -> usize {
    while b != 0 && model.bodies[b].joints.is_empty() && !model.bodies[b].mocap {
        b = model.bodies[b].parent;
    }
    b
}

/// The parameters of a contact between two geoms.
fn mix(a: &Geom, b: &Geom) -> Rules {
    let unpack = |[slide, spin, roll]: [f64; 3]| [slide, slide, spin, roll, roll];
    let (margin, gap) = (a.margin + b.margin, a.gap + b.gap);
    if a.priority != b.priority {
        let g = if a.priority > b.priority { a } else { b };
        return Rules {
            condim: g.condim,
            friction: unpack(g.friction),
            solref: g.solref,
            solref_friction: [0.0; 2],
            solimp: g.solimp,
            margin,
            gap,
        };
    }
    let share = match (a.solmix >= MIN_VALUE, b.solmix >= MIN_VALUE) {
        (true, true) => a.solmix / (a.solmix + b.solmix),
        (false, false) => 0.5,
        (false, true) => 0.0,
        (true, false) => 1.0,
    };
    let blend = |x: f64, y: f64| share * x + (1.0 - share) * y;
    let both_standard = a.solref[0] > 0.0 && b.solref[0] > 0.0;
    let solref = [0, 1].map(|i| {
        if both_standard {
            blend(a.solref[i], b.solref[i])
        } else {
            a.solref[i].min(b.solref[i])
        }
    });
    let friction = [0, 1, 2].map(|i| a.friction[i].max(b.friction[i]));
    Rules {
        condim: a.condim.max(b.condim),
        friction: unpack(friction),
        solref,
        solref_friction: [0.0; 2],
        solimp: [0, 1, 2, 3, 4].map(|i| blend(a.solimp[i], b.solimp[i])),
        margin,
        gap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::native::lower::tests::model;

    /// Names of the geoms of all candidates, in order.
    fn names(text: &str, filter_parent: bool) -> Vec<String> {
        let model = model(text);
        let tree = Tree::new(&model).unwrap();
        candidates(&model, &tree, filter_parent)
            .iter()
            .map(|c| c.geoms.map(|g| model.geoms[g].name.as_str()).join(" "))
            .collect()
    }

    const CHAIN: &str = r#"<worldbody>
        <geom name="floor" type="plane" size="1 1 1"/>
        <body><freejoint/><geom name="a" size="0.1"/>
          <body pos="1 0 0"><geom name="a2" size="0.1"/>
            <body pos="1 0 0"><joint/><geom name="b" type="box" size="0.1 0.1 0.1"/>
              <body pos="1 0 0"><joint/><geom name="c" size="0.1"/></body>
            </body>
          </body>
        </body>
      </worldbody>"#;

    #[test]
    fn parents_children_and_welded_bodies_do_not_meet() {
        let found = names(CHAIN, true);
        assert_eq!(
            found,
            ["floor a", "floor a2", "floor b", "floor c", "a c", "a2 c"]
        );
        let all = names(CHAIN, false);
        assert_eq!(all.len(), found.len() + 3, "{all:?}");
        // By type first: the sphere before the box.
        assert!(all.contains(&"c b".to_string()), "{all:?}");
    }

    #[test]
    fn children_of_the_world_meet_its_geoms_but_static_ones_do_not() {
        let found = names(
            r#"<worldbody><geom name="f" type="plane" size="1 1 1"/><geom name="w" size="1"/>
              <body name="s"><geom name="s" size="1"/>
                <body><joint/><geom name="m" size="1"/></body></body></worldbody>"#,
            true,
        );
        assert_eq!(found, ["f m", "w m", "s m"]);
    }

    #[test]
    fn pairs_replace_and_excludes_remove() {
        let found = names(
            r#"<worldbody>
              <geom name="f" type="plane" size="1 1 1"/>
              <body name="a"><freejoint/><geom name="a" size="1" contype="0"/></body>
              <body name="b"><freejoint/><geom name="b" size="1"/></body>
              <body name="c"><freejoint/><geom name="c" size="1" conaffinity="0"/></body>
            </worldbody>
            <contact><pair geom1="f" geom2="a"/><pair geom1="a" geom2="b"/>
              <exclude body1="b" body2="a"/><exclude body1="world" body2="b"/></contact>"#,
            true,
        );
        assert_eq!(found, ["f a", "a b", "f c", "a c", "b c"]);
    }

    #[test]
    fn parameters_mix_as_in_mujoco() {
        let text = r#"<worldbody>
            <geom name="a" type="plane" size="1 1 1" solmix="3" solref="0.1 0.8" solimp="0.5 0.6 0.1"
              friction="0.2 0.3 0.1" margin="0.1" gap="0.02" condim="4"/>
            <body><freejoint/><geom name="b" size="1" solref="0.02 1" solimp="0.9 1 0.1"
              friction="0.6 0.1 0.2" margin="0.03" gap="0.01"/></body>
            <body><freejoint/><geom name="c" size="1" priority="1" condim="1" solref="-100 -1"/></body>
            <body><freejoint/><geom name="d" size="1" solref="-10 -20"/></body>
          </worldbody>"#;
        let model = model(text);
        let tree = Tree::new(&model).unwrap();
        let all = candidates(&model, &tree, true);
        let rules = |a: &str, b: &str| {
            let ids = [a, b].map(|n| model.geom(n).unwrap());
            all.iter().find(|c| c.geoms == ids).unwrap().rules.clone()
        };
        let ab = rules("a", "b");
        assert_eq!(ab.condim, 4);
        assert_eq!(ab.friction, [0.6, 0.6, 0.3, 0.2, 0.2]);
        assert!((ab.solref[0] - 0.08).abs() < 1e-15 && (ab.solref[1] - 0.85).abs() < 1e-15);
        assert!((ab.solimp[0] - 0.6).abs() < 1e-15 && (ab.solimp[1] - 0.7).abs() < 1e-15);
        assert!((ab.margin - 0.13).abs() < 1e-15 && (ab.gap - 0.03).abs() < 1e-15);
        let ac = rules("a", "c");
        assert_eq!((ac.condim, ac.solref), (1, [-100.0, -1.0]));
        assert_eq!(rules("a", "d").solref, [-10.0, -20.0]);
    }
}
