//! Models that attach other models and replicate bodies. Each is compared as a model
//! here, and by its dynamics in `native_referee`.

/// Files that the models attach.
pub const PARTS: &[(&str, &str)] = &[
    (
        // Its own angles, sequence of axes, classes and options; all that refers to bodies.
        "part_kid.xml",
        r#"<mujoco model="kid">
  <compiler angle="radian" eulerseq="zYx" autolimits="false" inertiagrouprange="0 2"/>
  <option timestep="0.01" gravity="0 0 -1"/>
  <default><geom density="500" friction="0.7"/><joint damping="0.2"/>
    <motor gear="3" ctrllimited="true" ctrlrange="-1 1"/>
    <default class="limb"><geom type="capsule" size="0.04 0.1"/><joint armature="0.3" axis="0 1 0"/>
      <site pos="0 0 0.1"/><position kp="7"/><equality solref="0.03 1"/><tendon stiffness="4"/><pair condim="1"/></default>
  </default>
  <asset><material name="paint" rgba="1 0 0 1"/></asset>
  <worldbody>
    <geom name="ground" type="plane" size="2 2 1" euler="0.1 0 0.05"/>
    <site name="mark" pos="1 0 0"/>
    <frame name="stand" pos="0 0 1" euler="0.3 0.2 0.1" childclass="limb">
      <body name="trunk" pos="0.5 0 0" euler="0.4 0.1 0.2"><freejoint name="root"/><geom name="trunk" material="paint"/>
        <geom type="box" size="0.1 0.1 0.1" pos="0.1 0 0" group="3" contype="0" conaffinity="0"/>
        <body name="arm" pos="0.2 0 0"><joint name="arm" range="-1 0.5" limited="true" ref="0.1"/><geom name="arm"/><site name="tip"/>
          <body name="hand" pos="0 0 0.2" childclass="main"><joint name="wrist" axis="1 0 0"/><geom name="hand" type="capsule" size="0.05 0.03"/>
            <geom name="claw" class="limb" pos="0 0 0.1"/><site name="palm"/></body></body></body>
    </frame>
    <body name="other" pos="0 3 0.5"><joint name="slide" type="slide" axis="1 0 1" range="-0.5 0.5" limited="true"/>
      <geom name="other" size="0.3"/><site name="eye" pos="0 0 0.3"/></body>
  </worldbody>
  <contact><exclude name="ex" body1="trunk" body2="hand"/><exclude body1="world" body2="hand"/><exclude body1="hand" body2="other"/>
    <pair class="limb" geom1="claw" geom2="trunk"/><pair geom1="hand" geom2="other" margin="0.02"/></contact>
  <tendon><fixed name="both" class="limb"><joint joint="arm" coef="2"/><joint joint="wrist" coef="-1"/></fixed>
    <spatial name="string"><site site="tip"/><site site="eye"/></spatial>
    <spatial name="sinew" range="0 0.9" limited="true"><site site="palm"/><site site="tip"/></spatial></tendon>
  <equality><joint name="gears" class="limb" joint1="arm" joint2="wrist" polycoef="0.1 0.5 0 0 0"/>
    <weld name="pin" body1="other" body2="world"/><connect name="held" body1="hand" body2="other" anchor="0 0 0.1"/></equality>
  <actuator><motor name="arm" joint="arm"/><position name="wrist" class="limb" joint="wrist"/>
    <general name="slow" joint="arm" dyntype="filter" dynprm="0.2" class="limb"/>
    <motor name="pull" tendon="both"/><motor name="slide" joint="slide"/><motor name="jet" site="palm" refsite="eye" gear="0 0 1 0 0 0"/></actuator>
  <sensor><jointpos name="arm" joint="arm"/><gyro name="gyro" site="palm"/><clock name="time"/><tendonpos name="both" tendon="both"/>
    <actuatorpos name="pull" actuator="pull"/><framepos name="seen" objtype="site" objname="palm" reftype="body" refname="other"/>
    <framepos name="high" objtype="body" objname="hand" reftype="body" refname="world"/><jointvel name="slide" joint="slide"/></sensor>
  <keyframe><key name="up" qpos="1 2 3 0.9 0.1 0 0 0.4 0.6 0.2" qvel="1 2 3 4 5 6 7 8 9" ctrl="0.1 0.2 0.3 0.4 0.5 0.6" act="0.7"/>
    <key name="rest" ctrl="1 0 0 0 0 0"/></keyframe>
</mujoco>"#,
    ),
    (
        // A plain body: no names where they are not needed.
        "part_ball.xml",
        r#"<mujoco model="ball"><worldbody><body name="ball" pos="0 0 1"><freejoint/><geom size="0.1"/><geom size="0.05" pos="0 0 0.1"/></body></worldbody>
  <sensor><framepos objtype="body" objname="ball"/></sensor></mujoco>"#,
    ),
    (
        "meshes/pyramid.obj",
        "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n",
    ),
    (
        // Assets: named, by a class, without a name in a folder of its own.
        "part_meshed.xml",
        r#"<mujoco model="meshed"><compiler meshdir="meshes"/><default><mesh scale="2 2 2"/><geom material="red"/><default class="w"><geom type="mesh" mesh="wedge"/></default></default>
  <asset><material name="red" rgba="1 0 0 1"/><mesh name="wedge" scale="1 1 1" inertia="convex" vertex="0 0 0  0.2 0 0  0 0.2 0  0 0 0.2"/><mesh inertia="convex" file="pyramid.obj"/>
    <hfield name="hills" nrow="2" ncol="2" elevation="0 1 0.5 0" size="1 1 0.5 0.1"/></asset>
  <worldbody><geom type="hfield" hfield="hills"/><body name="stone" pos="0 0 1"><freejoint/><geom class="w"/><geom type="mesh" mesh="pyramid" pos="0 0 0.3"/></body></worldbody></mujoco>"#,
    ),
    (
        "part_ball_on_a_rod.xml",
        r#"<mujoco model="rod"><worldbody><geom name="rod" type="capsule" fromto="0 0 0 0 0 -1" size="0.05"/>
  <body name="ball" pos="0 0 -1"><joint name="ball"/><geom name="ball" size="0.2"/></body></worldbody>
  <contact><exclude body1="world" body2="ball"/></contact><equality><weld body1="ball" body2="world" active="false"/></equality>
  <sensor><framepos name="far" objtype="body" objname="ball" reftype="body" refname="world"/></sensor></mujoco>"#,
    ),
    (
        // Attaches others itself, in its own frames.
        "part_cart.xml",
        r#"<mujoco model="cart"><compiler eulerseq="XYZ"/><asset><model name="k" file="part_kid.xml"/><model file="part_ball_on_a_rod.xml"/></asset>
  <default><default class="stiff"><joint stiffness="3"/></default></default>
  <worldbody><body name="base" pos="1 0 0" euler="10 20 30"><geom name="base" size="0.2"/>
      <frame pos="0 0 0.5" euler="90 0 0"><attach model="k" body="arm" prefix="k_"/></frame></body>
    <body name="cart" childclass="stiff"><joint name="cart" type="slide"/><geom size="0.1"/><attach model="rod" prefix="b_"/></body>
  </worldbody>
  <actuator><motor name="cart" joint="cart"/><motor name="late" joint="k_wrist"/></actuator></mujoco>"#,
    ),
];

macro_rules! model {
    ($name:literal $text:literal) => {
        ($name, concat!("<mujoco model=\"", $name, "\">", $text, "</mujoco>"))
    };
}

/// Files that mean the same here and in MuJoCo.
pub const MODELS: &[(&str, &str)] = &[
    model!("attach_world" r#"<asset><model name="k" file="part_kid.xml"/></asset>
  <worldbody><body name="mine" pos="0 0 9"><joint name="mine"/><geom size="0.2"/></body>
    <frame pos="5 0 0" euler="0 0 90"><attach model="k" prefix="x_"/></frame></worldbody>
  <actuator><motor name="mine" joint="mine"/></actuator>
  <keyframe><key name="own" qpos="0.7"/></keyframe>"#),
    model!("attach_body" r#"<asset><model name="k" file="part_kid.xml"/></asset>
  <worldbody><attach model="k" body="trunk" prefix="x/"/></worldbody>"#),
    model!("attach_part_of_a_body" r#"<asset><model file="part_kid.xml"/></asset><compiler angle="radian"/>
  <default><geom density="9"/><joint damping="4"/></default>
  <worldbody><body name="base" pos="0 0 2" euler="1 0 0"><joint/><geom size="0.3"/><site name="s" euler="0 1 0"/>
    <attach model="kid" body="arm" prefix="left_"/>
    <frame euler="0 0 3" pos="0 1 0"><attach model="kid" body="arm" prefix="right_"/><geom size="0.1"/></frame></body></worldbody>"#),
    model!("attach_frame" r#"<asset><model name="k" file="part_kid.xml"/></asset>
  <worldbody><frame pos="1 2 3" euler="30 0 0"><attach model="k" frame="stand" prefix="x_"/></frame><body name="q"><geom size="0.1"/></body></worldbody>"#),
    model!("attach_twice" r#"<asset><model name="k" file="part_kid.xml"/></asset>
  <option integrator="implicitfast"/><compiler inertiafromgeom="true"/>
  <worldbody><frame pos="-3 0 0"><attach model="k" body="trunk" prefix="a_"/></frame>
    <body name="between"><joint name="between"/><geom size="0.1" mass="1"/></body>
    <frame pos="3 0 0" euler="0 0 180"><attach model="k" frame="stand" prefix="b_"/></frame></worldbody>
  <actuator><motor joint="between"/></actuator>
  <sensor><jointpos name="between" joint="between"/></sensor>
  <keyframe><key name="first" qpos="0 0 1 1 0 0 0 0.1 0.2 0.3" ctrl="0.5"/><key name="empty"/></keyframe>"#),
    model!("attach_the_world_as_a_body" r#"<asset><model name="k" file="part_ball_on_a_rod.xml"/></asset>
  <worldbody><body name="top" pos="1 0 2"><joint/><geom size="0.3"/><attach model="k" body="world" prefix="x_"/></body></worldbody>"#),
    model!("attach_without_prefix" r#"<asset><model name="k" file="part_kid.xml"/></asset>
  <default><geom size="0.4"/><default class="limb"><geom density="2"/></default></default>
  <worldbody><geom class="limb"/><attach model="k" body="trunk" prefix=""/></worldbody>"#),
    model!("attach_in_attached" r#"<asset><model name="p" file="part_cart.xml"/></asset>
  <worldbody><body name="floor"><geom type="box" size="1 1 0.1"/></body><frame pos="0 5 0" euler="0 40 0"><attach model="p" prefix="z_"/></frame></worldbody>"#),
    model!("attach_own" r#"<worldbody>
    <frame name="F" pos="0 0 1" euler="20 0 0"><body name="top" pos="1 0 0"><joint name="top"/><geom name="top" size="0.2"/>
      <body name="low" pos="0 0 -1"><joint name="low"/><geom size="0.1"/></body></body></frame>
    <frame pos="0 3 0"><attach frame="F" prefix="q_"/></frame><body name="u" pos="2 2 2"><attach body="low" prefix="s_"/></body></worldbody>
  <contact><exclude body1="top" body2="low"/></contact><actuator><motor joint="low"/><motor name="m" joint="top"/></actuator>"#),
    model!("attach_uses_the_childs_classes_later" r#"<asset><model name="k" file="part_kid.xml"/></asset>
  <worldbody><attach model="k" body="other" prefix="x_"/><body name="mine" childclass="x_limb"><joint/><geom/></body></worldbody>"#),
    model!("attach_refers_to_the_child" r#"<asset><model name="k" file="part_kid.xml"/></asset>
  <worldbody><attach model="k" body="trunk" prefix="x_"/><body name="post" pos="3 0 0"><geom name="post" size="0.2"/><site name="post"/></body></worldbody>
  <contact><exclude body1="x_trunk" body2="post"/><pair geom1="post" geom2="x_hand"/></contact>
  <tendon><spatial name="rope"><site site="x_palm"/><site site="post"/></spatial></tendon>
  <equality><joint name="lock" joint1="x_arm"/><connect body1="x_hand" body2="post" anchor="0 0 0"/></equality>
  <actuator><motor name="extra" joint="x_wrist"/><motor name="rope" tendon="rope"/></actuator>
  <sensor><jointpos name="extra" joint="x_wrist"/></sensor>"#),
    model!("attach_meshes" r#"<compiler meshdir="elsewhere"/><asset><model name="m" file="part_meshed.xml"/></asset>
  <worldbody><attach model="m" prefix="a_"/><frame pos="2 0 0"><attach model="m" body="stone" prefix="b_"/></frame></worldbody>"#),
    model!("replicate" r#"<worldbody><body name="a"><joint name="a"/><geom size="0.1"/></body>
    <replicate count="3" offset="1 0 0" euler="10 20 30" sep="_"><body name="b" pos="1 0 0"><joint name="j"/><geom name="g" size="0.1"/><site name="s" pos="0 0 1"/></body></replicate></worldbody>
  <actuator><motor name="m" joint="j"/><motor name="ma" joint="a"/></actuator>
  <sensor><clock name="c"/><jointpos name="j" joint="j"/></sensor>
  <keyframe><key name="short" qpos="0.7 0.8"/><key name="full" qpos="0.7 0.8 0.9 1" ctrl="1 2 3 4"/></keyframe>"#),
    model!("replicate_geoms_and_sites" r#"<default><default class="d"><geom size="0.05" density="300"/></default></default>
  <compiler angle="radian" eulerseq="YXZ"/>
  <worldbody><body name="wheel" pos="0 0 1"><joint axis="0 1 0"/><geom name="hub" size="0.1"/>
    <replicate count="11" euler="0.2 0 0.57" offset="0.01 0 0" childclass="d"><geom name="spoke" pos="0.5 0 0"/><site name="end" pos="0.6 0 0"/></replicate>
    <geom name="last" size="0.02" pos="0 0 1"/></body></worldbody>"#),
    model!("replicate_in_replicate" r#"<worldbody>
    <frame pos="1 0 0" euler="0 0 45"><replicate count="2" offset="0 2 0" euler="0 30 0" sep="r">
      <replicate count="3" offset="1 0 0" euler="0 0 15" sep="c"><body name="p" pos="0.1 0 0" euler="10 0 0"><joint name="p"/><geom name="p" size="0.1"/>
        <replicate count="2" offset="0 0 0.3"><geom name="knob" size="0.05"/></replicate></body></replicate></replicate></frame></worldbody>
  <actuator><position name="p" joint="p" kp="3"/></actuator><contact><exclude body1="world" body2="p"/></contact>"#),
    model!("replicate_with_neighbours" r#"<worldbody><body name="w" pos="0 0 3"><joint name="w"/><geom name="w" size="0.2"/></body>
    <replicate count="2" offset="2 0 0"><body name="r"><joint name="j"/><geom name="g" size="0.3"/><site name="s"/></body></replicate>
    <body name="late" pos="0 3 0"><joint name="late"/><geom size="0.1"/></body></worldbody>
  <equality><joint joint1="j" joint2="w"/><connect body1="r" body2="w" anchor="0 0 0"/><connect body1="r" anchor="0 0 0"/><weld body1="r" body2="world"/></equality>
  <tendon><fixed name="t"><joint joint="j" coef="1"/><joint joint="w" coef="2"/></fixed><fixed name="only"><joint joint="w" coef="1"/></fixed></tendon>
  <actuator><motor name="t" tendon="t"/><motor name="late" joint="late"/><motor name="only" tendon="only"/></actuator>
  <contact><pair geom1="g" geom2="w"/><exclude body1="r" body2="w"/><exclude body1="world" body2="r"/></contact>"#),
    model!("replicate_attached" r#"<asset><model name="k" file="part_kid.xml"/></asset>
  <worldbody><replicate count="3" offset="2 0 0" sep="_"><attach model="k" body="trunk" prefix="x_"/></replicate></worldbody>"#),
    model!("replicate_attached_balls" r#"<asset><model file="part_ball.xml"/></asset>
  <worldbody><geom type="plane" size="5 5 1"/><replicate count="2" offset="0 0.5 0"><replicate count="2" offset="0.5 0 0">
    <frame pos="0 0 0.2"><attach model="ball" body="ball" prefix="b"/></frame></replicate></replicate></worldbody>"#),
    model!("replicate_nothing" r#"<worldbody><body name="b"><joint name="b"/><geom size="1"/></body><replicate count="0"><body name="r"><joint name="j"/><geom size="1"/></body></replicate></worldbody>
  <actuator><motor name="b" joint="b"/><motor name="j" joint="j"/></actuator>"#),
];
