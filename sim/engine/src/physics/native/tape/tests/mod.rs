//! Promises of the tape.

mod fold;
mod print;
mod random;
mod record;

use super::{Array, Graph, Program, Recorder, Val};

/// Inputs `x [n]`, outputs `y [m]`.
fn arrays(n: usize, m: usize) -> Vec<Array> {
    vec![Array::shared("w.x", &[n]), Array::shared("w.y", &[m])]
}

/// A program of one function whose outputs are what `body` returns.
fn program(n: usize, body: impl FnOnce(&mut Graph, &[Val]) -> Vec<Val>) -> Program {
    let mut recorder = Recorder::new(arrays(n, 64));
    recorder.begin("f");
    let x: Vec<Val> = (0..n as u32).map(|i| recorder.load(0, i).unwrap()).collect();
    let y = body(recorder.graph(), &x);
    for (i, value) in y.into_iter().enumerate() {
        recorder.store(1, i as u32, value);
    }
    recorder.end();
    recorder.finish().unwrap()
}
