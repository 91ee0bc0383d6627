use super::super::team::split;
use super::super::{Program, Store};
use super::random::sample;

/// A random function that also overwrites what it reads, and inputs for it.
fn overwriting(seed: u64, length: usize) -> (Program, Vec<f64>) {
    let (mut program, inputs) = sample(seed, length);
    let stores = &mut program.functions[0].stores;
    for index in 0..inputs.len().min(stores.len()) {
        let value = stores[(seed as usize + 7 * index) % stores.len()].value;
        stores.push(Store {
            array: 0,
            index: index as u32,
            value,
        });
    }
    (program, inputs)
}

/// Whatever belongs to whom, and whoever is first.
#[test]
fn a_team_leaves_what_one_thread_leaves() {
    let (mut stages, mut crossing, mut pieces) = (0, 0, 0);
    for seed in 0..150_u64 {
        let (program, inputs) = overwriting(seed, 20 + (seed as usize * 37) % 250);
        let function = &program.functions[0];
        let start = vec![inputs, vec![0.0; 256]];
        let mut alone = start.clone();
        program.run(function, &mut alone);
        for size in [1, 2, 4] {
            // One home more than there are ranks: nobody's.
            let home = |array: u32, index: u32| {
                let at = u64::from(array * 31 + index * 17).wrapping_mul(seed * 2 + 1) >> 2;
                let home = at as usize % (size + 1);
                (home < size).then_some(home)
            };
            let divided = split(&program, function, &home, size);
            for backwards in [false, true] {
                let mut team = start.clone();
                program.run_divided(function, &divided, &mut team, backwards);
                assert_eq!(team, alone, "seed {seed}, {size} ranks");
            }
            stages = stages.max(divided.stages);
            crossing = crossing.max(divided.chunks.scratch);
            pieces = pieces.max(divided.pieces.len());
        }
    }
    // The functions were no trivial ones.
    assert!(
        stages > 2 && crossing > 8 && pieces > 8,
        "{stages} {crossing} {pieces}"
    );
}
