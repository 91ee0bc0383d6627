//! `collector.cuda_sync` changes what the host waits for and nothing else.

use crate::place::{figure, numbers, place, task};
use crate::runtime::counted;
use ostler_collector::replay::{ReplayConfig, SamplerKind, StorageKind};
use ostler_collector::{AsyncOptions, Collector, CudaSync, Policy};
use ostler_sim::device::Traffic;
use ostler_trainer::learner::Learner;

#[test]
fn f2_rollouts_are_the_same_however_the_host_waits() {
    let place = place();
    let n = place.pick(512, 16);
    let mut t = task(&place, "ant", n);
    let steps = 12_u64;
    let mut first: Option<Vec<Vec<f32>>> = None;
    for (sync, waits) in [(CudaSync::Off, 0), (CudaSync::Event, steps), (CudaSync::Device, steps)] {
        let mut c = t.collector(&place, steps as usize, sync);
        let mut found = Vec::new();
        for round in 0..3 {
            let (collected, calls) = counted(|| c.collect(&mut t.policy));
            collected.unwrap();
            // Libtorch waits where it is told to and copies nothing. The first rollout
            // is when its libraries start.
            if round > 0 {
                let told = if place.cuda.is_some() { waits } else { 0 };
                assert_eq!((calls.waits, calls.crossings), (told, 0), "{sync:?}");
            }
            let r = c.rollout();
            for tensor in [&r.obs.policy, &r.action, &r.dist, &r.reward, &r.truncated, &r.valid] {
                found.push(numbers(tensor));
            }
            let counts = c.counts();
            assert_eq!(counts.in_loop.waits, waits, "{sync:?}");
            assert_eq!(counts.in_loop.launches, steps, "{sync:?}");
            assert_eq!((counts.in_loop.uploads, counts.in_loop.downloads), (0, 0), "{sync:?}");
        }
        match &first {
            None => first = Some(found),
            Some(first) => assert!(*first == found, "{sync:?}"),
        }
    }
    figure("modes.rollouts", 9.0);
}

/// Counted by the runtime's own functions, not by what we ask for.
#[test]
fn an_update_waits_and_crosses_as_often_as_it_says() {
    let place = place();
    let t = task(&place, "ant", place.pick(512, 16));
    let mut c = t.collector(&place, 12, CudaSync::Off);
    let mut ppo = t.learner(&place, 12);
    for round in 0..4 {
        c.collect(ppo.policy_mut()).unwrap();
        let (stats, calls) = counted(|| ppo.update(c.rollout()));
        let said = stats.unwrap().traffic;
        // The first rounds are when libraries start and the allocator gets its memory.
        if round > 1 {
            assert_eq!(calls.waits, said.waits);
            assert_eq!(calls.crossings, said.copies());
            assert_eq!(calls.allocations, 0);
        }
        figure("update.launches", calls.launches as f64);
    }
}

/// The same of learners with a replay buffer, wherever it is.
#[test]
fn a_gradient_step_waits_and_crosses_as_often_as_it_says() {
    let place = place();
    let t = task(&place, "ant", place.pick(256, 16));
    let all = [StorageKind::Host, StorageKind::Tiered, StorageKind::Device, StorageKind::Memmap];
    for storage in all.into_iter().take(place.pick(4, 2)) {
        for (sampler, prefetch) in
            [(SamplerKind::Uniform, 0), (SamplerKind::Uniform, 2), (SamplerKind::Prioritized, 0)]
        {
            let replay = ReplayConfig {
                capacity: 8192,
                recent: 2048,
                storage,
                sampler,
                prefetch,
                pin_memory: place.cuda.is_some(),
                save: false,
                ..ReplayConfig::default()
            };
            for (mut learner, _folder) in t.off_policy(&place, 4, &replay) {
                let policy: &dyn Policy = learner.policy();
                let mut c = t.collector_for(&place, 4, CudaSync::Off, policy);
                for round in 0..4 {
                    let (collected, calls) = counted(|| c.collect(learner.policy_mut()).map(drop));
                    collected.unwrap();
                    if round > 1 {
                        assert_eq!((calls.waits, calls.crossings), (0, 0));
                    }
                    let (stats, calls) = counted(|| learner.update(c.rollout()));
                    let stats = stats.unwrap();
                    let said = stats.traffic;
                    assert!(stats.minibatches >= 4);
                    if round > 1 {
                        let what = (storage, sampler, prefetch);
                        assert_eq!(calls.waits, said.waits, "{what:?}");
                        assert_eq!(calls.crossings, said.copies(), "{what:?}");
                    }
                    if place.cuda.is_some() {
                        // The draws of a batch, of which two steps are made at most: the critics'
                        // and the actor's. Noise is made where it is needed.
                        assert!(2 * said.uploads >= stats.minibatches);
                    }
                }
            }
        }
    }
}

/// Threads collect on the host, into a rollout there or on the GPU.
#[test]
fn threads_and_a_learner_move_as_much_as_they_say() {
    let place = place();
    let t = task(&place, "ant", place.pick(256, 16));
    let replay = ReplayConfig {
        capacity: 8192,
        storage: StorageKind::Host,
        save: false,
        ..ReplayConfig::default()
    };
    for storing_device in [tch::Device::Cpu, place.torch] {
        let mut learners: Vec<Box<dyn Learner>> = vec![Box::new(t.learner(&place, 4))];
        let [(sac, _sac), (td3, _td3)] = t.off_policy(&place, 4, &replay);
        learners.extend([Box::new(sac) as Box<dyn Learner>, Box::new(td3)]);
        for mut learner in learners {
            let options = AsyncOptions { workers: 2, storing_device, ..AsyncOptions::default() };
            let policy: &dyn Policy = learner.policy();
            let mut c = t.threads(4, policy, options);
            for round in 0..4 {
                let (collected, calls) = counted(|| c.collect(learner.policy_mut()).map(drop));
                collected.unwrap();
                let (all, in_loop) = (c.counts().all, c.counts().in_loop);
                assert_eq!(in_loop, Traffic::default());
                let (stats, of_update) = counted(|| learner.update(c.rollout()));
                let said = stats.unwrap().traffic;
                if round > 1 {
                    let of_threads = (calls.waits, calls.crossings);
                    assert_eq!(of_threads, (all.waits, all.copies()), "{storing_device:?}");
                    let of_update = (of_update.waits, of_update.crossings);
                    assert_eq!(of_update, (said.waits, said.copies()), "{storing_device:?}");
                }
                assert_eq!(all.copies() > 0, place.cuda.is_some());
            }
        }
    }
}
