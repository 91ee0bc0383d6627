//! Transitions per second into and out of a replay buffer: capacity 1,000,000,
//! observations of 48 numbers, actions of 12, batches of 4,096.
//!
//! ```text
//! cargo bench --workspace --bench replay -- [host|memmap] [FOLDER]
//! ```
//! With `--serve` it fills the buffer, prints a line, and then answers each line
//! `extend N` or `sample N` on standard input by the seconds that N of them took:
//! `versus_torchrl.py` beside it measures in turn with TorchRL so.

#![allow(clippy::unwrap_used, missing_docs)]

use ostler_collector::replay::{
    Field, Layout, ReplayBuffer, ReplayConfig, Setup, StorageKind, names,
};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Instant;

const CAPACITY: usize = 1_000_000;
const BATCH: usize = 4096;
const ENVS: usize = 64;

fn layout() -> Layout {
    let mut fields = vec![Field::float(names::OBS, 48), Field::float(names::ACTION, 12)];
    for name in [names::REWARD, names::TERMINATED, names::TRUNCATED, names::VALID] {
        fields.push(Field::float(name, 1));
    }
    fields.push(Field::integer(names::VERSION));
    fields.push(Field::float(names::NEXT_OBS, 48));
    Layout::new(fields).unwrap()
}

struct Bench {
    buffer: ReplayBuffer,
    fields: Vec<Vec<u32>>,
    sum: u64,
}

impl Bench {
    fn new(storage: StorageKind, folder: &std::path::Path) -> Self {
        let config = ReplayConfig {
            capacity: CAPACITY,
            storage,
            save: false,
            prefetch: 0,
            ..ReplayConfig::default()
        };
        let setup = Setup {
            folder: Some(folder),
            margin: 8 * BATCH,
            ..Setup::new(BATCH, tch::Device::Cpu, 0.99, 1)
        };
        let layout = layout();
        let number = |i: usize| ((i % 1000) as f32 * 0.001).to_bits();
        let column = |f: &Field| (0..BATCH * f.width).map(number).collect();
        let fields = layout.fields().iter().map(column).collect();
        let buffer = ReplayBuffer::new(&config, layout, setup).unwrap();
        eprintln!("{}", buffer.describe());
        let mut bench = Self { buffer, fields, sum: 0 };
        // Twice over, so that every place was written before.
        bench.extend(2 * CAPACITY / BATCH + 20);
        bench
    }

    /// Seconds for so many times 4,096 transitions.
    fn extend(&mut self, count: usize) -> f64 {
        let fields: Vec<&[u32]> = self.fields.iter().map(Vec::as_slice).collect();
        let start = Instant::now();
        for _ in 0..count {
            self.buffer.extend_rows(&fields, ENVS).unwrap();
        }
        start.elapsed().as_secs_f64()
    }

    /// Seconds for so many batches.
    fn sample(&mut self, count: usize) -> f64 {
        let start = Instant::now();
        for _ in 0..count {
            let batch = self.buffer.next().unwrap();
            self.sum += batch.indices()[0];
        }
        start.elapsed().as_secs_f64()
    }
}

fn main() {
    tch::set_num_threads(1);
    // `cargo bench` adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let serve = args.iter().any(|a| a == "--serve");
    let mut words = args.iter().filter(|a| *a != "--serve");
    let wanted = words.next().map_or("", String::as_str);
    let given = words.next().map(PathBuf::from);
    for (name, storage) in [("host", StorageKind::Host), ("memmap", StorageKind::Memmap)] {
        if !wanted.is_empty() && wanted != name {
            continue;
        }
        let temporary = tempfile::tempdir().unwrap();
        let folder = given.clone().unwrap_or_else(|| temporary.path().to_owned());
        let mut bench = Bench::new(storage, &folder);
        if serve {
            answer(&mut bench);
            continue;
        }
        let median = |times: &mut dyn FnMut() -> f64| {
            let mut all: Vec<f64> = (0..15).map(|_| times()).collect();
            all.sort_by(f64::total_cmp);
            20.0 * BATCH as f64 / all[7] / 1e6
        };
        let sample = median(&mut || bench.sample(20));
        let extend = median(&mut || bench.extend(20));
        println!("replay.{name}.sample {sample:.2} million transitions/s");
        println!("replay.{name}.extend {extend:.2} million transitions/s");
    }
}

fn answer(bench: &mut Bench) {
    let mut out = std::io::stdout();
    writeln!(out, "ready").unwrap();
    out.flush().unwrap();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (what, count) = line.split_once(' ').unwrap();
        let count = count.parse().unwrap();
        let seconds = match what {
            "extend" => bench.extend(count),
            _ => bench.sample(count),
        };
        writeln!(out, "{seconds}").unwrap();
        out.flush().unwrap();
    }
}
