//! What a GPU would show, the pretend one shows: each mistake is made in a process of its own.

use crate::place::place;
use crate::support::alone;
use crate::support::pretended::libraries;
use ostler_collector::device::Stream;
use ostler_sim::device::transfer::Reader;
use ostler_sim::device::{Address, Program};
use ostler_trainer::torch::CudaStream;
use std::process::Output;
use tch::{Kind, Tensor};

/// A test of this program, alone, on the pretend GPU.
fn on_pretend(test: &str, variables: &[(&str, &str)]) -> Option<Output> {
    let mut command = alone::command(&[], test);
    command
        .envs(libraries()?.variables())
        .env("OSTLER_GPU_TESTS", "cuda:0")
        .env("OSTLER_GPU_SIZES", "small")
        .env("RUST_BACKTRACE", "0")
        .envs(variables.iter().copied());
    Some(command.output().unwrap())
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

/// A mistake ends the process, or fails the test, with these words.
fn caught(mistake: &str, words: &str) {
    let Some(out) = on_pretend(&format!("pretend::{mistake}"), &[]) else {
        return;
    };
    let said = text(&out);
    assert!(said.contains("running 1 test"), "{said}");
    assert!(!out.status.success() && said.contains(words), "{said}");
}

#[test]
fn mistakes_are_caught() {
    for (mistake, words) in [
        ("reads_the_devices_memory_on_the_host", "the host touched memory of the device"),
        ("writes_the_devices_memory_on_the_host", "the host touched memory of the device"),
        ("mixes_devices", "Expected all tensors to be on the same device"),
        ("mixes_devices_in_place", "Expected all tensors to be on the same device"),
        ("reads_before_the_copy_has_landed", "left: [NaN, NaN]"),
        ("reads_a_reader_by_its_address_before_it_waited", "it has not landed"),
        ("changes_the_source_of_a_copy", "the source of a copy to the device was changed"),
        ("uses_memory_that_was_not_written", "left: [NaN, NaN]"),
        ("takes_an_address_of_the_host_for_one_of_the_device", "not the device's"),
        (
            "gives_a_kernel_an_address_of_the_host",
            "an address in a kernel's arguments is not the device's",
        ),
        (
            "asks_for_what_no_gpu_has",
            "no GPU has a kernel for the operator aten::slow_conv3d_forward",
        ),
    ] {
        caught(mistake, words);
    }
}

/// What it does not forbid is as on the processor.
#[test]
fn numbers_cross_and_come_back() {
    let Some(out) = on_pretend("pretend::moves_and_computes", &[]) else {
        return;
    };
    assert!(out.status.success(), "{}", text(&out));
}

#[test]
fn no_memory_is_an_error_of_libtorch() {
    let small = [("FAKE_MEMORY", "1000000")];
    let Some(out) = on_pretend("pretend::runs_out_of_memory", &small) else {
        return;
    };
    assert!(out.status.success(), "{}", text(&out));
}

fn there(numbers: &[f32]) -> Tensor {
    Tensor::from_slice(numbers).to_device(place().torch)
}

#[test]
#[ignore = "only run by another test"]
fn moves_and_computes() {
    let place = place();
    let a = there(&[1.0, 2.0, 3.0, 4.0]).view([2, 2]);
    let product = a.matmul(&a.tr()) + 0.5;
    assert_eq!(product.device(), place.torch);
    assert_eq!(crate::place::numbers(&product), [5.5, 11.5, 11.5, 25.5]);
    // A number of the host may take part, as on a GPU.
    let scaled = &a * Tensor::from(2.0_f32);
    assert_eq!(crate::place::numbers(&scaled.sum(Kind::Float)), [20.0]);
    let joined = Tensor::cat(&[&a, &scaled], 0);
    let order = Tensor::from_slice(&[3_i64, 0]).to_device(place.torch);
    let rows = joined.index_select(0, &order);
    assert_eq!(crate::place::numbers(&rows), [6.0, 8.0, 1.0, 2.0]);
    let mut grown = Tensor::empty([0], (Kind::Float, place.torch));
    let _ = grown.resize_([2]).fill_(7.0);
    assert_eq!(crate::place::numbers(&grown), [7.0, 7.0]);
    let leaf = a.set_requires_grad(true);
    (&leaf * &leaf).sum(Kind::Float).backward();
    assert_eq!(crate::place::numbers(&leaf.grad()), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
#[ignore = "only run by another test"]
fn runs_out_of_memory() {
    let place = place();
    let all = || Tensor::f_zeros([200_000], (Kind::Float, place.torch));
    let held = all().unwrap();
    let error = all().unwrap_err();
    assert!(ostler_collector::memory::out_of_memory(&error).is_some(), "{error}");
    drop(held);
    drop(all().unwrap());
}

#[test]
#[ignore = "only run by another test"]
fn reads_the_devices_memory_on_the_host() {
    let t = there(&[1.0, 2.0]);
    // SAFETY: none: this is the mistake.
    println!("{}", unsafe { *t.data_ptr().cast::<f32>() });
}

#[test]
#[ignore = "only run by another test"]
fn writes_the_devices_memory_on_the_host() {
    let t = there(&[1.0, 2.0]);
    // SAFETY: none: this is the mistake.
    unsafe { *t.data_ptr().cast::<f32>() = 3.0 };
}

#[test]
#[ignore = "only run by another test"]
fn mixes_devices() {
    let _ = there(&[1.0, 2.0]) + Tensor::from_slice(&[1.0_f32, 2.0]);
}

#[test]
#[ignore = "only run by another test"]
fn mixes_devices_in_place() {
    let mut t = there(&[1.0, 2.0]);
    let _ = t.g_mul_(&Tensor::from_slice(&[1.0_f32, 2.0]));
}

#[test]
#[ignore = "only run by another test"]
fn reads_before_the_copy_has_landed() {
    let place = place();
    let t = there(&[1.0, 2.0]);
    let here = t.to_device_(tch::Device::Cpu, Kind::Float, true, false);
    assert_eq!(Vec::<f32>::try_from(&here).unwrap(), [1.0, 2.0]);
    drop(place);
}

#[test]
#[ignore = "only run by another test"]
fn reads_a_reader_by_its_address_before_it_waited() {
    let place = place();
    let t = there(&[1.0, 2.0]);
    let reader = Reader::new(place.device.staging("two numbers", 8).unwrap());
    let address = reader.bytes().as_ptr().cast::<f32>();
    // SAFETY: the tensor has as many bytes.
    let flight = unsafe { reader.begin(t.data_ptr() as Address) }.unwrap();
    // SAFETY: the memory lives; that it is read now is the mistake.
    let early = unsafe { address.read_volatile() };
    let landed = flight.wait().unwrap();
    assert_eq!(landed.bytes(), bytemuck::bytes_of(&[1.0_f32, 2.0]));
    assert_eq!(early.to_bits(), 1.0_f32.to_bits(), "it has not landed");
}

#[test]
#[ignore = "only run by another test"]
fn changes_the_source_of_a_copy() {
    let place = place();
    let to = there(&[0.0, 0.0]);
    let from = ostler_collector::memory::pinned(&Tensor::from_slice(&[1.0_f32, 2.0]), place.torch);
    let mut from = from.unwrap();
    let stream = CudaStream::new(0);
    stream.upload(&from, &to, false).unwrap();
    let _ = from.fill_(5.0);
    stream.wait_for_event().unwrap();
}

#[test]
#[ignore = "only run by another test"]
fn uses_memory_that_was_not_written() {
    let t = Tensor::empty([2], (Kind::Float, place().torch));
    assert_eq!(crate::place::numbers(&t), [0.0, 0.0]);
}

#[test]
#[ignore = "only run by another test"]
fn takes_an_address_of_the_host_for_one_of_the_device() {
    let place = place();
    let host = [0_u8; 16];
    // SAFETY: none: the address is not of the device.
    let sent = unsafe { place.device.upload(&host, host.as_ptr() as Address) };
    sent.unwrap();
    place.device.synchronize().unwrap();
}

#[test]
#[ignore = "only run by another test"]
fn gives_a_kernel_an_address_of_the_host() {
    let place = place();
    let program = Program {
        text: r#"
struct Args { int* out; };
extern "C" __attribute__((visibility("default"))) const unsigned set_bytes = sizeof(Args);
extern "C" __attribute__((visibility("default"))) void set(const void* args, long long first, long long end) {
  ((const Args*)args)->out[0] = 1;
}
"#
        .into(),
        places: Vec::new(),
        entries: vec!["set".into()],
    };
    let kernels = place.device.load(&program).unwrap();
    let host = Tensor::zeros([1], (Kind::Int, tch::Device::Cpu));
    let args = (host.data_ptr() as Address).to_ne_bytes();
    // SAFETY: none: the address is not of the device.
    unsafe { kernels.launch(0, 1, &args) }.unwrap();
    place.device.synchronize().unwrap();
}

#[test]
#[ignore = "only run by another test"]
fn asks_for_what_no_gpu_has() {
    let image = Tensor::ones([1, 1, 2, 2, 2], (Kind::Float, place().torch));
    let kernel = Tensor::ones([1, 1, 1, 1, 1], (Kind::Float, place().torch));
    let _ = image.slow_conv3d(&kernel, [1, 1, 1], None::<Tensor>, [1, 1, 1], [0, 0, 0]);
}
