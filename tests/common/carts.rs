//! Two agents in one world.

/// Two carts on a rail each, which are rewarded for meeting.
pub const TWO: &str = r#"
description = "two carts that want to meet"
[sim]
threads = 1
specialize = "off"
[agents]
names = ["left", "right"]
[env]
num_envs = 8
decimation = 2
episode_length_s = 0.8
[task]
robot = "robots/carts.xml"
[[task.action]]
actuators = ["{agent}_*"]
[[task.observation]]
name = "own"
expr = "[joint_pos({agent}_slide), joint_vel({agent}_slide)]"
[[task.observation]]
name = "other"
expr = "others(pos({other}_cart).x - pos({agent}_cart).x)"
[[task.reward]]
name = "near"
expr = "-distance(left_cart, right_cart)"
[[task.reward]]
name = "effort"
expr = "sum(action^2)"
weight = -0.01
[[task.termination]]
name = "away"
expr = "abs(joint_pos({agent}_slide)) > 0.9"
[[task.reset]]
target = "qpos"
uniform = [-0.3, 0.3]
[actor]
hidden_dims = [16]
obs_normalization = true
[critic]
hidden_dims = [16]
obs_normalization = true
[ppo]
num_mini_batches = 2
num_learning_epochs = 2
[runner]
num_steps_per_env = 16
max_iterations = 3
[learner]
threads = 1
[replay]
capacity = 2000
storage = "host"
[sac]
batch_size = 32
num_updates = 1
learning_starts = 200
"#;

/// Their robot, `robots/carts.xml`.
pub const CARTS: &str = r#"
<mujoco model="carts">
  <option timestep="0.01" gravity="0 0 0"/>
  <worldbody>
    <body name="left_cart">
      <joint name="left_slide" type="slide" axis="1 0 0" damping="1"/>
      <geom name="left_geom" size="0.1" mass="1"/>
    </body>
    <body name="right_cart" pos="0 1 0">
      <joint name="right_slide" type="slide" axis="1 0 0" damping="1"/>
      <geom name="right_geom" size="0.1" mass="2"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="left_motor" joint="left_slide" gear="5" ctrlrange="-1 1"/>
    <motor name="right_motor" joint="right_slide" gear="5" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"#;
