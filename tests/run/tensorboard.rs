//! TensorBoard's own reader finds in our event files exactly what was written.

use crate::support::need::Need;
use ostler_trainer::log::tensorboard::EventWriter;
use std::process::Command;

const READ: &str = r#"
import json, sys
try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    sys.exit(77)
a = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
a.Reload()
print(json.dumps({t: [[e.wall_time, e.step, e.value] for e in a.Scalars(t)] for t in a.Tags()["scalars"]}))
"#;

#[test]
fn tensorboard_reads_what_was_written_also_after_a_resume() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let row = |step: i64| [("Train/mean_reward", 0.1 * step as f32), ("Loss/é", -1e30)];
    let mut writer = EventWriter::create(dir.path()).unwrap();
    for step in 1..=300 {
        writer.scalars(step, step as f64 + 0.25, row(step)).unwrap();
    }
    drop(writer);
    let mut writer = EventWriter::resume(dir.path(), 290).unwrap();
    writer.scalars(291, 1000.5, row(291)).unwrap();
    let out = Command::new(python)
        .current_dir(dir.path())
        .args(["-c", READ])
        .arg(dir.path())
        .output()
        .unwrap();
    if out.status.code() == Some(77) {
        let missing = Err::<(), _>("tensorboard is not installed beside the referees");
        Need::Referee.or_skip(missing);
        return;
    }
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let read: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(read.as_object().unwrap().len(), 2);
    for (k, tag) in ["Train/mean_reward", "Loss/é"].into_iter().enumerate() {
        let events = read[tag].as_array().unwrap();
        assert_eq!(events.len(), 291);
        for (event, step) in events.iter().zip(1..) {
            let wall = if step == 291 { 1000.5 } else { step as f64 + 0.25 };
            assert_eq!(event[0].as_f64(), Some(wall));
            assert_eq!(event[1].as_i64(), Some(step));
            // serde_json rounds the last bit of an f64 loosely; the f32 is exact.
            assert_eq!(event[2].as_f64().map(|v| v as f32), Some(row(step)[k].1));
        }
    }
}
