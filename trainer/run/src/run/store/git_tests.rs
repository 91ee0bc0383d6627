use super::*;

/// A repository with one commit, in a folder of its own.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        std::fs::write(repository.path("file.txt"), "before\n").unwrap();
        repository.git(&["init", "--quiet"]);
        repository.git(&["add", "."]);
        repository.git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]);
        repository
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn git(&self, args: &[&str]) {
        let mut command = Command::new("git");
        let done = command.arg("-C").arg(self.0.path()).args(args).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    }

    /// A command that leaves a file, `started()` later.
    fn payload(&self) -> String {
        let mark = self.path("started");
        format!("touch '{}'; cat", mark.display())
    }

    fn started(&self) -> bool {
        self.path("started").exists()
    }

    /// `diff`: as `log.git_diff` has it.
    fn ask(&self, diff: bool) -> State {
        ask(self.0.path(), diff).expect("a commit")
    }
}

fn refusal(state: State) -> String {
    match state.diff {
        Some(Diff::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_commit_alone_is_asked_for_unless_a_diff_is_wanted() {
    let repository = Repository::new();
    std::fs::write(repository.path("file.txt"), "after\n").unwrap();
    let state = repository.ask(false);
    assert_eq!(state.commit.len(), 40);
    assert_eq!(state.diff, None);
    let Some(Diff::Text(text)) = repository.ask(true).diff else {
        panic!("no diff");
    };
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("-before\n+after\n"), "{text}");
    assert_eq!(ask(Path::new("/"), true), None);
}

#[test]
fn a_diff_is_of_the_folder_alone() {
    let repository = Repository::new();
    std::fs::create_dir(repository.path("configs")).unwrap();
    std::fs::write(repository.path("file.txt"), "after\n").unwrap();
    let state = ask(&repository.path("configs"), true).unwrap();
    assert_eq!(state.diff, Some(Diff::Text(Vec::new())));
}

#[test]
fn a_monitor_that_the_repository_names_is_not_started() {
    let repository = Repository::new();
    let script = repository.path("monitor.sh");
    std::fs::write(&script, format!("#!/bin/sh\n{}\n", repository.payload())).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    repository.git(&["config", "core.fsmonitor", script.to_str().unwrap()]);
    std::fs::write(repository.path("file.txt"), "after\n").unwrap();
    for diff in [false, true] {
        repository.ask(diff);
        assert!(!repository.started(), "diff: {diff}");
    }
}

#[test]
fn a_repository_with_filters_drivers_or_another_work_tree_gives_no_diff() {
    for (key, attributes) in [
        ("filter.evil.clean", "* filter=evil\n"),
        ("diff.evil.command", "* diff=evil\n"),
        ("diff.evil.textconv", "* diff=evil\n"),
        ("diff.external", ""),
    ] {
        let repository = Repository::new();
        repository.git(&["config", key, &repository.payload()]);
        std::fs::write(repository.path(".gitattributes"), attributes).unwrap();
        std::fs::write(repository.path("file.txt"), "after\n").unwrap();
        let why = refusal(repository.ask(true));
        assert!(why.contains(key), "{why}");
        assert!(!repository.started(), "{key}");
    }
    let repository = Repository::new();
    repository.git(&["config", "core.worktree", "/"]);
    assert!(refusal(repository.ask(true)).contains("core.worktree"));
    // A setting that starts nothing.
    let repository = Repository::new();
    repository.git(&["config", "diff.renames", "true"]);
    assert_eq!(repository.ask(true).diff, Some(Diff::Text(Vec::new())));
}

#[test]
fn a_filter_in_an_included_file_counts() {
    let repository = Repository::new();
    let text = format!("[filter \"evil\"]\n\tclean = {}\n", repository.payload());
    std::fs::write(repository.path(".git/more"), text).unwrap();
    repository.git(&["config", "include.path", "more"]);
    std::fs::write(repository.path(".gitattributes"), "* filter=evil\n").unwrap();
    std::fs::write(repository.path("file.txt"), "after\n").unwrap();
    assert!(refusal(repository.ask(true)).contains("filter.evil.clean"));
    assert!(!repository.started());
}

#[test]
fn a_bare_repository_within_another_is_not_asked() {
    let outer = Repository::new();
    let inner = Repository::new();
    let nested = outer.path("configs");
    std::fs::rename(inner.path(".git"), &nested).unwrap();
    let config =
        format!("[core]\n\tbare = true\n[filter \"evil\"]\n\tclean = {}\n", outer.payload());
    std::fs::write(nested.join("config"), config).unwrap();
    assert_eq!(ask(&nested, true), None);
    assert!(!outer.started());
}

#[test]
fn a_larger_diff_is_not_kept() {
    let repository = Repository::new();
    let line = "0123456789abcdef\n";
    std::fs::write(repository.path("file.txt"), line.repeat(MAX_DIFF / 16)).unwrap();
    assert!(refusal(repository.ask(true)).contains("more than"));
}

#[test]
fn what_is_said_of_it_names_the_file_or_the_reason() {
    let mut state = State { commit: "c".into(), diff: Some(Diff::Text(b"x".to_vec())) };
    assert_eq!(state.describe("git.diff")["diff"], "git.diff");
    state.diff = Some(Diff::Refused("a reason".into()));
    assert_eq!(state.describe("git.diff")["diff"], "not kept: a reason");
}
