use super::super::{Layout, ReplayBuffer, ReplayConfig, Setup, Transform};
use super::*;
use crate::replay::tests::{host, rollout, setup, spec};
use std::sync::Mutex;

/// Remembers what went through it, and fails as it is told to.
#[derive(Debug, Default)]
struct Watch {
    seen: Arc<Mutex<Vec<u64>>>,
    error_at: Option<usize>,
    panic_at: Option<usize>,
}

impl Transform for Watch {
    fn apply(&self, batch: Batch) -> Result<Batch, ReplayError> {
        let mut seen = self.seen.lock().unwrap();
        seen.push(batch.indices()[0]);
        let count = seen.len();
        drop(seen);
        assert_ne!(Some(count), self.panic_at, "a defect of a transform");
        match self.error_at == Some(count) {
            true => Err(ReplayError::Empty),
            false => Ok(batch),
        }
    }
}

fn buffer(prefetch: usize, watch: Watch) -> ReplayBuffer {
    let config = ReplayConfig { prefetch, ..host(90) };
    let setup = Setup { transforms: vec![Box::new(watch)], ..setup(4) };
    let spec = spec(3, None);
    let mut buffer = ReplayBuffer::new(&config, Layout::of(&spec), setup).unwrap();
    buffer.extend(&rollout(&spec, 0, 20)).unwrap();
    buffer
}

#[test]
fn no_more_is_drawn_than_was_announced() {
    let watch = Watch::default();
    let seen = Arc::clone(&watch.seen);
    let mut buffer = buffer(2, watch);
    buffer.begin_update(3);
    let drawn: Vec<u64> = (0..3).map(|_| buffer.next().unwrap().indices()[0]).collect();
    buffer.settle();
    assert_eq!(*seen.lock().unwrap(), drawn, "three, in order");
    // Announced and not taken: drawn again after the buffer changed.
    buffer.begin_update(5);
    buffer.extend(&rollout(&spec(3, None), 20, 5)).unwrap();
    let ahead = seen.lock().unwrap().len() - 3;
    assert!(ahead <= 2, "never more than the depth: {ahead}");
    let next = buffer.next().unwrap().indices()[0];
    assert_eq!(seen.lock().unwrap().last(), Some(&next));
}

#[test]
fn an_error_of_the_thread_arrives_where_its_batch_would() {
    let watch = Watch { error_at: Some(2), ..Watch::default() };
    let mut buffer = buffer(2, watch);
    buffer.begin_update(4);
    buffer.next().unwrap();
    assert!(matches!(buffer.next(), Err(ReplayError::Empty)));
    // The same draw once more.
    buffer.next().unwrap();
    assert_eq!(buffer.progress.draws, 2);
}

#[test]
fn a_panic_of_the_thread_arrives_and_draws_go_on_without_it() {
    let watch = Watch { panic_at: Some(2), ..Watch::default() };
    let mut buffer = buffer(2, watch);
    buffer.begin_update(4);
    buffer.next().unwrap();
    let e = buffer.next().unwrap_err().to_string();
    assert!(e.contains("a defect of a transform"), "{e}");
    buffer.begin_update(3);
    buffer.next().unwrap();
    assert_eq!(buffer.progress.draws, 2);
}
