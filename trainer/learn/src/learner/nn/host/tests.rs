use super::*;
use crate::learner::nn::{Layout, Linear, Params, Trunk, TrunkConfig};
use crate::learner::policy::Activation;
use ostler_collector::memory::with_floats;
use ostler_sim::rng::{Purpose, fill_normal};
use tch::{Device, Kind, Tensor};

const ALL: [Activation; 3] = [Activation::Elu, Activation::Relu, Activation::Tanh];

fn libtorch(activation: Activation, x: &Tensor) -> Tensor {
    match activation {
        Activation::Elu => x.elu(),
        Activation::Relu => x.relu(),
        Activation::Tanh => x.tanh(),
        Activation::Silu => x.silu(),
    }
}

/// Vectors whose bits are the same: without AVX2 nothing is fused.
fn fused() -> impl Iterator<Item = Vectors> {
    Vectors::all().filter(|v| *v != Vectors::Four)
}

/// Distance from `exact` in units in the last place of the float next to it.
fn ulps(x: f32, exact: f64) -> f64 {
    let near = (exact as f32).abs().max(f32::MIN_POSITIVE);
    let ulp = f64::from(f32::from_bits(near.to_bits() + 1)) - f64::from(near);
    (f64::from(x) - exact).abs() / ulp
}

/// Numbers of both signs from the smallest subnormal ones to 2^40.
fn everywhere() -> Vec<f32> {
    let magnitudes = (1..0x5380_0000_u32).step_by(4099).map(f32::from_bits);
    magnitudes.flat_map(|x| [x, -x]).collect()
}

#[test]
fn errors_are_within_their_bounds_everywhere() {
    for vectors in Vectors::all() {
        for (activation, bound) in [(Activation::Elu, 1.0), (Activation::Tanh, 3.0)] {
            let x = everywhere();
            let mut y = x.clone();
            vectors.activate(activation, &mut y);
            let worst = x.iter().zip(&y).map(|(&x, &y)| {
                let exact = match activation {
                    Activation::Tanh => f64::from(x).tanh(),
                    _ if x > 0.0 => f64::from(x),
                    _ => f64::from(x).exp_m1(),
                };
                (ulps(y, exact), x)
            });
            let worst = worst.fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
            assert!(worst.0 <= bound, "{vectors:?} {activation:?} {worst:?}");
        }
    }
}

#[test]
fn forward_and_backward_agree_with_libtorch_and_special_values_are_its() {
    let special = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        1e-40,
        -1e-40,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        -f32::MIN_POSITIVE,
        -87.5,
        -104.0,
    ];
    let mut x = everywhere();
    // libtorch treats what is left over at an end apart; here all are in its vectors.
    x.splice(0..0, special.into_iter().cycle().take(16 * special.len()));
    x.truncate(x.len() / 64 * 64);
    let mut d = vec![0.0; x.len()];
    fill_normal(1, 0..x.len() as u32, Purpose::Replay, 0, 1, &mut d);
    d[5] = f32::NAN;
    d[6] = f32::INFINITY;
    for vectors in Vectors::all() {
        for activation in ALL {
            let theirs = libtorch(activation, &Tensor::from_slice(&x));
            let mut y = x.clone();
            vectors.activate(activation, &mut y);
            let expected = Vec::<f32>::try_from(&theirs).unwrap();
            for ((&x, &y), &e) in x.iter().zip(&y).zip(&expected) {
                let same = match activation {
                    Activation::Relu => y.to_bits() == e.to_bits(),
                    _ => y == e || ulps(y, f64::from(e)) <= 4.0,
                };
                let signed = y.is_sign_negative() == e.is_sign_negative();
                let nan = y.is_nan() && e.is_nan();
                assert!(nan || (same && signed), "{activation:?}({x:e}) = {y:e}, theirs {e:e}");
            }
            // From the same results, so that it is the derivative alone.
            let (their_d, y) = (Tensor::from_slice(&d), expected);
            let _ = match activation {
                Activation::Elu => Tensor::elu_backward_grad_input(
                    &their_d, &their_d, 1.0, 1.0, 1.0, true, &theirs,
                ),
                Activation::Relu => theirs.threshold_backward_grad_input(&their_d, &their_d, 0.0),
                Activation::Tanh => Tensor::tanh_backward_grad_input(&their_d, &their_d, &theirs),
                Activation::Silu => unreachable!("it has a test of its own"),
            };
            let mut own_d = d.clone();
            vectors.slope(activation, &y, &mut own_d);
            let expected = Vec::<f32>::try_from(&their_d).unwrap();
            for (i, (&own, &e)) in own_d.iter().zip(&expected).enumerate() {
                let close = match activation {
                    // `1 - y^2` may be rounded once or twice.
                    Activation::Tanh => (own - e).abs() <= 2.4e-7 * d[i].abs(),
                    _ => own.to_bits() == e.to_bits(),
                };
                let same = close || own == e || (own.is_nan() && e.is_nan());
                assert!(same, "{activation:?} at {:e}: {own:e}, theirs {e:e}", y[i]);
            }
        }
    }
}

#[test]
fn silu_and_its_slope_are_those_of_libtorch() {
    let x: Vec<f32> = (-2000..2000).map(|i| i as f32 * 0.02).chain([f32::NAN]).collect();
    let t = Tensor::from_slice(&x);
    let (theirs, d) = (libtorch(Activation::Silu, &t), t.sin());
    let their_d = Tensor::zeros_like(&d);
    let _ = t.silu_backward_grad_input(&their_d, &d);
    let numbers = |t: &Tensor| Vec::<f32>::try_from(t).unwrap();
    for vectors in Vectors::all() {
        let (mut y, mut own_d) = (x.clone(), numbers(&d));
        vectors.activate(Activation::Silu, &mut y);
        vectors.slope(Activation::Silu, &x, &mut own_d);
        for (own, theirs) in [(&y, numbers(&theirs)), (&own_d, numbers(&their_d))] {
            for ((&own, &e), x) in own.iter().zip(&theirs).zip(&x) {
                let near = (own - e).abs() <= 2e-6 * e.abs().max(1.0);
                assert!(near || (own.is_nan() && e.is_nan()), "at {x}: {own:e}, theirs {e:e}");
            }
        }
    }
}

#[test]
fn a_number_gets_the_same_bits_wherever_it_stands_and_however_wide_vectors_are() {
    let mut x = vec![0.0; 131];
    fill_normal(2, 0..131, Purpose::Replay, 0, 1, &mut x);
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for activation in ALL {
        let mut whole = x.clone();
        Vectors::Eight.activate(activation, &mut whole);
        let mut d_whole = x.clone();
        Vectors::Eight.slope(activation, &whole, &mut d_whole);
        for vectors in fused() {
            for (from, to) in [(0, 0), (0, 131), (0, 1), (1, 8), (3, 36), (50, 131), (130, 131)] {
                let mut part = x[from..to].to_vec();
                vectors.activate(activation, &mut part);
                assert_eq!(bits(&part), bits(&whole[from..to]), "{activation:?} {from}..{to}");
                let mut d = x[from..to].to_vec();
                vectors.slope(activation, &part, &mut d);
                assert_eq!(bits(&d), bits(&d_whole[from..to]), "{activation:?} {from}..{to}");
            }
        }
    }
}

/// Layers of these widths with random parameters, the last two of them heads.
fn network(activation: Activation, widths: &[i64]) -> (Params, Trunk, [Linear; 2]) {
    network_of(activation, widths, [false; 2])
}

fn network_of(
    activation: Activation,
    widths: &[i64],
    [layer_norm, residual]: [bool; 2],
) -> (Params, Trunk, [Linear; 2]) {
    let mut layout = Layout::default();
    let config = TrunkConfig { widths: &widths[1..], activation, layer_norm, residual };
    let (at, features) = Trunk::declare(&mut layout, "t", widths[0], config);
    let heads = [3, 13].map(|w| Linear::declare(&mut layout, &format!("h{w}"), features, w));
    let params = Params::new(layout, Device::Cpu).unwrap();
    let n = params.len();
    let mut random = vec![0.0; n as usize];
    fill_normal(3, 0..n as u32, Purpose::Replay, 0, 1, &mut random);
    params.theta.shallow_clone().copy_(&(Tensor::from_slice(&random) * 0.3));
    let trunk = Trunk::new(&params, &at, config).unwrap();
    let heads = heads.map(|at| Linear::new(&params, at).unwrap());
    (params, trunk, heads)
}

/// Outputs of both heads for the rows.
fn pass(net: &(Params, Trunk, [Linear; 2]), vectors: Vectors, x: &Tensor) -> [Tensor; 2] {
    let mut pass = ActorPass::new(&net.1, &net.2).unwrap().unwrap();
    pass.vectors = vectors;
    let out = [3, 13].map(|w| Tensor::zeros([x.size()[0], w], (Kind::Float, Device::Cpu)));
    let [a, b] = &net.2;
    let done = pass.tensors(x, None, (None, &net.1), [a, b], [&out[0], &out[1]]).unwrap();
    assert!(done);
    out
}

fn rows(n: i64, width: i64) -> Tensor {
    let mut x = vec![0.0; (n * width) as usize];
    fill_normal(4, 0..n as u32, Purpose::Replay, 0, width as usize, &mut x);
    Tensor::from_slice(&x).view([n, width])
}

#[test]
fn a_network_in_one_pass_equals_libtorch_layer_by_layer() {
    for activation in ALL {
        for widths in [&[5, 37, 16][..], &[8, 64, 64], &[1, 1], &[17]] {
            let net = network(activation, widths);
            let x = rows(71, widths[0]);
            let mut hidden = x.to_kind(Kind::Double);
            for layer in net.1.layers() {
                let double = |t: &Tensor| t.to_kind(Kind::Double);
                hidden = hidden.matmul(&double(layer.weight()).tr()) + double(layer.bias());
                hidden = libtorch(activation, &hidden);
            }
            for vectors in Vectors::all() {
                for (head, own) in net.2.iter().zip(pass(&net, vectors, &x)) {
                    let double = |t: &Tensor| t.to_kind(Kind::Double);
                    let exact = hidden.matmul(&double(head.weight()).tr()) + double(head.bias());
                    let error = (double(&own) - &exact).abs().max().double_value(&[]);
                    let size = exact.abs().max().double_value(&[]);
                    assert!(error <= 2e-6 * size, "{vectors:?} {widths:?} {error} of {size}");
                }
            }
        }
    }
}

/// Result of the hidden layers for `x`, in double precision.
fn by_libtorch(
    (params, trunk, _): &(Params, Trunk, [Linear; 2]),
    activation: Activation,
    [layer_norm, residual]: [bool; 2],
    x: &Tensor,
) -> Tensor {
    let double = |t: &Tensor| t.to_kind(Kind::Double);
    let mut state = crate::learner::State::default();
    params.declare(&mut state).unwrap();
    let params = state.weights().unwrap();
    let of = |name: String| double(&params.iter().find(|p| p.0 == name).unwrap().1);
    let mut hidden = double(x);
    for (i, layer) in trunk.layers().iter().enumerate() {
        let before = hidden;
        hidden = before.matmul(&double(layer.weight()).tr()) + double(layer.bias());
        if layer_norm {
            let [gain, bias] = ["weight", "bias"].map(|what| of(format!("t.{i}.norm.{what}")));
            let width = [layer.outputs() as i64];
            hidden = hidden.layer_norm(&width[..], Some(&gain), Some(&bias), 1e-5, false);
        }
        hidden = libtorch(activation, &hidden);
        if residual && i > 0 && hidden.size() == before.size() {
            hidden = &hidden + before;
        }
    }
    hidden
}

const KINDS: [[bool; 2]; 3] = [[true, false], [false, true], [true, true]];

#[test]
fn gradients_of_inputs_are_libtorchs() {
    for (activation, kind) in ALL.into_iter().zip(KINDS) {
        let net = network_of(activation, &[7, 12, 12, 9, 9], kind);
        let x = rows(10, 7);
        let wanted = x.to_kind(Kind::Double).set_requires_grad(true);
        let out = by_libtorch(&net, activation, kind, &wanted);
        let weights = rows(10, 9);
        let sum = (out * weights.to_kind(Kind::Double)).sum(Kind::Double);
        let expected = Tensor::run_backward(&[sum], &[&wanted], false, false);
        let space = net.1.space(10, true, Device::Cpu).unwrap();
        net.1.forward(&x, &space).unwrap();
        space.d_output().unwrap().shallow_clone().copy_(&weights);
        let dx = Tensor::zeros([10, 3], (Kind::Float, Device::Cpu));
        net.1.backward_inputs(&space, 2, 3, &dx).unwrap();
        let off = (&expected[0].narrow(1, 2, 3) - dx).abs().max();
        let size = expected[0].abs().max().double_value(&[]);
        assert!(off.double_value(&[]) < 1e-5 * size, "{activation:?} {kind:?}");
    }
}

#[test]
fn normalised_and_residual_layers_in_one_pass_equal_libtorchs() {
    for (activation, kind) in ALL.into_iter().flat_map(|a| KINDS.map(|k| (a, k))) {
        let net = network_of(activation, &[5, 37, 37, 16, 16], kind);
        let x = rows(71, 5);
        let double = |t: &Tensor| t.to_kind(Kind::Double);
        let hidden = by_libtorch(&net, activation, kind, &x);
        for vectors in Vectors::all() {
            for (head, own) in net.2.iter().zip(pass(&net, vectors, &x)) {
                let exact = hidden.matmul(&double(head.weight()).tr()) + double(head.bias());
                let error = (double(&own) - &exact).abs().max().double_value(&[]);
                let size = exact.abs().max().double_value(&[]);
                assert!(error <= 2e-5 * size, "{vectors:?} {error} of {size}");
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_a_batch_of_any_size() {
    let net = network(Activation::Elu, &[5, 37, 16]);
    let x = rows(100, 5);
    let whole = pass(&net, Vectors::Eight, &x);
    for vectors in fused() {
        for (from, len) in [(0, 1), (7, 31), (31, 33), (36, 64), (99, 1), (0, 100)] {
            let part = pass(&net, vectors, &x.narrow(0, from, len));
            for (part, whole) in part.iter().zip(&whole) {
                assert_eq!(part, &whole.narrow(0, from, len), "{from} {len}");
            }
        }
    }
}

#[test]
fn a_pass_normalises_as_libtorch_does_and_leaves_other_tensors_to_it() {
    let net = network(Activation::Tanh, &[5, 8]);
    let x = rows(40, 5);
    let (shift, scale) = (rows(1, 5).view([5]), rows(2, 5).get(1));
    let mut pass_of = ActorPass::new(&net.1, &net.2).unwrap().unwrap();
    let out = Tensor::zeros([40, 3], (Kind::Float, Device::Cpu));
    let [head, _] = &net.2;
    let norm = Some([&shift, &scale]);
    assert!(pass_of.tensors(&x, norm, (None, &net.1), [head], [&out]).unwrap());
    let before = (&x - &shift) * &scale;
    assert_eq!(out, pass(&net, pass_of.vectors, &before)[0]);
    let gaps = rows(40, 10).narrow(1, 0, 5);
    assert!(!pass_of.tensors(&gaps, norm, (None, &net.1), [head], [&out]).unwrap());
    // SAFETY: numbers of this test, and nothing is done with them.
    assert!(unsafe { with_floats([&gaps], [], |_, []| ()) }.is_none());
}
