use super::super::{Field, Layout, ReplayBuffer, SamplerKind};
use super::*;
use crate::replay::tests::{host, setup};
use crate::transfer::host_numbers;
use std::sync::atomic::{AtomicBool, Ordering};

const WORDS: usize = 67;

/// All words of a transition follow from one number.
fn word(number: u32, i: usize) -> f32 {
    (number % 4096) as f32 * 64.0 + i as f32
}

/// Ends the samplers, also where something failed.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn writers_and_samplers_never_see_half_a_transition() {
    for sampler in [SamplerKind::Uniform, SamplerKind::WithoutReplacement, SamplerKind::Prioritized]
    {
        let layout = Layout::new(vec![
            Field::float("a", 40),
            Field::float("b", 1),
            Field::float("c", WORDS - 41),
        ])
        .unwrap();
        // Few places, so that what is drawn is being overwritten all the time.
        let config = super::super::ReplayConfig { sampler, ..host(97) };
        let mut buffer = ReplayBuffer::new(&config, layout, setup(256)).unwrap();
        let write = |writer: &Writer, first: u32| {
            let numbers = first..first + 24;
            let part = |from: usize, to: usize| -> Vec<u32> {
                let words = numbers.clone().flat_map(|n| (from..to).map(move |i| word(n, i)));
                words.map(f32::to_bits).collect()
            };
            let parts = [part(0, 40), part(40, 41), part(41, WORDS)];
            let fields: Vec<&[u32]> = parts.iter().map(Vec::as_slice).collect();
            writer.extend_rows(&fields, 8).unwrap();
        };
        let check = |batch: &Batch| {
            let numbers = |name| host_numbers(batch.get(name).unwrap()).unwrap();
            let (a, b, c) = (numbers("a"), numbers("b"), numbers("c"));
            for row in 0..256 {
                let all = a[40 * row..][..40].iter().chain(&b[row..=row]);
                let all = all.chain(&c[(WORDS - 41) * row..][..WORDS - 41]);
                let first = a[40 * row];
                for (i, &value) in all.enumerate() {
                    assert_eq!(value, first + i as f32, "a torn transition");
                }
            }
        };
        write(&buffer.writer(), 0);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let ended = Ended(&done);
            let writers: Vec<_> = (0..3_u32)
                .map(|w| {
                    let writer = buffer.writer();
                    scope.spawn(move || (0..400).for_each(|i| write(&writer, 1000 * w + i)))
                })
                .collect();
            for s in 0..2 {
                let mut sampler = buffer.sampler(s).unwrap();
                let (done, check) = (&done, &check);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        check(sampler.next().unwrap());
                    }
                    check(sampler.next().unwrap());
                });
            }
            for _ in 0..100 {
                check(buffer.next().unwrap());
            }
            let writers: Vec<_> = writers.into_iter().map(|w| w.join()).collect();
            drop(ended);
            assert!(writers.iter().all(Result::is_ok));
        });
        assert_eq!(buffer.len(), 97);
    }
}
