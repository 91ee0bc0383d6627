use super::*;

fn window(capacity: u64, places: u64, pushed: u64) -> Window {
    let mut window = Window::new(capacity, places);
    window.push(pushed, 1);
    window
}

fn range(window: &Window) -> std::ops::Range<u64> {
    window.begin()..window.end()
}

#[test]
fn draws_are_in_proportion_and_weights_undo_them() {
    // Ten places of twelve used, around the end.
    let window = window(10, 12, 27);
    let mut p = Priorities::new(12, 0.5, 0.4, 1.0).unwrap();
    p.moved(0..0, range(&window), 12);
    let rows: Vec<u64> = range(&window).collect();
    let priorities: Vec<f32> = (1..=10).map(|i| (i * i) as f32).collect();
    assert_eq!(p.update(&window, &rows, &priorities), 0);
    p.set_progress(1.0);
    let (mut drawn, mut weights) = ([0; 50], [0.0; 50]);
    let mut counts = [0.0_f64; 10];
    for draw in 0..2000 {
        p.draw(5, draw, &window, &mut drawn, &mut weights).unwrap();
        for (&row, &weight) in drawn.iter().zip(&weights) {
            let i = (row - 17) as usize;
            counts[i] += 1.0;
            // beta 1: the weight is in proportion to 1 / probability; the largest is 1.
            assert!((f64::from(weight) - 1.0 / (i + 1) as f64).abs() < 1e-5);
        }
    }
    // alpha 0.5: probabilities 1/55 .. 10/55. Stratified draws vary less than free ones.
    let expected = |i: usize| 100_000.0 * (i + 1) as f64 / 55.0;
    let chi2: f64 = (0..10).map(|i| (counts[i] - expected(i)).powi(2) / expected(i)).sum();
    assert!(chi2 < 33.7, "{counts:?}");
    let mut again = [0; 50];
    p.draw(5, 1999, &window, &mut again, &mut weights).unwrap();
    assert_eq!(again, drawn);
}

/// Learners reflect half of a batch: it must not be the older half.
#[test]
fn rows_of_a_batch_say_nothing_of_age() {
    let window = window(64, 64, 64);
    let mut p = Priorities::new(64, 1.0, 1.0, 1.0).unwrap();
    p.moved(0..0, range(&window), 64);
    let (mut drawn, mut weights) = ([0; 32], [0.0; 32]);
    let mut behind = [0; 64];
    for draw in 0..400 {
        p.draw(5, draw, &window, &mut drawn, &mut weights).unwrap();
        let mut shares: Vec<u64> = drawn.iter().map(|row| row / 2).collect();
        drawn[16..].iter().for_each(|row| behind[*row as usize] += 1);
        shares.sort_unstable();
        assert!(shares.into_iter().eq(0..32), "each share gives one: {drawn:?}");
    }
    // Drawn 200 times each, 100 of them in the second half.
    assert!(behind.iter().all(|n| (60..140).contains(n)), "{behind:?}");
}

#[test]
fn beta_goes_from_one_to_the_other() {
    let mut p = Priorities::new(4, 0.6, 0.4, 1.0).unwrap();
    for (progress, beta) in [(0.0, 0.4), (0.5, 0.7), (1.0, 1.0), (7.0, 1.0)] {
        p.set_progress(progress);
        assert!((p.beta() - beta).abs() < 1e-12);
    }
}

#[test]
fn new_transitions_have_the_largest_priority_and_old_ones_none() {
    let mut w = window(4, 4, 4);
    let mut p = Priorities::new(4, 1.0, 1.0, 1.0).unwrap();
    p.moved(0..0, range(&w), 4);
    p.update(&w, &[1, 2, 3], &[5.0, f32::NAN, -1.0]);
    assert!((p.largest() - 5.0).abs() < 1e-9);
    let about = |p: &Priorities| p.leaves().iter().map(|v| v.round()).collect::<Vec<_>>();
    assert_eq!(about(&p), [1.0, 5.0, 1.0, 1.0], "what is not a number changes nothing");
    let old = range(&w);
    w.push(2, 1);
    p.moved(old, range(&w), 4);
    assert_eq!(about(&p), [5.0, 5.0, 1.0, 1.0], "4 and 5 came where 0 and 1 were");
    // 1 is gone: its place is another's.
    assert_eq!(p.update(&w, &[1], &[9.0]), 0);
    assert_eq!(about(&p), [5.0, 5.0, 1.0, 1.0]);
    let old = range(&w);
    w.push(9, 1);
    p.moved(old, range(&w), 4);
    assert_eq!(about(&p), [9.0; 4]);
}

#[test]
fn what_was_set_is_taken_back() {
    let mut w = window(8, 10, 8);
    let mut p = Priorities::new(10, 0.7, 0.4, 1.0).unwrap();
    p.moved(0..0, range(&w), 10);
    p.update(&w, &[1, 3], &[2.0, 3.0]);
    let (leaves, mark) = (p.leaves().to_vec(), p.mark());
    for _ in 0..2 {
        let (place, old) = (w.place(), range(&w));
        w.push(2, 1);
        p.moved(old, range(&w), 10);
        p.update(&w, &[4, 8, 9], &[7.0, 0.1, 0.2]);
        assert_ne!(p.leaves(), leaves);
        w.rewind(&place).unwrap();
        assert!(p.knows(&mark));
        p.rewind(&mark);
        assert_eq!(p.leaves(), leaves);
        assert_eq!(p.largest(), 3.0);
    }
    p.mark();
    p.update(&w, &[1], &[4.0]);
    p.mark();
    assert!(!p.knows(&mark), "a later mark took its place");
}
