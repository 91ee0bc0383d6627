//! URDF files, which MuJoCo loads too.

pub const MODELS: &[(&str, &str)] = &[
    (
        "followers_of_nothing",
        r#"<robot name="hand">
  <link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="c"/>
  <joint name="first" type="continuous"><parent link="base"/><child link="a"/><mimic joint="nobody"/></joint>
  <joint name="second" type="continuous"><parent link="a"/><child link="b"/><mimic joint="held"/></joint>
  <joint name="held" type="fixed"><parent link="b"/><child link="c"/></joint>
</robot>"#,
    ),
    (
        "arm",
        r#"<robot name="arm">
  <mujoco><compiler discardvisual="false" boundmass="0.01"/><option timestep="0.004"/></mujoco>
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base"><collision><geometry><box size="1 1 0.5"/></geometry></collision></link>
  <link name="upper">
    <inertial><origin xyz="0.1 0 0" rpy="0.3 -0.2 0.1"/><mass value="2"/><inertia ixx="1" iyy="2" izz="2.5" ixy="0.1" ixz="0.05" iyz="-0.2"/></inertial>
    <visual name="v"><origin xyz="0 0 1"/><geometry><sphere radius="0.1"/></geometry><material name="red"/></visual>
    <collision name="c"><origin xyz="1 0 0" rpy="0.1 0.2 0.3"/><geometry><cylinder radius="0.1" length="1"/></geometry></collision>
    <collision name="c"><geometry><capsule radius="0.1" length="1"/></geometry></collision>
  </link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry><sphere radius="0.2"/></geometry></collision></link>
  <link name="hand"><inertial><origin xyz="0 0.1 0"/><mass value="0.5"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="finger"><inertial><mass value="0.2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="cart"><inertial><mass value="0.2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="knob"><inertial><mass value="0.2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 1" rpy="0.1 0.2 0.3"/><axis xyz="0 2 0"/><limit lower="-1" upper="2" effort="5" velocity="3"/><dynamics damping="0.3" friction="0.1"/></joint>
  <joint name="wrist" type="fixed"><parent link="lower"/><child link="hand"/><origin xyz="0 0 1" rpy="0.1 0.2 0.3"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0.5 0 0"/></joint>
  <joint name="grip" type="prismatic"><parent link="hand"/><child link="finger"/><origin xyz="0 0.2 0"/><axis xyz="0 0 1"/><limit lower="0" upper="0.1" effort="-3"/></joint>
  <joint name="slide" type="planar"><parent link="base"/><child link="cart"/><axis xyz="0 1 1"/><limit upper="1"/><dynamics damping="2"/></joint>
  <joint name="turn" type="spherical"><parent link="base"/><child link="knob"/></joint>
</robot>"#,
    ),
    (
        "floating",
        r#"<robot name="floating">
  <link name="world"/>
  <link name="trunk"><inertial><mass value="3"/><inertia ixx="0.1" iyy="0.2" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><box size="1 1 1"/></geometry></visual>
    <collision><geometry><mesh filename="wedge.stl"/></geometry></collision>
    <collision><geometry><mesh filename="wedge.stl" scale="2 1 1"/></geometry></collision></link>
  <joint name="root" type="floating"><parent link="world"/><child link="trunk"/><origin xyz="0 0 1"/></joint>
</robot>"#,
    ),
];
