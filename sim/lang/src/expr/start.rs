//! Expressions of an episode's start: what they may read, and the random numbers that they draw.

use super::checker::Checker;
use super::dag::{Id, Node, Seen, Source};
use super::define::Definitions;
use super::draws::MOST;
use super::error::ExprError;
use super::place::Place;
use super::program::{Code, Step};
use crate::draw::Draw;
use ostler_engine::kernels::{READS_BODIES, READS_POSE, READS_STEERED};
use std::fmt::Write;
use std::ops::Range;

/// What the expressions of starts know.
const READS: &str = "a start reads positions and velocities as they are drawn so far, commands, \
                     parameters, limits of joints, and draws such as uniform(lo, hi)";

impl Checker<'_> {
    /// Random numbers of the call at `span`.
    pub(super) fn draw(
        &mut self,
        who: &str,
        span: &Range<usize>,
        draws: Vec<Draw>,
    ) -> Result<Vec<Id>, ExprError> {
        let Some(start) = self.scope.start else {
            let why = format!("`{who}` is drawn where an episode begins");
            return Err(ExprError::new(span.clone(), why).help(
                "it stands in `expr` of [[task.reset]], `until` of [task.start] and `init` of \
                 [[task.state]], which keeps a number for the episode; a [[task.command]] can be \
                 drawn again",
            ));
        };
        let site = self.site(&self.place, span.start, start.of);
        let mut ids = Vec::with_capacity(draws.len());
        for (i, draw) in draws.into_iter().enumerate() {
            let Some(row) = start.draws.row(format!("{site}.{i}"), draw) else {
                let why = "the task would draw too many numbers for a start";
                return Err(ExprError::new(span.clone(), why).help(format!("at most {MOST}")));
            };
            ids.push(self.dag.load(Source::Random, row));
        }
        Ok(ids)
    }

    /// What tells a call at byte `at` of a text from all others. A named value is one value for
    /// all that use it, so that it does not matter who does; a named function is called anew.
    fn site(&self, place: &Place<'_>, at: usize, of: &str) -> String {
        let defined = self.scope.defined;
        let (outer, inner) = place.entries.split_at(place.base.min(place.entries.len()));
        let mut site = match (&place.caller, place.of) {
            (Some(caller), _) => self.site(&caller.0, caller.1, of),
            (None, None) => format!("{of} {:?} {outer:?}", place.meant),
            (None, Some(own)) => {
                let mentioned = defined.mentioned(own);
                let mut site = format!("let {own}");
                let entries = outer.iter().filter(|e| mentioned.lists.contains(&e.0));
                entries.for_each(|e| {
                    let _ = write!(site, " {e:?}");
                });
                if mentioned.agents {
                    let agent = self.scope.agents.and_then(|a| a.agent);
                    let _ = write!(site, " {agent:?} {:?}", place.meant);
                }
                site
            }
        };
        let _ = write!(site, ">{:?}@{at}{inner:?}", place.of);
        site
    }

    /// Refuses what is not known while a start is drawn, among the nodes from `first` on, which
    /// the text at `span` has made.
    pub(super) fn known_at_start(&self, first: usize, span: Range<usize>) -> Result<(), ExprError> {
        if !self.scope.start.is_some_and(|start| start.drawing) {
            return Ok(());
        }
        for node in &self.dag.nodes()[first.min(self.dag.nodes().len())..] {
            let Node::Load(source, _) = node else {
                continue;
            };
            let mut help = READS.to_string();
            let what = match source {
                Source::Action | Source::LastAction | Source::Ctrl => {
                    "no action has been taken where an episode begins"
                }
                Source::History => {
                    "states and earlier steps are not known while a start is drawn: they begin \
                     after it"
                }
                Source::Shown => {
                    "what events drew is not read by starts: mass(...), friction(...) and the \
                     other numbers of the robot are"
                }
                Source::Native => "native functions are called after a start",
                Source::Scan => {
                    "the ground is scanned after a start; `terrain_height` of a point is known"
                }
                Source::Step => "no time has passed where an episode begins",
                Source::World(seen) if !is_drawn(*seen) => {
                    help += "; a least distance of two places keeps things apart \
                             (docs/task-starts.md)";
                    "contacts, forces and accelerations are not known while a start is drawn"
                }
                Source::World(_)
                | Source::Command
                | Source::Random
                | Source::Stand
                | Source::Motion
                | Source::Param
                | Source::StepDt
                | Source::MaxSteps => continue,
            };
            return Err(ExprError::new(span, what).help(help));
        }
        Ok(())
    }
}

/// Whether a start decides this column.
fn is_drawn(seen: Seen) -> bool {
    match seen {
        Seen::Qpos
        | Seen::Qvel
        | Seen::BodyPos
        | Seen::BodyQuat
        | Seen::BodyLinVel
        | Seen::BodyAngVel
        | Seen::Varied => true,
        Seen::ContactForce
        | Seen::ActuatorForce
        | Seen::Qacc
        | Seen::Sensordata
        | Seen::ContactData
        | Seen::Act => false,
    }
}

/// Words of named expressions that make them an agent's.
const OF_AGENTS: [&str; 4] = ["{agent}", "others(", "agent_index", "agent_id"];

/// What the text of a named expression, and of those that it uses, speaks of.
pub(super) struct Mentioned {
    /// Lists of which it takes an entry.
    pub lists: Vec<usize>,
    /// Whether it may differ between agents.
    pub agents: bool,
}

impl Definitions<'_> {
    fn mentioned(&self, own: usize) -> Mentioned {
        let mut all = Mentioned { lists: Vec::new(), agents: false };
        let (mut open, mut seen) = (vec![own], vec![false; self.lets.len()]);
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let text = self.lets[at].text;
            for (l, list) in self.lists.iter().enumerate() {
                if text.contains(&format!("{{{}}}", list.name)) && !all.lists.contains(&l) {
                    all.lists.push(l);
                }
            }
            let words = OF_AGENTS.iter().chain(&["{each}", "{other}"]);
            all.agents |= words.clone().any(|word| text.contains(word));
            open.extend(self.used_by(at));
        }
        all
    }
}

/// Inputs of an expression of a start beside commands, parameters and draws: `READS_*` of
/// `kernels/env/args.cuh`. `steered`: commands may follow the robot.
pub fn reads(code: &Code, steered: bool) -> u32 {
    let of = |step: &Step| match step {
        Step::Load(Source::World(Seen::Qpos | Seen::Qvel), _) => READS_POSE,
        Step::Load(
            Source::World(Seen::BodyPos | Seen::BodyQuat | Seen::BodyLinVel | Seen::BodyAngVel),
            _,
        ) => READS_POSE | READS_BODIES,
        Step::Load(Source::Command, _) if steered => READS_POSE | READS_BODIES | READS_STEERED,
        _ => 0,
    };
    code.steps.iter().fold(0, |all, (step, _)| all | of(step))
}
