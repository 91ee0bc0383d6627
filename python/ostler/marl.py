"""Environments of several agents: dictionaries by agent, as PettingZoo and Isaac Lab have them."""

import difflib
from collections.abc import Mapping

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from ostler.batch import METADATA, Batched, action_space, box, checked_seed, make_batch


def make_marl(
    name,
    num_envs=None,
    device="cpu",
    *,
    seed=None,
    observations="policy",
    copy=True,
    episode_statistics=True,
    random_ages=False,
    allow_native=False,
    profile=None,
    **options,
):
    """N environments of a task of several agents, `[agents]`.

    Arguments and exceptions are those of `ostler.make_vec`.
    """
    batch = make_batch(name, num_envs, device, seed, profile, allow_native, options)
    return MultiAgentVectorEnv(batch, observations, copy, episode_statistics, random_ages)


class MultiAgentVectorEnv(Batched):
    """N environments of several agents, stepped together.

    Observations, rewards, ends and infos are dictionaries by agent, of arrays whose first axis is
    the environments; so are actions. `observation_spaces` and `action_spaces` are those of one
    environment, as PettingZoo, Isaac Lab and skrl have them; `batched_...` those of all.

    An episode ends for all agents of an environment at once, and the next one begins in the same
    step (`AutoresetMode.SAME_STEP`): `infos[agent]["final_obs"]` has the last observations.
    """

    metadata = METADATA
    render_mode = None

    def __init__(self, batch, observations, copy, episode_statistics, random_ages):
        self._open(batch, observations, copy, episode_statistics, random_ages)
        facts = self.facts
        team = facts["agents"]
        if not team:
            batch.close()
            raise ValueError(f"{facts['file']} has no [agents]: ostler.make_vec is for one agent")
        self.num_envs = facts["num_envs"]
        #: Names of the agents, in the order of the file.
        self.possible_agents = [agent["name"] for agent in team]
        #: Those that act: all, always.
        self.agents = list(self.possible_agents)
        #: The policy that the file gives every agent.
        self.policies = {agent["name"]: agent["policy"] for agent in team}
        self._team = {agent["name"]: agent for agent in team}
        self._discrete = {name: own["action"][0] == "discrete" for name, own in self._team.items()}
        kind, size = facts["action"]
        actions = self._bounds("action_bounds", 1 if kind == "discrete" else size)
        self.action_spaces = {
            name: action_space(own["action"], bounds)
            for (name, own), bounds in zip(self._team.items(), actions)
        }
        self._spaces(team)
        batched = lambda all_: {k: batch_space(s, self.num_envs) for k, s in all_.items()}  # noqa: E731
        self.batched_action_spaces = batched(self.action_spaces)
        self.batched_observation_spaces = batched(self.observation_spaces)
        self._state = None

    def _spaces(self, team):
        """Spaces of observations and states."""
        policy = self._bounds("observation_bounds", self._width)
        critic = self._critic and self._bounds("critic_bounds", self._critic)
        self.observation_spaces = {}
        for m, own in enumerate(team):
            space = box(policy[m, : own["observations"]])
            if self._dict:
                groups = {k: box(critic[m, c]) for k, c in self._columns(own).items()}
                space = spaces.Dict({"policy": space, **groups})
            self.observation_spaces[own["name"]] = space
        if team[0]["critic"] is None:
            parts = [policy[m, : own["observations"]] for m, own in enumerate(team)]
        else:
            seeing = team[:1] if self.facts["centralized_critic"] else team
            parts = [critic[m, : own["critic"]] for m, own in enumerate(seeing)]
        #: The space of `state()` of one environment.
        self.state_space = box(np.concatenate(parts))

    def _columns(self, own):
        """Columns of an agent's row for critics, by group."""
        groups = dict(self._groups)
        if own["critic"] is not None:
            groups["critic"] = slice(0, own["critic"])
        return groups

    @property
    def num_agents(self):
        """How many agents act."""
        return len(self.agents)

    @property
    def max_num_agents(self):
        """How many agents there are."""
        return len(self.possible_agents)

    @property
    def unwrapped(self):
        """Itself."""
        return self

    def observation_space(self, agent):
        """What an agent sees in one environment."""
        return self.observation_spaces[agent]

    def action_space(self, agent):
        """What an agent does in one environment."""
        return self.action_spaces[agent]

    def reset(self, *, seed=None, options=None):
        """Begins all episodes: `(observations, infos)`, dictionaries by agent.

        With a seed as if the environments were just made with it.
        """
        seed = None if seed is None else checked_seed(seed)
        self._state = self._reset(seed, options)
        return self._seen(self._state), {name: {} for name in self.agents}

    def step(self, actions):
        """A control step: `(observations, rewards, terminated, truncated, infos)`, dictionaries by
        agent.

        Args:
            actions: arrays `(N, A)` by agent, or `(N,)` choices.
        """
        if not self._ready:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        arrays, ended = self._step(self._checked(actions))
        self._state = arrays
        infos = {name: {} for name in self.agents} if ended is None else self._final(ended)
        flags = (self._by_agent(x) for x in (arrays.terminated, arrays.truncated))
        return self._seen(arrays), self._by_agent(arrays.reward), *flags, infos

    def _by_agent(self, rows):
        """Rows `[R]...` as views `[N]...` by agent."""
        count = self.max_num_agents
        return {name: rows[m::count] for m, name in enumerate(self.possible_agents)}

    def _seen(self, arrays):
        """Observations by agent, as views of the rows."""
        policy = self._by_agent(arrays.obs)
        critic = self._by_agent(arrays.critic) if self._dict and self._critic else None
        seen = {}
        for name, own in self._team.items():
            seen[name] = policy[name][:, : own["observations"]]
            if self._dict:
                groups = {k: critic[name][:, c] for k, c in self._columns(own).items()}
                seen[name] = {"policy": seen[name], **groups}
        return seen

    def _checked(self, actions):
        """Actions in the order of the agents."""
        names = self.possible_agents
        if not isinstance(actions, Mapping):
            raise TypeError(
                f"actions are a dictionary by agent ({', '.join(names)}), "
                f"not {type(actions).__name__}"
            )
        missing = [name for name in names if name not in actions]
        unknown = [name for name in actions if name not in self._team]
        if unknown:
            near = difflib.get_close_matches(str(unknown[0]), names, 1)
            guess = f' (did you mean "{near[0]}"?)' if near else ""
            raise ValueError(
                f"no agent is called {unknown[0]!r}{guess}; agents are {', '.join(names)}"
            )
        if missing:
            raise ValueError(f"actions of {', '.join(missing)} are missing: every agent acts")
        return [
            self._arrays.numbers(actions[name], self._discrete[name], f'actions["{name}"]')
            for name in names
        ]

    def _final(self, ended):
        """What is said of the episodes that ended, by agent."""
        by, host = self._by_agent, self.device == "cpu"
        seen, done, broken = self._seen(ended), by(ended.kept), by(ended.broken)
        # On a GPU it would be computed in every step: the last observations have it.
        state = self._state_of(ended) if host else None
        episode = self._statistics and host
        if episode:
            returns, lengths = by(ended.returns), by(ended.lengths)
            seconds = self._seconds(done[self.agents[0]])
        infos = {}
        for name in self.possible_agents:
            mask = done[name]
            infos[name] = info = {"final_obs": seen[name], "_final_obs": mask}
            if state is not None:
                info["final_state"], info["_final_state"] = state, mask
            if ended.any_broken:
                info["broken"] = broken[name]
                info["_broken"] = mask if host else broken[name]
            if episode:
                info["episode"] = {"r": returns[name], "l": lengths[name], "t": seconds}
                info["_episode"] = mask
        return infos

    def state(self):
        """A global view of every environment `(N, S)`, for critics of all agents.

        Where `agents.centralized_critic` is true: what the first agent's critic sees, that is the
        observations of all agents without their noise, then its `critic` terms. Else what the
        agents' critics see, one after the other; without terms for critics, what the agents
        see. What each agent's critic sees is in its observations, with `observations="dict"`.
        """
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset before the first state")
        return self._state_of(self._state)

    def _state_of(self, arrays):
        team = self.facts["agents"]
        if team[0]["critic"] is None:
            rows, seeing, key = arrays.obs, team, "observations"
        else:
            rows, key = arrays.critic, "critic"
            seeing = team[:1] if self.facts["centralized_critic"] else team
        rows = self._by_agent(rows)
        parts = [rows[own["name"]][:, : own[key]] for own in seeing]
        return parts[0] if len(parts) == 1 else self._arrays.side_by_side(parts)

    def restore(self, state):
        """Goes back to what `capture` gave; the next step goes on from there."""
        super().restore(state)
        # Observations are those of the next step.
        self._state = None

    def render(self):
        """Nothing: `ostler play` draws."""

    def close(self):
        """Ends the threads and frees the memory."""
        self._batch.close()

    def __repr__(self):
        file, names = self.facts["file"], self.possible_agents
        return f"ostler.MultiAgentVectorEnv({file!r}, num_envs={self.num_envs}, agents={names})"
