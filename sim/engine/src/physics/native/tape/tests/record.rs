use super::super::ffi::{self, NO_VALUE};
use super::super::{Array, Init, Recorder, TapeError};
use super::arrays;
use crate::kernels;

fn mistake(body: impl FnOnce()) -> TapeError {
    ffi::record(arrays(2, 2), body).unwrap_err()
}

#[test]
fn mistakes_are_reported_not_undefined() {
    let x = || ffi::ELEMENT;
    let add = |a, b| ffi::ostler_sym_op2(kernels::SYM_ADD, a, b);
    let outside = mistake(|| {
        add(x(), x());
    });
    assert!(matches!(outside, TapeError::NoFunction { .. }));
    for raw in [NO_VALUE, 12_345] {
        let unknown = mistake(|| ffi::function("f", || assert_eq!(add(raw, x()), NO_VALUE)));
        assert_eq!(unknown, TapeError::UnknownValue { raw });
    }
    let mut old = 0;
    let stale = mistake(|| {
        ffi::function("f", || old = add(x(), x()));
        ffi::function("g", || ffi::ostler_sym_store(1, 0, old));
    });
    assert_eq!(stale, TapeError::UnknownValue { raw: old });
    let kind = mistake(|| {
        ffi::function("f", || {
            let mask = ffi::ostler_sym_op2(kernels::SYM_LT, x(), ffi::ostler_sym_const(1.0));
            add(mask, x());
        });
    });
    assert!(matches!(kind, TapeError::Kind { .. }));
    let kind =
        mistake(|| ffi::function("f", || ffi::ostler_sym_store(1, 0, ffi::ostler_sym_mask(1))));
    assert!(matches!(kind, TapeError::Kind { .. }));
    let operation = mistake(|| {
        ffi::function("f", || {
            ffi::ostler_sym_op2(99, x(), x());
        });
    });
    assert_eq!(operation, TapeError::UnknownOperation(99));
    let element = mistake(|| ffi::function("f", || ffi::ostler_sym_store(1, 2, x())));
    assert_eq!(element, TapeError::NoElement { array: 1, index: 2 });
    // Two arrays of two elements: there is no fifth.
    let element = mistake(|| ffi::function("f", || assert_eq!(add(x() + 4, x()), NO_VALUE)));
    assert_eq!(element, TapeError::NoElement { array: 1, index: 2 });
    let open = mistake(|| ffi::function("f", || ffi::function("g", || {})));
    assert_eq!(open, TapeError::OpenFunction("f".into()));
    let busy = ffi::record(arrays(1, 1), || {
        assert_eq!(ffi::record(arrays(1, 1), || {}).unwrap_err(), TapeError::Busy);
    });
    busy.unwrap();
    // Without a recorder nothing happens.
    assert_eq!(ffi::ostler_sym_const(1.0), NO_VALUE);
    ffi::ostler_sym_end();
}

#[test]
fn an_element_is_what_the_function_found_whatever_was_stored_since() {
    let program = ffi::record(arrays(1, 2), || {
        ffi::function("swap", || {
            // Places: the first array's element, then the second's two.
            ffi::ostler_sym_store(1, 0, ffi::ELEMENT + 2);
            ffi::ostler_sym_store(1, 1, ffi::ELEMENT + 1);
        });
    });
    let program = program.unwrap();
    let mut arrays = vec![vec![1.0_f32], vec![2.0, 3.0]];
    program.run(&program.functions[0], &mut arrays);
    assert_eq!(arrays[1], [3.0, 2.0]);
}

#[test]
fn a_panicking_recording_leaves_no_recorder_behind() {
    let result = std::panic::catch_unwind(|| ffi::record(arrays(1, 1), || panic!("kernel")));
    assert!(result.is_err());
    assert!(ffi::record(arrays(1, 1), || {}).is_ok());
}

#[test]
fn constants_hold_in_every_function_and_can_be_asked_for() {
    let program = ffi::record(arrays(1, 2), || {
        let two = ffi::ostler_sym_const(2.0);
        ffi::function("f", || {
            let y = ffi::ostler_sym_op2(kernels::SYM_MUL, two, ffi::ELEMENT);
            ffi::ostler_sym_store(1, 0, y);
            let mut value = 0.0;
            // SAFETY: the pointer is to a number.
            let yes = unsafe { ffi::ostler_sym_is_const(two, &mut value) };
            assert_eq!((yes, value), (1, 2.0));
            // SAFETY: null is allowed.
            let no = unsafe { ffi::ostler_sym_is_const(y, std::ptr::null_mut()) };
            assert_eq!(no, 0);
        });
    });
    let program = program.unwrap();
    let mut arrays = vec![vec![3.0_f32], vec![0.0; 2]];
    program.run(&program.functions[0], &mut arrays);
    assert_eq!(arrays[1], [6.0, 0.0]);
}

#[test]
fn elements_set_to_one_constant_are_written_once() {
    let mut recorder = Recorder::new(recorder_arrays());
    let (zero, one) = (recorder.graph().number(0.0), recorder.graph().number(1.0));
    recorder.begin("set");
    let q = recorder.load(0, 0).unwrap();
    for (i, value) in [one, zero, q, one].into_iter().enumerate() {
        recorder.store(1, i as u32, value);
    }
    // An input is never constant, nor what is written back unchanged a store.
    recorder.store(0, 0, q);
    recorder.end();
    recorder.begin("use");
    // The constant is known where it is used; one that changes later is not one.
    let r = recorder.load(1, 0).unwrap();
    assert_eq!(r, one);
    let kept = recorder.load(1, 2).unwrap();
    recorder.store(1, 2, kept);
    let q = recorder.load(0, 0).unwrap();
    let y = recorder.graph().mul(r, q);
    recorder.store(1, 3, y);
    recorder.store(0, 0, one);
    recorder.end();
    let program = recorder.finish().unwrap();
    let init = |index, value| Init { array: 1, index, value };
    assert_eq!(program.init, [init(0, 1.0), init(1, 0.0)]);
    let stored = |f: usize| -> Vec<(u32, u32)> {
        let stores = &program.functions[f].stores;
        stores.iter().map(|s| (s.array, s.index)).collect()
    };
    assert_eq!(stored(0), [(1, 2), (1, 3)]);
    assert_eq!(stored(1), [(1, 3), (0, 0)]);
    let mut arrays = vec![vec![5.0_f64], vec![-1.0; 4]];
    program.run_init(&mut arrays);
    for function in &program.functions {
        program.run(function, &mut arrays);
    }
    assert_eq!(arrays[1], [1.0, 0.0, 5.0, 5.0]);
    assert_eq!(arrays[0], [1.0]);
}

fn recorder_arrays() -> Vec<Array> {
    vec![Array::shared("w.q", &[1]), Array::new("w.r", &[2, 2])]
}

#[test]
fn a_used_constant_may_not_change() {
    let mut recorder = Recorder::new(recorder_arrays());
    let one = recorder.graph().number(1.0);
    recorder.begin("a");
    recorder.store(1, 3, one);
    recorder.end();
    recorder.begin("b");
    let used = recorder.load(1, 3).unwrap();
    let q = recorder.load(0, 0).unwrap();
    let y = recorder.graph().add(used, q);
    recorder.store(1, 3, y);
    recorder.end();
    let error = recorder.finish().unwrap_err();
    assert!(error.to_string().starts_with("w.r[1][1] was used"), "{error}");
}

#[test]
fn a_load_sees_the_store_before_it() {
    let mut recorder = Recorder::new(recorder_arrays());
    recorder.begin("f");
    let q = recorder.load(0, 0).unwrap();
    recorder.store(1, 0, q.flip());
    assert_eq!(recorder.load(1, 0), Some(q.flip()));
}

#[test]
fn elements_are_spelled_by_shape() {
    let array = Array::new("w.h", &[2, 3, 4]);
    assert_eq!(array.len(), 24);
    assert_eq!(array.element(0), "w.h[0][0][0]");
    assert_eq!(array.element(23), "w.h[1][2][3]");
    assert_eq!(Array::new("w.t", &[]).element(0), "w.t");
}
