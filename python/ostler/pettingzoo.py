"""One environment of several agents for PettingZoo.

    from ostler.pettingzoo import parallel_env

    env = parallel_env("spread")
    observations, infos = env.reset(seed=1)

`ostler.make_marl` has many at once.
"""

import gymnasium
import numpy as np
import pettingzoo

import ostler


def parallel_env(name, device="cpu", **options):
    """The task's environment as a `pettingzoo.ParallelEnv`; arguments as of `ostler.make_marl`."""
    options["copy"] = True
    return ParallelEnv(ostler.make_marl(name, 1, device, **options))


class ParallelEnv(pettingzoo.ParallelEnv):
    """The only environment of an `ostler.MultiAgentVectorEnv` as PettingZoo has environments.

    An episode ends for all agents at once: then `agents` is empty, until `reset`. That goes on
    with the episode that the batch has begun, so that its numbers are those of a batch that is
    never reset; with a seed, or within an episode, it begins another one.
    """

    def __init__(self, env):
        if env.num_envs != 1:
            raise ValueError(
                f"PettingZoo has one environment, these are {env.num_envs}: make_marl(..., 1)"
            )
        self.env = env
        self.metadata = {"name": env.facts["robot"], "render_modes": [], "is_parallelizable": True}
        self.render_mode = None
        self.possible_agents = list(env.possible_agents)
        self.agents = []
        self.observation_spaces = env.observation_spaces
        self.action_spaces = env.action_spaces
        self.state_space = env.state_space
        # Of an episode that ended: its last state, and the first observations of the next one.
        self._last_state, self._next = None, None

    def observation_space(self, agent):
        """What an agent sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent):
        """What an agent does."""
        return self.action_spaces[agent]

    def reset(self, seed=None, options=None):
        """Begins an episode: `(observations, infos)` by agent. `options` have no meaning here."""
        begun, self._next, self._last_state = self._next, None, None
        if begun is None or seed is not None:
            begun, _ = self.env.reset(seed=seed)
        self.agents = list(self.possible_agents)
        return _rows(begun), {name: {} for name in self.agents}

    def step(self, actions):
        """A control step: `(observations, rewards, terminated, truncated, infos)` by agent."""
        if not self.agents:
            raise gymnasium.error.ResetNeeded("the episode has ended, or none has begun: reset")
        if isinstance(actions, dict):
            actions = {name: np.asarray(action)[None] for name, action in actions.items()}
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        over = bool(terminated[self.agents[0]][0] | truncated[self.agents[0]][0])
        told = {name: {} for name in self.agents}
        if over:
            self._next = obs
            obs = {name: info["final_obs"] for name, info in infos.items()}
            self._last_state = infos[self.agents[0]]["final_state"][0]
            told = {name: _told(info) for name, info in infos.items()}
            self.agents = []
        return (
            _rows(obs),
            {name: float(x[0]) for name, x in rewards.items()},
            {name: bool(x[0]) for name, x in terminated.items()},
            {name: bool(x[0]) for name, x in truncated.items()},
            told,
        )

    def state(self):
        """A global view, as `MultiAgentVectorEnv.state` has it; after an end the last one."""
        return self.env.state()[0] if self._last_state is None else self._last_state

    def render(self):
        """Nothing: `ostler play` draws."""

    def close(self):
        """Ends the threads and frees the memory."""
        self.env.close()


def _rows(obs):
    """The first row of every array."""
    return {name: _rows(x) if isinstance(x, dict) else x[0] for name, x in obs.items()}


def _told(info):
    """What an agent's episode came to."""
    told = {}
    if "episode" in info:
        told["episode"] = {key: info["episode"][key][0].item() for key in ("r", "l")}
    if "broken" in info and info["broken"][0]:
        told["broken"] = True
    return told
