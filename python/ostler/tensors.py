"""Environments' arrays and PyTorch's tensors, for the adapters."""

import torch


def tensor(array):
    """An array of environments as a tensor over the same memory."""
    if isinstance(array, torch.Tensor):
        return array
    if hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] != 1:
        raise RuntimeError("environments on a GPU want a PyTorch with CUDA; this one has none")
    return torch.from_numpy(array)


def given(actions, like):
    """A learner's actions, as environments take them whose observations are `like`."""
    actions = actions.detach()
    if isinstance(like, torch.Tensor):
        return actions.to(like.device)
    return actions.to("cpu").numpy()
