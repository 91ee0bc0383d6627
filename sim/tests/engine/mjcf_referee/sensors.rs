//! `sensor(NAME)` in task expressions is what MuJoCo's sensor of that name reads.

use super::{Check, ask, numbers};
use ostler_sim::State;
use ostler_sim::model::{Model, Sensor, SensorFrame, SensorKind, mjcf};
use ostler_sim::task::expr::{
    BLOCK, Buffers, Definitions, EventNumbers, HistoryBuilder, Program, Readings, Scope, Scratch,
};
use serde_json::Value;

const ROBOT: &str = r#"<mujoco><option magnetic="0.1 -0.4 0.2"/><worldbody>
  <geom name="stone" size="0.2" pos="1 2 0"/><site name="corner" pos="0.5 0.1 0" euler="10 20 30"/>
  <body name="trunk" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.2 0.05" pos="0.02 0 0" euler="5 10 0"/>
    <site name="imu" pos="0.1 0.05 0.02" euler="30 0 20"/>
    <body name="arm" pos="0.2 0 0"><joint name="hinge" axis="0.2 1 0.1"/><geom name="arm" type="capsule" fromto="0 0 0 0.3 0 0.1" size="0.03"/>
      <body name="hand" pos="0.3 0 0.1"><joint name="rail" type="slide" axis="1 0 0.3"/><geom size="0.05"/><site name="tip" pos="0.05 0 0" euler="0 0 70"/>
        <body name="plate" pos="0 0.1 0" euler="0 40 0"><geom type="box" size="0.05 0.02 0.01"/></body></body></body>
    <body name="tail" pos="-0.2 0 0"><joint name="ball" type="ball"/><geom type="capsule" size="0.02 0.1" pos="0 0 -0.1"/></body></body>
  <body name="other" pos="2 0 1"><freejoint/><geom type="ellipsoid" size="0.1 0.2 0.3"/></body>
  </worldbody>
  <tendon><fixed name="both"><joint joint="hinge" coef="0.4"/><joint joint="rail" coef="-2"/></fixed></tendon>
  <actuator><motor name="motor" joint="hinge" gear="3"/><position name="servo" tendon="both" kp="5" gear="2"/></actuator>
  <sensor>
    <jointpos name="jointpos" joint="hinge"/><jointpos name="jointpos_cut" joint="rail" cutoff="0.2"/><jointvel name="jointvel" joint="rail"/>
    <ballquat name="ballquat" joint="ball"/><ballangvel name="ballangvel" joint="ball" cutoff="0.5"/>
    <tendonpos name="tendonpos" tendon="both"/><tendonvel name="tendonvel" tendon="both"/>
    <actuatorpos name="actuatorpos" actuator="servo"/><actuatorvel name="actuatorvel" actuator="motor"/><actuatorfrc name="actuatorfrc" actuator="servo"/>
    <framepos name="pos_body" objtype="body" objname="trunk"/><framepos name="pos_xbody" objtype="xbody" objname="hand"/>
    <framepos name="pos_geom" objtype="geom" objname="arm" reftype="site" refname="imu"/><framepos name="pos_static" objtype="geom" objname="stone" reftype="body" refname="arm"/>
    <framequat name="quat" objtype="site" objname="tip"/><framequat name="quat_body" objtype="body" objname="plate" reftype="site" refname="corner"/>
    <framexaxis name="x" objtype="body" objname="arm"/><frameyaxis name="y" objtype="site" objname="tip" reftype="xbody" refname="tail"/><framezaxis name="z" objtype="geom" objname="arm"/>
    <framelinvel name="lin" objtype="body" objname="arm"/><framelinvel name="lin_ref" objtype="site" objname="tip" reftype="site" refname="imu" cutoff="0.4"/>
    <framelinvel name="lin_other" objtype="body" objname="other" reftype="body" refname="hand"/>
    <frameangvel name="ang" objtype="geom" objname="arm"/><frameangvel name="ang_ref" objtype="xbody" objname="tail" reftype="body" refname="arm"/>
    <velocimeter name="velocimeter" site="imu"/><gyro name="gyro" site="tip" noise="0.3"/>
    <subtreecom name="com" body="trunk"/><subtreecom name="com_leaf" body="tail"/><subtreelinvel name="com_vel" body="arm"/>
    <subtreeangmom name="momentum" body="trunk"/><subtreecom name="com_world" body="world"/>
    <accelerometer name="accelerometer" site="imu"/><rangefinder name="range" site="imu" cutoff="3"/>
    <force name="force" site="tip" cutoff="1"/><torque name="torque" site="tip"/><touch name="touch" site="imu"/><magnetometer name="field" site="tip" cutoff="0.3"/>
    <framelinacc name="lin_acc" objtype="body" objname="arm" cutoff="2"/><frameangacc name="ang_acc" objtype="site" objname="tip"/>
    <force name="on_the_world" site="corner"/><e_kinetic name="energy"/>
  </sensor></mujoco>"#;

/// Sensors have MuJoCo's order and names, and are of what they are of there.
pub fn compare(m: &Model, c: &Check) {
    c.names("sensor", m.sensors.iter().map(|s| s.name.as_str()));
    let frame = |frame: &SensorFrame| match frame {
        SensorFrame::Body(i) | SensorFrame::Inertia(i) => *i,
        SensorFrame::Geom(i) | SensorFrame::Site(i) => *i,
    };
    for (i, sensor) in m.sensors.iter().enumerate() {
        let of = match &sensor.kind {
            SensorKind::JointPos(j) | SensorKind::JointVel(j) => *j,
            SensorKind::TendonPos(t) | SensorKind::TendonVel(t) => *t,
            SensorKind::ActuatorPos(a) | SensorKind::ActuatorVel(a) => *a,
            SensorKind::Velocimeter(s) | SensorKind::Gyro(s) => *s,
            SensorKind::Rangefinder(s) | SensorKind::Magnetometer(s) => *s,
            SensorKind::Accelerometer(s) | SensorKind::Touch(s) => *s,
            SensorKind::Force(s) | SensorKind::Torque(s) => *s,
            SensorKind::Frame { frame: of, relative, .. } => {
                let relative = relative.as_ref().map_or(-1.0, |f| frame(f) as f64);
                c.field("sensor_refid", i, &[relative]);
                frame(of)
            }
            _ => continue,
        };
        c.field("sensor_objid", i, &[of as f64]);
    }
}

/// Bodies, joints and so on of a JSON list, one environment.
fn fill(to: &mut [f32], from: &Value) {
    for (x, y) in to.iter_mut().zip(numbers(from)) {
        *x = y as f32;
    }
}

fn scope<'a>(
    model: &'a Model,
    (history, readings, events): &'a (HistoryBuilder, Readings, EventNumbers),
) -> Scope<'a> {
    Scope {
        model,
        pose: &model.qpos0,
        commands: &[],
        params: &[],
        action_width: 0,
        agents: None,
        history,
        readings,
        events,
        defined: Definitions::none(),
        start: None,
    }
}

#[test]
fn a_ray_that_may_meet_what_was_not_kept_is_refused() {
    for (colour, refused) in [("1 1 1 1", true), ("1 1 1 0", false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("robot.xml");
        let robot = format!(
            r#"<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
  <body name="eye"><joint name="j"/><geom size="0.1"/><site name="s"/></body>
  <body name="shell" pos="0 0 2"><geom type="mesh" mesh="m" contype="0" conaffinity="0" mass="0" rgba="{colour}"/></body>
  </worldbody><sensor><rangefinder name="ray" site="s"/></sensor></mujoco>"#
        );
        std::fs::write(&path, robot).unwrap();
        let model = mjcf::load(&path).unwrap();
        let noted = Default::default();
        let scope = scope(&model, &noted);
        match Program::compile("sensor(ray)", &scope) {
            Err(e) if refused => assert!(e.to_string().contains("\"shell\""), "{e}"),
            other => assert_eq!(other.is_err(), refused, "{colour}"),
        }
    }
}

#[test]
fn sensors_read_what_mujocos_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sensors.xml");
    std::fs::write(&path, ROBOT).unwrap();
    let Some(answer) = ask("sensors.py", std::slice::from_ref(&path)) else { return };
    let model = mjcf::load(&path).unwrap();
    let noted = Default::default();
    let scope = scope(&model, &noted);
    let mut seen = 0;
    for theirs in answer[path.to_str().unwrap()].as_array().unwrap() {
        let mut state = State::new(&model, 1).unwrap();
        fill(&mut state.qpos, &theirs["qpos"]);
        fill(&mut state.qvel, &theirs["qvel"]);
        fill(&mut state.body_pos, &theirs["pos"]);
        fill(&mut state.body_quat, &theirs["quat"]);
        fill(&mut state.body_lin_vel, &theirs["lin"]);
        fill(&mut state.body_ang_vel, &theirs["ang"]);
        fill(&mut state.actuator_force, &theirs["force"]);
        let mut raw = state.sensordata.iter_mut();
        for sensor in model.sensors.iter().filter(|s| s.kind.measured() > 0) {
            for x in numbers(&theirs["uncut"][&sensor.name]) {
                *raw.next().unwrap() = x as f32;
            }
        }
        // Rays are scans, which an expression alone does not compute: rays.rs.
        let measured = |s: &&Sensor| !matches!(s.kind, SensorKind::Rangefinder(_));
        for sensor in model.sensors.iter().filter(measured) {
            let compiled = Program::compile(&format!("sensor(\"{}\")", sensor.name), &scope);
            let program = match (&sensor.kind, compiled) {
                (SensorKind::Unsupported(_), Err(error)) => {
                    let text = error.to_string();
                    assert!(
                        text.contains(&sensor.name)
                            && (text.contains("not supported") || text.contains("no parent")),
                        "{text}"
                    );
                    continue;
                }
                (_, compiled) => compiled.unwrap_or_else(|e| panic!("{}: {e}", sensor.name)),
            };
            let inputs = Buffers {
                state: &state,
                ctrl: &[0.0; 2],
                action: &[],
                last_action: &[],
                history: &[],
                shown: &[],
                command: &[],
                random: &[],
                native: &[],
                scan: &[],
                stand: &[],
                motion: &[],
                terrain: None,
                params: &[],
                step: &[0],
                step_dt: 0.01,
                max_steps: 10,
            }
            .block(0, 1);
            let mut scratch = Scratch::default();
            let ours = program.eval(&inputs, &mut scratch);
            let theirs = numbers(&theirs["readings"][&sensor.name]);
            assert_eq!(ours.len() / BLOCK, theirs.len(), "{}", sensor.name);
            // A quaternion and its negative are the same orientation.
            let mut sign = 1.0;
            if sensor.name.contains("quat") {
                let dot: f64 = (0..4).map(|k| f64::from(ours[k * BLOCK]) * theirs[k]).sum();
                sign = dot.signum();
            }
            for (k, x) in theirs.iter().enumerate() {
                let y = sign * f64::from(ours[k * BLOCK]);
                assert!(
                    (x - y).abs() < 1e-5 * x.abs().max(1.0),
                    "{}[{k}]: {y} here, {x} in MuJoCo",
                    sensor.name
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 400, "{seen}");
}
