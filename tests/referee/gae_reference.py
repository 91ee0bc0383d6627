"""Writes tests/fixtures/gae.json: advantages computed by TorchRL.

    python gae_reference.py > ../fixtures/gae.json

Recorded with torchrl 0.14.1, torch 2.11.0: its `generalized_advantage_estimate`
keeps terminations and other ends of an episode apart and takes the value of the
true next observation.
"""

import json
import sys

import torch
import torchrl
from torchrl.objectives.value.functional import generalized_advantage_estimate

T, N, SLOTS, GAMMA, LAMBDA = 12, 6, 6, 0.98, 0.93


def main():
    g = torch.Generator().manual_seed(1)
    value = torch.randn(T + 1, N, generator=g)
    reward = torch.randn(T, N, generator=g)
    final_value = torch.randn(SLOTS, N, generator=g)
    terminated = torch.rand(T, N, generator=g) < 0.12
    truncated = torch.rand(T, N, generator=g) < 0.12
    terminated[4, 0] = truncated[4, 0] = True
    terminated[T - 1, 1], truncated[T - 1, 2] = True, True
    slot = -torch.ones(T, N, dtype=torch.int32)
    following = value[1:].clone()
    used = [0] * N
    for t in range(T):
        for n in range(N):
            if truncated[t, n]:
                assert used[n] < SLOTS
                slot[t, n] = used[n]
                following[t, n] = final_value[used[n], n]
                used[n] += 1
    assert terminated.sum() > 4 and truncated.sum() > 4
    # TorchRL wants [batch, time, 1].
    shape = lambda x: x.T.unsqueeze(-1)
    advantage, _ = generalized_advantage_estimate(
        GAMMA, LAMBDA, shape(value[:T]), shape(following), shape(reward),
        done=shape(terminated | truncated), terminated=shape(terminated))
    flat = lambda x: [float(f"{v:.9g}") for v in x.float().reshape(-1).tolist()]
    json.dump({
        "torchrl": torchrl.__version__, "steps": T, "envs": N, "slots": SLOTS,
        "gamma": GAMMA, "lambda": LAMBDA, "value": flat(value), "reward": flat(reward),
        "final_value": flat(final_value), "terminated": flat(terminated),
        "truncated": flat(truncated), "final_slot": flat(slot),
        "advantage": flat(advantage.squeeze(-1).T.contiguous()),
    }, sys.stdout, separators=(",", ":"))


main()
