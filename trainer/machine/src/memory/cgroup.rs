//! The limit that a control group puts on memory, version 1 and 2.
//!
//! <https://docs.kernel.org/admin-guide/cgroup-v2.html> (memory) and
//! `cgroup-v1/memory.html`. Which files belong to this process follows from
//! `/proc/self/cgroup` (its group, by hierarchy) and `/proc/self/mountinfo` (where the
//! hierarchy is mounted, and which group is the root of that mount): a container sees
//! its own group as "/", or a path of the host that is not there.

use serde::Serialize;
use std::path::{Component, Path, PathBuf};

/// Limits of version 1 that mean "none": the largest number of pages, in bytes, is
/// just below `i64::MAX`.
const NO_LIMIT: u64 = 1 << 60;

/// The files of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    version: u8,
}

/// A group's use of its limit (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Use {
    /// In use, without files that the kernel would drop to make room.
    pub used: u64,
    /// The limit.
    pub limit: u64,
}

/// The groups that this process is in, its own first, that can limit its memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cgroups {
    groups: Vec<Group>,
}

impl Cgroups {
    /// Finds them; `root` is "/" but in tests. Nothing to be found is no error: not
    /// every system has control groups.
    pub fn find(root: &Path) -> Self {
        let read = |p: &str| std::fs::read_to_string(root.join(p)).unwrap_or_default();
        let mounts = mounts(&read("proc/self/mountinfo"));
        let mut groups = Vec::new();
        for line in read("proc/self/cgroup").lines() {
            // hierarchy-ID:controllers:path
            let mut fields = line.splitn(3, ':');
            let (Some(id), Some(controllers), Some(path)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let version = match (id, controllers) {
                ("0", "") => 2,
                (_, list) if list.split(',').any(|c| c == "memory") => 1,
                _ => continue,
            };
            let Some(mount) = mounts.iter().find(|m| m.version == version) else {
                continue;
            };
            let top = root.join(mount.point.trim_start_matches('/'));
            for folder in chain(&top, &mount.root, path) {
                groups.push(Group { folder, version });
            }
        }
        // A hybrid system has a second hierarchy without memory.
        groups.retain(|g| g.limit_file().exists());
        Self { groups }
    }

    /// No group limits memory here.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The use of the limit with the largest share in use: a group's or that of one
    /// above it. `None` where none has a limit.
    pub fn tightest(&self) -> Option<Use> {
        let all = self.groups.iter().filter_map(Group::usage);
        all.max_by(|a, b| a.share().total_cmp(&b.share()))
    }

    /// The least that is left below any limit (bytes).
    pub fn free(&self) -> Option<u64> {
        let all = self.groups.iter().filter_map(Group::usage);
        all.map(|u| u.limit.saturating_sub(u.used)).min()
    }

    /// Processes of these groups that the kernel has killed for want of memory. The
    /// counters never fall.
    pub fn oom_kills(&self) -> u64 {
        let of = |g: &Group| {
            let (file, key) = match g.version {
                2 => ("memory.events", "oom_kill"),
                _ => ("memory.oom_control", "oom_kill"),
            };
            field(&read(&g.folder.join(file))?, key)
        };
        self.groups.iter().filter_map(of).max().unwrap_or(0)
    }
}

impl Use {
    /// Share of the limit in use.
    pub fn share(self) -> f64 {
        self.used as f64 / self.limit.max(1) as f64
    }
}

impl Group {
    fn limit_file(&self) -> PathBuf {
        self.folder.join(match self.version {
            2 => "memory.current",
            _ => "memory.usage_in_bytes",
        })
    }

    fn usage(&self) -> Option<Use> {
        let number = |name: &str| {
            let text = read(&self.folder.join(name))?;
            text.trim().parse::<u64>().ok().filter(|&n| n < NO_LIMIT)
        };
        let stat = || read(&self.folder.join("memory.stat")).unwrap_or_default();
        let sum = |stat: &str, keys: &[&str]| {
            keys.iter().filter_map(|k| field(stat, k)).fold(0, u64::saturating_add)
        };
        let (limit, current, reclaimable) = match self.version {
            2 => {
                // Above `high` the kernel slows a process down until it hardly runs.
                let limits = [number("memory.max"), number("memory.high")];
                let limit = limits.into_iter().flatten().min()?;
                let keys = ["active_file", "inactive_file", "slab_reclaimable"];
                (limit, number("memory.current")?, sum(&stat(), &keys))
            }
            _ => {
                let limit = number("memory.limit_in_bytes")?;
                let keys = ["total_active_file", "total_inactive_file"];
                (limit, number("memory.usage_in_bytes")?, sum(&stat(), &keys))
            }
        };
        Some(Use { used: current.saturating_sub(reclaimable), limit })
    }
}

struct Mount {
    version: u8,
    /// The group that is the root of this mount.
    root: String,
    point: String,
}

/// `36 35 98:0 /root /mount/point options optional - type source super-options`.
fn mounts(mountinfo: &str) -> Vec<Mount> {
    let parse = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1).unwrap_or(""));
        let version = match kind {
            "cgroup2" => 2,
            "cgroup" if options.split(',').any(|o| o == "memory") => 1,
            _ => return None,
        };
        Some(Mount { version, root: root.into(), point: point.into() })
    };
    mountinfo.lines().filter_map(parse).collect()
}

/// The folders of the group `path` and of all above it up to `top`, where the group
/// `root` is mounted. A path that lies outside of the mount, or is not there, belongs to another
/// namespace: only the visible top remains.
fn chain(top: &Path, root: &str, path: &str) -> Vec<PathBuf> {
    let path = Path::new(path);
    let inner = path.strip_prefix(root).or_else(|_| path.strip_prefix("/"));
    let plain = |p: &&Path| p.components().all(|c| matches!(c, Component::Normal(_)));
    let own = inner
        .ok()
        .filter(plain)
        .map(|p| top.join(p))
        .filter(|p| p.is_dir())
        .unwrap_or_else(|| top.to_path_buf());
    let up = own.ancestors().take_while(|d| d.starts_with(top));
    up.map(Path::to_path_buf).collect()
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The number behind `key` in lines of `key number`.
fn field(text: &str, key: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find_map(|l| {
        let (k, v) = l.split_once(' ')?;
        (k == key).then(|| v.trim().parse().ok())?
    })
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
