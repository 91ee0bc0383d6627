"""An adapter over environments on the pretend GPU, with PyTorch's tensors of the processor in
place of a GPU's: which calls it makes of whom."""

import numpy as np
import torch
from device_arrays import Given

import ostler
import ostler.device

OWN = {"sim": {"specialize": "wait", "threads": 1}}


class Torch:
    """PyTorch as far as environments on a GPU call it."""

    @staticmethod
    def from_dlpack(array):
        return torch.from_numpy(array.numpy())


def test_rsl_rl_gets_the_devices_tensors():
    from ostler.rsl_rl import VecEnv

    before = ostler.device.torch_with_cuda
    ostler.device.torch_with_cuda = lambda: Torch
    try:
        options = {"observations": "dict", "env": {"episode_length_s": 0.4}, **OWN}
        gpu = ostler.make_vec("cartpole", 4, "cuda:0", seed=5, **options)
    finally:
        ostler.device.torch_with_cuda = before
    step = gpu._arrays.numbers
    gpu._arrays.numbers = lambda actions, *rest: Given(step(actions, *rest).numpy())
    gpu.statistics = None
    env = VecEnv(gpu, "cpu")
    twin = VecEnv(ostler.make_vec("cartpole", 4, seed=5, **options))
    assert gpu.device == "cuda:0" and twin.device == torch.device("cpu")
    cut = 0
    for t in range(25):
        actions = torch.full((4, 1), np.sin(t), dtype=torch.float32, requires_grad=True)
        x, y = env.step(actions), twin.step(actions)
        assert torch.equal(x[0]["policy"], y[0]["policy"])
        assert torch.equal(x[1], y[1]) and torch.equal(x[2], y[2])
        assert torch.equal(x[3]["time_outs"], y[3]["time_outs"]) and x[3]["log"] == {}
        assert torch.equal(env.episode_length_buf, twin.episode_length_buf)
        cut += x[2].sum()
    assert cut >= 8
