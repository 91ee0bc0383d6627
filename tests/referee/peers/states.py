"""States of Ostler's environments, copied by tests/learn/peers.rs, and where a peer's answers go.

A folder holds `meta.json` (steps T, envs N, step_dt, the robot's file, and where each quantity is in a row of
`state`), `state` [T + 1][N][columns] as observed, the first after the reset, and `ended` [T][N].
Answers are `reward.NAME` and `end.NAME` [T][N] and `GROUP.NAME` [T + 1][N][width], all float32.
"""

import json
import pathlib

import mujoco
import numpy as np
import torch


class States:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        meta = json.loads((self.folder / "meta.json").read_text())
        self.steps, self.envs, self.step_dt = meta["steps"], meta["envs"], meta["step_dt"]
        self.robot = meta["robot"]
        self.columns = meta["columns"]
        width = max(first + width for first, width in self.columns.values())
        rows = np.fromfile(self.folder / "state", np.float32)
        self.rows = rows.reshape(self.steps + 1, self.envs, width)
        self.ended = np.fromfile(self.folder / "ended", np.float32).reshape(self.steps, self.envs) != 0
        self.answers = {}

    def column(self, step, name):
        """[N][width] of an observation."""
        first, width = self.columns[name]
        return self.rows[step, :, first : first + width]

    def tensor(self, step, name):
        return torch.tensor(self.column(step, name))

    def answer(self, name, value):
        # A copy: some are views of what the next state overwrites.
        rows = np.array(value.detach().numpy(), np.float32).reshape(self.envs, -1)
        self.answers.setdefault(name, []).append(rows)

    def finish(self):
        for name, rows in self.answers.items():
            np.concatenate(rows).tofile(self.folder / name)
        widths = {name: rows[0].shape[1] for name, rows in self.answers.items()}
        (self.folder / "answers.json").write_text(json.dumps(widths))


class Kinematics:
    """What MuJoCo knows of N states, as tensors [N, ...] under the names of its fields."""

    FIELDS = (
        "qpos qvel xpos xquat xipos cvel subtree_com site_xpos site_xmat geom_xpos geom_xmat sensordata time"
    ).split()

    def __init__(self, model, envs):
        self.mj, self.one, self.nworld, self.arrays = model, mujoco.MjData(model), envs, {}
        for name in self.FIELDS:
            shape = np.shape(getattr(self.one, name))
            if name.endswith("xmat"):
                shape = (shape[0], 3, 3)
            # The tensor sees what is written into the array: sensors hold views of it.
            self.arrays[name] = np.zeros((envs, *shape), np.float32)
            setattr(self, name, torch.from_numpy(self.arrays[name]))

    def update(self, qpos, qvel):
        for e in range(self.nworld):
            self.one.qpos[:], self.one.qvel[:] = qpos[e], qvel[e]
            # As far as sensors of positions and velocities.
            mujoco.mj_fwdPosition(self.mj, self.one)
            mujoco.mj_sensorPos(self.mj, self.one)
            mujoco.mj_fwdVelocity(self.mj, self.one)
            mujoco.mj_sensorVel(self.mj, self.one)
            for name, kept in self.arrays.items():
                kept[e] = np.reshape(getattr(self.one, name), kept.shape[1:])
