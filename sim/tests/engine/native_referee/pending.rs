//! Features that the engine is known to lack. A finding about one of these is printed and does
//! not fail; one that is found to agree is named, so that it gets off the list.

/// The model's name, and what is missing.
const PENDING: &[(&str, &str)] = &[
    (
        "box_ellipsoid",
        "6e-6 in a state where MuJoCo's search ends at 1e-10 more than the least depth",
    ),
    ("capsule_ellipsoid", "the same: 2.4e-5"),
    (
        "sphere_ellipsoid",
        "MuJoCo's distance of the centre ends where it falls by 1e-15 no more: 5e-5",
    ),
    ("cylinder_cylinder", "another of several equally wide quadrilaterals in 11 % of the contacts"),
    ("hfield", "MuJoCo ends the search of a prism and a polytope early, on its path"),
    ("plane_cylinder", "an upright cylinder's three points turn with rounding of its axis"),
    ("humanoidstandup", "single precision: 1.3e-4 at 99.9 %"),
    ("walker2d", "single precision: 1.1e-4 at 99.9 %; its systems have a condition of 2e4"),
    ("walker2d_v5", "single precision: 3.2e-3 in one state"),
    ("disable_filterparent", "capsules whose axis passes through a box"),
    ("generated 451", "the same"),
    (
        "gripper",
        "3e-3 in one of 10,000 states in single precision: of a capsule's end nearest to a box's \
         corner, whether an edge is nearer by 2e-7 of the distance; that decides on a second contact",
    ),
    (
        "frames_nearly_equal: mass com moments armature",
        "MuJoCo moves geoms with the centre of mass whose frame they have",
    ),
    (
        "capsule_cylinder: mass com moments armature",
        "1.1e-6: MuJoCo's search for a rim beside a capsule ends with normals off by 1.4e-6",
    ),
    ("capsule_cylinder: friction wrench gravity", "the same"),
    (
        "cylinder_ellipsoid: mass com moments armature",
        "1e-5: MuJoCo's search ends with normals that are off by up to 6e-6",
    ),
    ("cylinder_ellipsoid: friction wrench gravity", "the same"),
    (
        "planar_medium: friction wrench gravity",
        "2.7e-3 in one state in single precision: a capsule's axis passes a box's edge at 4e-5 m, \
         and the normal is that gap by its length",
    ),
    ("planar_medium: kp kd effort", "the same: 1.05e-3"),
    ("tendon_spatial_inside", "1e-8: the search of MuJoCo inside a ring ends early"),
];

/// Reasons for which generated models may be refused: a part of the refusal's words. They are
/// counted and left out; a refusal for anything else fails.
const REFUSED: &[&str] = &[];

/// Generated models that are known to differ: a part of the file, and why. They are
/// counted.
const GENERATED: &[(&str, &str)] = &[];

/// Why a generated model is known to differ, if it is.
pub fn known_model(text: &str) -> Option<&'static str> {
    let found = GENERATED.iter().find(|(part, _)| text.contains(part));
    found.map(|(_, why)| *why)
}

/// Which of these a refusal is.
pub fn known_refusal(words: &str) -> Option<&'static str> {
    REFUSED.iter().copied().find(|part| words.contains(part))
}

/// Why a model is known to differ, if it is; `stem: fields` as the model, too.
pub fn pending(name: &str) -> Option<&'static str> {
    let stem = name.split(": ").next().unwrap_or(name);
    let mut list = PENDING.iter();
    let found = list.find(|(known, _)| *known == name || *known == stem);
    found.map(|(_, why)| *why)
}

/// The page of the physics names every robot that is off in single precision.
#[test]
fn the_page_names_every_robot_that_is_off_in_single_precision() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/physics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let off = PENDING.iter().filter(|(_, why)| why.starts_with("single precision"));
    for (robot, why) in off {
        let sentences = page.split("In single precision they agree").skip(1);
        let after: String = sentences.collect();
        assert!(after.contains(&format!("`{robot}`")), "{robot}: {why}");
        let number = why.split([' ', ';']).find(|w| w.contains("e-")).unwrap();
        assert!(after.contains(number), "{robot}: {number}");
    }
}
