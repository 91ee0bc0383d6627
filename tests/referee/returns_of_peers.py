"""Returns of other PPO programs over environment steps and processor time, on one core.

    python tests/referee/returns_of_peers.py sb3 HalfCheetah-v5 --seed 1 --steps 1000000
    python tests/referee/returns_of_peers.py plain HalfCheetah-v5 --seed 1 --steps 1000000

`sb3` is Stable-Baselines3 with the settings that rl-zoo found for the task. `plain` is PPO
as CleanRL arranges it: one environment, rollouts of 2,048 steps, 10 epochs of minibatches of
64, [64, 64] networks with tanh, normalised observations and rewards, a falling rate.

Every `--every` steps 64 episodes are played with mean actions. Processor time of these
evaluations is not counted. Needs: stable-baselines3, gymnasium[mujoco], torch.
"""

import argparse
import time

import gymnasium as gym
import numpy as np
import torch
from torch import nn

# rl-baselines3-zoo, hyperparams/ppo.yml.
ZOO = {
    "HalfCheetah-v5": dict(
        batch_size=64, n_steps=512, gamma=0.98, learning_rate=2.0633e-05,
        ent_coef=0.000401762, clip_range=0.1, n_epochs=20, gae_lambda=0.92,
        max_grad_norm=0.8, vf_coef=0.58096,
    ),
    "Hopper-v5": dict(
        batch_size=32, n_steps=512, gamma=0.999, learning_rate=9.80828e-05,
        ent_coef=0.00229519, clip_range=0.2, n_epochs=5, gae_lambda=0.99,
        max_grad_norm=0.7, vf_coef=0.835671,
    ),
    "InvertedDoublePendulum-v5": dict(
        batch_size=512, n_steps=128, gamma=0.98, learning_rate=0.000155454,
        ent_coef=1.05057e-06, clip_range=0.4, n_epochs=10, gae_lambda=0.8,
        max_grad_norm=0.5, vf_coef=0.695929,
    ),
}


class Report:
    """Evaluates at intervals, with the clock stopped."""

    def __init__(self, env_id, every, episodes):
        self.env = gym.make(env_id)
        self.every, self.episodes = every, episodes
        self.next, self.spent, self.since = every, 0.0, time.process_time()

    def at(self, steps, act):
        if steps < self.next:
            return
        self.next += self.every
        self.spent += time.process_time() - self.since
        returns = []
        for episode in range(self.episodes):
            obs, _ = self.env.reset(seed=10_000 + episode)
            total, over = 0.0, False
            while not over:
                obs, reward, terminated, truncated, _ = self.env.step(act(obs))
                total += reward
                over = terminated or truncated
            returns.append(total)
        mean, std = np.mean(returns), np.std(returns)
        print(f"{steps:9d} steps {self.spent:8.1f} s  return {mean:8.1f} (std {std:.1f})", flush=True)
        self.since = time.process_time()


def sb3(args, report):
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    settings = dict(ZOO[args.env])
    env = VecNormalize(DummyVecEnv([lambda: gym.make(args.env)]), gamma=settings["gamma"])
    net = dict(pi=[256, 256], vf=[256, 256])
    wide = args.env != "InvertedDoublePendulum-v5"
    kwargs = dict(log_std_init=-2, ortho_init=False, activation_fn=nn.ReLU, net_arch=net)
    model = PPO(
        "MlpPolicy", env, seed=args.seed, device="cpu",
        policy_kwargs=kwargs if wide else None, **settings,
    )

    class Evaluate(BaseCallback):
        def _on_step(self):
            report.at(
                self.num_timesteps,
                lambda obs: self.model.predict(env.normalize_obs(obs), deterministic=True)[0],
            )
            return True

    model.learn(args.steps, callback=Evaluate())


class Agent(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()

        def net(out, gain):
            layers = []
            sizes = [obs, 64, 64, out]
            for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
                layer = nn.Linear(a, b)
                nn.init.orthogonal_(layer.weight, gain if i == 2 else 2**0.5)
                nn.init.zeros_(layer.bias)
                layers += [layer] + ([nn.Tanh()] if i < 2 else [])
            return nn.Sequential(*layers)

        self.mean, self.value = net(actions, 0.01), net(1, 1.0)
        self.log_std = nn.Parameter(torch.zeros(actions))

    def dist(self, obs):
        return torch.distributions.Normal(self.mean(obs), self.log_std.exp())


def plain(args, report):
    gamma, lam, rollout, epochs, batch = 0.99, 0.95, 2048, 10, 64
    env = gym.wrappers.ClipAction(gym.make(args.env))
    seen = gym.wrappers.NormalizeObservation(env)
    clipped = gym.wrappers.TransformObservation(
        seen, lambda o: np.clip(o, -10, 10), env.observation_space
    )
    env = gym.wrappers.NormalizeReward(clipped, gamma=gamma)
    env = gym.wrappers.TransformReward(env, lambda r: float(np.clip(r, -10, 10)))
    low, high = env.action_space.low, env.action_space.high
    agent = Agent(env.observation_space.shape[0], env.action_space.shape[0])
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)

    @torch.no_grad()
    def act(obs):
        rms = seen.obs_rms
        obs = np.clip((obs - rms.mean) / np.sqrt(rms.var + seen.epsilon), -10, 10)
        mean = agent.mean(torch.as_tensor(obs, dtype=torch.float32))
        return np.clip(mean.numpy(), low, high)

    obs, _ = env.reset(seed=args.seed)
    steps = 0
    while steps < args.steps:
        for group in optimizer.param_groups:
            group["lr"] = 3e-4 * (1 - steps / args.steps)
        columns = {k: [] for k in ("obs", "action", "log_prob", "value", "reward", "over")}
        for _ in range(rollout):
            x = torch.as_tensor(obs, dtype=torch.float32)
            with torch.no_grad():
                dist = agent.dist(x)
                action = dist.sample()
                log_prob, value = dist.log_prob(action).sum(), agent.value(x)[0]
            obs, reward, terminated, truncated, _ = env.step(action.numpy())
            over = terminated or truncated
            for key, v in zip(columns, (x, action, log_prob, value, reward, float(over))):
                columns[key].append(torch.as_tensor(v, dtype=torch.float32))
            if over:
                obs, _ = env.reset()
            steps += 1
            report.at(steps, act)
        data = {k: torch.stack(v) for k, v in columns.items()}
        with torch.no_grad():
            last = agent.value(torch.as_tensor(obs, dtype=torch.float32))[0]
            values = torch.cat([data["value"], last[None]])
            advantage, running = torch.zeros(rollout), 0.0
            for t in reversed(range(rollout)):
                alive = 1.0 - data["over"][t]
                delta = data["reward"][t] + gamma * values[t + 1] * alive - values[t]
                advantage[t] = running = delta + gamma * lam * alive * running
            returns = advantage + data["value"]
        for _ in range(epochs):
            for rows in torch.randperm(rollout).split(batch):
                dist = agent.dist(data["obs"][rows])
                log_ratio = dist.log_prob(data["action"][rows]).sum(1) - data["log_prob"][rows]
                ratio = log_ratio.exp()
                a = advantage[rows]
                a = (a - a.mean()) / (a.std() + 1e-8)
                surrogate = torch.max(-a * ratio, -a * ratio.clamp(0.8, 1.2)).mean()
                value, old = agent.value(data["obs"][rows])[:, 0], data["value"][rows]
                moved = old + (value - old).clamp(-0.2, 0.2)
                target = returns[rows]
                errors = torch.max((value - target) ** 2, (moved - target) ** 2)
                loss = surrogate + 0.25 * errors.mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program", choices=["sb3", "plain"])
    parser.add_argument("env", choices=list(ZOO))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=100_000)
    parser.add_argument("--episodes", type=int, default=64)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    report = Report(args.env, args.every, args.episodes)
    {"sb3": sb3, "plain": plain}[args.program](args, report)


if __name__ == "__main__":
    main()
