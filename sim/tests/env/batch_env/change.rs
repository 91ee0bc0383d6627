//! Pins: the numbers of a task can change while it is trained, and nothing else.

use super::point_mass::{Out, SMALL, build};
use super::repeat::{BATCH, everything, fresh, play};
use ostler_sim::config::{OneOrMany, TaskConfig};
use ostler_sim::env::EnvError;

#[test]
fn numbers_change_from_the_next_step_on() {
    let (mut env, mut out) = fresh(BATCH);
    let (mut same, mut same_out) = fresh(BATCH);
    play(&mut env, &mut out, BATCH, 0..10);
    play(&mut same, &mut same_out, BATCH, 0..10);
    let mut kept = Vec::new();
    env.capture(&mut kept).unwrap();

    // The same numbers: the same bits.
    env.set_task(&everything()).unwrap();
    let before = play(&mut env, &mut out, BATCH, 10..30);
    assert!(before == play(&mut same, &mut same_out, BATCH, 10..30));

    let mut other = everything();
    other.reward[1].weight = 0.0;
    other.observation[0].noise = 0.0.into();
    other.command[0].range = vec![[5.0, 6.0]];
    other.reset[0].uniform = Some([0.03, 0.03].into());
    other.action[0].scale = OneOrMany::One(0.5);
    env.restore(&kept).unwrap();
    env.set_task(&other).unwrap();
    assert_eq!(env.task(), &other);
    let after = play(&mut env, &mut out, BATCH, 10..30);
    assert!(after != before);
    // Commands were drawn anew at least once in twenty steps.
    let critic = out.critic.as_ref().unwrap();
    assert!(critic.chunks(18).all(|row| (5.0..6.0).contains(&row[17])));

    // The snapshots before and after are of the same task.
    let mut late = Vec::new();
    env.capture(&mut late).unwrap();
    let (mut resumed, _) = fresh(BATCH);
    resumed.restore(&late).unwrap();
    env.restore(&kept).unwrap();
    env.set_task(&everything()).unwrap();
    assert!(play(&mut env, &mut out, BATCH, 10..30) == before);
}

type Change = fn(&mut TaskConfig);

#[test]
fn anything_but_a_number_is_refused_by_its_key_and_changes_nothing() {
    let mut env = build(SMALL, &everything()).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    let cases: [(Change, &str); 9] = [
        (|t| t.reward[1].expr = "1".into(), "task.reward[1].expr"),
        (|t| t.observation[0].name = "x".into(), "task.observation[0].name"),
        (|t| t.observation.truncate(1), "task.observation"),
        (|t| t.command[0].range.push([0.0, 1.0]), "task.command[0].range"),
        (|t| t.rewards.clip = Some([0.0, 1.0]), "task.rewards.clip"),
        (|t| t.termination[0].truncate = true, "task.termination[0].truncate"),
        (
            |t| {
                t.params.insert("p".into(), 1.0);
            },
            "task.params.p",
        ),
        (|t| t.reset[1].normal = Some(OneOrMany::One(-1.0)), "task.reset[1].normal"),
        (|t| t.reward[0].weight = f64::NAN, "task.reward[0].weight"),
    ];
    for (change, part) in cases {
        let mut task = everything();
        change(&mut task);
        let error = env.set_task(&task).unwrap_err();
        assert!(matches!(error, EnvError::Config(_)), "{error}");
        let error = error.to_string();
        assert!(error.contains(part), "{part}: {error}");
        assert_eq!(env.task(), &everything());
    }
}
