//! `collector.cuda_sync` changes what the host waits for and nothing else.

use crate::place::{figure, numbers, place, task};
use ostler_collector::{Collector, CudaSync};

#[test]
fn f2_rollouts_are_the_same_however_the_host_waits() {
    let place = place();
    let n = place.pick(512, 16);
    let mut t = task(&place, "ant", n);
    let steps = 12_u64;
    let mut first: Option<Vec<Vec<f32>>> = None;
    for (sync, waits) in [
        (CudaSync::Off, 0),
        (CudaSync::Event, steps),
        (CudaSync::Device, steps),
    ] {
        let mut c = t.collector(&place, steps as usize, sync);
        let mut found = Vec::new();
        for _ in 0..3 {
            c.collect(&mut t.policy).unwrap();
            let r = c.rollout();
            for tensor in [
                &r.obs.policy,
                &r.action,
                &r.dist,
                &r.reward,
                &r.truncated,
                &r.valid,
            ] {
                found.push(numbers(tensor));
            }
            let counts = c.counts();
            assert_eq!(counts.in_loop.waits, waits, "{sync:?}");
            assert_eq!(counts.in_loop.launches, steps, "{sync:?}");
            assert_eq!(
                (counts.in_loop.uploads, counts.in_loop.downloads),
                (0, 0),
                "{sync:?}"
            );
        }
        match &first {
            None => first = Some(found),
            Some(first) => assert!(*first == found, "{sync:?}"),
        }
    }
    figure("modes.rollouts", 9.0);
}
