//! Which geoms may touch, and how their parameters mix.

use super::candidate::{Candidate, Mix, Rules};
use crate::physics::native::lower::LowerError;
use crate::physics::native::lower::soft::MIN_VALUE;
use crate::physics::native::lower::tree::Tree;
use ostler_model::{Geom, Model, ShapePair};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Most pairs of geoms of bodies that move and may touch. All of them are looked at in every time
/// step; the largest robot in `configs` has 59, a humanoid with hands of 200 geoms some 15,000.
pub(super) const MAX_PAIRS: usize = 1 << 15;
/// Most pairs with static geoms, which a tree of boxes finds (`crowd.rs`): some 200 bytes each.
const MAX_STATIC: usize = 1 << 19;
/// Most pairs of bodies and of geoms that are looked at to find them.
const MAX_LOOKS: usize = 1 << 26;

fn too_many(what: String) -> LowerError {
    LowerError::new(
        what,
        "replicate less, give what need not touch contype and conaffinity 0, or make one \
         mesh or height field of many geoms",
    )
}

/// All candidates: those of `<pair>` by their own rules, then those that the
/// filters let through, in the order of the bodies and geoms.
///
/// # Errors
/// There are too many to be tested in every step, or to be looked for.
pub(super) fn candidates(
    model: &Model,
    tree: &Tree,
    filter_parent: bool,
) -> Result<Vec<Candidate>, LowerError> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut counts = Counts::default();
    for pair in &model.pairs {
        let geoms = ordered(model, [pair.geom1, pair.geom2]);
        let [a, b] = geoms.map(|g| tree.carrier[model.geoms[g].body].body);
        // Welded together: no force can act.
        if a != b && collides(model, geoms) {
            found.push(Candidate { geoms, rules: Rules::from(pair), mix: Mix::Own });
            counts.add(a.is_some() && b.is_some())?;
        }
    }
    let explicit: HashSet<[usize; 2]> = found.iter().map(|c| c.geoms).collect();
    let filter = Filter::new(model, tree, filter_parent);
    // Static bodies meet only what moves.
    let all: Vec<&Touching> = filter.touching.iter().collect();
    let moving: Vec<&Touching> = all.iter().copied().filter(|t| t.moves()).collect();
    let mut looks = 0_usize;
    for first in &all {
        let others = if first.moves() { &all } else { &moving };
        let behind = others.partition_point(|t| t.body <= first.body);
        for second in &others[behind..] {
            let meet = filter.meet(first, second);
            let geoms = if meet { second.geoms.len() } else { 0 };
            looks = looks.saturating_add(1 + first.geoms.len().saturating_mul(geoms));
            if looks > MAX_LOOKS {
                return Err(too_many(format!(
                    "a model with more than {MAX_LOOKS} pairs of bodies and geoms to look at"
                )));
            }
            if !meet {
                continue;
            }
            for &g1 in &first.geoms {
                for &g2 in &second.geoms {
                    let geoms = ordered(model, [g1, g2]);
                    let [a, b] = geoms.map(|g| &model.geoms[g]);
                    let bits = a.contype & b.conaffinity | b.contype & a.conaffinity;
                    if bits != 0 && collides(model, geoms) && !explicit.contains(&geoms) {
                        found.push(Candidate {
                            geoms,
                            rules: mix(a, b),
                            mix: match a.priority.cmp(&b.priority) {
                                Ordering::Greater => Mix::Of(geoms[0]),
                                Ordering::Less => Mix::Of(geoms[1]),
                                Ordering::Equal => Mix::Larger,
                            },
                        });
                        counts.add(first.moves() && second.moves())?;
                    }
                }
            }
        }
    }
    Ok(found)
}

/// How many candidates there are.
#[derive(Default)]
struct Counts {
    moving: usize,
    with_static: usize,
}

impl Counts {
    fn add(&mut self, both_move: bool) -> Result<(), LowerError> {
        let (count, most, what) = match both_move {
            true => (&mut self.moving, MAX_PAIRS, "of moving bodies "),
            false => (&mut self.with_static, MAX_STATIC, "of which one is static "),
        };
        *count += 1;
        match *count > most {
            true => Err(too_many(format!("more than {most} pairs of geoms {what}that may touch"))),
            false => Ok(()),
        }
    }
}

/// A body with geoms that can touch something.
struct Touching {
    body: usize,
    geoms: Vec<usize>,
    contype: u32,
    conaffinity: u32,
    /// The moving body that carries it.
    carrier: Option<usize>,
    /// The body that moves, is moved from outside or is the world, to which it is welded,
    /// and the same of that one's parent.
    held: usize,
    above: usize,
}

impl Touching {
    fn moves(&self) -> bool {
        self.carrier.is_some()
    }
}

/// MuJoCo's filters by bodies.
struct Filter {
    /// In the order of the bodies.
    touching: Vec<Touching>,
    excludes: HashSet<(usize, usize)>,
    parents: bool,
}

impl Filter {
    fn new(model: &Model, tree: &Tree, parents: bool) -> Self {
        let mut held: Vec<usize> = Vec::with_capacity(model.bodies.len());
        for (b, body) in model.bodies.iter().enumerate() {
            // Parents come first.
            let welded = b != 0 && body.joints.is_empty() && !body.mocap;
            held.push(if welded { held[body.parent] } else { b });
        }
        let touching = model.bodies.iter().enumerate().filter_map(|(b, body)| {
            let felt = |g: &usize| model.geoms[*g].contype | model.geoms[*g].conaffinity != 0;
            let geoms: Vec<usize> = body.geoms.clone().filter(felt).collect();
            let all = |bits: fn(&Geom) -> u32| {
                let of = geoms.iter().map(|g| bits(&model.geoms[*g]));
                of.fold(0, |all, one| all | one)
            };
            let (contype, conaffinity) = (all(|g| g.contype), all(|g| g.conaffinity));
            (!geoms.is_empty()).then(|| Touching {
                body: b,
                contype,
                conaffinity,
                carrier: tree.carrier[b].body,
                held: held[b],
                above: held[model.bodies[held[b]].parent],
                geoms,
            })
        });
        Self {
            touching: touching.collect(),
            excludes: model.excludes.iter().copied().collect(),
            parents,
        }
    }

    /// Whether they let two bodies through, the one with the lower number first.
    fn meet(&self, a: &Touching, b: &Touching) -> bool {
        if a.carrier == b.carrier || a.contype & b.conaffinity | b.contype & a.conaffinity == 0 {
            return false;
        }
        // Bodies of which one carries the other; the world is no parent here.
        let carries = a.above == b.held || b.above == a.held;
        !(self.parents && a.held != 0 && b.held != 0 && carries)
            && (self.excludes.is_empty() || !self.excludes.contains(&(a.body, b.body)))
    }
}

/// MuJoCo's order: by type, then by number.
fn ordered(model: &Model, [a, b]: [usize; 2]) -> [usize; 2] {
    if model.geoms[a].kind.code() > model.geoms[b].kind.code() { [b, a] } else { [a, b] }
}

fn collides(model: &Model, geoms: [usize; 2]) -> bool {
    ShapePair::new(geoms.map(|g| model.geoms[g].kind)).collides()
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
            adhesion: g.adhesion,
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
        if both_standard { blend(a.solref[i], b.solref[i]) } else { a.solref[i].min(b.solref[i]) }
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
        adhesion: a.adhesion + b.adhesion,
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
            .unwrap()
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
        assert_eq!(found, ["floor a", "floor a2", "floor b", "floor c", "a c", "a2 c"]);
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

    /// The rule as it is written, pair by pair.
    fn by_the_book(model: &Model, tree: &Tree, filter_parent: bool) -> Vec<[usize; 2]> {
        let held = |mut b: usize| {
            while b != 0 && model.bodies[b].joints.is_empty() && !model.bodies[b].mocap {
                b = model.bodies[b].parent;
            }
            b
        };
        let pairs = model.pairs.iter().map(|p| ordered(model, [p.geom1, p.geom2]));
        let carrier = |g: usize| tree.carrier[model.geoms[g].body].body;
        let mut found: Vec<[usize; 2]> = pairs.filter(|g| carrier(g[0]) != carrier(g[1])).collect();
        for b1 in 0..model.bodies.len() {
            for b2 in b1 + 1..model.bodies.len() {
                let [w1, w2] = [b1, b2].map(held);
                let carries = |a: usize, b: usize| held(model.bodies[b].parent) == a;
                let related = w1 != 0 && w2 != 0 && (carries(w1, w2) || carries(w2, w1));
                if tree.carrier[b1].body == tree.carrier[b2].body
                    || model.excludes.contains(&(b1, b2))
                    || filter_parent && related
                {
                    continue;
                }
                for g1 in model.bodies[b1].geoms.clone() {
                    for g2 in model.bodies[b2].geoms.clone() {
                        let geoms = ordered(model, [g1, g2]);
                        let [a, b] = geoms.map(|g| &model.geoms[g]);
                        let bits = a.contype & b.conaffinity | b.contype & a.conaffinity;
                        if bits != 0 && collides(model, geoms) && !found.contains(&geoms) {
                            found.push(geoms);
                        }
                    }
                }
            }
        }
        found
    }

    #[test]
    fn what_is_skipped_could_not_touch() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = ["configs/robots", "tests/referee/features"].map(|f| root.join(f));
        let files = folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
        let mut most = 0;
        let mut seen = 0;
        for file in files.map(|f| f.unwrap().path()) {
            if file.extension().is_none_or(|e| e != "xml") {
                continue;
            }
            let model = ostler_model::mjcf::load(&file).unwrap();
            let tree = Tree::new(&model).unwrap();
            for parents in [false, true] {
                let found = candidates(&model, &tree, parents).unwrap();
                let geoms: Vec<_> = found.iter().map(|c| c.geoms).collect();
                assert_eq!(geoms, by_the_book(&model, &tree, parents), "{file:?}");
                if file.starts_with(&folders[0]) && parents {
                    most = most.max(geoms.len());
                }
                seen += geoms.len();
            }
        }
        assert!(seen > 1000, "{seen}");
        // As the limit's comment says.
        assert_eq!(most, 59);
    }

    fn refused(text: &str) -> String {
        let model = model(text);
        let tree = Tree::new(&model).unwrap();
        match candidates(&model, &tree, true) {
            Ok(found) => panic!("{} candidates", found.len()),
            Err(error) => error.to_string(),
        }
    }

    /// Each is some hundred bytes; they would be 36 million pairs, or looked through for
    /// minutes.
    #[test]
    fn more_pairs_than_can_be_tested_are_refused() {
        let side = |count: usize, geom: &str| {
            format!(
                "<body><joint/><geom size=\"1\"/><replicate count=\"{count}\"><geom size=\"1\" {geom}/></replicate></body>"
            )
        };
        let world = |sides: [String; 2]| format!("<worldbody>{}</worldbody>", sides.concat());
        let text = world([side(6000, ""), side(6000, "")]);
        let message = refused(&text);
        assert!(message.contains("more than 32768 pairs of geoms of moving bodies"), "{message}");
        let deaf = "contype=\"2\" conaffinity=\"4\"";
        let message = refused(&world([side(9000, deaf), side(9000, deaf)]));
        assert!(message.contains("to look at"), "{message}");
        // Some fewer are none too many.
        let model = model(&world([side(179, ""), side(180, "")]));
        let found = candidates(&model, &Tree::new(&model).unwrap(), true).unwrap();
        assert_eq!(found.len(), 180 * 181);
    }

    #[test]
    fn pairs_that_are_named_count_too() {
        let geoms: String = (0..300).map(|i| format!("<geom name=\"a{i}\" size=\"1\"/>")).collect();
        let others = geoms.replace("\"a", "\"b");
        let pairs: String = (0..300)
            .flat_map(|i| (0..300).map(move |j| format!("<pair geom1=\"a{i}\" geom2=\"b{j}\"/>")))
            .collect();
        let text = format!(
            "<worldbody><body><joint/>{geoms}</body><body><joint/>{others}</body></worldbody><contact>{pairs}</contact>"
        );
        assert!(refused(&text).contains("more than 32768 pairs of geoms of moving bodies"));
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
        let all = candidates(&model, &tree, true).unwrap();
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
