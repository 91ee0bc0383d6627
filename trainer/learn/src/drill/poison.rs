//! Faults in numbers: `nan qpos[2] env=3 step=50`.

use super::Drill;
use super::text::{EXAMPLES, Words};
use crate::learner::{UpdateFault, UpdateTarget};
use ostler_sim::env::{Injection, Value, What, When, Which};

const ENV: [&str; 3] = ["env", "step", "every"];
const UPDATE: [&str; 4] = ["update", "every", "minibatch", "name"];

/// Reads a fault whose action is a number or `panic`.
pub(super) fn parse(words: Words<'_>) -> Result<Drill, String> {
    let value = match words.action {
        "panic" if words.target == "worker" => None,
        "nan" => Some(f64::NAN),
        "inf" => Some(f64::INFINITY),
        text => Some(
            text.parse::<f64>()
                .map_err(|_| format!("\"{text}\" is not a fault; for example {EXAMPLES}"))?,
        ),
    };
    let index = words.index.unwrap_or(0);
    let what = match (words.target, value) {
        ("worker", None) => Some(What::Panic),
        ("qpos", Some(_)) => Some(What::Qpos(index)),
        ("qvel", Some(_)) => Some(What::Qvel(index)),
        ("action", Some(_)) => Some(What::Action(index)),
        ("observation", Some(_)) => Some(What::Observation(index)),
        ("reward", Some(_)) => Some(What::Reward),
        _ => None,
    };
    match (what, value) {
        (Some(what), value) => env(words, what, value.unwrap_or(f64::NAN)),
        (None, Some(value)) => update(words, value),
        (None, None) => Err(format!("panic where? for example {EXAMPLES}")),
    }
}

fn env(mut words: Words<'_>, what: What, value: f64) -> Result<Drill, String> {
    let share: Option<f64> = words.number("share")?;
    let env = match (words.number("env")?, share) {
        (Some(id), None) => Which::One(id),
        (None, Some(share)) => Which::Share(share),
        (None, None) => Which::One(0),
        (Some(_), Some(_)) => return Err("env= and share= do not go together".into()),
    };
    let when = match (words.number("step")?, words.every()?) {
        (Some(step), None) => When::At(step),
        (None, Some(every)) => When::Every(every),
        _ => return Err("when? step=N or every=N".into()),
    };
    words.end(&ENV)?;
    Ok(Drill::Env(Injection { when, env, what, value: of(value) }))
}

fn update(mut words: Words<'_>, value: f64) -> Result<Drill, String> {
    let index = words.index.unwrap_or(0) as u64;
    let name = words.take("name");
    let what = match words.target {
        "parameter" if name.is_some() => {
            UpdateTarget::Parameter(name.unwrap_or_default().to_string())
        }
        _ if name.is_some() => {
            return Err("name= goes with parameter alone: all of its entries are poisoned".into());
        }
        "gradient" => UpdateTarget::Gradient(index),
        "loss" => UpdateTarget::Loss,
        "parameter" => UpdateTarget::ParameterIndex(index),
        "log_std" => UpdateTarget::LogStd,
        "first_moment" => UpdateTarget::FirstMoment(index),
        "second_moment" => UpdateTarget::SecondMoment(index),
        "normalizer" => UpdateTarget::Normalizer,
        "" => return Err(format!("{} where? for example {EXAMPLES}", words.action)),
        other => {
            return Err(format!(
                "\"{other}\" cannot be poisoned: qpos, qvel, action, observation, reward; gradient, loss, parameter, log_std, first_moment, second_moment, normalizer"
            ));
        }
    };
    // Written from 1, as iterations are.
    let when = match (words.number::<u64>("update")?, words.every()?) {
        (Some(0), None) => return Err("update=0: the first update is 1".into()),
        (Some(update), None) => When::At(update),
        (None, Some(every)) => When::Every(every),
        _ => return Err("when? update=N or every=N".into()),
    };
    let minibatch = words.number("minibatch")?.unwrap_or(0);
    words.end(&UPDATE)?;
    Ok(Drill::Update(UpdateFault { when, minibatch, what, value: of(value) }))
}

fn of(value: f64) -> Value {
    match value {
        x if x.is_nan() => Value::Nan,
        f64::INFINITY => Value::Inf,
        x => Value::Number(x),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Act, Delay, Phase, RunFault, parse};
    use super::*;

    fn error(text: &str) -> String {
        parse(text).unwrap_err()
    }

    #[test]
    fn each_kind_of_fault_is_read() {
        assert_eq!(
            parse("inf qvel[2] env=3 step=50").unwrap(),
            Drill::Env(Injection {
                when: When::At(50),
                env: Which::One(3),
                what: What::Qvel(2),
                value: Value::Inf,
            })
        );
        assert_eq!(
            parse("1e9 reward share=0.5 every=7").unwrap(),
            Drill::Env(Injection {
                when: When::Every(7),
                env: Which::Share(0.5),
                what: What::Reward,
                value: Value::Number(1e9),
            })
        );
        let Drill::Update(fault) = parse("nan gradient[4] update=3 minibatch=2").unwrap() else {
            panic!("an update's fault");
        };
        assert_eq!(fault.when, When::At(3));
        assert_eq!((fault.minibatch, fault.what), (2, UpdateTarget::Gradient(4)));
        assert_eq!(fault.value, Value::Nan);
        let Drill::Update(fault) = parse("50 parameter name=actor.head.bias update=3").unwrap()
        else {
            panic!("an update's fault");
        };
        assert_eq!(fault.what, UpdateTarget::Parameter("actor.head.bias".into()));
        let always = 0..=u64::MAX;
        let slow = Act::Slow { percent: 30, by: Delay::Waiting };
        for (text, phase, iterations, act) in [
            (
                "fail allocation phase=update iteration=3..5 after=17",
                Phase::Update,
                3..=5,
                Act::FailAllocation { after: 17 },
            ),
            ("slow disk ms=20", Phase::Save, always.clone(), Act::SlowDisk { ms: 20 }),
            ("slow sums us=500 iteration=2..3", Phase::Keep, 2..=3, Act::SlowSums { us: 500 }),
            ("slow phase=collect percent=30 by=waiting", Phase::Collect, always, slow),
            ("low disk mib=50 iteration=3..9", Phase::Keep, 3..=9, Act::LowDisk { mib: 50 }),
        ] {
            let fault = RunFault { phase, iterations, process: 0, act };
            assert_eq!(parse(text).unwrap(), Drill::Run(fault), "{text}");
        }
        for text in [
            "slow phase=update iteration=3..5",
            "kill phase=collect iteration=5",
            "kill phase=update process=1",
            "abort phase=save",
            "full disk iteration=3",
            "panic worker step=9",
        ] {
            parse(text).unwrap();
        }
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        for (text, expected) in [
            ("", "an empty fault; for example \"nan qpos[2]"),
            ("explode", "\"explode\" is not a fault"),
            ("nan", "nan where?"),
            ("nan knee step=1", "\"knee\" cannot be poisoned"),
            ("nan qpos", "when? step=N or every=N"),
            ("nan qpos[x] step=1", "qpos[2]"),
            ("nan qpos step=one", "a number belongs here"),
            ("nan qpos step=1 envs=2", "did you mean env=?"),
            ("nan gradient every=0", "every=0: 1 or more"),
            ("nan qpos every=0", "every=0: 1 or more"),
            ("low disk iteration=9..3", "write the smaller number first"),
            ("nan gradient update=0", "the first update is 1"),
            ("nan gradient name=actor.head.bias update=1", "name= goes with parameter alone"),
            ("kill iteration=2", "phase= is missing: one of keep, collect"),
            ("kill phase=resize process=1", "phase=resize is process 0's alone"),
            ("kill phase=colect", "phases are keep"),
            ("slow percent=20", "phase= is missing"),
            ("slow phase=update by=sleep", "by=sleep: work or waiting"),
            ("slow phase=update ms=3", "ms= is not known here"),
            ("fail allocation phase=update iteration=3..", "a range (3..5)"),
            ("nan qpos step=1 now please", "one word too many"),
        ] {
            let found = error(text);
            assert!(found.contains(expected), "{text}: {found}");
        }
    }
}
