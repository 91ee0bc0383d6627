//! `ostler play RUN --serve`: what happens now, in browsers, which may interfere.

use super::target::{Target, robot};
use super::watch::Shot;
use crate::view::serve::{Server, Status, Wish, short};
use crate::view::{Feed, page};
use ostler_draw::Geoms;
use ostler_run::log::outln;
use ostler_run::run::stage::{Agent, Stage};
use ostler_run::run::{RunError, keep, load_run};
use ostler_sim::model::looks::Looks;
use ostler_sim::referee::worlds::Failure;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where it listens unless an address is given.
pub(crate) const ADDRESS: &str = "127.0.0.1:8321";
/// The checkpoint that is always the newest.
const NEWEST: &str = "newest";
/// Rows a second.
const RATE: f64 = 30.0;
/// Simulated time over real time, least and most.
const SPEEDS: [f64; 2] = [0.01, 16.0];
/// How often checkpoints are looked for, and everybody is told how it stands.
const LOOK: Duration = Duration::from_secs(1);
/// Wishes that are fulfilled between two rows at most.
const WISHES: usize = 16;
/// How often a policy is read at most.
const READ: Duration = Duration::from_millis(500);
/// Characters of a name that is answered with at most.
const ECHO: usize = 100;
/// Checkpoints that can be chosen at most: the newest.
const CHOICE: usize = 1000;

/// Reads `PORT`, `ADDRESS:PORT` or `localhost:PORT`.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let whole = match text.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => text.replacen("localhost:", "127.0.0.1:", 1),
    };
    whole.parse().map_err(|_| {
        format!("{text:?} is no address: give PORT or ADDRESS:PORT, such as {ADDRESS}")
    })
}

/// What is shown, and what was wished.
struct Show {
    stage: Stage,
    agent: Agent,
    feed: Feed,
    failure: Option<Failure>,
    env: usize,
    seed: u64,
    /// The folder of checkpoints, of a run.
    folder: Option<PathBuf>,
    /// The checkpoint that is chosen, the one that was read last, and the one whose policy
    /// there is.
    chosen: Option<PathBuf>,
    tried: Option<PathBuf>,
    loaded: Option<PathBuf>,
    /// That policy, while somebody else acts.
    policy: Option<Agent>,
    /// When a checkpoint was read last.
    read: Option<Instant>,
    status: Status,
}

/// Serves until the program is ended.
pub(crate) fn run(
    target: Target,
    looks: &Looks,
    geoms: Geoms,
    env: usize,
    address: SocketAddr,
    named: &Path,
) -> Result<i32, RunError> {
    let shot = Shot::new(&target, looks, geoms);
    let stage = Stage::new(robot(target.env, "serve")?)?;
    let (data, blob, feed) = shot.live(&stage, env);
    let page = page::html(&data, &blob, Some("ws://@HOST@"))
        .map_err(|e| RunError::Usage(format!("cannot make the page: {e}")))?;
    let server = Server::open(address, &page, data.layout.width)
        .map_err(|e| RunError::Usage(e.to_string()))?;
    drop(page);
    let who = acting(&target.agent);
    let mut agents = vec!["zero".to_string(), "random".to_string()];
    let folder = target.checkpoint.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    if folder.is_some() {
        agents.insert(0, "policy".into());
    }
    // A file that was named is the one that is meant.
    let checkpoint = match (folder.is_some() && named.is_file()).then(|| name(named)) {
        Some(name) => name,
        None => NEWEST.into(),
    };
    let mut show = Show {
        stage,
        agent: target.agent,
        feed,
        failure: target.failure,
        env,
        seed: target.seed,
        folder,
        loaded: target.checkpoint.clone(),
        tried: target.checkpoint.clone(),
        chosen: target.checkpoint,
        policy: None,
        read: None,
        status: Status { speed: 1.0, agents, agent: who.into(), checkpoint, ..Status::default() },
    };
    outln!("serving {}   (Ctrl-C ends it)", server.url());
    show.run(&server)
}

impl Show {
    fn run(&mut self, server: &Server) -> Result<i32, RunError> {
        let step_dt = self.stage.env().spec().step_dt;
        let tick = Duration::from_secs_f64(1.0 / RATE);
        let (mut next, mut looked) = (Instant::now(), None::<Instant>);
        let (mut owed, mut row) = (0.0, Vec::new());
        loop {
            let mut told = false;
            for (who, wish) in server.wishes(WISHES) {
                if let Err(why) = self.fulfil(wish) {
                    server.complain(Some(who), &why);
                }
                told = true;
            }
            if told || looked.is_none_or(|at| at.elapsed() >= LOOK) {
                if let Err(why) = self.look() {
                    server.complain(None, &why);
                }
                server.status(&self.status);
                looked = Some(Instant::now());
            }
            // Time stands still where nobody looks.
            if !self.status.paused && server.lookers() > 0 {
                owed += self.status.speed / RATE;
                while owed >= step_dt {
                    owed -= step_dt;
                    self.step()?;
                    // A slow machine shows slow motion instead of ever fewer pictures.
                    if Instant::now() > next + tick {
                        owed = 0.0;
                    }
                }
            }
            row.clear();
            self.feed.row(&self.stage, &mut row);
            server.row(&row);
            next += tick;
            let now = Instant::now();
            if next < now {
                next = now;
            }
            std::thread::sleep(next - now);
        }
    }

    fn step(&mut self) -> Result<(), RunError> {
        self.feed.before(&self.stage);
        let stats = self.stage.step(&mut self.agent)?;
        let ended = stats.finished.iter().any(|f| f.env as usize == self.env);
        if let Some(error) = self.failure.as_ref().and_then(Failure::take) {
            return Err(error.into());
        }
        let ended = ended || self.stage.broke(self.env);
        self.feed.after(&self.stage, ended);
        Ok(())
    }

    /// Does what was wished, or says why not.
    fn fulfil(&mut self, wish: Wish) -> Result<(), String> {
        match wish {
            Wish::Pause { on } => self.status.paused = on,
            Wish::Reset {} => {
                self.stage.restart(&mut self.agent).map_err(|e| e.to_string())?;
                self.feed.begin();
            }
            Wish::Speed { factor } => {
                if !factor.is_finite() {
                    return Err("a speed is a number".into());
                }
                self.status.speed = factor.clamp(SPEEDS[0], SPEEDS[1]);
            }
            Wish::Command { index, values } => {
                finite(values.as_deref().unwrap_or_default())?;
                if !self.stage.env_mut().hold_command(index, values.as_deref()) {
                    return Err("the task has no such command".into());
                }
            }
            Wish::Push { body, point, change } => {
                finite(&point)?;
                finite(&change)?;
                if !self.stage.env_mut().push(self.env, body, point, change) {
                    return Err(
                        "this body cannot be pushed: it is fixed, or the engine does not let \
                                itself be touched"
                            .into(),
                    );
                }
            }
            Wish::Agent { who } => {
                if !self.status.agents.contains(&who) {
                    return Err(format!("{} cannot act here", named(&who)));
                }
                let next = match who.as_str() {
                    "zero" => Some(Agent::Zero),
                    "random" => Some(Agent::Random(self.seed)),
                    // Without one it is read where checkpoints are looked for.
                    _ => self.policy.take(),
                };
                if let Some(next) = next {
                    let mut last = std::mem::replace(&mut self.agent, next);
                    if is_policy(&last) {
                        // What it remembers is over when it acts again.
                        last.forget().map_err(|e| e.to_string())?;
                        self.policy = Some(last);
                    }
                }
                self.status.agent = who;
            }
            Wish::Checkpoint { name } => {
                if !self.status.checkpoints.contains(&name) {
                    return Err(format!("there is no checkpoint {}", named(&name)));
                }
                self.status.checkpoint = name;
            }
        }
        Ok(())
    }

    fn policy(&self, file: &Path) -> Result<Agent, String> {
        let run = load_run(file).map_err(|e| e.to_string())?;
        let policy = run.policy(self.stage.env().spec());
        Ok(Agent::Policy(policy.map_err(|e| e.to_string())?.into()))
    }

    /// Looks for checkpoints, of a run that may still be trained: they are read, nothing is
    /// locked or written.
    fn look(&mut self) -> Result<(), String> {
        let Some(folder) = &self.folder else {
            self.status.shown.clone_from(&self.status.agent);
            return Ok(());
        };
        let all = keep::list(folder);
        let best = folder.join("best.safetensors");
        let newest = all.iter().rev().take(CHOICE);
        self.status.checkpoints = [NEWEST.to_string()]
            .into_iter()
            .chain(best.is_file().then(|| name(&best)))
            .chain(newest.map(|(_, file)| name(file)))
            .collect();
        let wanted = match self.status.checkpoint.as_str() {
            NEWEST => all.last().map(|(_, file)| file.clone()),
            named => Some(folder.join(named)),
        };
        self.chosen = wanted.or(self.chosen.take());
        let mut failed = None;
        let is_due = self.read.is_none_or(|at| at.elapsed() >= READ);
        let is_other = self.chosen != self.tried || !is_policy(&self.agent);
        if let Some(file) = &self.chosen
            && self.status.agent == "policy"
            && is_due
            && is_other
        {
            // It is tried once: the next one will do.
            self.tried = Some(file.clone());
            self.read = Some(Instant::now());
            match self.policy(file) {
                Ok(agent) => {
                    (self.agent, self.policy) = (agent, None);
                    self.loaded.clone_from(&self.chosen);
                }
                Err(why) => failed = Some(why),
            }
            self.status.agent = acting(&self.agent).into();
        }
        self.status.shown = match (self.status.agent.as_str(), &self.loaded) {
            ("policy", Some(file)) => name(file),
            (who, _) => who.to_string(),
        };
        failed.map_or(Ok(()), Err)
    }
}

/// Who acts.
fn acting(agent: &Agent) -> &'static str {
    match agent {
        Agent::Zero => "zero",
        Agent::Random(_) => "random",
        Agent::Policy(_) | Agent::File(_) | Agent::Instead { .. } => "policy",
    }
}

fn is_policy(agent: &Agent) -> bool {
    acting(agent) == "policy"
}

/// A name that somebody gave, which may be anything.
fn named(name: &str) -> String {
    short(&format!("{name:?}"), ECHO).into_owned()
}

fn finite(numbers: &[f32]) -> Result<(), String> {
    match numbers.iter().all(|x| x.is_finite()) {
        true => Ok(()),
        false => Err("a number is beyond single precision".into()),
    }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl std::fmt::Debug for Show {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Show").field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_loopback_unless_they_say_otherwise() {
        let text = |a: &str| address(a).map(|a| a.to_string());
        assert_eq!(text("8000"), Ok("127.0.0.1:8000".into()));
        assert_eq!(text("localhost:1"), Ok("127.0.0.1:1".into()));
        assert_eq!(text("0.0.0.0:80"), Ok("0.0.0.0:80".into()));
        assert_eq!(text("[::1]:80"), Ok("[::1]:80".into()));
        for bad in ["", "x", "70000", "1.2.3.4", "example.com:80"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
