"""mjlab's own reward, observation and termination functions, with the numbers of its own
configurations, on states of Ostler's environments: `mjlab_terms.py TASK FOLDER WHEELS`.

mjlab's scene is made and compiled by its own code (entities, sensors), its functions are called
unmodified. What needs its simulator stands in: its data are MuJoCo's of each state, contacts are
the copied readings, heights over flat ground are those of the frames.
"""

import inspect
import pathlib
import sys
import types

import absent
import torch_on_numpy

TASK, FOLDER, WHEELS = sys.argv[1:4]
sys.path.insert(0, str(pathlib.Path(WHEELS)))
absent.stand_in(
    *"warp mujoco_warp tyro mediapy imageio_ffmpeg prettytable tqdm torchrunx trimesh scipy viser mjviser".split(),
    *"tensordict rsl_rl tensorboard onnxscript onnx wandb PIL imageio matplotlib".split(),
)

torch_on_numpy.install()

import mujoco  # noqa: E402
import torch  # noqa: E402
from mjlab.managers.scene_entity_config import SceneEntityCfg  # noqa: E402
from mjlab.scene import Scene  # noqa: E402
from mjlab.sensor.terrain_height_sensor import TerrainHeightSensor  # noqa: E402
from states import Kinematics, States  # noqa: E402


class Heights(TerrainHeightSensor):
    """Heights of frames over flat ground at z = 0."""

    def __init__(self, entity, names):
        self.entity, self.ids = entity, [entity.site_names.index(name) for name in names]

    num_frames = property(lambda self: len(self.ids))
    data = property(lambda self: types.SimpleNamespace(heights=self.entity.data.site_pos_w[:, self.ids, 2]))


class Env:
    """What the functions ask their environment for."""

    device = "cpu"

    def __init__(self, cfg, states):
        self.num_envs, self.step_dt, self.extras = states.envs, states.step_dt, {"log": {}}
        heights = [s for s in cfg.scene.sensors if hasattr(s, "reduction")]
        cfg.scene.sensors = tuple(s for s in cfg.scene.sensors if s not in heights)
        cfg.scene.num_envs = states.envs
        self.scene = Scene(cfg.scene, device="cpu")
        model = self.scene.compile()
        self.sim = types.SimpleNamespace(data=Kinematics(model, states.envs), mj_model=model)
        limits = torch.tensor(model.jnt_range, dtype=torch.float32)[None]
        fields = types.SimpleNamespace(
            jnt_range=limits,
            geom_bodyid=torch.tensor(model.geom_bodyid, dtype=torch.long),
            site_bodyid=torch.tensor(model.site_bodyid, dtype=torch.long),
        )
        for entity in self.scene.entities.values():
            # Their actuators are the simulator's.
            entity._actuators = []
        self.scene.initialize(model, fields, self.sim.data)
        # Every environment here is at the origin of its own world.
        self.scene.env_origins.zero_()
        robot = self.scene["robot"]
        for sensor in heights:
            self.scene._sensors[sensor.name] = Heights(robot, [f.name for f in sensor.frame])
        self.commands, self.at = {}, None
        self.command_manager = types.SimpleNamespace(
            get_command=lambda name: self.commands[name].command, get_term=lambda name: self.commands[name]
        )
        self.action_manager = types.SimpleNamespace()

    def place(self, states, at, commands):
        """The states of a step; what is commanded is that of another one, where rewards look."""
        joints = len(self.scene["robot"].joint_names)
        qpos, qvel = states.column(at, "qpos"), states.column(at, "qvel")
        assert qpos.shape[1] == joints + 7
        if self.at != at:
            self.sim.data.update(qpos, qvel)
            self.at = at
        self.action_manager.action = states.tensor(at, "action")
        self.action_manager.prev_action = states.tensor(at, "last_action")
        for name, command in self.commands.items():
            command.see(states, commands)
        for sensor in self.scene.sensors.values():
            sensor._invalidate_cache()


class Given:
    """A command that is copied."""

    def __init__(self, name):
        self.name = name

    def see(self, states, at):
        self.command = states.tensor(at, "command." + self.name)


def touch(env, states, at):
    """Copies the feet's contacts into mjlab's sensor, as its simulator would leave them."""
    sensor = env.scene.sensors.get("feet_ground_contact")
    if sensor is None:
        return
    held, free = states.tensor(at, "contact_time"), states.tensor(at, "air_time")
    force = states.tensor(at, "force").reshape(states.envs, -1, 3)
    for slot in sensor._slots:
        foot = sensor.primary_names.index(slot.primary_name)
        slot.data_view[:] = (held[:, foot, None] > 0).float() if slot.field_name == "found" else force[:, foot]
    sensor._air_time_state.current_contact_time[:] = held
    sensor._air_time_state.current_air_time[:] = free
    sensor._invalidate_cache()


def collide(env, states, at):
    """The robot's contacts with itself: so many physics steps had one above the threshold."""
    sensor = env.scene.sensors.get("self_collision")
    if sensor is None:
        return
    steps = states.tensor(at, "self_steps")
    history = sensor._history_state["force"]
    history.zero_()
    for k in range(history.shape[2]):
        history[:, 0, k, 0] = 20.0 * (steps[:, 0] > k)
    sensor._invalidate_cache()


def resolve(env, term):
    """As the managers do."""
    for value in term.params.values():
        if isinstance(value, SceneEntityCfg):
            value.resolve(env.scene)
    if inspect.isclass(term.func):
        term.func = term.func(cfg=term, env=env)


def velocity():
    from mjlab.tasks.velocity.config.go1.env_cfgs import unitree_go1_flat_env_cfg

    return unitree_go1_flat_env_cfg()


def velocity_g1():
    from mjlab.tasks.velocity.config.g1.env_cfgs import unitree_g1_flat_env_cfg

    return unitree_g1_flat_env_cfg()


def tracking():
    from mjlab.tasks.tracking.config.g1.env_cfgs import unitree_g1_flat_tracking_env_cfg

    return unitree_g1_flat_tracking_env_cfg()


def motion(cfg, env):
    """mjlab's motion command, whose reference is copied instead of read from a file."""
    from mjlab.tasks.tracking.mdp.commands import MotionCommand

    class Motion(MotionCommand):
        def __init__(self, cfg, env):
            self.cfg, self._env, self.robot = cfg, env, env.scene["robot"]
            self.robot_anchor_body_index = self.robot.body_names.index(cfg.anchor_body_name)
            self.motion_anchor_body_index = cfg.body_names.index(cfg.anchor_body_name)
            found = self.robot.find_bodies(cfg.body_names, preserve_order=True)[0]
            self.body_indexes = torch.tensor(found, dtype=torch.long)
            # The frame of environment e is row e.
            self.time_steps = torch.arange(env.num_envs)

        def see(self, states, at):
            given = {}
            for name, width in (("joint_pos", 0), ("joint_vel", 0), ("body_pos_w", 3), ("body_quat_w", 4),
                                ("body_lin_vel_w", 3), ("body_ang_vel_w", 3)):
                rows = states.tensor(at, "ref." + name)
                given[name] = rows.reshape(env.num_envs, -1, width) if width else rows
            self.motion = types.SimpleNamespace(**given)

    return Motion(cfg, env)


def main():
    states = States(FOLDER)
    cfg = {"velocity": velocity, "velocity_g1": velocity_g1, "tracking": tracking}[TASK]()
    env = Env(cfg, states)
    for name, command in cfg.commands.items():
        env.commands[name] = motion(command, env) if TASK == "tracking" else Given(name)
    groups = {"policy": cfg.observations["actor"].terms, "critic": cfg.observations["critic"].terms}
    rewards = {name: term for name, term in cfg.rewards.items() if term.weight != 0}
    ends = {name: term for name, term in cfg.terminations.items() if not term.time_out}
    for terms in (*groups.values(), rewards, ends):
        for term in terms.values():
            resolve(env, term)
    for step in range(states.steps + 1):
        if step > 0:
            # After the physics, before commands are drawn anew.
            env.place(states, step, step - 1)
            touch(env, states, step)
            collide(env, states, step)
            for name, term in rewards.items():
                value = term.func(env, **term.params) * term.weight
                states.answer("reward." + name, value * (env.step_dt if cfg.scale_rewards_by_dt else 1.0))
            for name, term in ends.items():
                states.answer("end." + name, term.func(env, **term.params).float())
            # mjlab keeps the height of a swing over the end of an episode; it begins anew here.
            swing = rewards.get("foot_swing_height")
            if swing is not None:
                swing.func.peak_heights[torch.tensor(states.ended[step - 1])] = 0.0
        env.place(states, step, step)
        touch(env, states, step)
        for command in env.commands.values():
            # Commands are drawn and set down in time; rewards of the next step look at it.
            getattr(command, "update_relative_body_poses", lambda: None)()
        for group, terms in groups.items():
            for name, term in terms.items():
                states.answer(f"{group}.{name}", term.func(env, **term.params))
    states.finish()


if __name__ == "__main__":
    main()
