//! `[symmetry]` by the real program: what `check` says of a robot's sides, what is refused, and runs
//! that learn from reflections go on with the same bits.

use crate::common::{Place, REPLAY, TASK, assert_same_bits, metrics, root};

/// A cart-pole has sides along x.
const SIDES: &str = "symmetry.plane=yz";

#[test]
fn check_says_what_belongs_together_and_how_far_it_differs() {
    let quadruped = root().join("configs/quadruped.toml");
    let quadruped = quadruped.to_str().unwrap();
    let place = Place::new();
    let said = place.ok(&["check", quadruped, "-q", "symmetry.plane=xz"]);
    for line in [
        "  reflected in the xz plane",
        "  hip_fl and hip_fr, sign turned over",
        "  thigh_rl and thigh_rr",
        "have the same accelerations to 1e-8, with both sides made alike",
        "the robot's own sides differ: accelerations by 0.3",
        "note: centre of mass of body \"trunk\" differs from its own reflection by 0.92 %",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let pairs = "symmetry.pairs=[[\"*_fl\", \"*_fr\"], [\"*_rl\", \"*_rr\"]]";
    assert!(place.ok(&["check", quadruped, "-q", pairs]).contains("hip_rl and hip_rr"));
    for (more, said) in [
        ("symmetry.pairs=[[\"*_fl\", \"*_front_right\"]]", "there is no \"hip_front_right\""),
        ("symmetry.pairs=[[\"port_*\", \"star_*\"]]", "\"port_*\" fits no body"),
        ("symmetry.approximate=[\"lin_vell\"]", "did you mean \"lin_vel\"?"),
        ("symmetry.plane=yz", "symmetry"),
        ("symmetry.augmentation=false", "without augmentation and mirror loss it does nothing"),
        ("symmetry.mirror_loss=-1", "-1 is no weight"),
        ("symmetry.plane=xy", "allowed"),
    ] {
        let err = place.fails(2, &["check", quadruped, "-q", more]);
        assert!(err.contains(said), "{more}: {err}");
    }
    // A reward that prefers a side, and has no weight yet.
    let lean = "[[task.reward]]\nname = \"lean\"\nweight = 0.0\nexpr = \"joint_vel(slider)\"\n";
    let raised =
        "[[curriculum]]\nkey = \"task.reward.lean.weight\"\npoints = [[0, 0.0], [2, 1.0]]\n";
    let idle = Place::with(&format!("{TASK}{lean}")).ok(&["check", "pole.toml", "-q", SIDES]);
    assert!(idle.contains("\"lean\" of [[task.reward]], whose weight is 0, differs"), "{idle}");
    let raised = Place::with(&format!("{TASK}{lean}{raised}"));
    let err = raised.fails(2, &["check", "pole.toml", "-q", SIDES]);
    assert!(err.contains("\"lean\" of [[task.reward]] is not the same"), "{err}");
    for (more, said) in [
        (&["runner.algorithm=ars"][..], "\"ars\" learns from no samples"),
        (&["self_play.window=2"], "symmetry"),
    ] {
        let err = place.fails(2, &[&["check", "pole.toml", "-q", SIDES], more].concat());
        assert!(err.contains(said), "{more:?}: {err}");
    }
}

#[test]
fn runs_that_learn_from_reflections_go_on_with_the_same_bits() {
    let place = Place::with(&format!("{TASK}{REPLAY}"));
    let gru = ["actor.rnn_type=gru", "actor.rnn_hidden_dim=6", "ppo.sequence_length=8"];
    let two = [&["--nproc", "2"], &gru[..]].concat();
    let fewer = [&["back_off.changes=[[2,4],[4,8]]"], &gru[..]].concat();
    for (name, more) in [
        ("plain", &["symmetry.mirror_loss=0.5"][..]),
        ("loss", &["symmetry.mirror_loss=0.5", "symmetry.augmentation=false"]),
        ("gru", &gru),
        // Each process's part of what the reflections remember.
        ("gru_two", &two),
        // The same environments go on with it, and the same begin anew.
        ("gru_fewer", &fewer),
        ("sac", &["--profile=sac"]),
        ("td3", &["--profile=td3"]),
        ("sac_loss", &["--profile=sac", "symmetry.mirror_loss=0.5"]),
    ] {
        let more = [&[SIDES][..], more].concat();
        let whole = place.train(&format!("{name}_whole"), 6, &more);
        let part = format!("{name}_part");
        let parts = place.train(&part, 3, &more);
        let processes: &[&str] = if name == "gru_two" { &two[..2] } else { &[] };
        let go_on = ["train", "--resume", &part, "--quiet", "runner.max_iterations=6"];
        place.ok(&[&go_on[..], processes].concat());
        assert_same_bits(&whole, &parts);
        let last = metrics(&whole).pop().unwrap();
        let loss = last.get("Loss/mirror").and_then(serde_json::Value::as_f64);
        assert_eq!(loss.is_some(), more.contains(&"symmetry.mirror_loss=0.5"), "{name}");
        assert!(loss.is_none_or(|loss| loss > 0.0), "{name}");
    }
    // Reflections change what is learnt.
    let without = place.train("without", 6, &[]);
    let of = |run: &str| metrics(&place.path(run)).pop().unwrap()["Loss/value_function"].clone();
    assert_ne!(of("without"), of("gru_whole"));
    assert!(without.exists());
}
