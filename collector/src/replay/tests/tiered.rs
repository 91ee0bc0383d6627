use super::super::device::tests::{Twin, layout, ring, rows};
use super::super::file::{Expect, FileRing};
use super::super::storage::OnFullDisk;
use super::super::transition::{Layout, Ring, Rows, names};
use super::super::{ReplayBuffer, ReplayConfig, SamplerKind, Setup, StorageKind};
use super::*;
use crate::replay::tests::{field, host, rollout, setup, spec};
use ostler_sim::device::Counts;
use std::path::Path;
use std::sync::Arc;

fn tiered<S: Memory>(folder: &Path, recent: S) -> Tiered<S> {
    let (layout, mut window) = (layout(), Window::new(40, 44));
    let file = FileRing::open(folder, &layout, &mut window, Expect::New).unwrap().0;
    let site = Site {
        layout: &layout,
        window: &window,
        recent: 10,
        margin: 4,
        device: Device::Cpu,
        crossed: &Arc::<Counts>::default(),
        on_full: OnFullDisk::Stop,
        free: || None,
        file: Some(file),
    };
    Tiered::new(site, recent).unwrap()
}

fn draws_over_both_parts<S: Memory>(n_step: usize, folder: &Path, recent: S) {
    let mut twin = Twin::new(n_step, 40, tiered(folder, recent));
    for i in 0..5 {
        twin.extend(5 * i, 5, false);
        let [host, tiered] = twin.batches(&rows(&twin.host.0));
        assert_eq!(host, tiered);
    }
    // The newest come from memory: they are what is there, not what is in the file.
    let (window, tiered) = &mut twin.device;
    let newest = window.end() - 1;
    let marked = vec![7.0_f32.to_bits(); layout().words()];
    let rows = Rows::one(Ring::new(&marked, marked.len(), marked.len(), 1));
    tiered.recent.write(rows, newest..newest + 1).unwrap();
    assert_ne!(tiered.all.rows().unwrap().row(newest)[0], 7.0_f32.to_bits());
    let [_, drawn] = twin.batches(&[newest; 200]);
    let obs = &drawn.iter().find(|(n, _)| n == names::OBS).unwrap().1;
    assert_eq!(obs[0][..3], [7.0; 3]);
    let [host, tiered] = twin.batches(&[newest - 10; 200]);
    assert_eq!(host, tiered);
}

#[test]
fn f12_a_tiered_storage_draws_over_both_parts_at_once() {
    for n_step in [1, 3] {
        let dir = tempfile::tempdir().unwrap();
        draws_over_both_parts(n_step, &dir.path().join("device"), ring(14));
        let memory = HostRing::new(14, layout().words()).unwrap();
        draws_over_both_parts(n_step, &dir.path().join("host"), memory);
    }
}

#[test]
fn f12_one_uniform_draw_over_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let config = ReplayConfig {
        storage: StorageKind::Tiered,
        recent: 6,
        sampler: SamplerKind::Uniform,
        ..host(30)
    };
    let setup = Setup { folder: Some(dir.path()), ..setup(100) };
    let layout = Layout::of(&spec(3, None));
    let mut tiered = ReplayBuffer::new(&config, layout, setup).unwrap();
    tiered.extend(&rollout(&spec(3, None), 0, 12)).unwrap();
    let mut counts = [0.0_f64; 30];
    for _ in 0..100 {
        let batch = tiered.next().unwrap();
        let obs = field(batch, names::OBS);
        for (&row, obs) in batch.indices().iter().zip(obs) {
            counts[(row - 6) as usize] += 1.0;
            assert_eq!(obs, [(row / 3) as f32, (row % 3) as f32, 0.0]);
        }
    }
    let mean = 10_000.0 / 30.0;
    let chi2: f64 = counts.iter().map(|c| (c - mean).powi(2) / mean).sum();
    // 29 degrees of freedom: 99.99 % lie below 65.
    assert!(chi2 < 65.0, "{counts:?}");
}
