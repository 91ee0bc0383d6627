use super::*;
use proptest::prelude::*;

/// A model of a window without any arithmetic: each place holds a transition, of which the
/// number, the step and the environment are known.
#[derive(Default, Clone)]
struct Naive {
    /// (number, segment, step within it, environment)
    rows: Vec<(u64, u32, u64, u64)>,
}

#[derive(Debug, Clone)]
enum Op {
    Push(u64, u32),
    Cut,
    Mark,
    Back,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0_u64..12, 1_u32..4).prop_map(|(steps, n)| Op::Push(steps, n)),
        1 => Just(Op::Cut),
        1 => Just(Op::Mark),
        1 => Just(Op::Back),
    ]
}

proptest! {
    #[test]
    fn what_follows_in_time_is_what_a_naive_model_says(
        ops in prop::collection::vec(op(), 1..60),
        capacity in 1_u64..40,
        margin in 0_u64..30,
    ) {
        let mut window = Window::new(capacity, capacity + margin);
        let mut naive = Naive::default();
        let (mut segment, mut step, mut last) = (0_u32, 0_u64, None);
        let mut mark = (window.place(), naive.clone(), (segment, step, last));
        let mut written = 0_u64;
        for op in ops {
            match op {
                Op::Push(steps, n) => {
                    if last != Some(n) && steps > 0 {
                        segment += u32::from(!naive.rows.is_empty());
                        (step, last) = (0, Some(n));
                    }
                    for _ in 0..steps {
                        for env in 0..u64::from(n) {
                            naive.rows.push((naive.rows.len() as u64, segment, step, env));
                        }
                        step += 1;
                    }
                    window.push(steps * u64::from(n), n);
                    written = written.max(naive.rows.len() as u64);
                }
                Op::Cut => {
                    window.cut();
                    last = None;
                }
                Op::Mark => mark = (window.place(), naive.clone(), (segment, step, last)),
                Op::Back => {
                    let lost = window.rewind(&mark.0).unwrap();
                    naive = mark.1.clone();
                    (segment, step, last) = mark.2;
                    let kept = (written.saturating_sub(capacity + margin)).min(mark.0.end);
                    prop_assert_eq!(lost, kept.saturating_sub(mark.0.begin));
                }
            }
            let end = naive.rows.len() as u64;
            prop_assert_eq!(window.end(), end);
            prop_assert!(window.len() <= capacity);
            prop_assert!(window.begin() + window.physical() >= written.min(window.end()));
            for row in window.begin()..end {
                let (_, segment, step, env) = naive.rows[row as usize];
                let follows = |k: u64| naive.rows.iter().position(|&(_, s, t, e)| {
                    (s, t, e) == (segment, step + k, env)
                });
                let expected: Vec<u64> = (0..5).map_while(follows).map(|r| r as u64).collect();
                let (stride, count) = window.run_from(row, 5);
                let got: Vec<u64> = (0..count).map(|k| row + k * stride).collect();
                prop_assert_eq!(got, expected, "from {}", row);
            }
        }
    }
}

#[test]
fn a_place_in_the_future_is_refused() {
    let mut window = Window::new(4, 6);
    window.push(4, 2);
    let later = window.place();
    let mut young = Window::new(4, 6);
    young.push(2, 2);
    let before = young.clone();
    assert_eq!(young.rewind(&later), None);
    assert_eq!(young, before);
}

#[test]
fn found_transitions_make_the_same_window() {
    let mut window = Window::new(8, 12);
    window.push(6, 2);
    window.cut();
    window.push(4, 2);
    window.push(3, 3);
    let segment_of = |row: u64| match row {
        0..6 => (0, 2),
        6..10 => (1, 2),
        _ => (2, 3),
    };
    let mut found = Window::new(8, 12);
    let rows = (window.begin()..window.end()).map(|r| (r, segment_of(r).0, segment_of(r).1));
    found.refill(rows, 5..13, 5, 13);
    for row in window.begin()..window.end() {
        assert_eq!(found.run_from(row, 9), window.run_from(row, 9), "{row}");
    }
    assert_eq!((found.begin(), found.end()), (5, 13));
    assert_eq!(found.segment_for(3).id, 3, "what comes next does not go on");
}
