"""Isaac Lab's own reward, observation and termination functions of its lift task, with the numbers
of its own configuration, on states of Ostler's environments: `isaaclab_terms.py lift FOLDER WHEELS`.

The functions are called unmodified; poses and velocities are MuJoCo's of each state.
"""

import inspect
import pathlib
import sys
import types

import absent
import torch_on_numpy

TASK, FOLDER, WHEELS = sys.argv[1:4]
SOURCE = pathlib.Path(WHEELS) / "isaaclab" / "source"
absent.stand_in(
    *"warp omni isaacsim carb pxr usdrt toml gymnasium prettytable tqdm trimesh scipy matplotlib hid tensordict".split(),
    *"PIL h5py onnx isaaclab_rl isaaclab_contrib pinocchio pink lazy_loader cv2 transformers flatdict".split(),
    *"dex_retargeting imageio yaml rtree packaging".split(),
)
for package in ("isaaclab", "isaaclab_tasks", "isaaclab_assets"):
    absent.bare(package, SOURCE / package / package)
for package in ("isaaclab_tasks.manager_based", "isaaclab_tasks.manager_based.manipulation"):
    absent.bare(package, SOURCE / "isaaclab_tasks" / package.replace(".", "/"))

torch_on_numpy.install()

import mujoco  # noqa: E402
import torch  # noqa: E402
from isaaclab_tasks.manager_based.manipulation.lift.config.franka import joint_pos_env_cfg  # noqa: E402
from states import Kinematics, States  # noqa: E402


class Env:
    """What the functions ask their environment for."""

    device = "cpu"

    def __init__(self, states):
        model = mujoco.MjModel.from_xml_path(states.robot)
        self.num_envs, self.model = states.envs, model
        self.kinematics = Kinematics(model, states.envs)
        self.robot, self.object, self.ee = (types.SimpleNamespace(data=types.SimpleNamespace()) for _ in range(3))
        self.scene = {"robot": self.robot, "object": self.object, "ee_frame": self.ee}
        self.action_manager, self.termination_manager = types.SimpleNamespace(), types.SimpleNamespace()
        self.command_manager = types.SimpleNamespace(get_command=lambda name: self.command)
        self.joints = [j for j in range(model.njnt) if model.jnt_type[j] != mujoco.mjtJoint.mjJNT_FREE]

    def body(self, name):
        at = self.model.body(name).id
        return self.kinematics.xpos[:, at], self.kinematics.xquat[:, at]

    def place(self, states, at, commands, cfg):
        self.kinematics.update(states.column(at, "qpos"), states.column(at, "qvel"))
        robot = self.robot.data
        robot.root_pos_w, robot.root_quat_w = self.body("panda_link0")
        robot.joint_pos = self.kinematics.qpos[:, self.model.jnt_qposadr[self.joints]]
        robot.joint_vel = self.kinematics.qvel[:, self.model.jnt_dofadr[self.joints]]
        start = cfg.scene.robot.init_state.joint_pos
        names = [self.model.joint(j).name for j in self.joints]
        fits = lambda name: next(v for k, v in start.items() if name == k or (k.endswith(".*") and name.startswith(k[:-2])))
        robot.default_joint_pos = torch.tensor([[fits(name) for name in names]]).repeat(self.num_envs, 1)
        robot.default_joint_vel = torch.zeros_like(robot.joint_vel)
        self.object.data.root_pos_w, _ = self.body("cube")
        # The end effector's frame lies before the hand.
        frame = cfg.scene.ee_frame.target_frames[0]
        hand = self.model.body(frame.prim_path.split("/")[-1]).id
        turn = torch.tensor(self.turns(hand))
        offset = torch.tensor(frame.offset.pos, dtype=torch.float32)
        self.ee.data.target_pos_w = (self.kinematics.xpos[:, hand] + turn @ offset)[:, None, :]
        self.action_manager.action = states.tensor(at, "action")
        self.action_manager.prev_action = states.tensor(at, "last_action")
        position = states.tensor(commands, "command.object_pose")
        ahead = torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(self.num_envs, 1)
        self.command = torch.cat([position, ahead], dim=1)

    def turns(self, body):
        import numpy as np

        out = np.zeros((self.num_envs, 9))
        for e, quat in enumerate(self.kinematics.arrays["xquat"][:, body]):
            mujoco.mju_quat2Mat(out[e], quat.astype(np.float64))
        return out.reshape(-1, 3, 3).astype(np.float32)


def terms(group):
    """Terms of a group of a configuration, by name."""
    found = {name: term for name, term in vars(group).items() if hasattr(term, "func")}
    assert not any(inspect.isclass(term.func) for term in found.values())
    return found


def main():
    states = States(FOLDER)
    cfg = joint_pos_env_cfg.FrankaCubeLiftEnvCfg()
    env = Env(states)
    assert abs(cfg.sim.dt * cfg.decimation - states.step_dt) < 1e-9
    rewards, seen = terms(cfg.rewards), terms(cfg.observations.policy)
    ends = {name: term for name, term in terms(cfg.terminations).items() if not term.time_out}
    for step in range(states.steps + 1):
        if step > 0:
            env.place(states, step, step - 1, cfg)
            for name, term in rewards.items():
                value = term.func(env, **term.params) * term.weight * states.step_dt
                states.answer("reward." + name, value)
            for name, term in ends.items():
                states.answer("end." + name, term.func(env, **term.params).float())
        env.place(states, step, step, cfg)
        for name, term in seen.items():
            states.answer("policy." + name, term.func(env, **term.params))
    states.finish()


if __name__ == "__main__":
    main()
