"""rsl_rl's runner trains the half-cheetah in Ostler's environments.

    pip install rsl-rl-lib
    python examples/rsl_rl_half_cheetah.py --iterations 200

The runner prints the mean return of training episodes, and writes TensorBoard events.
"""

import argparse

import torch
from rsl_rl.runners import OnPolicyRunner

from ostler.rsl_rl import make_vec

NETWORK = {
    "class_name": "rsl_rl.models.MLPModel",
    "hidden_dims": [128, 64],
    "activation": "elu",
    "obs_normalization": True,
}
CONFIG = {
    "num_steps_per_env": 64,
    "save_interval": 1_000_000,
    "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
    "algorithm": {
        "class_name": "PPO",
        "num_learning_epochs": 5,
        "num_mini_batches": 8,
        "learning_rate": 1e-3,
        "schedule": "adaptive",
        "desired_kl": 0.02,
        "gamma": 0.99,
        "lam": 0.95,
        "entropy_coef": 0.0,
        "rnd_cfg": None,
        "symmetry_cfg": None,
    },
    "actor": {
        **NETWORK,
        "distribution_cfg": {
            "class_name": "GaussianDistribution",
            "init_std": 1.0,
            "std_type": "scalar",
        },
    },
    "critic": NETWORK,
    "multi_gpu": None,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", default="rsl_rl_half_cheetah", help="of its logs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    env = make_vec("half_cheetah", num_envs=256, sim={"threads": 1, "specialize": "wait"})
    runner = OnPolicyRunner(env, CONFIG, log_dir=args.folder, device="cpu")
    runner.learn(args.iterations, init_at_random_ep_len=True)


if __name__ == "__main__":
    main()
