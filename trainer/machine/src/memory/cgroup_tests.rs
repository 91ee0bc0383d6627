use super::*;

/// A root folder with files as they were seen on machines.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(cgroup: &str, mountinfo: &str) -> Self {
        let m = Self(tempfile::tempdir().unwrap());
        m.file("proc/self/cgroup", cgroup);
        m.file("proc/self/mountinfo", mountinfo);
        m
    }

    fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn find(&self) -> Cgroups {
        Cgroups::find(self.0.path())
    }
}

const V2_MOUNT: &str = "24 31 0:22 / /proc rw,nosuid - proc proc rw\n\
    35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const MIB: u64 = 1 << 20;

fn v2(m: &Machine, folder: &str, max: &str, high: &str, current: u64, file: u64) {
    let at = |name: &str| format!("sys/fs/cgroup/{folder}{name}");
    m.file(&at("memory.max"), &format!("{max}\n"))
        .file(&at("memory.high"), &format!("{high}\n"))
        .file(&at("memory.current"), &format!("{current}\n"))
        .file(
            &at("memory.stat"),
            &format!("anon 5\nfile 7\ninactive_file {file}\nactive_file 0\nslab_reclaimable 0\n"),
        )
        .file(&at("memory.events"), "low 0\nhigh 3\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n");
}

#[test]
fn version_2_counts_every_group_above_and_leaves_file_cache_out() {
    // systemd on a desktop: the slice has the limit, the scope none.
    let m = Machine::new("0::/user.slice/user-1000.slice/session-2.scope\n", V2_MOUNT);
    let scope = "user.slice/user-1000.slice/session-2.scope/";
    v2(&m, scope, "max", "max", 900 * MIB, 0);
    v2(&m, "user.slice/user-1000.slice/", "1073741824", "max", 900 * MIB, 300 * MIB);
    v2(&m, "user.slice/", "max", "max", 3 << 30, 0);
    let tightest = m.find().tightest().unwrap();
    assert_eq!(tightest.limit, 1 << 30);
    assert_eq!(tightest.used, 600 * MIB);
    assert_eq!(m.find().free(), Some(424 * MIB));
    assert_eq!(m.find().oom_kills(), 1);
}

#[test]
fn the_limit_that_slows_down_counts_too() {
    let m = Machine::new("0::/job\n", V2_MOUNT);
    v2(&m, "job/", "2147483648", "1073741824", 512 * MIB, 0);
    assert_eq!(m.find().tightest().unwrap().limit, 1 << 30);
}

#[test]
fn a_container_that_sees_its_own_group_as_the_root() {
    let m = Machine::new("0::/\n", V2_MOUNT);
    v2(&m, "", "4294967296", "max", 1 << 30, 0);
    assert_eq!(m.find().tightest().unwrap().share(), 0.25);
    // From before namespaces: the host's path, of which only the end is mounted.
    let mount = V2_MOUNT.replace("0:30 / /sys", "0:30 /docker/f00 /sys");
    for path in ["0::/docker/f00\n", "0::/../f00\n", "0::/docker/other\n"] {
        let m = Machine::new(path, &mount);
        v2(&m, "", "4294967296", "max", 1 << 30, 0);
        assert_eq!(m.find().tightest().unwrap().share(), 0.25, "{path}");
    }
}

fn v1(m: &Machine, folder: &str, limit: u64, used: u64, file: u64) {
    let at = |name: &str| format!("sys/fs/cgroup/memory/{folder}{name}");
    m.file(&at("memory.limit_in_bytes"), &format!("{limit}\n"))
        .file(&at("memory.usage_in_bytes"), &format!("{used}\n"))
        .file(
            &at("memory.stat"),
            &format!("cache 1\nrss 2\ninactive_file 1\ntotal_inactive_file {file}\ntotal_active_file {file}\n"),
        )
        .file(
            &at("memory.oom_control"),
            "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
        );
}

const HYBRID: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
    40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n\
    41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
const SENTINEL: u64 = 9_223_372_036_854_771_712;

#[test]
fn version_1_beside_an_empty_version_2() {
    let m = Machine::new("8:pids:/\n4:memory:/slurm/uid_7/job_9\n0::/\n", HYBRID);
    m.file("sys/fs/cgroup/unified/cgroup.procs", "");
    v1(&m, "", SENTINEL, 9 << 30, 0);
    v1(&m, "slurm/uid_7/", SENTINEL, 9 << 30, 0);
    assert_eq!(m.find().tightest(), None, "no limit but the sentinel");
    v1(&m, "slurm/uid_7/job_9/", 8 << 30, 7 << 30, 1 << 30);
    assert_eq!(m.find().tightest().unwrap().used, 5 << 30);
    assert_eq!(m.find().free(), Some(3 << 30));
    assert_eq!(m.find().oom_kills(), 4);
    // A co-mounted pair of controllers.
    let text = "4:cpuset,memory:/slurm/uid_7/job_9\n";
    m.file("proc/self/cgroup", text);
    assert!(m.find().tightest().is_some());
}

#[test]
fn without_groups_or_with_nonsense_there_is_no_limit() {
    let none = Cgroups::find(Path::new("/nowhere"));
    assert!(none.is_empty() && none.tightest().is_none() && none.free().is_none());
    assert_eq!(none.oom_kills(), 0);
    for cgroup in ["", "garbage", "0:::", "::", "0::/a/../../b", "4:memory:"] {
        for mounts in ["", " - ", "1 2 3 - cgroup2", V2_MOUNT, HYBRID] {
            let m = Machine::new(cgroup, mounts);
            v2(&m, "", "lots", "", 5, 9);
            assert_eq!(m.find().tightest(), None, "{cgroup:?} {mounts:?}");
        }
    }
}

#[test]
fn files_that_vanish_are_no_limit() {
    let m = Machine::new("0::/job\n", V2_MOUNT);
    v2(&m, "job/", "1073741824", "max", 512 * MIB, 0);
    let groups = m.find();
    assert!(groups.tightest().is_some());
    std::fs::remove_dir_all(m.0.path().join("sys")).unwrap();
    assert!(groups.tightest().is_none());
}
