//! Small models, each for a part of the lowering.

/// Bodies that touch by every kind of rule.
macro_rules! touching {
    ($option:literal) => {
        concat!(
            "<mujoco>",
            $option,
            r#"<default><geom condim="3"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction="0.7 0.01 0.002"/>
    <geom name="post" type="capsule" size="0.1 0.3" pos="0.3 0 0.3" priority="2" condim="4" solref="0.05 0.7" solimp="0.4 0.7 0.1 0.3 3"/>
    <body name="a" pos="0 0 0.2"><freejoint/><geom name="a" size="0.1" condim="6" friction="1.2 0.02 0.003"
        margin="0.02" gap="0.01" solmix="3" solimp="0.5 0.8 0.1 0.3 2"/></body>
    <body name="b" pos="0.1 0.1 0.2"><freejoint/><geom name="b" type="box" size="0.1 0.2 0.1" condim="1"
        solref="-500 -20" solimp="0.9 0.9"/></body>
    <body name="c" pos="-0.1 0.1 0.2"><freejoint/><geom name="c" type="capsule" size="0.08 0.2" solimp="0.8 0.9 0.05 0.5"
        solref="0.001 1" friction="0.000001 0 0"/>
      <body name="d" pos="0 0.2 0"><geom name="d" size="0.15" margin="0.1" solref="0.3 -1"/>
        <body name="e" pos="0 0.3 0"><joint axis="1 0 0" range="-40 50" margin="0.2"/><geom name="e" size="0.1"/>
          <body name="f" pos="0 0.3 0"><joint axis="1 0 0"/><geom name="f" size="0.3"/></body></body></body></body>
  </worldbody>
  <contact>
    <pair geom1="a" geom2="b" condim="6" friction="0.9 0.8 0.01 0.002 0.001" solref="0.03 1.1"
      solreffriction="0.05 0.9" solimp="0.7 0.95 0.02 0.4 1" margin="0.05" gap="0.02"/>
    <pair geom1="c" geom2="e" condim="3" solreffriction="-30 -40"/>
    <pair geom1="floor" geom2="a" condim="4"/>
    <exclude body1="a" body2="c"/><exclude body1="world" body2="f"/>
  </contact></mujoco>"#
        )
    };
}

/// Files that mean the same here and in MuJoCo.
pub const MODELS: &[(&str, &str)] = &[
    ("elliptic", touching!(r#"<option cone="elliptic" impratio="5"/>"#)),
    ("pyramidal", touching!(r#"<option impratio="3"/>"#)),
    (
        "unfiltered",
        touching!(
            r#"<option timestep="0.02" cone="elliptic"><flag filterparent="disable" refsafe="disable"/></option>"#
        ),
    ),
    (
        "shapes",
        r#"<mujoco><worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="stand" pos="0.5 0 0"><geom name="stand" type="cylinder" size="0.2 0.3"/>
      <body name="deck" pos="0 0 0.3" euler="0 20 0"><geom name="deck" type="box" size="0.3 0.2 0.05"/></body></body>
    <body pos="0 0 0.4"><freejoint/><geom name="ball" size="0.1"/><geom name="egg" type="ellipsoid" size="0.1 0.2 0.15" pos="0 0.2 0"/></body>
    <body pos="0.3 0 0.5"><freejoint/><geom name="can" type="cylinder" size="0.1 0.2"/><geom name="box" type="box" size="0.1 0.1 0.2" pos="0.2 0 0"/></body>
    <body pos="0.5 0.2 0.5"><freejoint/><geom name="pill" type="capsule" size="0.1 0.2"/></body>
    <body pos="0.3 0.3 0.3"><freejoint/><geom name="can2" type="cylinder" size="0.15 0.1"/></body>
  </worldbody></mujoco>"#,
    ),
    (
        "meshes",
        r#"<mujoco><asset>
    <mesh name="wedge" vertex="0 0 0  0.3 0 0  0 0.3 0  0.3 0.3 0  0 0 0.2  0 0.3 0.2"/>
    <hfield name="hills" nrow="3" ncol="3" size="1 1 0.1 0.1" elevation="0 1 0 1 0 1 0 1 0"/>
  </asset><worldbody>
    <geom name="ground" type="hfield" hfield="hills"/>
    <geom name="floor" type="plane" size="5 5 1" pos="0 0 -1"/>
    <body pos="0 0 0.3"><freejoint/><geom name="w1" type="mesh" mesh="wedge"/></body>
    <body pos="0.2 0.1 0.4"><freejoint/><geom name="w2" type="mesh" mesh="wedge" pos="0.1 0 0" euler="10 0 0"/>
      <geom name="box" type="box" size="0.1 0.1 0.1" pos="-0.2 0 0"/></body>
    <body pos="0.3 0.3 0.4"><freejoint/><geom name="can" type="cylinder" size="0.1 0.1"/><geom name="pill" type="capsule" size="0.1 0.1" pos="0.2 0 0"/></body>
  </worldbody></mujoco>"#,
    ),
    (
        "welded",
        r#"<mujoco><worldbody>
    <body name="base" pos="1 2 3" euler="10 20 30"><geom size="0.1"/>
      <body name="arm" pos="0.1 0.2 0.3" euler="40 0 10"><joint axis="1 2 3" pos="0.1 0 0.2" armature="0.3"/>
        <joint type="slide" axis="0 1 1" pos="0.5 0 0"/>
        <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" euler="10 0 0"/>
        <body name="hand" pos="0.4 0 0" euler="0 50 0"><geom type="capsule" size="0.05 0.1" pos="0 0 0.1"/>
          <body name="finger" pos="0.1 0 0.2" euler="5 6 7"><joint type="ball" pos="0 0.1 0" frictionloss="0.3"/>
            <geom type="ellipsoid" size="0.1 0.05 0.02"/>
            <body name="nail" pos="0.1 0 0"><geom size="0.02"/></body></body></body>
        <body name="other" pos="-0.4 0 0" euler="0 0 50"><joint axis="0 0 1" stiffness="2" damping="0.1"/><geom size="0.1"/></body></body></body>
    <body name="free" pos="0 0 5" euler="20 30 40"><joint type="free" armature="0.2" frictionloss="0.1"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.2 0.1 0"/></body>
  </worldbody></mujoco>"#,
    ),
    (
        "slides",
        r#"<mujoco><default><geom contype="0" conaffinity="0"/><joint type="slide" armature="0.7"/></default><worldbody>
    <body><joint axis="1 0 0" range="-0.1 0.2" margin="0.2"/><joint axis="0 -1 0"/><geom type="box" size="0.1 0.2 0.3"/></body>
    <body><joint axis="1 1 0"/><geom size="0.1"/></body>
    <body><joint axis="0 0 1"/><geom size="0.1" pos="0.1 0 0"/></body>
    <body><joint axis="0 0 1" pos="0 0.1 0"/><geom size="0.1"/></body>
    <body pos="0 0 1"><geom size="0.1"/><body><joint axis="0 0 1" frictionloss="0.2"/><geom size="0.1"/></body>
      <body><geom size="0.1"/><body><joint axis="0 0 1"/><geom size="0.1"/></body></body></body>
    <body><joint axis="0 0 1"/><geom size="0.1"/><body pos="1 0 0"><geom size="0.1"/></body></body>
    <body><joint axis="0 0 1"/><joint type="hinge" axis="0 0 1"/><geom size="0.1"/></body>
  </worldbody></mujoco>"#,
    ),
    (
        "limits",
        r#"<mujoco><compiler angle="radian"/><default><joint solreflimit="0.03 0.8" solimplimit="0.7 0.9 0.3 0.4 3" solreffriction="0.05 1"
      solimpfriction="0.6 0.7 0.1 0.5 2"/></default><worldbody>
    <body><joint axis="0 1 0" range="-0.1 0.2" frictionloss="0.3"/><geom size="0.1" pos="0 0 0.3"/>
      <body pos="0 0 1"><joint axis="0 1 0" range="-0.1 0.2" margin="0.5" solreflimit="-100 -3"/><geom size="0.1" pos="0 0 0.3"/>
        <body pos="0 0 1"><joint type="ball" range="0 0.3" margin="0.1" frictionloss="0.2"/><geom type="box" size="0.1 0.2 0.3" pos="0 0 0.3"/></body></body></body>
  </worldbody></mujoco>"#,
    ),
    (
        "couplings",
        r#"<mujoco><compiler angle="radian"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
    <body name="root" pos="0 0 1" euler="0.1 0.2 0.3"><freejoint/><geom type="box" size="0.1 0.2 0.3"/><site name="s1" pos="0.1 0 0" euler="0 0.3 0"/>
      <body name="a" pos="0.3 0 0"><joint name="a" axis="0 1 0" ref="0.2"/><geom size="0.1" pos="0.1 0 0"/>
        <body name="tip" pos="0.2 0 0" euler="0.5 0 0.2"><geom size="0.1"/><site name="s2" pos="0 0.1 0" euler="0.2 0 0"/></body></body>
      <body name="b" pos="-0.3 0 0"><joint name="b" axis="0 0 1" range="-0.2 0.3"/><geom size="0.1" pos="0 0.1 0"/>
        <body name="c" pos="-0.3 0 0"><joint name="c" type="slide" axis="0 1 0"/><geom size="0.1"/></body></body></body>
    <body name="other" pos="1 0 1"><freejoint/><geom type="ellipsoid" size="0.1 0.2 0.3"/></body>
  </worldbody>
  <tendon>
    <fixed name="s" range="-0.1 0.2" margin="0.01" frictionloss="0.6" solreflimit="0.04 1" solreffriction="0.06 1.2" solimpfriction="0.5 0.6">
      <joint joint="c" coef="2"/><joint joint="a" coef="-1"/></fixed>
    <fixed name="t"><joint joint="b" coef="0.5"/><joint joint="a" coef="0.3"/></fixed>
    <fixed name="u" range="-0.1 0.1" margin="0.3" frictionloss="0.1"><joint joint="b" coef="0.5"/></fixed>
  </tendon>
  <equality>
    <connect body1="tip" body2="c" anchor="0.05 0.02 0" solref="0.03 1" solimp="0.6 0.9 0.2 0.5 2"/>
    <connect body1="tip" anchor="0.1 0 0"/>
    <connect site1="s1" site2="s2" active="false"/>
    <weld body1="tip" body2="other" torquescale="0.3" anchor="0.1 0.2 0.3" solimp="0.6 0.9 0.5 0.5 3"/>
    <weld body1="other"/>
    <weld body1="c" body2="root" relpose="0.1 0.2 0.3 0.9 0.1 0.2 0.3"/>
    <joint joint1="a" joint2="b" polycoef="0.1 0.9 0.2 0.3 0.4" solref="-100 -4"/>
    <joint joint1="c" polycoef="0.3 0 0 0 0"/>
    <tendon tendon1="s" tendon2="t" polycoef="0.1 0.5 0.2 0.1 0.1"/>
    <tendon tendon1="t"/>
  </equality>
  <actuator><motor joint="a" gear="3"/><position tendon="s" gear="2" kp="5"/><general tendon="t" dyntype="filter" dynprm="0.1"/></actuator>
  </mujoco>"#,
    ),
];
