use super::super::buffer::tests::{field, host, rollout, setup, spec};
use super::super::core::Inner;
use super::super::gather::Shape;
use super::super::host::HostRing;
use super::super::rows::Rows;
use super::super::slot::Slot;
use super::super::store::{Recent, Source, Store};
use super::super::{ReplayConfig, SamplerKind};
use super::*;

/// The storages of a GPU, with tensors on the host in its place.
struct Twin {
    host: Inner,
    device: Inner,
    layout: Layout,
    plan: GatherPlan,
}

impl Twin {
    fn new(n_step: usize, capacity: u64) -> Self {
        let layout = Layout::of(&spec(3, Some(2)));
        let shape = Shape {
            batch: 200,
            n_step,
            discounts: (0..=n_step as i32).map(|k| 0.5_f32.powi(k)).collect(),
        };
        let words = layout.words();
        let inner =
            |store| Inner { window: Window::new(capacity, capacity + 4), store, priorities: None };
        let ring = DeviceRing::new(capacity + 4, words, Device::Cpu, &Arc::default()).unwrap();
        Self {
            host: inner(Store::Host(HostRing::new(capacity + 4, words).unwrap())),
            device: inner(Store::Device(ring)),
            plan: GatherPlan::new(&layout, shape).unwrap(),
            layout,
        }
    }

    fn extend(&mut self, first: i64, steps: i64, on_device: bool) {
        let rollout = rollout(&spec(3, Some(2)), first, steps);
        let _ = rollout.version.get(1).fill_(first + 100);
        let mut source =
            Source { count: (rollout.steps * rollout.envs) as usize, stride: 3, rollout: None };
        let here = super::super::rollout::HostRollout::new(&rollout, &Counts::default()).unwrap();
        here.rows_for(&self.layout, 4, |fill| {
            Store::extend(&mut self.host, &self.layout, &source, Some(&mut *fill))?;
            if !on_device {
                Store::extend(&mut self.device, &self.layout, &source, Some(fill))?;
            }
            Ok(())
        })
        .unwrap();
        if on_device {
            source.rollout = Some((&rollout, 4));
            Store::extend(&mut self.device, &self.layout, &source, None).unwrap();
        }
    }

    fn batch(&self, inner: &Inner, rows: &[u64]) -> Vec<(String, Vec<Vec<f32>>)> {
        let (layout, plan) = (&self.layout, &self.plan);
        let crossed = Arc::<Counts>::default();
        let in_memory = matches!(inner.store, Store::Host(_));
        // Another piece of the host's memory stands for a device's: rows that are not sent are
        // not there.
        let there = (!in_memory).then(|| {
            let words = (plan.words() + plan.places()) as i64;
            Tensor::full([words], f64::NAN, (Kind::Float, Device::Cpu))
        });
        let mut slot = Slot::with(layout, plan, there, None, &crossed).unwrap();
        slot.columns(|_, out| out[plan.weights()].fill(0.5_f32.to_bits())).unwrap();
        slot.rows.copy_from_slice(rows);
        let Inner { store, window, .. } = inner;
        store.gather(plan, layout, window, &mut slot).unwrap();
        let traffic = crossed.traffic();
        let once = u64::from(!in_memory);
        assert_eq!((traffic.uploads, traffic.waits), (once, once));
        let all = slot.base.fields().map(|(n, _)| n.to_owned());
        all.map(|n| (n.clone(), field(&slot.base, &n))).collect()
    }
}

fn rows(window: &Window) -> Vec<u64> {
    window.range().cycle().take(200).collect()
}

#[test]
fn what_comes_to_a_device_or_back_is_counted_once_for_each_piece() {
    let crossed = Arc::<Counts>::default();
    let ring = DeviceRing::new(10, 3, Device::Cpu, &crossed).unwrap();
    let copies = |work: &dyn Fn()| {
        let before = crossed.traffic();
        work();
        let traffic = crossed.traffic().since(before);
        assert_eq!(traffic.waits, traffic.copies());
        (traffic.uploads, traffic.downloads)
    };
    let write = |first: u64, count: usize| {
        let fill = |i: usize, row: &mut [u32]| row.fill((first as f32 + i as f32).to_bits());
        ring.write(first, count, 3, fill).unwrap();
    };
    assert_eq!(copies(&|| write(0, 4)), (1, 0));
    assert_eq!(copies(&|| write(4, 6)), (1, 0));
    assert_eq!(copies(&|| write(10, 0)), (0, 0));
    assert_eq!(copies(&|| write(17, 5)), (2, 0), "round the end");
    let read = |first: u64, count: usize| drop(ring.read(first, count).unwrap());
    assert_eq!(copies(&|| read(12, 3)), (0, 1));
    assert_eq!(copies(&|| read(18, 4)), (0, 2));
    let words = ring.read(18, 4).unwrap();
    let expected: Vec<f32> = [18.0, 19.0, 20.0, 21.0].iter().flat_map(|x| [*x; 3]).collect();
    assert_eq!(words, expected);
}

#[test]
fn a_device_holds_and_draws_what_the_host_does() {
    for n_step in [1, 3] {
        for on_device in [false, true] {
            let mut twin = Twin::new(n_step, 40);
            for i in 0..5 {
                twin.extend(5 * i, 5, on_device);
                if i == 2 {
                    twin.host.window.cut();
                    twin.device.window.cut();
                }
                let rows = rows(&twin.host.window);
                let (host, device) =
                    (twin.batch(&twin.host, &rows), twin.batch(&twin.device, &rows));
                assert_eq!(host, device, "{n_step} {on_device} {i}");
            }
            // More than there are places.
            twin.extend(25, 20, on_device);
            let rows = rows(&twin.host.window);
            assert_eq!(twin.batch(&twin.host, &rows), twin.batch(&twin.device, &rows));
        }
    }
}

#[test]
fn f12_a_tiered_storage_draws_over_both_parts_at_once() {
    for n_step in [1, 3] {
        for recent_on_device in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let mut twin = Twin::new(n_step, 40);
            let words = twin.layout.words();
            let window = &mut Window::new(40, 44);
            let expect = super::super::file::Expect::New;
            let file = super::super::file::FileRing::open(dir.path(), &twin.layout, window, expect);
            let on_full = super::super::OnFullDisk::Stop;
            twin.device.store = Store::Tiered {
                disk: super::super::disk::Disk::new(file.unwrap().0, words, on_full, || None),
                recent: match recent_on_device {
                    true => Recent::Device(
                        DeviceRing::new(14, words, Device::Cpu, &Arc::default()).unwrap(),
                    ),
                    false => Recent::Host(HostRing::new(14, words).unwrap()),
                },
                span: 10,
            };
            for i in 0..5 {
                twin.extend(5 * i, 5, false);
                let rows = rows(&twin.host.window);
                assert_eq!(twin.batch(&twin.host, &rows), twin.batch(&twin.device, &rows));
            }
            // The newest come from memory: they are what is there, not what is in the file.
            if let Store::Tiered { recent, disk, .. } = &mut twin.device.store {
                let newest = twin.device.window.end() - 1;
                let marked = |_: usize, row: &mut [u32]| row.fill(7.0_f32.to_bits());
                match recent {
                    Recent::Host(ring) => marked(0, ring.place_mut(newest)),
                    Recent::Device(ring) => ring.write(newest, 1, words, marked).unwrap(),
                }
                assert_ne!(Rows::one(disk.file.ring().unwrap()).row(newest)[0], 7.0_f32.to_bits());
                let drawn = twin.batch(&twin.device, &[newest; 200]);
                let obs = &drawn.iter().find(|(n, _)| n == names::OBS).unwrap().1;
                assert_eq!(obs[0][..3], [7.0; 3]);
                let older = newest - 10;
                let (host, tiered) = (&twin.host, &twin.device);
                assert_eq!(twin.batch(host, &[older; 200]), twin.batch(tiered, &[older; 200]));
            }
        }
    }
}

#[test]
fn f12_one_uniform_draw_over_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let config = ReplayConfig {
        storage: super::super::StorageKind::Tiered,
        recent: 6,
        sampler: SamplerKind::Uniform,
        ..host(30)
    };
    let setup = super::super::Setup { folder: Some(dir.path()), ..setup(100) };
    let layout = Layout::of(&spec(3, None));
    let mut tiered = super::super::ReplayBuffer::new(&config, layout, setup).unwrap();
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
