"""Writes tests/fixtures/vtrace.json: targets and advantages of V-trace.

    python vtrace_reference.py > ../fixtures/vtrace.json

Recorded with torchrl 0.14.1, torch 2.11.0: its `vtrace_advantage_estimate` knows no
lambda. The targets with lambda are the sum of equation 1 of Espeholt et al. 2018, term by
term, with c = lambda min(1, ratio) (their remark 2).
"""

import json
import sys

import torch
import torchrl
from torchrl.objectives.value.functional import vtrace_advantage_estimate

T, N, SLOTS, GAMMA, LAMBDA = 12, 6, 6, 0.98, 0.9


def summed(value, following, reward, ended, terminated, ratio, lam):
    """v_s - V(x_s), for every s, from the definition."""
    rho = c = ratio.clamp_max(1.0)
    delta = rho * (reward + GAMMA * following * (~terminated) - value)
    out = torch.zeros(T, N, dtype=torch.double)
    for n in range(N):
        for s in range(T):
            factor = 1.0
            for t in range(s, T):
                out[s, n] += factor * delta[t, n]
                if ended[t, n]:
                    break
                factor *= GAMMA * lam * c[t, n]
    return out


def main():
    g = torch.Generator().manual_seed(2)
    double = lambda *size: torch.randn(*size, generator=g, dtype=torch.double)
    value, reward, final_value = double(T + 1, N), double(T, N), double(SLOTS, N)
    log_ratio = 0.5 * double(T, N)
    terminated = torch.rand(T, N, generator=g) < 0.12
    truncated = (torch.rand(T, N, generator=g) < 0.12) & ~terminated
    terminated[T - 1, 1], truncated[T - 1, 2] = True, True
    truncated[T - 1, 1] = terminated[T - 1, 2] = False
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
    back = lambda x: x.squeeze(-1).T.contiguous()
    advantage, target = vtrace_advantage_estimate(
        GAMMA, shape(log_ratio), shape(torch.zeros_like(log_ratio)), shape(value[:T]),
        shape(following), shape(reward), shape(terminated | truncated), shape(terminated))
    ended = terminated | truncated
    args = value[:T], following, reward, ended, terminated, log_ratio.exp()
    plain = summed(*args, 1.0)
    # Its discounts are float32.
    assert (back(target) - value[:T] - plain).abs().max() < 1e-5
    flat = lambda x: [float(f"{v:.9g}") for v in x.double().reshape(-1).tolist()]
    json.dump({
        "torchrl": torchrl.__version__, "steps": T, "envs": N, "slots": SLOTS,
        "gamma": GAMMA, "lambda": LAMBDA, "value": flat(value), "reward": flat(reward),
        "final_value": flat(final_value), "terminated": flat(terminated),
        "truncated": flat(truncated), "final_slot": flat(slot),
        "log_ratio": flat(log_ratio), "advantage": flat(back(advantage)),
        "target": flat(back(target)),
        "lacking_with_lambda": flat(summed(*args, LAMBDA)),
    }, sys.stdout, separators=(",", ":"))


main()
