use super::super::batch::Shape;
use super::super::host::{HostRing, rows_of};
use super::super::transition::Field;
use super::*;
use crate::replay::tests::{field, rollout, spec};

/// A storage of a GPU, with tensors on the host in its place, beside one of the host.
pub(crate) struct Twin<S> {
    pub(crate) host: (Window, HostRing),
    pub(crate) device: (Window, S),
    plan: GatherPlan,
}

pub(crate) fn layout() -> Layout {
    Layout::of(&spec(3, Some(2)))
}

pub(crate) fn ring(places: u64) -> DeviceRing {
    DeviceRing::new(places, layout(), Device::Cpu, &Arc::default()).unwrap()
}

impl<S: Storage> Twin<S> {
    pub(crate) fn new(n_step: usize, capacity: u64, storage: S) -> Self {
        let shape = Shape {
            batch: 200,
            n_step,
            discounts: (0..=n_step as i32).map(|k| 0.5_f32.powi(k)).collect(),
        };
        let window = || Window::new(capacity, capacity + 4);
        Self {
            host: (window(), HostRing::new(capacity + 4, layout().words()).unwrap()),
            device: (window(), storage),
            plan: GatherPlan::new(layout(), shape).unwrap(),
        }
    }

    pub(crate) fn extend(&mut self, first: i64, steps: i64, on_device: bool) {
        let rollout = rollout(&spec(3, Some(2)), first, steps);
        let _ = rollout.version.get(1).fill_(first + 100);
        let count = (rollout.steps * rollout.envs) as usize;
        rows_of(&rollout, &self.plan.layout, 4, &Counts::default(), |fill| {
            let mut new = New { count, stride: 3, fill };
            self.host.1.extend(&mut self.host.0, &mut new)?;
            match on_device {
                true => Ok(()),
                false => self.device.1.extend(&mut self.device.0, &mut new),
            }
        })
        .unwrap();
        if on_device {
            assert!(self.device.1.extend_there(&mut self.device.0, &rollout, 4).unwrap());
        }
    }

    /// Batches of both with these transitions.
    pub(crate) fn batches(&self, rows: &[u64]) -> [Vec<(String, Vec<Vec<f32>>)>; 2] {
        let host = self.batch(&self.host.1, &self.host.0, rows, false);
        [host, self.batch(&self.device.1, &self.device.0, rows, true)]
    }

    fn batch(
        &self,
        storage: &dyn Storage,
        window: &Window,
        rows: &[u64],
        crosses: bool,
    ) -> Vec<(String, Vec<Vec<f32>>)> {
        let plan = &self.plan;
        let crossed = Arc::<Counts>::default();
        // Another piece of the host's memory stands for a device's: rows that are not sent are
        // not there.
        let there = crosses.then(|| {
            let words = (plan.words() + plan.places()) as i64;
            Tensor::full([words], f64::NAN, (Kind::Float, Device::Cpu))
        });
        let mut slot = Slot::with(plan, there, None, &crossed).unwrap();
        let weights = plan.weights();
        slot.write(weights.clone(), |_, out| out[weights].fill(0.5_f32.to_bits())).unwrap();
        slot.rows.copy_from_slice(rows);
        storage.gather(&Draw { plan, window, which: 0..u64::MAX }, &mut slot).unwrap();
        slot.upload().unwrap();
        let traffic = crossed.traffic();
        let once = u64::from(crosses);
        assert_eq!((traffic.uploads, traffic.waits), (once, once));
        let all = slot.base.fields().map(|(n, _)| n.to_owned());
        all.map(|n| (n.clone(), field(&slot.base, &n))).collect()
    }
}

pub(crate) fn rows(window: &Window) -> Vec<u64> {
    window.range().cycle().take(200).collect()
}

#[test]
fn what_comes_to_a_device_or_back_is_counted_once_for_each_piece() {
    let crossed = Arc::<Counts>::default();
    let layout = Layout::new(vec![Field::float("a", 3)]).unwrap();
    let mut ring = DeviceRing::new(10, layout, Device::Cpu, &crossed).unwrap();
    let copies = |work: &mut dyn FnMut()| {
        let before = crossed.traffic();
        work();
        let traffic = crossed.traffic().since(before);
        assert_eq!(traffic.waits, traffic.copies());
        (traffic.uploads, traffic.downloads)
    };
    let mut write = |first: u64, count: usize| {
        let mut fill = |i: usize, row: &mut [u32]| row.fill((first as f32 + i as f32).to_bits());
        ring.put(first, count, &mut fill).unwrap();
    };
    assert_eq!(copies(&mut || write(0, 4)), (1, 0));
    assert_eq!(copies(&mut || write(4, 6)), (1, 0));
    assert_eq!(copies(&mut || write(10, 0)), (0, 0));
    assert_eq!(copies(&mut || write(17, 5)), (2, 0), "round the end");
    let read = |first: u64, count: usize| drop(ring.brought(first, count).unwrap());
    assert_eq!(copies(&mut || read(12, 3)), (0, 1));
    assert_eq!(copies(&mut || read(18, 4)), (0, 2));
    let words = ring.brought(18, 4).unwrap();
    let expected: Vec<f32> = [18.0, 19.0, 20.0, 21.0].iter().flat_map(|x| [*x; 3]).collect();
    assert_eq!(words, expected);
}

#[test]
fn a_device_holds_and_draws_what_the_host_does() {
    for n_step in [1, 3] {
        for on_device in [false, true] {
            let mut twin = Twin::new(n_step, 40, ring(44));
            for i in 0..5 {
                twin.extend(5 * i, 5, on_device);
                if i == 2 {
                    twin.host.0.cut();
                    twin.device.0.cut();
                }
                let [host, device] = twin.batches(&rows(&twin.host.0));
                assert_eq!(host, device, "{n_step} {on_device} {i}");
            }
            // More than there are places.
            twin.extend(25, 20, on_device);
            let [host, device] = twin.batches(&rows(&twin.host.0));
            assert_eq!(host, device);
        }
    }
}
