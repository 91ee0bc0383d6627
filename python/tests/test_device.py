"""Environments on a GPU, on the pretend one of `tests/pretend`."""

import ctypes
import gc
import os
import re
from pathlib import Path

import gymnasium
import numpy as np
from device_arrays import GET, NVIDIA, Given, Tensor

import ostler

# The kernel of the robot itself, which is the one that a GPU has.
OWN = {"sim": {"specialize": "wait", "threads": 1}}


def make(name="hopper", num_envs=5, device="cuda:0", kind=None, **options):
    kind = kind or (ostler.make_marl if name == "spread" else ostler.make_vec)
    return kind(name, num_envs, device, **{**OWN, **options})


def actions(env, step):
    """The same ones for environments on both sides, exact in single precision."""
    width = {name: space.shape for name, space in env.batched_action_spaces.items()}
    return {
        name: ((step * 31 + k * 7 + np.arange(np.prod(shape)) * 17) % 64 / 32.0 - 1.0)
        .astype(np.float32)
        .reshape(shape)
        for k, (name, shape) in enumerate(width.items())
    }


def alone(env, step):
    count = int(np.prod(env.action_space.shape))
    numbers = (step * 31 + np.arange(count) * 17) % 64 / 32.0 - 1.0
    return numbers.astype(np.float32).reshape(env.action_space.shape)


def raises(kind, words, call):
    try:
        call()
    except kind as e:
        assert re.search(words, str(e), re.S), f"{e!s} has not {words!r}"
        return
    raise AssertionError(f"no {kind.__name__}")


def calls(name):
    """The driver's calls of a function so far."""
    lines = Path(os.environ["FAKE_LOG"]).read_text().splitlines()
    return [line for line in lines if line.split()[0] == name]


def test_a_step_has_the_bits_of_a_step_on_the_processor():
    cut = 0
    for name in ("cartpole", "hopper"):
        options = {"env": {"episode_length_s": 0.4}}
        gpu, host = make(name, **options), make(name, device="cpu", **options)
        assert isinstance(gpu, gymnasium.vector.VectorEnv) and gpu.device == "cuda:0"
        assert gpu.observation_space == host.observation_space
        x, _ = gpu.reset(seed=7)
        y, _ = host.reset(seed=7)
        assert x.shape == y.shape and x.dtype == "float32" and x.device == "cuda:0"
        np.testing.assert_array_equal(x.numpy(), y)
        for step in range(120):
            given = alone(host, step)
            x, y = gpu.step(Given(given)), host.step(given)
            for p, q in zip(x[:4], y[:4]):
                assert p.numpy().dtype == q.dtype
                np.testing.assert_array_equal(p.numpy(), q)
            kept = x[4]["_final_obs"].numpy()
            np.testing.assert_array_equal(kept, y[3])
            assert not x[4]["broken"].numpy().any()
            if kept.any():
                cut += kept.sum()
                last = x[4]["final_obs"].numpy()
                np.testing.assert_array_equal(last[kept], y[4]["final_obs"][kept])
        told, wanted = gpu.statistics(), host.statistics()
        assert told["episodes"] == wanted["episodes"] > 0
        assert np.isclose(told["return"], wanted["return"])
    assert cut > 5


def test_several_agents_have_the_bits_of_the_processor():
    options = {"env": {"episode_length_s": 0.4}}
    gpu, host = make("spread", **options), make("spread", device="cpu", **options)
    x, _ = gpu.reset(seed=7)
    y, _ = host.reset(seed=7)
    for step in range(40):
        given = actions(host, step)
        x = gpu.step({name: Given(rows) for name, rows in given.items()})
        y = host.step(given)
        for p, q in zip(x[:4], y[:4]):
            for name in host.agents:
                np.testing.assert_array_equal(p[name].numpy(), q[name])
        for name in host.agents:
            kept = x[4][name]["_final_obs"].numpy()
            assert kept.all() == (step % 8 == 7) and kept.any() == kept.all()
            if kept.any():
                last = x[4][name]["final_obs"].numpy()
                np.testing.assert_array_equal(last, y[4][name]["final_obs"])
        np.testing.assert_array_equal(gpu.state().numpy(), host.state())


def test_a_step_is_three_launches_no_copy_and_no_wait():
    env = make()
    env.reset(seed=1)
    given = [Given(alone(env, step)) for step in range(10)]
    env.statistics()
    before, logged = env._batch.traffic(), len(calls("cuLaunchKernel"))
    for rows in given:
        env.step(rows)
    after = env._batch.traffic()
    assert after["launches"] - before["launches"] == 30
    assert len(calls("cuLaunchKernel")) - logged == 30
    assert all(after[key] == before[key] for key in ("uploads", "downloads", "waits"))
    # Doubles, or another order of memory, take one more, which turns them into rows.
    env.step(Given(alone(env, 0).astype(np.float64)))
    env.step(Given(alone(env, 0).T, transposed=True))
    assert env._batch.traffic()["launches"] - after["launches"] == 8


def test_actions_of_every_kind_and_order_are_the_same():
    env, host = make("hopper"), make("hopper", device="cpu")
    whole = np.round(2 * alone(host, 3))
    kinds = [
        lambda x: Given(x),
        lambda x: Given(x.astype(np.float64)),
        lambda x: Given(x.astype(np.int32)),
        lambda x: Given(x.astype(np.int64)),
        lambda x: Given(x.T, transposed=True),
    ]
    host.reset(seed=1)
    wanted = host.step(whole)[0]
    for kind in kinds:
        env.reset(seed=1)
        given = kind(whole)
        np.testing.assert_array_equal(env.step(given)[0].numpy(), wanted)
        # The consumer works on the legacy default stream.
        assert given.streams == [1]


def test_what_is_no_array_of_the_device_is_refused():
    env, twin = make(), make()
    raises(gymnasium.error.ResetNeeded, "reset", lambda: env.step(None))
    env.reset(seed=1), twin.reset(seed=1)
    good = alone(env, 0)

    def wrong(kind, words, given):
        raises(kind, words, lambda: env.step(given))

    wrong(ValueError, "actions are on the processor.*cuda:0.*torch.as_tensor", good)
    wrong(TypeError, "actions are a list", good.tolist())
    wrong(ValueError, "on cuda:1", Given(good, device=(2, 1)))
    wrong(ValueError, "kind 10", Given(good, device=(10, 0)))
    wrong(ValueError, r"shape \(5, 3\), these have \(5, 2\)", Given(good[:, :2]))
    wrong(ValueError, r"these have \(15,\)", Given(good.ravel()))
    wrong(
        TypeError,
        "float32, float64, int32 or int64, these are float16",
        Given(good.astype(np.float16)),
    )
    wrong(TypeError, "these are bool", Given(good > 0))
    several = make("spread", 2)
    several.reset()
    rows = np.zeros((2, 2), np.float32)
    raises(ValueError, "of b, c are missing", lambda: several.step({"a": Given(rows)}))
    given = {"a": Given(rows), "b": Given(rows[:, :1]), "c": Given(rows)}
    raises(ValueError, r'actions\["b"\].*these have \(2, 1\)', lambda: several.step(given))
    np.testing.assert_array_equal(
        env.step(Given(good))[0].numpy(), twin.step(Given(good))[0].numpy()
    )


def test_a_number_that_is_none_breaks_its_environment_alone():
    env, host = make(), make(device="cpu")
    env.reset(seed=1), host.reset(seed=1)
    given = alone(env, 0)
    wanted = host.step(given)[0]
    given[2, 1] = np.nan
    obs, reward, terminated, truncated, info = env.step(Given(given))
    broken = info["broken"].numpy()
    assert broken.tolist() == [False, False, True, False, False]
    assert truncated.numpy()[2] and not terminated.numpy()[2] and reward.numpy()[2] == 0
    assert not info["_final_obs"].numpy()[2] and np.isfinite(obs.numpy()).all()
    np.testing.assert_array_equal(obs.numpy()[~broken], wanted[~broken])
    assert sum(env.statistics()["causes"].values()) == 1


def test_arrays_are_handed_on_without_a_copy():
    env = make("hopper", 3, observations="dict")
    obs, _ = env.reset(seed=1)
    obs = obs["policy"]
    logged = len(calls("cuStreamWaitEvent"))
    interface = obs.__cuda_array_interface__
    at, width = interface["data"][0], obs.shape[1]
    assert interface["shape"] == (3, width) and interface["typestr"] == "<f4"
    assert interface["stream"] == 1 and interface["version"] == 3
    assert obs.__dlpack_device__() == (2, 0)

    def seen(array, **arguments):
        capsule = array.__dlpack__(**arguments)
        tensor = Tensor.from_address(GET(capsule, b"dltensor"))
        assert list(tensor.device) == [2, 0] and tensor.lanes == 1
        axes = range(tensor.axes)
        return (
            tensor.data + tensor.offset,
            (tensor.code, tensor.bits),
            [tensor.shape[i] for i in axes],
            [tensor.strides[i] for i in axes],
        )

    assert seen(obs) == (at, (2, 32), [3, width], [width, 1])
    for stream in (None, 1, -1):
        seen(obs, stream=stream, max_version=(1, 0), dl_device=(2, 0), copy=False)
    assert len(calls("cuStreamWaitEvent")) == logged
    # Another stream is told to wait; the host is not.
    waits = len(calls("cuEventSynchronize"))
    seen(obs, stream=0x1234560)
    seen(obs, stream=2)
    assert calls("cuStreamWaitEvent")[logged:] == [
        f"cuStreamWaitEvent {0x1234560}",
        "cuStreamWaitEvent 2",
    ]
    assert len(calls("cuEventSynchronize")) == waits
    raises(ValueError, "stream 0", lambda: obs.__dlpack__(stream=0))
    raises(ValueError, "no stream -7", lambda: obs.__dlpack__(stream=-7))
    raises(BufferError, "cuda:0, not elsewhere", lambda: obs.__dlpack__(dl_device=(1, 0)))
    raises(BufferError, "without a copy", lambda: obs.__dlpack__(copy=True))
    # Views.
    rows = obs.numpy()
    for key in (np.s_[1:], np.s_[:, 2:5], np.s_[::2, 1:], np.s_[2:1]):
        view = obs[key]
        assert view.shape == rows[key].shape and len(view) == len(rows[key])
        np.testing.assert_array_equal(view.numpy(), rows[key])
    assert seen(obs[1:, 2:5]) == (at + 4 * (width + 2), (2, 32), [2, 3], [width, 1])
    assert seen(obs[::2])[2:] == ([2, width], [2 * width, 1])
    flags = env.step(Given(alone(env, 0)))[2]
    assert seen(flags)[1:] == ((6, 8), [3], [1]) and flags.dtype == "bool"
    assert flags.__cuda_array_interface__["typestr"] == "|b1"
    raises(IndexError, "slices", lambda: obs[0])
    raises(IndexError, "forwards", lambda: obs[::-1])


def test_arrays_stay_and_their_memory_is_used_again():
    env = make("hopper")
    obs, _ = env.reset(seed=1)
    kept = obs.numpy()
    place = lambda array: array.__cuda_array_interface__["data"][0]  # noqa: E731
    for step in range(5):
        env.step(Given(alone(env, step)))
    np.testing.assert_array_equal(obs.numpy(), kept)
    # A capsule holds the memory, too.
    capsule, at = obs.__dlpack__(), place(obs)
    del obs
    places, before = set(), len(calls("cuMemAlloc_v2"))
    given = [Given(alone(env, step)) for step in range(20)]
    allocated = len(calls("cuMemAlloc_v2")) - before
    assert allocated == 20
    before = len(calls("cuMemAlloc_v2"))
    for rows in given:
        places.add(place(env.step(rows)[0]))
    assert at not in places and len(places) <= 3
    assert len(calls("cuMemAlloc_v2")) == before
    del capsule
    seen = [env.step(rows)[0] for rows in given]
    assert at in {place(x) for x in seen} and len({place(x) for x in seen}) == 20
    views = make("hopper", copy=False)
    views.reset(seed=1)
    turns = [place(views.step(rows)[0]) for rows in given]
    assert len(set(turns)) == 2 and turns[0] == turns[2] != turns[1]


def test_a_state_goes_on_on_either_side():
    gpu, host = make(), make(device="cpu")
    gpu.reset(seed=3), host.reset(seed=3)
    for step in range(7):
        gpu.step(Given(alone(gpu, step)))
        host.step(alone(gpu, step))
    state = gpu.capture()
    first = gpu.step(Given(alone(gpu, 8)))[0].numpy()
    gpu.restore(state), host.restore(state)
    np.testing.assert_array_equal(first, gpu.step(Given(alone(gpu, 8)))[0].numpy())
    np.testing.assert_array_equal(first, host.step(alone(gpu, 8))[0])
    gpu.restore(host.capture())
    x, y = gpu.step(Given(alone(gpu, 9))), host.step(alone(gpu, 9))
    np.testing.assert_array_equal(x[0].numpy(), y[0])
    raises(ostler.StateError, "", lambda: gpu.restore(b"nothing"))
    again, _ = gpu.reset(seed=3)
    np.testing.assert_array_equal(again.numpy(), host.reset(seed=3)[0])


def test_environments_leave_nothing_behind():
    pairs = {
        "cuMemAlloc_v2": "cuMemFree_v2",
        "cuMemHostAlloc": "cuMemFreeHost",
        "cuEventCreate": "cuEventDestroy_v2",
        "cuModuleLoadData": "cuModuleUnload",
        "cuDevicePrimaryCtxRetain": "cuDevicePrimaryCtxRelease_v2",
    }

    def left():
        gc.collect()
        free, all_ = ctypes.c_size_t(), ctypes.c_size_t()
        assert NVIDIA.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(all_)) == 0
        return free.value, [len(calls(made)) - len(calls(gone)) for made, gone in pairs.items()]

    given = Given(np.zeros((4, 1), np.float32))
    before, handed = left(), Given.handed
    for i in range(60):
        env = make("cartpole", 4)
        env.reset(seed=i)
        obs = env.step(given)[0]
        obs.__dlpack__()
        # Half of them are just dropped, and arrays may live on.
        if i % 2:
            env.close()
            raises(ostler.StateError, "closed", lambda: env.step(given))  # noqa: B023
            assert obs.numpy().shape == (4, 4)
        del env, obs
    assert left() == before
    assert Given.handed - handed == 60 and Given.deleted == Given.handed


def test_a_forked_process_leaves_the_device_alone():
    env = make("cartpole", 4)
    obs, _ = env.reset(seed=1)
    kept = obs.numpy()
    child = os.fork()
    if child == 0:
        freed = len(calls("cuMemFree_v2"))
        try:
            env.reset()
            os._exit(1)
        except ostler.StateError as e:
            said = "another process" in str(e)
        del env, obs
        gc.collect()
        os._exit(0 if said and len(calls("cuMemFree_v2")) == freed else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(obs.numpy(), kept)
    env.step(Given(np.zeros((4, 1), np.float32)))


def test_results_are_tensors_where_pytorch_has_cuda():
    import ostler.device

    class Torch:
        """What is called of it: there is none here, and no GPU for one."""

        made = []

        @classmethod
        def from_dlpack(cls, array):
            cls.made.append(array)
            return array.numpy()

        @staticmethod
        def cat(parts, dim):
            return np.concatenate(parts, axis=dim)

    before = ostler.device.torch_with_cuda
    ostler.device.torch_with_cuda = lambda: Torch
    try:
        env, host = make(), make(device="cpu")
        several = make("half_cheetah_legs", 2, kind=ostler.make_marl)
        turns = make(copy=False)
    finally:
        ostler.device.torch_with_cuda = before
    obs, _ = env.reset(seed=1)
    np.testing.assert_array_equal(obs, host.reset(seed=1)[0])
    Torch.made.clear()
    given = alone(env, 0)
    x, y = env.step(Given(given)), host.step(given)
    for p, q in zip(x[:4], y[:4]):
        np.testing.assert_array_equal(p, q)
    # Four results, last observations, where they are, and what broke; each once.
    assert len(Torch.made) == 7 and x[4]["_final_obs"].shape == (5,)
    turns.reset(seed=1)
    turns.step(Given(given)), turns.step(Given(given))
    Torch.made.clear()
    for _ in range(4):
        turns.step(Given(given))
    assert Torch.made == []
    seen, _ = several.reset(seed=1)
    np.testing.assert_array_equal(several.state(), np.hstack(list(seen.values())))


def test_a_device_that_is_not_there_is_said():
    raises(
        ostler.DeviceError,
        "there is no cuda:7: the machine has 2 GPUs",
        lambda: make(device="cuda:7"),
    )
    raises(ValueError, '"cpu", "cuda" or "cuda:N"', lambda: make(device="cuda:x"))
    raises(ostler.ConfigError, "wants environments on a GPU", lambda: make(sim={"device": "cpu"}))
    raises(ostler.ConfigError, "native", lambda: make(sim={"backend": "rapier"}))
    assert make("cartpole", 2, device="cuda").device == "cuda:0"
