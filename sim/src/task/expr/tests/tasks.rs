//! Thousands of generated tasks: each is compiled, printed and evaluated, or refused with a place
//! that exists. None panics.

use super::fixture::{World, robot};
use super::generate::task;
use crate::config::{ConfigError, TaskConfig};
use crate::task::Task;
use crate::task::emit::{Numbers, emit};
use crate::task::expr::Scratch;

/// The text at a path, if it is one of an expression.
fn written<'a>(cfg: &'a TaskConfig, path: &str) -> Option<&'a str> {
    if let Some(key) = path.strip_prefix("task.let.") {
        return cfg.lets.get(key).map(String::as_str);
    }
    let at = |prefix: &str| -> Option<usize> {
        let rest = path.strip_prefix(prefix)?;
        rest[..rest.find(']')?].parse().ok()
    };
    if let Some(i) = at("task.state[") {
        let s = cfg.state.get(i)?;
        return Some(if path.ends_with(".init") {
            &s.init
        } else {
            &s.update
        });
    }
    at("task.reward[")
        .and_then(|i| Some(cfg.reward.get(i)?.expr.as_str()))
        .or_else(|| {
            at("task.observation[").and_then(|i| Some(cfg.observation.get(i)?.expr.as_str()))
        })
        .or_else(|| {
            at("task.termination[").and_then(|i| Some(cfg.termination.get(i)?.expr.as_str()))
        })
        .or_else(|| at("task.metric[").and_then(|i| Some(cfg.metric.get(i)?.expr.as_str())))
}

#[test]
fn ten_thousand_tasks_compile_or_say_why_not() {
    let model = robot();
    let mut world = World::new(3, 1);
    world.memory = vec![0.5; 3 * 4096];
    let (mut good, mut rich, mut reasons) = (0, 0, std::collections::BTreeMap::new());
    for key in 0..10_000 {
        let cfg = task(key);
        let compiled = match Task::compile(&model, &cfg, 0.02) {
            Ok(task) => task,
            Err(ConfigError {
                path,
                span,
                message,
                ..
            }) => {
                assert!(
                    !message.is_empty() && path.starts_with("task"),
                    "{path}: {message}"
                );
                if let (Some(span), Some(text)) = (span, written(&cfg, &path)) {
                    assert!(
                        text.get(span.clone()).is_some(),
                        "{key}: {path} {span:?}: {text}"
                    );
                }
                let kind = message.split(['"', '`', '[']).next().unwrap_or_default();
                *reasons.entry(kind.to_string()).or_insert(0) += 1;
                continue;
            }
        };
        good += 1;
        rich += usize::from(!compiled.history.states().is_empty() && !compiled.lets.is_empty());
        // The kernels' numbers are as long as their sizes say, and all is printed.
        let sizes = compiled.sizes(&model);
        let tables = compiled.tables(&model, 0.02, 100);
        assert_eq!(tables.cell_end.len(), sizes.ncell);
        assert_eq!(tables.metric_over.len(), sizes.nmetric);
        assert_eq!(
            tables.cell_end.last().copied().unwrap_or(0) as usize,
            sizes.nhistory
        );
        if key % 10 == 0 {
            let text = emit(&compiled, &sizes, 0.02, 100, Numbers::baked()).text;
            assert!(text.contains("term_reward_0"));
        }
        let mut scratch = Scratch::default();
        let inputs = world.inputs(0, 3);
        for program in compiled.score.programs().chain(compiled.metrics.programs()) {
            if compiled.team.is_several() {
                break;
            }
            assert_eq!(program.eval(&inputs, &mut scratch).len(), 64);
        }
        for cell in compiled.history.cells() {
            assert_eq!(cell.begin().outputs, cell.next().outputs, "{key}");
            if !compiled.team.is_several() {
                cell.next().eval(&inputs, &mut scratch);
            }
        }
    }
    assert!(
        good > 1500 && rich > 300,
        "{good} good, {rich} rich: {reasons:#?}"
    );
    assert!(reasons.len() > 40, "{reasons:#?}");
}
