use super::*;
use proptest::prelude::*;

fn window(capacity: u64, pushed: u64) -> Window {
    let mut window = Window::new(capacity, capacity);
    window.push(pushed, 1);
    window
}

#[test]
fn uniform_draws_are_even_and_repeat_by_number() {
    let window = window(16, 40);
    let mut counts = [0.0_f64; 16];
    let mut rows = [0; 33];
    let mut progress = Progress::default();
    for _ in 0..5000 {
        draw(SamplerKind::Uniform, 3, &window, &mut progress, &mut rows).unwrap();
        for &row in &rows {
            counts[(row - 24) as usize] += 1.0;
        }
    }
    let mean = 5000.0 * 33.0 / 16.0;
    let chi2: f64 = counts.iter().map(|c| (c - mean).powi(2) / mean).sum();
    // 15 degrees of freedom: 99.99 % lie below 44.3.
    assert!(chi2 < 44.3, "{chi2}");
    let mut again = [0; 33];
    uniform(3, &window, 4999, &mut again);
    assert_eq!(again, rows);
    uniform(4, &window, 4999, &mut again);
    assert_ne!(again, rows);
}

#[test]
fn an_empty_buffer_gives_an_error() {
    let (empty, mut p) = (Window::new(4, 4), Progress::default());
    for kind in [SamplerKind::Uniform, SamplerKind::WithoutReplacement] {
        let drawn = draw(kind, 0, &empty, &mut p, &mut [0; 2]);
        assert!(matches!(drawn, Err(ReplayError::Empty)));
    }
    assert_eq!(p, Progress::default());
}

proptest! {
    #[test]
    fn an_order_holds_every_number_once(n in 1_u64..600, seed: u64, pass in 0_u64..1 << 40) {
        let mut seen: Vec<u64> = (0..n).map(|i| order(&permutation(seed, 0, pass), n, i)).collect();
        seen.sort_unstable();
        prop_assert!(seen.into_iter().eq(0..n));
    }

    #[test]
    fn a_pass_draws_each_transition_once_and_only_what_is_there(
        capacity in 1_u64..50, batch in 1_usize..20, pushes in prop::collection::vec(0_u64..9, 1..30),
    ) {
        let mut window = Window::new(capacity, capacity);
        window.push(1, 1);
        let mut p = Progress::default();
        let mut passes: Vec<(u64, Vec<u64>)> = Vec::new();
        for count in pushes {
            window.push(count, 1);
            let mut rows = vec![0; batch];
            for row in &mut rows {
                // One by one, so that the pass of each is known.
                draw(SamplerKind::WithoutReplacement, 7, &window, &mut p, std::slice::from_mut(row)).unwrap();
                prop_assert!(window.contains(*row));
                match passes.last_mut() {
                    Some((pass, rows)) if *pass == p.pass => rows.push(*row),
                    _ => passes.push((p.pass, vec![*row])),
                }
            }
        }
        for (_, rows) in &mut passes {
            let drawn = rows.len();
            rows.sort_unstable();
            rows.dedup();
            prop_assert_eq!(rows.len(), drawn, "drawn twice in a pass");
        }
    }
}

#[test]
fn orders_of_passes_look_independent() {
    // Where 0 lands: even over places.
    let mut counts = [0.0_f64; 10];
    for pass in 0..20_000 {
        counts[order(&permutation(5, 0, pass), 10, 0) as usize] += 1.0;
    }
    let chi2: f64 = counts.iter().map(|c| (c - 2e3).powi(2) / 2e3).sum();
    // 9 degrees of freedom: 99.99 % lie below 33.7.
    assert!(chi2 < 33.7, "{chi2}");
}
