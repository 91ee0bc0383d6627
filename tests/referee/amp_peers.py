"""Writes tests/fixtures/amp_peers.json: steps of amp-rsl-rl's own discriminator and optimiser,
unmodified, out of the peers' wheels (peers.txt), with rsl_rl's normaliser of the learners' Python.

    python amp_peers.py WHEELS > ../fixtures/amp_peers.json

Recorded with torch 2.11.0. What differs from its defaults: a small network, observations are
normalised, and no feature of a minibatch's spread. A step is that of `AMP_PPO.update` without the
policy's part.
"""

import importlib.util
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
WHEELS = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(WHEELS))

import absent  # noqa: E402
import torch  # noqa: E402

absent.stand_in("tensordict", "git", "rsl_rl.storage", "rsl_rl.utils", "amp_rsl_rl.utils.motion_loader")
RSL_RL = pathlib.Path(importlib.util.find_spec("rsl_rl").submodule_search_locations[0])
absent.bare("rsl_rl", RSL_RL)
absent.bare("rsl_rl.modules", RSL_RL / "modules")
for name in ["amp_rsl_rl", "amp_rsl_rl.networks", "amp_rsl_rl.utils"]:
    absent.bare(name, WHEELS / name.replace(".", "/"))

from amp_rsl_rl.networks.discriminator import Discriminator  # noqa: E402

networks, utils = sys.modules["amp_rsl_rl.networks"], sys.modules["amp_rsl_rl.utils"]
networks.Discriminator = Discriminator
utils.AMPLoader = utils._call_augmentation_func = None
from amp_rsl_rl.algorithms.amp_ppo import AMP_PPO  # noqa: E402

WIDTH, ROWS, STEPS, RATE = 3, 9, 4, 1e-3
HIDDEN = [16, 8]


def tensors(parts):
    def one(t):
        t = torch.as_tensor(t).detach()
        # Nine digits are all that a float32 has.
        data = [float(f"{float(x):.9g}") for x in t.flatten()]
        return {"shape": list(t.shape), "data": data}

    return {name: one(t) for name, t in parts.items()}


def parameters(d):
    layers = [m for m in d.trunk if isinstance(m, torch.nn.Linear)] + [d.linear]
    names = [str(i) for i in range(len(HIDDEN))] + ["out"]
    parts = {}
    for name, layer in zip(names, layers):
        parts |= {f"discriminator.{name}.weight": layer.weight, f"discriminator.{name}.bias": layer.bias}
    n = d.amp_normalizer
    parts |= {"observations.mean": n._mean[0], "observations.var": n._var[0]}
    return parts | {"observations.count": n.count.double().reshape(1)}


def main():
    torch.manual_seed(1)
    d = Discriminator(2 * WIDTH, HIDDEN, 1.0, use_minibatch_std=False, empirical_normalization=True)
    with torch.no_grad():
        for p in d.parameters():
            p.add_(0.1 * torch.randn_like(p))
    # Its optimiser, whose decays are its own.
    nets = {name: torch.nn.Linear(1, 1) for name in ["actor_critic", "actor", "critic"]}
    ppo = AMP_PPO(d, None, learning_rate=RATE, **nets)
    # Statistics as after some steps.
    d.update_normalization(1.0 + 2.0 * torch.randn(50, WIDTH))

    start = tensors(parameters(d))
    batches, stats = [], []
    for _ in range(STEPS):
        own = [0.5 + torch.randn(ROWS, WIDTH) for _ in range(2)]
        other = [1.5 * torch.randn(ROWS, WIDTH) for _ in range(2)]
        both = torch.cat([torch.cat(own, -1), torch.cat(other, -1)])
        out = d(both)
        own_d, other_d = out[:ROWS], out[ROWS:]
        loss, penalty = d.compute_loss(own_d, other_d, tuple(other), tuple(own), lambda_=10)
        ppo.optimizer.zero_grad()
        (loss + penalty).backward()
        ppo.optimizer.step()
        d.update_normalization(*other, *own)
        batches.append(tensors({"policy": torch.cat(own, -1), "reference": torch.cat(other, -1)}))
        scores = [torch.sigmoid(x).mean() for x in (own_d, other_d)]
        reward = d.predict_reward(*own)
        stats.append(tensors({"loss": loss, "penalty": penalty, "scores": torch.stack(scores), "reward": reward}))
    json.dump(
        {
            "hidden_dims": HIDDEN,
            "learning_rate": RATE,
            "params": start,
            "batches": batches,
            "stats": stats,
            "expected": tensors(parameters(d)),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
