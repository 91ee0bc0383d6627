//! A deployment as C99: structs of what is measured and remembered, observations and controls.

use super::controls::{Control, Mapping};
use super::depend::settled;
use super::measured::Measured;
use crate::spaces::ActionSpace;
use ostler_base::text::obeyed;
pub(crate) use ostler_lang::expr::{Cell, Code, Seen, Source, literal};
use ostler_model::JointKind;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Functions that all policies have in common.
const RUNTIME: &str = include_str!("runtime.h");

/// Parts of a header, each for the names that begin with one prefix.
#[derive(Debug, Clone)]
pub struct Parts {
    /// What all headers have in common, once in a program.
    pub runtime: &'static str,
    /// `PREFIX_sensors` and its fields.
    pub sensors: String,
    /// Fields of `PREFIX_state` but for those of the network.
    pub state: String,
    /// `PREFIX_observe(state, sensors, terms)`, and `PREFIX_act(state, output, control)`.
    pub functions: String,
}

/// Characters of an identifier at most; C99 promises to tell apart 63 (5.2.4.1).
const LONGEST: usize = 63;

/// `name` as an identifier of C: other characters become `_`, and what is too long ends.
pub fn identifier(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let text: String = name.chars().map(fits).take(LONGEST).collect();
    match text.chars().next() {
        Some(c) if c.is_ascii_alphabetic() => text,
        _ => format!("p_{text}"),
    }
}

/// A foreign text in a comment `/* ... */`, on one line, which it does not end.
///
/// The phases of C's translation (C99, 5.1.1.2) are followed in their order: no `??` is left that
/// could begin a trigraph, then no backslash that could splice lines, and only of what is left
/// then no mark may begin or end a comment.
pub fn comment(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let c = match c {
            '\\' => ' ',
            c if obeyed(c) => ' ',
            c => c,
        };
        if let (Some('?'), '?') | (Some('*'), '/') | (Some('/'), '*') = (plain.chars().last(), c) {
            plain.push(' ');
        }
        plain.push(c);
    }
    plain
}

/// Field names, each given once, and how often it was wanted again.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    fn give(&mut self, wanted: String) -> String {
        let first = identifier(&wanted);
        let mut name = first.clone();
        while self.0.contains_key(&name) {
            let count = self.0.entry(first.clone()).or_default();
            *count += 1;
            let more = format!("_{}", *count + 1);
            name = format!("{}{more}", &first[..first.len().min(LONGEST - more.len())]);
        }
        self.0.insert(name.clone(), 0);
        name
    }
}

/// A field of the sensors.
struct Field {
    name: String,
    len: usize,
    says: String,
}

/// The printer.
struct Printer<'a, 'm> {
    m: &'m Measured<'a>,
    prefix: &'m str,
    fields: Vec<Field>,
    joints: Vec<usize>,
    /// Names of fields by what they hold.
    bases: Vec<(usize, String, Option<String>)>,
    balls: Vec<(usize, String, Option<String>)>,
    sensors: Vec<(usize, String)>,
    commands: Vec<(usize, String)>,
    inputs: Vec<(usize, String)>,
    /// Bodies whose frames are worked out, ascending.
    frames: Vec<usize>,
    /// Remembered values: their cells, and their first places.
    cells: Vec<(usize, usize)>,
    remembered: usize,
    /// Terms that are seen late: their first places among earlier values.
    late: Vec<(usize, usize)>,
    kept_late: usize,
}

impl Measured<'_> {
    /// The parts of a header whose names begin with `prefix`.
    pub fn c(&self, prefix: &str) -> Parts {
        let printer = Printer::new(self, prefix);
        Parts {
            runtime: RUNTIME,
            sensors: printer.struct_of_sensors(),
            state: printer.state(),
            functions: printer.functions(),
        }
    }
}

impl<'a, 'm> Printer<'a, 'm> {
    fn new(m: &'m Measured<'a>, prefix: &'m str) -> Self {
        let model = m.of.model;
        let (mut names, mut fields) = (Names::default(), Vec::new());
        let mut field = |wanted: String, len: usize, says: String| {
            let name = names.give(wanted);
            fields.push(Field { name: name.clone(), len, says });
            name
        };
        let joints: Vec<usize> = m.joints.iter().copied().collect();
        if !joints.is_empty() {
            let unit = |j: usize| match model.joints[j].kind {
                JointKind::Slide => "m",
                _ => "rad",
            };
            let list = |per: &str| {
                let each = joints.iter().enumerate();
                let each =
                    each.map(|(i, &j)| format!("{i} {} ({}{per})", model.joints[j].name, unit(j)));
                each.collect::<Vec<_>>().join(", ")
            };
            field(
                "joint_pos".into(),
                joints.len(),
                format!("positions of joints, of zero where the robot's file has it: {}", list("")),
            );
            if m.velocities {
                field(
                    "joint_vel".into(),
                    joints.len(),
                    format!("velocities of joints: {}", list("/s")),
                );
            }
        }
        let one = m.bases.len() == 1;
        let mut bases = Vec::new();
        for (&body, &moving) in &m.bases {
            let name = &model.bodies[body].name;
            let of = |what: &str| match one {
                true => what.to_string(),
                false => format!("{what}_{name}"),
            };
            let quat = field(
                of("orientation"),
                4,
                format!(
                    "orientation of \"{name}\" in the world, z up: unit quaternion w, x, y, z, from its axes to the world's"
                ),
            );
            let gyro = moving.then(|| {
                field(
                    of("gyro"),
                    3,
                    format!("angular velocity of \"{name}\" in its own axes (rad/s)"),
                )
            });
            bases.push((body, quat, gyro));
        }
        let mut balls = Vec::new();
        for (&j, &moving) in &m.balls {
            let name = &model.joints[j].name;
            let quat = field(
                format!("ball_{name}"),
                4,
                format!(
                    "orientation of ball joint \"{name}\": unit quaternion w, x, y, z, from its body to the parent"
                ),
            );
            let vel = moving.then(|| {
                field(
                    format!("ball_vel_{name}"),
                    3,
                    "its angular velocity in its body's axes (rad/s)".to_string(),
                )
            });
            balls.push((j, quat, vel));
        }
        let mut sensors = Vec::new();
        for &s in &m.sensors {
            let sensor = &model.sensors[s];
            let says = format!(
                "sensor \"{}\" of the robot's file, in its site's axes ({})",
                sensor.name,
                match sensor.kind.measured() {
                    1 => "N",
                    _ => match sensor.kind {
                        ostler_model::SensorKind::Force(_) => "N",
                        ostler_model::SensorKind::Torque(_) => "N m",
                        _ => "m/s^2, gravity's reaction included: +9.81 upwards at rest",
                    },
                }
            );
            sensors
                .push((s, field(format!("sensor_{}", sensor.name), sensor.kind.measured(), says)));
        }
        let mut commands = Vec::new();
        for &c in &m.commands {
            let command = &m.of.commands[c];
            let ranges: Vec<String> =
                command.range.iter().map(|[a, b]| format!("{a} to {b}")).collect();
            let unit = match command.unit.as_str() {
                "" => String::new(),
                unit => format!(" ({unit})"),
            };
            let says =
                format!("command \"{}\"{unit}, in training {}", command.name, ranges.join("; "));
            commands.push((c, field(format!("command_{}", command.name), command.len, says)));
        }
        let mut inputs = Vec::new();
        for &t in &m.inputs {
            let term = &m.of.terms[t];
            let says = format!(
                "observation {} = {} ({}), before scaling",
                term.name, term.expr, term.unit
            );
            inputs.push((t, field(format!("input_{}", term.name), term.len, says)));
        }
        let all = m.of.task.history.cells();
        let (mut cells, mut remembered) = (Vec::new(), 0);
        for &cell in &m.cells {
            cells.push((cell, remembered));
            remembered += all[cell].rows().len();
        }
        let (mut late, mut kept_late) = (Vec::new(), 0);
        for (&t, steps) in &m.late {
            late.push((t, kept_late));
            kept_late += steps * m.of.terms[t].len;
        }
        Self {
            m,
            prefix,
            fields,
            joints,
            bases,
            balls,
            sensors,
            commands,
            inputs,
            frames: m.frames.iter().copied().collect(),
            cells,
            remembered,
            late,
            kept_late,
        }
    }

    fn struct_of_sensors(&self) -> String {
        let mut text = String::from("typedef struct {\n");
        for field in &self.fields {
            let _ = writeln!(
                text,
                "  /* {} */\n  float {}[{}];",
                comment(&field.says),
                field.name,
                field.len
            );
        }
        if self.fields.is_empty() {
            text += "  float none; /* nothing is measured */\n";
        }
        let _ = writeln!(text, "}} {}_sensors;", self.prefix);
        text
    }

    fn state(&self) -> String {
        let of = self.m.of;
        let mut text =
            String::from("  unsigned step;         /* control steps since the beginning */\n");
        let _ = writeln!(
            text,
            "  float action[{0}], last_action[{0}];   /* clipped outputs of the last two steps */",
            of.outputs.len().max(1)
        );
        let _ = writeln!(
            text,
            "  float control[{}];     /* the last controls */",
            of.controls.len().max(1)
        );
        if of.looks_back() {
            let _ = writeln!(
                text,
                "  float row[{}];         /* what the policy saw, with earlier values */",
                of.width
            );
        }
        if self.remembered > 0 {
            let _ = writeln!(
                text,
                "  float memory[{}];      /* previous, since and states of the task */",
                self.remembered
            );
        }
        if self.kept_late > 0 {
            let _ = writeln!(
                text,
                "  float late[{}];        /* what is seen late and not measured */",
                self.kept_late
            );
        }
        text
    }

    /// A number that an expression reads.
    fn load(&self, source: Source, row: usize) -> String {
        let of = self.m.of;
        match source {
            Source::World(column) => self.world(column, row),
            Source::Action | Source::LastAction => {
                let own = row - of.task.actions.own[of.agent].start;
                match source {
                    Source::Action => format!("m->action[{own}]"),
                    _ => format!("m->last_action[{own}]"),
                }
            }
            Source::Ctrl => match of.controls.iter().position(|c| c.actuator == row) {
                Some(k) => format!("m->control[{k}]"),
                None => {
                    let held = of.task.actions.held.iter().find(|(u, _)| *u == row);
                    let held = held.map_or(0.0, |(_, ctrl)| *ctrl);
                    // Before the first step no actuator was given anything.
                    format!("(m->step == 0u ? 0.0f : {})", literal(held))
                }
            },
            Source::History => {
                let cells = of.task.history.cells();
                let own = |&&(cell, _): &&(usize, usize)| cells[cell].rows().contains(&row);
                let at = self.cells.iter().find(own);
                let at = at.map_or(0, |(cell, first)| first + row - cells[*cell].rows().start);
                format!("m->memory[{at}]")
            }
            Source::Command => {
                let inside = |&&(c, _): &&(usize, String)| {
                    let command = &of.commands[c];
                    (command.first..command.first + command.len).contains(&row)
                };
                match self.commands.iter().find(inside) {
                    Some((c, name)) => format!("s->{name}[{}]", row - of.commands[*c].first),
                    None => literal(0.0),
                }
            }
            Source::Param => literal(of.task.params.get(row).copied().unwrap_or(f32::NAN)),
            Source::StepDt => literal(of.step_dt as f32),
            Source::MaxSteps => literal(of.max_steps as f32),
            Source::Step => "(float)m->step".into(),
            // They were refused.
            Source::Shown
            | Source::Random
            | Source::Native
            | Source::Scan
            | Source::Stand
            | Source::Motion => literal(f32::NAN),
        }
    }

    fn world(&self, column: Seen, row: usize) -> String {
        let model = self.m.of.model;
        let frame = |body: usize, part: &str, k: usize| match self.frame(body) {
            Some(at) => format!("f[{at}].{part}[{k}]"),
            // The world itself.
            None => literal(if part == "quat" && k == 0 { 1.0 } else { 0.0 }),
        };
        match column {
            Seen::Qpos | Seen::Qvel => {
                let velocity = column == Seen::Qvel;
                let joint = model
                    .joints
                    .iter()
                    .enumerate()
                    .rev()
                    .find(|(_, j)| row >= if velocity { j.dof_adr } else { j.qpos_adr });
                let Some((j, joint)) = joint else {
                    return literal(0.0);
                };
                let k = row - if velocity { joint.dof_adr } else { joint.qpos_adr };
                match joint.kind {
                    JointKind::Hinge | JointKind::Slide => self.joint(j, velocity),
                    JointKind::Ball => part(&self.balls, j, velocity, k),
                    JointKind::Free if k < 3 => literal(0.0),
                    JointKind::Free => part(&self.bases, joint.body, velocity, k - 3),
                }
            }
            Seen::BodyPos => frame(row / 3, "pos", row % 3),
            Seen::BodyQuat => frame(row / 4, "quat", row % 4),
            Seen::BodyLinVel => frame(row / 3, "lin", row % 3),
            Seen::BodyAngVel => frame(row / 3, "ang", row % 3),
            Seen::Sensordata => {
                let inside = |&&(s, _): &&(usize, String)| {
                    let first = model.measured_before(s);
                    (first..first + model.sensors[s].kind.measured()).contains(&row)
                };
                match self.sensors.iter().find(inside) {
                    Some((s, name)) => format!("s->{name}[{}]", row - model.measured_before(*s)),
                    None => literal(0.0),
                }
            }
            // They were refused.
            Seen::ContactForce
            | Seen::ActuatorForce
            | Seen::Qacc
            | Seen::ContactData
            | Seen::Act
            | Seen::Varied => literal(f32::NAN),
        }
    }

    fn frame(&self, body: usize) -> Option<usize> {
        self.frames.iter().position(|&b| b == body)
    }

    fn joint(&self, j: usize, velocity: bool) -> String {
        let at = self.joints.iter().position(|&own| own == j).unwrap_or(0);
        match velocity {
            true => format!("s->joint_vel[{at}]"),
            false => format!("s->joint_pos[{at}]"),
        }
    }

    fn block(&self, code: &Code, out: &str) -> String {
        let body = settled(code).emit_with("ostler_", "out", |source, row| self.load(source, row));
        format!("  {{\n  float *out = {out};\n{body}  }}\n")
    }

    fn functions(&self) -> String {
        let (of, p) = (self.m.of, self.prefix);
        let cells = of.task.history.cells();
        let mut text = String::new();
        if !self.frames.is_empty() {
            self.print_frames(&mut text);
        }
        let _ = writeln!(
            text,
            "/* Observations of one control step, before scaling, in order: {} */\n\
             static inline void {p}_observe({p}_state *m, const {p}_sensors *s, float *terms) {{",
            comment(
                &of.terms
                    .iter()
                    .map(|t| format!("{}[{}]", t.name, t.len))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        );
        if !self.frames.is_empty() {
            let _ = writeln!(text, "  ostler_frame f[{}];\n  {p}_frames(s, f);", self.frames.len());
        }
        text += "  (void)m, (void)s;\n";
        let own = |states: bool| {
            let own = self.cells.iter().map(|&(cell, first)| (&cells[cell], first));
            own.filter(move |(cell, _)| cell.kind().is_state() == states)
        };
        if !self.cells.is_empty() {
            text += "  if (m->step == 0) {\n";
            for &(cell, first) in &self.cells {
                text += &self.block(cells[cell].begin(), &format!("m->memory + {first}"));
            }
            text += "  }";
            text += match own(true).count() {
                0 => "\n",
                _ => " else {\n",
            };
            text += &self.renew(own(true));
            if own(true).count() > 0 {
                text += "  }\n";
            }
        }
        for (t, (at, term)) in of.placed().enumerate() {
            let _ = writeln!(
                text,
                "  /* {} = {} ({}) */",
                comment(&term.name),
                comment(&term.expr),
                comment(&term.unit)
            );
            match self.inputs.iter().find(|(input, _)| *input == t) {
                Some((_, name)) => {
                    for i in 0..term.len {
                        let _ = writeln!(text, "  terms[{}] = s->{name}[{i}];", at + i);
                    }
                }
                None => {
                    let code = of.task.observations.terms[term.index].term.code();
                    text += &self.block(code, &format!("terms + {at}"));
                }
            }
            if let Some(&(_, first)) = self.late.iter().find(|(late, _)| *late == t) {
                self.print_late(&mut text, first, at, t);
            }
        }
        text += &self.renew(own(false));
        text += "}\n\n";
        self.print_act(&mut text);
        text
    }

    /// Term `t`, whose numbers begin at `at`, becomes what it was some steps ago, at first what it
    /// is; its earlier numbers begin at `first`.
    fn print_late(&self, text: &mut String, first: usize, at: usize, t: usize) {
        let (steps, len) = (self.m.late[&t], self.m.of.terms[t].len);
        let _ = writeln!(
            text,
            "  {{ /* {steps} control steps late */\n    \
             float *way = m->late + {first};\n    int k;\n    \
             for (k = 0; k < {} && m->step == 0u; k++) way[k] = terms[{at} + k % {len}];\n    \
             way += m->step % {steps}u * {len}u;\n    \
             for (k = 0; k < {len}; k++) {{\n      \
             const float now = terms[{at} + k];\n      \
             terms[{at} + k] = way[k];\n      way[k] = now;\n    }}\n  }}",
            steps * len
        );
    }

    /// The next values of some cells, of which none reads what another has just written.
    fn renew<'c>(&self, cells: impl Iterator<Item = (&'c Cell, usize)> + Clone) -> String {
        let mut text = String::new();
        if cells.clone().next().is_none() {
            return text;
        }
        let _ = writeln!(text, "  {{\n  float next[{}];\n  int k;", self.remembered);
        for (cell, first) in cells.clone() {
            text += &self.block(cell.next(), &format!("next + {first}"));
        }
        for (cell, first) in cells {
            let end = first + cell.rows().len();
            let _ = writeln!(text, "  for (k = {first}; k < {end}; k++) m->memory[k] = next[k];");
        }
        text += "  }\n";
        text
    }

    /// Frames of bodies, parents first.
    fn print_frames(&self, text: &mut String) {
        let (model, p) = (self.m.of.model, self.prefix);
        let numbers = |x: &[f64]| {
            let each: Vec<String> = x.iter().map(|x| literal(*x as f32)).collect();
            each.join(", ")
        };
        let _ = writeln!(
            text,
            "static inline void {p}_frames(const {p}_sensors *s, ostler_frame *f) {{\n  \
             const ostler_frame world = ostler_world();\n  (void)s, (void)world;"
        );
        for (at, &b) in self.frames.iter().enumerate() {
            let body = &model.bodies[b];
            let parent = match self.frame(body.parent) {
                Some(parent) => format!("&f[{parent}]"),
                None => "&world".to_string(),
            };
            let _ = writeln!(
                text,
                "  f[{at}] = ostler_fixed({parent}, {}, {}); /* {} */",
                numbers(&body.pos),
                numbers(&body.quat),
                comment(&body.name)
            );
            for j in body.joints.clone() {
                let joint = &model.joints[j];
                let vel = match self.m.moving && self.m.velocities {
                    true => self.joint(j, true),
                    false => literal(0.0),
                };
                let q = || match joint.reference as f32 {
                    0.0 => self.joint(j, false),
                    reference => format!("{} - {}", self.joint(j, false), literal(reference)),
                };
                let line = match joint.kind {
                    JointKind::Free => {
                        let base = self.bases.iter().find(|(body, ..)| *body == b);
                        let (quat, gyro) = base.map_or(("", None), |(_, q, g)| (q, g.as_ref()));
                        let gyro = gyro.map_or("world.lin".to_string(), |g| format!("s->{g}"));
                        format!("f[{at}] = ostler_base(s->{quat}, {gyro});")
                    }
                    JointKind::Ball => {
                        let ball = self.balls.iter().find(|(ball, ..)| *ball == j);
                        let (quat, vel) = ball.map_or(("", None), |(_, q, v)| (q, v.as_ref()));
                        let vel = vel.map_or("world.lin".to_string(), |v| format!("s->{v}"));
                        format!("ostler_ball(&f[{at}], s->{quat}, {vel}, {});", numbers(&joint.pos))
                    }
                    JointKind::Slide => {
                        format!("ostler_slide(&f[{at}], {}, {vel}, {});", q(), numbers(&joint.axis))
                    }
                    JointKind::Hinge => format!(
                        "ostler_hinge(&f[{at}], {}, {vel}, {}, {});",
                        q(),
                        numbers(&joint.pos),
                        numbers(&joint.axis)
                    ),
                };
                let _ = writeln!(text, "  {line}");
            }
        }
        text.push_str("}\n\n");
    }

    /// Outputs to controls.
    fn print_act(&self, text: &mut String) {
        let (of, p) = (self.m.of, self.prefix);
        let _ = writeln!(
            text,
            "/* Clips outputs of the policy, and makes controls of them. */\n\
             static inline void {p}_act({p}_state *m, const float *output, float *control) {{\n  int k;\n  \
             for (k = 0; k < {}; k++) m->last_action[k] = m->action[k];",
            of.outputs.len()
        );
        let discrete = matches!(of.space, ActionSpace::Discrete(_));
        for (k, output) in of.outputs.iter().enumerate() {
            let [low, high] = output.clip.map(literal);
            let _ = writeln!(text, "  m->action[{k}] = ostler_within(output[{k}], {low}, {high});");
        }
        for (k, c) in of.controls.iter().enumerate() {
            let x = format!("m->action[{}]", c.output);
            let value = match &c.mapping {
                Mapping::Affine { scale, offset } => {
                    format!("{} + {} * {x}", literal(*offset), literal(*scale))
                }
                Mapping::Binary([below, other]) => {
                    format!("{x} < 0.0f ? {} : {}", literal(*below), literal(*other))
                }
                Mapping::Choice(row) => {
                    let each: Vec<String> = row.iter().map(|c| literal(*c)).collect();
                    let _ = writeln!(
                        text,
                        "  {{ static const float choice[] = {{{}}};",
                        each.join(", ")
                    );
                    format!("choice[(int){x}]")
                }
            };
            let [low, high] = c.range.map(literal);
            let end = if discrete { " }" } else { "" };
            let _ = writeln!(
                text,
                "  m->control[{k}] = ostler_within({value}, {low}, {high});{end} /* {} */",
                comment(&says(c))
            );
        }
        let _ = writeln!(
            text,
            "  for (k = 0; k < {}; k++) control[k] = m->control[k];\n  m->step += 1u;\n}}",
            of.controls.len()
        );
    }
}

/// A control in words.
fn says(c: &Control) -> String {
    match (&c.joint, c.position) {
        (Some(joint), true) if c.gear == 1.0 => {
            format!("{}: target of joint {} ({})", c.name, joint.name, c.unit)
        }
        (Some(joint), true) => {
            let (name, joint) = (&c.name, &joint.name);
            format!("{name}: target of joint {joint}, times {}", c.gear)
        }
        _ => format!("{}: control on {}", c.name, c.drives),
    }
}

/// A number of a field of four numbers, or of its velocity.
fn part(fields: &[(usize, String, Option<String>)], of: usize, velocity: bool, k: usize) -> String {
    let own = fields.iter().find(|(own, ..)| *own == of);
    match own {
        Some((_, _, Some(vel))) if velocity => format!("s->{vel}[{k}]"),
        Some((_, quat, _)) if !velocity => format!("s->{quat}[{k}]"),
        _ => literal(0.0),
    }
}
