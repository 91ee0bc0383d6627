//! Names of a robot and its task that mean something to a compiler, a browser, a terminal or a
//! shell, through every command that shows or writes them; and links where files are written.

use super::referee;
use crate::common::{Place, text};
use crate::support::hostile::{MARK, TEXTS, xml};
use crate::support::need::Need;
use ostler_sim::text::obeyed;
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = "</script><script>window.injected=1</script>";
const COMMENT: &str = "<!--<script>";

/// Tags and their attributes' names in the page that is its argument, in order, as Python reads
/// them, and what is in it outside of scripts and styles.
const TAGS: &str = r#"
import html.parser, json, sys
class Parser(html.parser.HTMLParser):
    tags, inside, text = [], None, ""
    def handle_starttag(self, tag, attrs):
        self.tags.append([tag, [a for a, _ in attrs]])
        self.inside = tag
    def handle_comment(self, data): self.tags.append(["comment", [len(data)]])
    def handle_data(self, data):
        if self.inside not in ("script", "style"): self.text += data
parser = Parser()
parser.feed(open(sys.argv[1], encoding="utf-8").read())
parser.close()
print(json.dumps({"tags": parser.tags, "text": parser.text.split()}))
"#;

/// Names of joints: what XML lets through, of other characters one that is shown.
fn names() -> Vec<String> {
    let known = TEXTS.iter().map(|t| xml(t)).filter(|t| !t.trim().is_empty());
    // Line ends become blanks.
    let lines = |t: &String| t.replace("&#10;", " ").replace("&#13;", " ");
    let mut seen = BTreeSet::new();
    known.filter(|t| seen.insert(lines(t))).collect()
}

/// A robot with a joint, a body, a site, a geom, an actuator and a touch sensor for each name.
fn robot(model: &str, names: &[String]) -> String {
    let (mut bodies, mut actuators, mut sensors) = (String::new(), String::new(), String::new());
    for (i, name) in names.iter().enumerate() {
        let x = i as f64;
        bodies += &format!(
            r#"<body name="{name}" pos="{x} 0 1"><joint name="{name}" axis="0 1 0" damping="1"/>
            <geom name="{name}" size="0.1" contype="0" conaffinity="0"/><site name="{name}"/></body>"#
        );
        actuators +=
            &format!(r#"<position name="{name}" joint="{name}" kp="1" ctrlrange="-1 1"/>"#);
        sensors += &format!(r#"<touch name="{name}" site="{name}"/>"#);
    }
    format!(
        r#"<mujoco model="{model}"><option timestep="0.01"/><worldbody>{bodies}</worldbody>
        <actuator>{actuators}</actuator><sensor>{sensors}</sensor></mujoco>"#
    )
}

/// A task whose terms have these names.
fn task(names: &[&str]) -> String {
    let mut text = format!("description = {}\n", quoted(TEXTS[0]));
    text += "[sim]\nthreads = 1\nspecialize = \"off\"\n[env]\nnum_envs = 2\ndecimation = 2\n\
         episode_length_s = 0.2\n[task]\nrobot = \"robots/hostile.xml\"\n\
         [[task.action]]\nactuators = [\"*\"]\nscale = 0.1\n\
         [[task.observation]]\nname = \"all\"\nexpr = \"[joint_pos, joint_vel]\"\n";
    for (i, name) in names.iter().enumerate() {
        let name = quoted(name);
        text += &format!(
            "[[task.observation]]\nname = {name}\nexpr = \"sensor(\\\"*\\\")[{i}]\"\n\
             [[task.reward]]\nname = {name}\nexpr = \"1\"\n\
             [[task.termination]]\nname = {name}\nexpr = \"sensor(\\\"*\\\")[{i}] > 1e6\"\n\
             [[task.metric]]\nname = {name}\nexpr = \"1\"\n"
        );
    }
    text + "[actor]\nhidden_dims = [8]\n[critic]\nhidden_dims = [8]\n[runner]\n\
            num_steps_per_env = 8\nmax_iterations = 4\n[ppo]\nnum_mini_batches = 1\n\
            [learner]\nthreads = 1\n"
}

fn quoted(text: &str) -> String {
    // JSON's strings are TOML's but for DEL.
    serde_json::to_string(text).unwrap().replace('\u{7f}', "\\u007f")
}

fn shown(what: &str, text: &str) {
    let odd = text.chars().find(|c| !matches!(c, '\n' | '\t') && obeyed(*c));
    assert_eq!(odd, None, "{what}: {text}");
}

/// Every file below a folder.
fn files(folder: &Path, all: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        all.insert(path.to_str().unwrap().to_string());
        if path.is_dir() && !path.is_symlink() {
            files(&path, all);
        }
    }
}

#[test]
fn names_that_mean_something_elsewhere_do_nothing_anywhere() {
    let names = names();
    let terms: Vec<&str> = TEXTS.iter().copied().filter(|t| !t.contains(obeyed)).collect();
    let place = Place::new();
    let write = |name: &str, text: String| std::fs::write(place.path(name), text).unwrap();
    write("robots/hostile.xml", robot(&xml(TEXTS[2]), &names));
    write("hostile.toml", task(&terms));
    let tame: Vec<String> = (0..names.len()).map(|i| format!("n{i}")).collect();
    write("robots/tame.xml", robot("tame", &tame));
    let terms: Vec<String> = (0..terms.len()).map(|i| format!("t{i}")).collect();
    let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
    write("tame.toml", task(&terms).replace("hostile.xml", "tame.xml"));
    let said = |args: &[&str]| {
        let out = place.run(args);
        let (err, said) = (text(&out), String::from_utf8(out.stdout.clone()).unwrap());
        assert!(out.status.success(), "{args:?}\n{said}\n{err}");
        shown(&args.join(" "), &err);
        shown(&args.join(" "), &said);
        (said, err)
    };
    for name in ["hostile", "tame"] {
        let config = format!("{name}.toml");
        said(&["check", &config]);
        said(&["train", &config, "--out", name]);
        said(&["eval", name, "--episodes", "2"]);
        let (json, _) = said(&["eval", name, "--episodes", "2", "--json"]);
        serde_json::from_str::<Value>(&json).unwrap();
        let page = format!("{name}.html");
        let picture = format!("{name}.gif");
        said(&[
            "play",
            name,
            "--episodes",
            "1",
            "--html",
            &page,
            "--gif",
            &picture,
            "--size",
            "64x48",
        ]);
        let page = format!("{name}-report.html");
        said(&["report", name, "--html", &page, "--no-animation", "--title", SCRIPT]);
        let label = format!("{}={name}", COMMENT);
        said(&["plot", &label, "--png", &format!("{name}.png")]);
        let (_, err) = said(&[
            "export",
            name,
            "--format",
            "onnx,torchscript,c",
            "--name",
            "p",
            "--out",
            &format!("{name}-out"),
            "--vectors",
            "4",
        ]);
        // Of names with commas there are no lists of commas, which is told.
        assert_eq!(err.contains("no metadata joint_names"), name == "hostile", "{err}");
    }
    // What was logged.
    for name in ["metrics.jsonl", "log.txt"] {
        let log = std::fs::read_to_string(place.path("hostile").join(name)).unwrap();
        shown(name, &log);
        for line in log.lines() {
            match name {
                "log.txt" => assert!(line.starts_with("20") || line.starts_with("    "), "{line}"),
                _ => drop(serde_json::from_str::<Value>(line).unwrap()),
            }
        }
    }
    // Mistakes in them.
    let config = std::fs::read_to_string(place.path("hostile.toml")).unwrap();
    for (i, text) in TEXTS.iter().enumerate() {
        let wrong = config.replace("\"[joint_pos, joint_vel]\"", &quoted(text));
        write(
            "wrong.toml",
            wrong.replacen("name = \"all\"", &format!("name = {}", quoted(text)), 1),
        );
        let out = place.run(&["check", "wrong.toml"]);
        shown(&format!("text {i}"), &crate::common::text(&out));
        assert_eq!(out.status.code(), Some(2), "{text:?}");
    }
    // The manifest has them as they are.
    let manifest = std::fs::read(place.path("hostile-out/p.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let joints = manifest["robot"]["joints"].as_array().unwrap();
    assert_eq!(joints.len(), names.len());
    let any = |name: &str| joints.iter().any(|j| j["name"] == name);
    assert!(any(SCRIPT) && any("a,b") && any("größe"), "{joints:?}");
    // Pages have the elements of those of plain names, and no other text.
    let python = Need::Python.or_skip(crate::support::need::runs("python3"));
    if python.is_some() {
        let tags = |page: &str| {
            let out = Command::new("python3")
                .args(["-c", TAGS, page])
                .current_dir(place.path(""))
                .output()
                .unwrap();
            assert!(out.status.success(), "{}", crate::common::text(&out));
            serde_json::from_slice::<Value>(&out.stdout).unwrap()
        };
        assert_eq!(tags("hostile.html"), tags("tame.html"));
        assert_eq!(tags("hostile-report.html"), tags("tame-report.html"));
    }
    let mut made = BTreeSet::new();
    files(&place.path(""), &mut made);
    let odd: Vec<_> = made.iter().filter(|f| f.contains(MARK)).collect();
    assert!(odd.is_empty(), "{odd:?}");
    // ONNX and C decide as the program does, which is asked by name; C has no other symbol.
    let Some(found) = referee("vectors", &place.path("hostile-out"), "p", &[]) else {
        return;
    };
    for kind in ["onnx", "c"] {
        assert!(found[kind].as_f64().unwrap() < super::TOLERANCE, "{found}");
    }
    write(
        "p.c",
        "#include \"hostile-out/p_policy.h\"\nvoid go(p_state *m, const p_sensors *s, float *c) { p_step(m, s, c); }\n".into(),
    );
    let flags = ["-std=c99", "-trigraphs", "-Wall", "-Wcomment", "-Werror", "-c", "p.c"];
    let out = Command::new("gcc").args(flags).current_dir(place.path("")).output().unwrap();
    assert!(out.status.success(), "{}", crate::common::text(&out));
    let symbols = Command::new("nm").arg("--defined-only").arg(place.path("p.o")).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    assert!(symbols.contains(" T go\n") && !symbols.contains(MARK), "{symbols}");
}

/// A trained run `a` beside a file that nothing may change.
fn bait() -> Place {
    let place = Place::new();
    place.train("a", 6, &[]);
    std::fs::write(place.path("precious"), "mine").unwrap();
    place
}

fn unharmed(place: &Place) {
    let text = std::fs::read_to_string(place.path("precious")).unwrap();
    assert_eq!(text, "mine");
}

#[test]
fn what_is_written_under_a_known_name_goes_through_no_link() {
    let place = bait();
    let link = |name: &str| {
        let path = place.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(place.path("precious"), &path).unwrap();
        path
    };
    let play = |flag, file| vec!["play", "a", "--episodes", "1", "--size", "64x48", flag, file];
    let export = |format, name| vec!["export", "a", "--name", name, "--format", format];
    for (name, args) in [
        ("a/export/t.pt", export("torchscript", "t")),
        ("a/export/o.onnx", export("onnx", "o")),
        ("a/export/j.json", export("onnx", "j")),
        ("a/export/c_policy.h", export("c", "c")),
        ("report.html", vec!["report", "a", "--no-animation"]),
        ("curves.png", vec!["plot", "a"]),
        ("p.html", play("--html", "p.html")),
        ("p.gif", play("--gif", "p.gif")),
        ("p.png", play("--png", "p.png")),
        ("man/ostler.1", vec!["man", "man"]),
        ("man2/ostler-train.1", vec!["man", "man2"]),
    ] {
        let path = link(name);
        place.ok(&args);
        unharmed(&place);
        let kind = path.symlink_metadata().unwrap();
        assert!(kind.is_file() && kind.len() > 100, "{name}");
    }
    // Two names of the same file are two files afterwards.
    std::fs::hard_link(place.path("precious"), place.path("second.html")).unwrap();
    place.ok(&play("--html", "second.html"));
    unharmed(&place);
    // Nothing is left beside them.
    let mut all = BTreeSet::new();
    files(&place.path(""), &mut all);
    let left: Vec<_> = all.iter().filter(|f| f.contains(".new-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_linked_folder_of_exports_is_refused_and_a_linked_run_is_not() {
    let place = bait();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    symlink(place.path("elsewhere"), place.path("a/export")).unwrap();
    let why = place.fails(2, &["export", "a"]);
    assert!(why.contains("a/export") && why.contains("link"), "{why}");
    assert_eq!(std::fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
    // A folder that the user names is the user's business.
    place.ok(&["export", "a", "--out", "elsewhere"]);
    std::fs::remove_file(place.path("a/export")).unwrap();
    symlink("a", place.path("b")).unwrap();
    place.ok(&["export", "b"]);
    assert!(place.path("a/export").is_dir());
}

#[test]
fn a_page_may_go_to_standard_output() {
    let place = bait();
    // A pipe: to open a file anew would be to begin it again.
    let play = ["play", "a", "--episodes", "1", "--html", "/dev/stdout"];
    let said = String::from_utf8(place.ostler(&play).output().unwrap().stdout).unwrap();
    assert!(said.contains("<!doctype html>") || said.contains("<!DOCTYPE html>"));
    assert!(said.contains("</html>") && said.contains("1 episodes"), "its line follows");
}

/// A script passes on names that it has from elsewhere, as options, values and file names.
#[test]
fn mistakes_in_arguments_forge_no_line() {
    let place = Place::new();
    let odd = "a\n::error::all is lost\u{2028}\u{1b}[2J";
    let option = format!("--{odd}");
    for args in [
        &["train", odd, &option][..],
        &[odd],
        &["train", "--episodes", odd],
        &["eval", "runs/x", "--episodes", odd],
        &["bench", "cartpole", "--seconds", odd],
        &["check", odd],
        &["eval", odd],
        &["report", odd],
    ] {
        let said = place.fails(2, args);
        let forged = |line: &str| line.trim_start().starts_with("::error");
        assert!(!said.lines().any(forged), "{args:?}: {said}");
        assert!(!said.chars().any(|c| "\u{1b}\u{2028}".contains(c)), "{args:?}: {said}");
        assert!(said.contains("error: "), "{args:?}: {said}");
        // No line of the message is the name's.
        let shown = said.contains("all is lost");
        assert_eq!(said.contains("a\\u000a::error"), shown, "{args:?}: {said}");
        assert!(shown || args.len() > 2, "{args:?}: {said}");
    }
}
