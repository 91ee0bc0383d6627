use super::*;
use crate::transfer::host_numbers;

fn batch() -> Batch {
    let mut batch = Batch::new(Device::Cpu, 2);
    let obs = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).view([2, 3]);
    batch.insert("obs", obs).unwrap();
    let action = Tensor::from_slice(&[7.0_f32, 8.0]).view([2, 1]);
    batch.insert("action", action).unwrap();
    let reward = Tensor::from_slice(&[-3.0_f32, 0.25]);
    batch.insert("reward", reward).unwrap();
    batch
}

fn numbers(batch: &Batch, name: &str) -> Vec<f32> {
    host_numbers(batch.get(name).unwrap()).unwrap()
}

#[test]
fn each_does_what_it_says() {
    let mean = Tensor::from_slice(&[1.0_f32, 2.0, 3.0]);
    let std = Tensor::from_slice(&[2.0_f32, 1.0, 0.5]);
    let out = Normalize::new(&["obs"], &mean, &std, 2.0).apply(batch()).unwrap();
    assert_eq!(numbers(&out, "obs"), [0.0, 0.0, 0.0, 1.5, 2.0, 2.0]);
    let scale = |scale, clip| RewardScale { scale, clip }.apply(batch()).unwrap();
    assert_eq!(numbers(&scale(2.0, 1.0), "reward"), [-1.0, 0.5]);
    assert_eq!(numbers(&scale(2.0, 0.0), "reward"), [-6.0, 0.5]);
    let mut chain = Chain::new(Device::Cpu);
    chain.push(Box::new(Crop { field: "obs".into(), first: 1, len: 2 }));
    chain.push(Box::new(Stack { fields: vec!["obs".into(), "action".into()], to: "input".into() }));
    chain.push(Box::new(Cast { fields: vec!["input".into()], kind: Kind::Double }));
    let out = chain.run(batch()).unwrap();
    assert_eq!(numbers(&out, "input"), [2.0, 3.0, 7.0, 5.0, 6.0, 8.0]);
    assert_eq!(out.get("input").unwrap().kind(), Kind::Double);
    let missing = Cast { fields: vec!["nothing".into()], kind: Kind::Half };
    assert!(matches!(missing.apply(batch()), Err(ReplayError::NoField { .. })));
}

/// Says one device and does another.
#[derive(Debug)]
struct Liar;

impl Transform for Liar {
    fn apply(&self, batch: Batch) -> Result<Batch, ReplayError> {
        Ok(batch)
    }

    fn device(&self, _: Device) -> Device {
        Device::Cuda(0)
    }
}

#[test]
fn f10_the_device_of_what_comes_out_is_known_and_held_to() {
    let mut chain = Chain::new(Device::Cpu);
    chain.push(Box::new(RewardScale { scale: 2.0, clip: 0.0 }));
    assert_eq!(chain.device(), Device::Cpu);
    assert_eq!(chain.run(batch()).unwrap().device(), Device::Cpu);
    chain.push(Box::new(ToDevice(Device::Cpu)));
    assert_eq!(chain.run(batch()).unwrap().device(), Device::Cpu);
    chain.push(Box::new(Liar));
    assert_eq!(chain.device(), Device::Cuda(0));
    let e = chain.run(batch()).unwrap_err();
    assert!(matches!(e, ReplayError::Device { expected: Device::Cuda(0), got: Device::Cpu, .. }));
}
