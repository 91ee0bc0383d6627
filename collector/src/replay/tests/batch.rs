use super::*;
use tch::Kind;

#[test]
fn f10_a_tensor_on_another_device_does_not_get_into_a_batch() {
    let mut batch = Batch::new(Device::Cpu, 2);
    // A tensor without numbers stands for one on a GPU: it has a device of its own.
    let elsewhere = Tensor::zeros([2], (Kind::Float, Device::Cpu));
    batch.insert("here", elsewhere).unwrap();
    let other = Batch::new(Device::Cuda(0), 2);
    let mut like = other.like();
    assert_eq!(like.device(), Device::Cuda(0), "kept by construction");
    let e = like.insert("x", batch.get("here").unwrap().shallow_clone()).unwrap_err();
    assert!(matches!(
        &e,
        ReplayError::Device { name, expected: Device::Cuda(0), got: Device::Cpu } if name == "x"
    ));
    assert!(like.fields().next().is_none(), "nothing was added");
}

#[test]
fn a_batch_has_one_number_of_rows() {
    let mut batch = Batch::new(Device::Cpu, 2);
    let zeros = |size: &[i64]| Tensor::zeros(size, (Kind::Float, Device::Cpu));
    assert!(batch.insert("a", zeros(&[3, 2])).is_err());
    assert!(batch.insert("a", zeros(&[])).is_err());
    batch.insert("a", zeros(&[2, 3])).unwrap();
    batch.insert("a", zeros(&[2])).unwrap();
    assert_eq!(batch.get("a").unwrap().size(), [2]);
    let e = batch.get("b").unwrap_err().to_string();
    assert_eq!(e, "a batch has no field \"b\"; it has a");
    assert!(batch.remove("a").is_some() && batch.remove("a").is_none());
}
