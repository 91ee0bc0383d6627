//! Small files, each for a part of MJCF.

/// Files that others include.
pub const PARTS: &[(&str, &str)] = &[
    (
        "leg.part",
        r#"<mujoco><body name="leg" pos="1 0 0"><joint axis="0 1 1"/><geom size="0.1"/></body></mujoco>"#,
    ),
    (
        "settings.part",
        r#"<mujocoinclude><compiler angle="radian"/><default><geom density="123"/></default></mujocoinclude>"#,
    ),
];

/// Files that mean the same here and in MuJoCo.
pub const MODELS: &[(&str, &str)] = &[
    (
        "orientations",
        r#"<mujoco model="orientations">
  <compiler eulerseq="zYx"/>
  <worldbody>
    <geom type="plane" size="0 0 1" zaxis="0 0.1 1"/>
    <body pos="0 0 1" euler="10 20 30"><freejoint/>
      <geom type="box" size="0.1 0.2 0.3" axisangle="1 1 0 40"/>
      <geom type="capsule" size="0.05 0.2" xyaxes="1 0.2 0 0 1 0.3"/>
      <geom type="sphere" size="0.1" pos="0.3 0 0" zaxis="0 0 -1"/>
      <site name="s" xyaxes="-1 0 0 0 0 1" pos="1 2 3"/>
      <site name="t" type="capsule" fromto="0 0 0 1 1 1" size="0.01"/>
      <body quat="2 1 0 0.5" pos="0 1 0"><joint type="ball" range="0 50" pos="0 0.1 0"/>
        <inertial pos="0.1 0 0" mass="2" fullinertia="0.02 0.03 0.04 0.001 0.002 -0.003"/>
        <geom size="0.1" mass="100"/>
      </body>
      <body zaxis="1 0 0"><joint type="slide" axis="1 2 3" range="-0.5 0.5" ref="0.25" springref="0.1"/>
        <joint axis="3 0 1" range="-30 60" ref="15" springref="-10"/>
        <inertial pos="0 0.1 0" mass="1" diaginertia="0.01 0.02 0.025" euler="0 45 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "shapes",
        r#"<mujoco model="shapes">
  <worldbody>
    <body><freejoint/>
      <geom type="sphere" size="0.1" pos="0.1 0 0"/>
      <geom type="capsule" fromto="0 0 0 0.2 0.3 0.1" size="0.03" density="500"/>
      <geom type="cylinder" fromto="0 0 0 0 0 -1" size="0.03" mass="0.3"/>
      <geom type="ellipsoid" size="0.1 0.2 0.3" pos="0 0 1" euler="10 20 30"/>
      <geom type="box" fromto="1 0 0 1 1 0" size="0.04"/>
      <geom type="ellipsoid" fromto="1 0 0 1 1 0" size="0.04"/>
    </body>
    <body><freejoint/><geom type="sphere" size="0.1" shellinertia="true"/></body>
    <body><freejoint/><geom type="capsule" size="0.1 0.3" shellinertia="true" mass="2"/></body>
    <body><freejoint/><geom type="cylinder" size="0.1 0.3" shellinertia="true"/></body>
    <body><freejoint/><geom type="ellipsoid" size="0.1 0.2 0.3" mass="1"/></body>
    <body><freejoint/><geom type="box" size="0.1 0.2 0.3" shellinertia="true"/></body>
    <body><freejoint/><geom type="box" size="0.1 0.2 0.3" euler="30 20 10"/><geom size="0.1" mass="0"/></body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "classes",
        r#"<mujoco model="classes">
  <default>
    <geom friction="0.5" rgba="1 0 0 1" solimp="0.8" contype="3"/>
    <joint damping="2" solreflimit="0.03"/>
    <site pos="0 0 1"/>
    <default class="a">
      <geom size="0.2" friction="0.7 0.2"/>
      <joint armature="0.1" axis="1 0 0"/>
      <default class="b"><geom type="box" size="0.1 0.1"/><joint stiffness="3" range="-10 10"/></default>
    </default>
    <default class="c"><geom type="capsule" fromto="0 0 0 0 0 1" size="0.1"/><joint type="slide"/></default>
  </default>
  <default><joint frictionloss="0.1"/></default>
  <worldbody>
    <body name="one" childclass="a"><joint/><geom/><site name="s"/>
      <body name="two"><joint class="b"/><geom class="b" size="0.3 0.3 0.3" friction="0.9"/>
        <body name="three" childclass="c"><joint/><geom/><body name="four"><joint/><geom solref="0.1"/></body></body>
      </body>
      <frame childclass="b"><geom size="0.2 0.2 0.2" pos="0 1 0"/></frame>
      <body name="five"><joint limited="false" range="-1 1"/><geom/></body>
    </body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "frames",
        r#"<mujoco model="frames">
  <worldbody>
    <frame pos="1 2 3" euler="0 0 90">
      <geom size="0.1" pos="1 0 0"/>
      <frame euler="90 0 0"><body name="b" pos="0 1 0" quat="1 1 0 0">
        <frame pos="0.1 0 0" axisangle="0 1 0 30">
          <joint axis="0 0 1" pos="0.5 0 0"/><geom type="capsule" size="0.1 0.2" pos="0 0 0.3"/><site name="s" pos="0 0 1"/>
        </frame>
        <geom size="0.2"/>
      </body></frame>
      <body name="free" pos="3 0 0"><freejoint name="root"/><geom type="box" size="1 2 3"/></body>
      <site name="world_site" zaxis="1 1 1"/>
    </frame>
  </worldbody>
</mujoco>"#,
    ),
    (
        "masses",
        r#"<mujoco model="masses">
  <compiler boundmass="0.5" boundinertia="0.01" balanceinertia="true" inertiagrouprange="0 2" settotalmass="30" angle="radian"/>
  <worldbody>
    <body name="a"><joint axis="0 0 2"/><geom size="0.01"/><geom size="1" group="3"/></body>
    <body name="b"><joint range="-1 1"/><inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 5"/></body>
    <body name="c"><joint/><body name="d"><geom size="0.3"/><geom type="box" size="0.1 0.1 0.4" pos="0.3 0 0"/></body></body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "inertia_always",
        r#"<mujoco model="inertia_always">
  <compiler inertiafromgeom="true"/>
  <worldbody>
    <body name="a"><joint/><inertial pos="1 0 0" mass="7" diaginertia="1 1 1"/><geom size="0.1"/></body>
    <body name="b"><joint/><inertial pos="1 0 0" mass="7" diaginertia="1 1 1"/></body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "actuators",
        r#"<mujoco model="actuators">
  <default>
    <position kp="7" kv="0.5" ctrlrange="-1 2"/>
    <default class="g"><general gear="3" gaintype="affine" gainprm="1 2 3" biastype="affine" biasprm="4 5 -6"/></default>
  </default>
  <worldbody>
    <body name="a"><joint name="h" axis="0 1 0" range="-40 60" actuatorfrcrange="-5 6"/><geom size="0.1"/></body>
    <body name="b"><joint name="s" type="slide" axis="1 0 0"/><geom size="0.1"/></body>
  </worldbody>
  <actuator>
    <motor name="m" joint="h" gear="2" forcerange="-1 1"/>
    <position name="p" joint="h"/>
    <position name="p2" joint="s" kp="9" kv="0" ctrllimited="false"/>
    <velocity name="v" joint="s" kv="3"/>
    <damper name="d" joint="s" kv="4" ctrlrange="0 1"/>
    <general name="g" class="g" joint="h"/>
    <general name="g2" joint="s" gainprm="5" biastype="affine" biasprm="0 -2 -1"/>
    <motor joint="s"/>
  </actuator>
  <keyframe>
    <key name="first" qpos="0.1 0.2" ctrl="1 2 3 4 5 6 7 8"/>
    <key qvel="1 2"/>
  </keyframe>
</mujoco>"#,
    ),
    (
        "inherit",
        r#"<mujoco model="inherit">
  <worldbody>
    <body name="a"><joint name="h" axis="0 1 0" range="-40 60"/><geom size="0.1"/></body>
  </worldbody>
  <actuator><position joint="h" kp="3" inheritrange="0.5"/></actuator>
</mujoco>"#,
    ),
    (
        "contacts",
        r#"<mujoco model="contacts">
  <default><pair condim="4" friction="0.9 0.8" solref="0.05 0.9" margin="0.02"/><geom margin="0.003" gap="0.001" priority="2" solmix="2"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="a"><freejoint/><geom name="ga" size="0.1" condim="6"/></body>
    <body name="b"><freejoint/><geom name="gb" size="0.1" condim="1"/><body name="c"><joint/><geom name="gc" size="0.1"/></body></body>
  </worldbody>
  <contact>
    <pair geom1="gb" geom2="ga"/>
    <pair geom1="floor" geom2="gc" condim="6" solimp="0.7 0.8" gap="0.01" solreffriction="0.01 1"/>
    <exclude body1="c" body2="a"/>
    <exclude body1="world" body2="b"/>
  </contact>
</mujoco>"#,
    ),
    (
        "options",
        r#"<mujoco model="options">
  <option timestep="0.003" gravity="1 2 3" density="1.2" viscosity="1e-5" wind="1 0 0" impratio="10" integrator="implicitfast" cone="elliptic" solver="CG" iterations="7" tolerance="1e-9" ls_iterations="11" ls_tolerance="0.02" ccd_iterations="33" ccd_tolerance="1e-7">
    <flag contact="disable" eulerdamp="disable" energy="enable" gravity="enable"/>
  </option>
  <option iterations="8"><flag warmstart="disable"/></option>
  <worldbody><body><freejoint/><geom size="1"/></body></worldbody>
</mujoco>"#,
    ),
    (
        "includes",
        r#"<mujoco model="includes">
  <include file="settings.part"/>
  <worldbody>
    <body name="trunk" pos="0 0 1"><freejoint/><geom type="box" size="1 1 1"/><include file="leg.part"/></body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "worlds",
        r#"<mujoco model="worlds">
  <worldbody><geom size="0.1"/><body name="a"><joint/><geom size="0.1"/></body></worldbody>
  <worldbody><geom size="0.2"/><body name="b"><joint/><geom size="0.1"/></body></worldbody>
</mujoco>"#,
    ),
    (
        "default_alternative",
        r#"<mujoco model="default_alternative">
  <default><geom euler="0 0 30"/></default>
  <worldbody><body><joint/><geom type="box" size="1 2 3" quat="1 0 1 0"/></body></worldbody>
</mujoco>"#,
    ),
];

/// Files that neither accepts.
pub const WRONG: &[(&str, &str)] = &[
    ("root", "<mujoko/>"),
    (
        "attribute",
        r#"<mujoco><worldbody><geom size="1" sise="2"/></worldbody></mujoco>"#,
    ),
    ("element", "<mujoco><worldbody><gem/></worldbody></mujoco>"),
    (
        "number",
        r#"<mujoco><worldbody><geom size="1x"/></worldbody></mujoco>"#,
    ),
    (
        "count",
        r#"<mujoco><worldbody><geom size="1" pos="1 2"/></worldbody></mujoco>"#,
    ),
    (
        "too_many",
        r#"<mujoco><worldbody><geom size="1 2 3 4"/></worldbody></mujoco>"#,
    ),
    (
        "size",
        r#"<mujoco><worldbody><geom size="0"/></worldbody></mujoco>"#,
    ),
    (
        "class",
        r#"<mujoco><worldbody><geom size="1" class="x"/></worldbody></mujoco>"#,
    ),
    (
        "massless",
        "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>",
    ),
    (
        "negative",
        r#"<mujoco><worldbody><body><joint/><geom size="1" mass="-1"/></body></worldbody></mujoco>"#,
    ),
    (
        "inertia",
        r#"<mujoco><worldbody><body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body></worldbody></mujoco>"#,
    ),
    (
        "free_child",
        r#"<mujoco><worldbody><body><geom size="1"/><body><freejoint/><geom size="1"/></body></body></worldbody></mujoco>"#,
    ),
    (
        "free_two",
        r#"<mujoco><worldbody><body><freejoint/><joint/><geom size="1"/></body></worldbody></mujoco>"#,
    ),
    (
        "axis",
        r#"<mujoco><worldbody><body><joint axis="0 0 0"/><geom size="1"/></body></worldbody></mujoco>"#,
    ),
    (
        "range",
        r#"<mujoco><worldbody><body><joint limited="true" range="1 -1"/><geom size="1"/></body></worldbody></mujoco>"#,
    ),
    (
        "autolimits",
        r#"<mujoco><compiler autolimits="false"/><worldbody><body><joint range="-1 1"/><geom size="1"/></body></worldbody></mujoco>"#,
    ),
    (
        "names",
        r#"<mujoco><worldbody><geom name="a" size="1"/><geom name="a" size="1"/></worldbody></mujoco>"#,
    ),
    (
        "target",
        r#"<mujoco><worldbody/><actuator><motor joint="x"/></actuator></mujoco>"#,
    ),
    (
        "no_target",
        r#"<mujoco><worldbody/><actuator><motor/></actuator></mujoco>"#,
    ),
    (
        "orientation",
        r#"<mujoco><worldbody><geom size="1" quat="1 0 0 0" euler="0 0 0"/></worldbody></mujoco>"#,
    ),
    (
        "zero_quat",
        r#"<mujoco><worldbody><geom size="1" quat="0 0 0 0"/></worldbody></mujoco>"#,
    ),
    (
        "fromto",
        r#"<mujoco><worldbody><geom size="1" fromto="0 0 0 1 1 1"/></worldbody></mujoco>"#,
    ),
    (
        "fromto_pos",
        r#"<mujoco><worldbody><geom type="capsule" size="1" pos="1 0 0" fromto="0 0 0 1 1 1"/></worldbody></mujoco>"#,
    ),
    (
        "fromto_same",
        r#"<mujoco><worldbody><geom type="capsule" size="1" fromto="1 1 1 1 1 1"/></worldbody></mujoco>"#,
    ),
    (
        "plane",
        r#"<mujoco><worldbody><body><joint/><geom size="1"/><geom type="plane" size="1 1 1"/></body></worldbody></mujoco>"#,
    ),
    (
        "condim",
        r#"<mujoco><worldbody><geom size="1" condim="2"/></worldbody></mujoco>"#,
    ),
    (
        "key",
        r#"<mujoco><worldbody/><keyframe><key qpos="1 2 3"/></keyframe></mujoco>"#,
    ),
    (
        "world_joint",
        "<mujoco><worldbody><joint/></worldbody></mujoco>",
    ),
    (
        "world_inertial",
        r#"<mujoco><worldbody><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></worldbody></mujoco>"#,
    ),
    (
        "ball_then_hinge",
        r#"<mujoco><worldbody><body><joint type="ball"/><joint/><geom size="1"/></body></worldbody></mujoco>"#,
    ),
    (
        "many_dofs",
        r#"<mujoco><worldbody><body><joint type="slide"/><joint type="slide"/><joint type="slide"/><joint/><joint/><joint/><joint/><geom size="1"/></body></worldbody></mujoco>"#,
    ),
    (
        "default_twice",
        r#"<mujoco><default><default class="a"/><default class="a"/></default><worldbody/></mujoco>"#,
    ),
    (
        "default_unnamed",
        r#"<mujoco><default><default/></default><worldbody/></mujoco>"#,
    ),
    (
        "main_renamed",
        r#"<mujoco><default class="x"/><worldbody/></mujoco>"#,
    ),
    (
        "global",
        r#"<mujoco><compiler coordinate="global"/><worldbody/></mujoco>"#,
    ),
    (
        "keyword",
        r#"<mujoco><option integrator="Eular"/><worldbody/></mujoco>"#,
    ),
    (
        "include",
        r#"<mujoco><include file="not_there.xml"/><worldbody/></mujoco>"#,
    ),
    (
        "exclude",
        r#"<mujoco><worldbody/><contact><exclude body1="a" body2="b"/></contact></mujoco>"#,
    ),
    (
        "ctrlrange",
        r#"<mujoco><worldbody><body><joint name="j"/><geom size="1"/></body></worldbody><actuator><motor joint="j" ctrllimited="true" ctrlrange="1 -1"/></actuator></mujoco>"#,
    ),
    (
        "two_inertials",
        r#"<mujoco><worldbody><body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>"#,
    ),
];
