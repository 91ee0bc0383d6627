use super::*;
use crate::transfer::host_numbers;

fn batch() -> Batch {
    let mut batch = Batch::new(Device::Cpu, 2);
    let reward = Tensor::from_slice(&[-3.0_f32, 0.25]);
    batch.insert("reward", reward).unwrap();
    batch
}

fn numbers(batch: &Batch, name: &str) -> Vec<f32> {
    host_numbers(batch.get(name).unwrap()).unwrap()
}

#[test]
fn rewards_are_scaled_and_then_clipped() {
    let scale = |scale, clip| RewardScale { scale, clip }.apply(batch()).unwrap();
    assert_eq!(numbers(&scale(2.0, 1.0), "reward"), [-1.0, 0.5]);
    assert_eq!(numbers(&scale(2.0, 0.0), "reward"), [-6.0, 0.5]);
}

#[test]
fn f10_the_device_of_what_comes_out_is_held_to() {
    let run = |device| {
        let mut chain = Chain::new(device);
        chain.push(Box::new(RewardScale { scale: 2.0, clip: 0.0 }));
        chain.run(batch())
    };
    assert_eq!(run(Device::Cpu).unwrap().device(), Device::Cpu);
    let e = run(Device::Cuda(0)).unwrap_err();
    assert!(matches!(e, ReplayError::Device { expected: Device::Cuda(0), got: Device::Cpu, .. }));
}
