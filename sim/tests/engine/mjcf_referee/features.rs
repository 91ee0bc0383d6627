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
        "activations",
        r#"<mujoco model="activations">
  <default>
    <default class="f"><general dyntype="filter" dynprm="0.2" actrange="-1 1" gainprm="2"/></default>
    <default class="s"><position kp="20" dampratio="0.7"/></default>
  </default>
  <worldbody>
    <body name="a"><joint name="h" axis="0 1 0" range="-40 60" armature="0.1"/><geom type="capsule" size="0.1 0.3" pos="0.1 0.2 0.3"/>
      <body name="b" pos="0 0 1"><joint name="s" type="slide" axis="1 0 1"/><joint name="g" axis="1 1 0" pos="0 0.1 0" ref="20"/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/><site name="q" pos="0.1 0 0" euler="0 30 0"/></body>
    </body>
    <body name="c"><joint name="ball" type="ball"/><geom size="0.1"/><site name="p" pos="0 0 1"/></body>
    <body name="d"><freejoint name="free"/><geom size="0.1"/></body>
  </worldbody>
  <actuator>
    <motor name="m" joint="h"/>
    <general name="f1" class="f" joint="h"/>
    <general name="f2" class="f" joint="g" dyntype="filterexact" actlimited="false" actearly="true"/>
    <general name="i" joint="s" dyntype="integrator" gaintype="affine" gainprm="1 2 3" actrange="-2 2" actdim="1"/>
    <general name="mu" joint="s" dyntype="muscle" dynprm="0.01 0.04 0.1"/>
    <position name="r1" class="s" joint="h" gear="3"/>
    <position name="r2" class="s" joint="g" dampratio="1.5" timeconst="0.05"/>
    <position name="r3" joint="g" kp="5" kv="0.3" timeconst="0"/>
    <intvelocity name="v1" joint="h" kp="4" dampratio="1" inheritrange="0.9"/>
    <intvelocity name="v2" joint="s" kp="4" kv="2" actrange="-1 1" actlimited="true"/>
    <cylinder name="c1" joint="s" timeconst="0.3" area="0.02" bias="1 2 3"/>
    <cylinder name="c2" joint="s" diameter="0.1"/>
    <motor name="ball1" joint="ball" gear="1 2 3"/>
    <motor name="ball2" jointinparent="ball" gear="1 2 3"/>
    <motor name="free1" jointinparent="free" gear="1 2 3 4 5 6"/>
    <motor name="slide1" jointinparent="s"/>
    <general name="site1" site="p" gear="0 0 1 0 0 2"/>
    <general name="site2" site="p" refsite="q" gear="1 0 0"/>
    <general name="crank" cranksite="p" slidersite="q" cranklength="0.4"/>
  </actuator>
  <keyframe><key act="1 2 3 4 5 6 7 8 9"/></keyframe>
</mujoco>"#,
    ),
    (
        "tendons",
        r#"<mujoco model="tendons">
  <default><tendon damping="0.2" solreflimit="0.03"/><default class="t"><tendon stiffness="7" range="-1 2"/></default></default>
  <worldbody>
    <body name="a"><joint name="h" axis="0 1 0" ref="10" springref="25"/><geom type="capsule" size="0.1 0.3" pos="0.1 0.2 0.3"/>
      <body name="b" pos="0 0 1"><joint name="s" type="slide" axis="1 0 1" ref="0.2" springref="-0.1"/><joint name="g" axis="1 1 0" pos="0 0.1 0"/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/></body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="one" class="t"><joint joint="h" coef="1.5"/><joint joint="s" coef="-2"/></fixed>
    <fixed name="two" stiffness="1" springlength="0.3" armature="0.4" frictionloss="0.1" margin="0.01" solimplimit="0.8" solreffriction="0.1" solimpfriction="0.7"><joint joint="g" coef="1"/></fixed>
    <fixed stiffness="2" springlength="-0.2 0.4" limited="false" range="0 1" actuatorfrclimited="true" actuatorfrcrange="-1 2"><joint joint="g" coef="1"/><joint joint="h" coef="0.5"/><joint joint="s" coef="0"/></fixed>
    <fixed name="four" actuatorfrcrange="-1 2"><joint joint="s" coef="3"/></fixed>
  </tendon>
  <actuator>
    <motor tendon="one" gear="2"/>
    <position tendon="two" kp="30" dampratio="0.9"/>
    <position tendon="one" kp="30" dampratio="1.1" gear="0.7" inheritrange="1"/>
    <position joint="g" kp="30" dampratio="1"/>
  </actuator>
  <equality><tendon tendon1="one" tendon2="two" polycoef="0.1 2"/><tendon tendon1="four"/></equality>
</mujoco>"#,
    ),
    (
        "equalities",
        r#"<mujoco model="equalities">
  <default><equality solref="0.05 0.9"/><default class="e"><equality solimp="0.8 0.9 0.01" active="false"/></default></default>
  <worldbody>
    <site name="w" pos="1 2 3" euler="10 0 20"/>
    <body name="a" pos="0.1 0.2 0.3" euler="10 20 30"><joint name="h" axis="0 1 0" ref="10"/><geom type="capsule" size="0.1 0.3" pos="0.1 0.2 0.3"/>
      <site name="p" pos="0.1 0.2 0" zaxis="1 1 1"/>
      <body name="b" pos="0 0 1" euler="0 50 0"><joint name="s" type="slide" axis="1 0 1"/><joint name="g" axis="1 1 0" pos="0 0.1 0"/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/><site name="q" pos="0.3 0 0.2" euler="40 0 5"/></body>
    </body>
    <body name="c" pos="2 0 0" quat="1 2 3 4"><freejoint/><geom size="0.1"/></body>
    <body name="d" pos="2 1 0"><joint type="ball" pos="0 0 0.5"/><geom size="0.1"/></body>
  </worldbody>
  <equality>
    <connect body1="b" anchor="0.1 0.2 0.3"/>
    <connect name="n" body1="c" body2="b" anchor="0.1 -0.2 0.3" class="e"/>
    <connect site1="p" site2="q"/>
    <connect site1="w" site2="q" active="false"/>
    <weld body1="c"/>
    <weld body1="c" body2="b" anchor="0.1 0.2 0.3" torquescale="2.5"/>
    <weld body1="d" body2="b" relpose="0.1 0.2 0.3 2 0 1 0" anchor="0 0 1"/>
    <weld body1="world" body2="d" relpose="0.1 0.2 0.3 0 0 0 0"/>
    <weld site1="q" site2="w" torquescale="0.5" solref="-100 -10"/>
    <joint joint1="h"/>
    <joint joint1="h" joint2="g" polycoef="0.1 2 3 4 5"/>
    <joint joint1="s" joint2="h" polycoef="0 0.5" class="e"/>
  </equality>
</mujoco>"#,
    ),
    (
        "springs",
        r#"<mujoco model="springs">
  <worldbody>
    <body name="a"><joint type="slide" armature="2" springdamper="0.1 1"/><geom type="box" size=".1 .2 .3"/></body>
    <body name="b"><joint type="slide" armature="2" springdamper="0.1 1" axis="1 1 0"/><geom type="box" size=".1 .2 .3"/></body>
    <body name="c"><joint type="ball" springdamper="0.1 0.5" damping="3"/><geom size="0.1" pos="1 0 0"/>
      <body name="d" pos="1 0 0"><joint armature="0.3" springdamper="0.2 0.7"/><joint type="slide" name="s" springdamper="0.2 0.7"/><geom type="capsule" size="0.1 0.2" pos="0.1 0.2 0.3"/></body>
    </body>
    <body name="e"><joint type="free" springdamper="0.3 2"/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/></body>
    <body name="f"><joint name="t" type="slide" armature="2" springdamper="0.1 1"/><geom type="box" size=".1 .2 .3"/></body>
  </worldbody>
  <tendon><fixed armature="3"><joint joint="t" coef="1"/><joint joint="s" coef="2"/></fixed></tendon>
</mujoco>"#,
    ),
    (
        "aligned",
        r#"<mujoco model="aligned">
  <compiler alignfree="true"/>
  <worldbody>
    <body name="a" pos="1 0 0" euler="10 20 30"><joint type="free"/><geom type="box" size=".1 .2 .3" pos="0.1 0.2 0.3" euler="10 20 0"/><geom size=".1" pos="1 0 0"/><site pos="0 0 1"/></body>
    <body name="b"><freejoint align="false"/><geom type="box" size=".1 .2 .3" pos="0.1 0.2 0.3" euler="10 20 0"/></body>
    <body name="c"><freejoint align="auto"/><geom type="box" size=".1 .2 .3" pos="0.1 0.2 0.3"/><site euler="0 10 20"/></body>
    <body name="d"><freejoint align="true"/><geom type="box" size=".1 .2 .3" pos="0.1 0.2 0.3"/><body><geom size="0.1"/></body></body>
    <body name="e"><freejoint align="true"/><frame pos="1 2 3" euler="0 0 90"><inertial pos="0.1 0 0" mass="1" diaginertia="1 2 2.5" euler="5 0 0"/></frame><geom size="0.1"/></body>
    <body name="f"><joint/><frame pos="1 2 3" euler="0 0 90"><frame pos="1 0 0"><inertial pos="0.1 0 0" mass="1" diaginertia="1 2 2.5" euler="5 0 0"/></frame></frame></body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "fluid",
        r#"<mujoco model="fluid">
  <option density="1.2" viscosity="1e-5" wind="1 2 3"/>
  <default><default class="f"><geom fluidshape="ellipsoid"/></default></default>
  <worldbody>
    <body childclass="f"><freejoint/>
      <geom size="0.1"/>
      <geom type="capsule" size="0.1 0.3" fluidcoef="1 2 3 4 5"/>
      <geom type="cylinder" size="0.1 0.3" fluidcoef="0.4"/>
      <geom type="ellipsoid" size="0.1 0.3 0.02"/>
      <geom type="box" size="0.1 0.3 0.4"/>
      <geom type="box" size="0.1 0.3 0.4" fluidshape="none"/>
    </body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "fused",
        r#"<mujoco model="fused">
  <compiler fusestatic="true"/>
  <worldbody>
    <geom size="0.3"/>
    <body name="base" pos="1 0 0" euler="0 0 30"><geom name="bg" size="0.1" pos="0 0 1"/><site name="bs" euler="10 0 0"/>
      <body name="a" pos="0 1 0" euler="0 20 0"><joint axis="0 1 0"/><geom name="ag" type="box" size="0.1 0.2 0.3"/>
        <body name="b" pos="0 0 0.5" euler="40 0 0"><geom name="bb" type="capsule" size="0.1 0.2" pos="0.1 0 0"/><site name="bbs" pos="1 0 0"/>
          <body name="c" pos="0.1 0.2 0.3"><joint type="slide"/><geom name="cg" size="0.1"/></body>
          <body name="d" pos="0.1 0.2 0.3" euler="1 2 3"><geom name="dg" size="0.1" pos="0.2 0 0"/></body>
        </body>
        <body name="kept"><geom name="kg" size="0.1"/><body name="e" pos="1 0 0"><joint/><geom name="eg" size="0.2"/></body></body>
        <geom name="last" size="0.05"/>
      </body>
      <body name="f"><geom name="fg" size="0.1" pos="3 0 0"/></body>
    </body>
  </worldbody>
  <contact><exclude body1="kept" body2="a"/></contact>
</mujoco>"#,
    ),
    (
        "fused_but_for_sensors",
        r#"<mujoco model="fused_but_for_sensors">
  <compiler fusestatic="true"/><option magnetic="1 2 3"/>
  <default><site type="box" size="0.1 0.2"/></default>
  <worldbody>
    <body name="a" pos="0 0 1"><joint/><geom size="0.1"/>
      <body name="gone" pos="1 0 0"><geom name="gg" size="0.2"/><site name="gs" type="cylinder" fromto="0 0 0 0 0 1"/></body>
      <body name="wrist" pos="1 2 0"><geom size="0.1"/><site name="ws" size="0.3"/>
        <body name="hand" pos="0 0 1"><geom size="0.05"/><site name="hs" type="ellipsoid" fromto="0 0 0 0 1 1"/></body></body>
      <body name="seen" pos="2 0 0"><geom size="0.1"/></body>
      <body name="from" pos="3 0 0"><geom size="0.1"/></body>
      <body name="sub" pos="4 0 0"><geom size="0.1"/></body>
    </body>
  </worldbody>
  <sensor><force site="ws"/><accelerometer site="hs"/><touch site="gs"/><framepos objtype="body" objname="seen"/>
    <framequat objtype="site" objname="hs" reftype="xbody" refname="from"/><subtreecom body="sub"/></sensor>
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
        "gravcomp",
        r#"<mujoco model="gravcomp">
  <default><joint actuatorgravcomp="true"/></default>
  <worldbody>
    <body gravcomp="0.5"><joint/><geom size="1"/>
      <body gravcomp="1"><joint actuatorgravcomp="false"/><geom size="1"/></body>
    </body>
  </worldbody>
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
    (
        "fused_but_for_some",
        r#"<mujoco><compiler fusestatic="true" savecompiled="false" passthrough="textures"/>
  <worldbody>
    <body name="a"><joint axis="0 1 0" springyield="0"/><geom size="0.1" castshadow="false"/>
      <body name="stays" pos="0.1 0 0" fuse="false"><geom size="0.05"/></body>
      <body name="floats" pos="0.2 0 0" gravcomp="1"><geom size="0.05"/>
        <body name="with_it" pos="0 0.1 0" gravcomp="1"><geom size="0.04"/></body>
      </body>
      <body name="joins" pos="0.3 0 0" simple="auto"><geom size="0.05"/></body>
    </body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "fused_in_a_medium",
        r#"<mujoco><compiler fusestatic="true" boundmass=""/><option density="1000"/>
  <worldbody>
    <body name="a"><joint axis="0 1 0"/><geom size="0.1" euler=""/>
      <body name="heavy" pos="0.1 0 0"><geom size="0.05"/></body>
      <body name="light" pos="0.1 0 0"><geom size="0.05" mass="0"/></body>
    </body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "visual_geoms_discarded",
        r#"<mujoco><compiler discardvisual="true"/>
  <worldbody><geom name="floor" type="plane" size="0 0 1"/>
    <body name="a" pos="0 0 1"><joint axis="0 1 0"/>
      <geom name="heavy" type="box" size="0.3 0.2 0.1" contype="0" conaffinity="0"/>
      <geom size="0.1" name="heavy_too"/>
      <geom name="seen" type="box" size="0.3 0.3 0.3" contype="0" conaffinity="0" mass="0"/>
      <geom name="paired" size="0.1" pos="0 0 0.2" contype="0" conaffinity="0"/>
      <body name="b" pos="0 0 0.5"><geom size="0.05" contype="0" conaffinity="0"/></body>
    </body>
  </worldbody>
  <contact><pair geom1="paired" geom2="floor"/></contact>
</mujoco>"#,
    ),
    (
        "ranges_of_a_general_actuator",
        r#"<mujoco>
  <worldbody><body><joint name="a" range="-30 60"/><geom size="0.1" pos="0.1 0 0"/></body></worldbody>
  <actuator>
    <general joint="a" gainprm="5" biastype="affine" biasprm="0 -5" inheritrange="1"/>
    <general joint="a" gainprm="5" biastype="affine" biasprm="0 -5 -1" inheritrange="0.5"
      dyntype="filterexact" dynprm="0.1"/>
    <general joint="a" gainprm="4" biastype="affine" biasprm="0 -5" inheritrange="1"/>
  </actuator>
</mujoco>"#,
    ),
    (
        "keyframes_with_rotations_of_no_length",
        r#"<mujoco>
  <worldbody>
    <body><freejoint/><geom size="0.1"/><body><joint type="ball"/><geom size="0.1"/></body></body>
  </worldbody>
  <keyframe>
    <key qpos="0 0 1 0 0 0 0 0 0 0 0"/>
    <key qpos="0 0 1 0 -9e-16 0 0 1e-200 0 1e-200 0"/>
    <key qpos="0 0 1 0 -2e-15 0 0 1e-8 0 1e-8 0"/>
  </keyframe>
</mujoco>"#,
    ),
];

/// Files that neither accepts.
pub const WRONG: &[(&str, &str)] = &[
    ("root", "<mujoko/>"),
    ("attribute", r#"<mujoco><worldbody><geom size="1" sise="2"/></worldbody></mujoco>"#),
    ("element", "<mujoco><worldbody><gem/></worldbody></mujoco>"),
    ("number", r#"<mujoco><worldbody><geom size="1x"/></worldbody></mujoco>"#),
    ("count", r#"<mujoco><worldbody><geom size="1" pos="1 2"/></worldbody></mujoco>"#),
    ("too_many", r#"<mujoco><worldbody><geom size="1 2 3 4"/></worldbody></mujoco>"#),
    ("size", r#"<mujoco><worldbody><geom size="0"/></worldbody></mujoco>"#),
    ("class", r#"<mujoco><worldbody><geom size="1" class="x"/></worldbody></mujoco>"#),
    ("massless", "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>"),
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
    ("target", r#"<mujoco><worldbody/><actuator><motor joint="x"/></actuator></mujoco>"#),
    ("no_target", r#"<mujoco><worldbody/><actuator><motor/></actuator></mujoco>"#),
    (
        "orientation",
        r#"<mujoco><worldbody><geom size="1" quat="1 0 0 0" euler="0 0 0"/></worldbody></mujoco>"#,
    ),
    ("zero_quat", r#"<mujoco><worldbody><geom size="1" quat="0 0 0 0"/></worldbody></mujoco>"#),
    ("fromto", r#"<mujoco><worldbody><geom size="1" fromto="0 0 0 1 1 1"/></worldbody></mujoco>"#),
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
    ("condim", r#"<mujoco><worldbody><geom size="1" condim="2"/></worldbody></mujoco>"#),
    ("key", r#"<mujoco><worldbody/><keyframe><key qpos="1 2 3"/></keyframe></mujoco>"#),
    ("world_joint", "<mujoco><worldbody><joint/></worldbody></mujoco>"),
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
    ("default_unnamed", r#"<mujoco><default><default/></default><worldbody/></mujoco>"#),
    ("main_renamed", r#"<mujoco><default class="x"/><worldbody/></mujoco>"#),
    ("global", r#"<mujoco><compiler coordinate="global"/><worldbody/></mujoco>"#),
    ("keyword", r#"<mujoco><option integrator="Eular"/><worldbody/></mujoco>"#),
    ("include", r#"<mujoco><include file="not_there.xml"/><worldbody/></mujoco>"#),
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
