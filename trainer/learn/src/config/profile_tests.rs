//! Pins: what a profile replaces, and where its mistakes are.

use super::{Override, parse};
use std::path::Path;

const TEXT: &str = "[task]\nrobot = \"a.xml\"\n[env]\nnum_envs = 64\ndecimation = 3\n\
    [profile.sac]\nname = \"other\"\nrunner.algorithm = \"sac\"\n\
    [profile.sac.env]\nnum_envs = 8\n[profile.tiny]\nenv.num_envs = 1\n";

fn load(overrides: &[&str]) -> Result<crate::config::Config, String> {
    let overrides: Vec<Override> = overrides.iter().map(|o| Override::set(*o)).collect();
    let loaded = parse(TEXT, Path::new("t.toml"), &overrides);
    loaded.map(|l| l.config).map_err(|e| e.to_string())
}

#[test]
fn a_profile_replaces_values_and_what_is_set_comes_after_it() {
    let plain = load(&[]).unwrap();
    assert_eq!((plain.env.num_envs, plain.name.as_str()), (64, "t"));
    let sac = load(&["profile=sac"]).unwrap();
    assert_eq!(sac.runner.algorithm.name(), "sac");
    assert_eq!((sac.env.num_envs, sac.env.decimation), (8, 3));
    assert_eq!(sac.name, "other");
    let set = load(&["env.num_envs=5", "profile=sac"]).unwrap();
    assert_eq!(set.env.num_envs, 5);
    assert_eq!(load(&["profile=sac", "profile=tiny"]).unwrap().env.num_envs, 1);
}

/// As a file's over the file that it extends.
#[test]
fn a_profile_changes_elements_of_lists_by_their_names() {
    let text = format!(
        "{TEXT}[[task.reward]]\nname = \"a\"\nexpr = \"1\"\n[[task.reward]]\nname = \"b\"\nexpr = \"2\"\n\
         [[task.reward]]\nname = \"c\"\nexpr = \"3\"\n[[profile.some.task.reward]]\nname = \"b\"\n\
         weight = 5.0\n[[profile.some.task.reward]]\nname = \"c\"\nenabled = false\n"
    );
    let with = |profile: &str| {
        let set = Override::set(format!("profile={profile}"));
        let config = parse(&text, Path::new("t.toml"), &[set]).unwrap().config;
        let rewards = config.task.reward.iter();
        rewards.map(|r| format!("{} {}", r.name, r.weight)).collect::<Vec<_>>()
    };
    assert_eq!(with("some"), ["a 1", "b 5"]);
    assert_eq!(with("tiny"), ["a 1", "b 1", "c 1"]);
}

#[test]
fn a_profile_that_is_not_there_is_named_with_those_that_are() {
    let e = load(&["profile=sca"]).unwrap_err();
    assert!(e.contains("there is no profile \"sca\""), "{e}");
    assert!(e.contains("did you mean \"sac\"?") && e.contains("tiny"), "{e}");
}

#[test]
fn a_mistake_in_a_profile_is_found_whether_it_is_asked_for_or_not() {
    let text = format!("{TEXT}[profile.wrong]\nenv.num_evns = 3\n");
    for overrides in [vec![], vec![Override::set("profile=wrong")]] {
        let e = parse(&text, Path::new("t.toml"), &overrides).unwrap_err();
        let e = e.to_string();
        assert!(e.contains("num_evns") && e.contains("t.toml:"), "{e}");
    }
}
