//! What pages hold.

use super::{Page, configs, odd, ostler};
use crate::common::forked::Forked as _;
use crate::support::referee::referee_python;
use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Stdio};

const SHIPPED: [&str; 11] = [
    "ant",
    "ant_sumo",
    "cartpole",
    "cartpole_recall",
    "double_pendulum",
    "double_pendulum_positions",
    "half_cheetah",
    "half_cheetah_legs",
    "hopper",
    "quadruped",
    "spread",
];

fn play(config: &str, more: &[&str]) -> (Page, String) {
    let mut args = vec![config, "--agent", "random", "--set", "sim.specialize=off"];
    args.extend(more);
    Page::play(&args)
}

/// Returns that `ostler play` printed.
fn returns(printed: &str) -> Vec<f64> {
    let lines = printed.lines().filter(|l| l.starts_with("episode"));
    let word = |l: &str| {
        let mut words = l.split_whitespace().skip_while(|w| *w != "return");
        words.nth(1).unwrap().parse().unwrap()
    };
    lines.map(word).collect()
}

#[test]
fn every_shipped_configuration_has_a_page_with_its_bodies_and_numbers() {
    for name in SHIPPED {
        let config = configs().join(format!("{name}.toml"));
        let (page, _) = play(config.to_str().unwrap(), &["--episodes", "1", "--seconds", "0.6"]);
        let bodies = page.data["scene"]["bodies"].as_array().unwrap().len();
        let solids = page.data["scene"]["solids"].as_array().unwrap();
        assert!(bodies > 1 && solids.iter().any(|s| s["robot"] == true), "{name}");
        let rows = page.rows();
        let poses = page.number("/layout/poses");
        assert!(rows.len() > 3, "{name}: {} rows", rows.len());
        for row in &rows {
            for b in 0..bodies {
                let q = &row[poses + 7 * b + 3..poses + 7 * b + 7];
                let norm: f32 = q.iter().map(|x| x * x).sum();
                assert!((norm - 1.0).abs() < 1e-3, "{name}: body {b}: {q:?}");
            }
            assert!(row.iter().all(|x| x.is_finite()), "{name}");
        }
        assert_ne!(rows[0], rows[2], "{name} does not move");
    }
}

#[test]
fn a_page_has_the_episodes_that_were_printed_and_the_same_bytes_again() {
    let config = configs().join("cartpole.toml");
    let args = ["--episodes", "3", "--fps", "50"];
    let (page, printed) = play(config.to_str().unwrap(), &args);
    let episodes = page.data["episodes"].as_array().unwrap();
    let ends: Vec<f64> = episodes.iter().map(|e| e["end"][0].as_f64().unwrap()).collect();
    let said = returns(&printed);
    assert_eq!(ends.len(), 3);
    for (end, said) in ends.iter().zip(&said) {
        assert!((end - said).abs() < 2e-3, "{ends:?} {said:?}");
    }
    // The pole falls, and the rows' return is one reward short of it: the last step's state is
    // the next episode's already.
    let rows = page.rows();
    for episode in episodes {
        assert_eq!(episode["cause"], "fell", "{episode}");
        let last = episode["first"].as_u64().unwrap() + episode["rows"].as_u64().unwrap() - 1;
        let before = rows[last as usize][1];
        let end = episode["end"][0].as_f64().unwrap() as f32;
        assert!((0.0..=2.0).contains(&(end - before)), "{end} {before}");
    }
    let (again, _) = play(config.to_str().unwrap(), &args);
    assert!(again.text == page.text, "the same play makes another page");
    let (other, _) = play(config.to_str().unwrap(), &[&args[..], &["--seed", "5"]].concat());
    assert_ne!(other.rows(), rows);
}

#[test]
fn reward_terms_add_up_to_the_return() {
    let dir = odd();
    let config = dir.path().join("odd.toml");
    let (page, _) = play(config.to_str().unwrap(), &["--episodes", "1", "--fps", "50"]);
    let (first, names) = page.group("Reward terms");
    assert_eq!(names, ["upright", "effort"]);
    let steps = |row: &[f32]| row[3];
    let mut sum = 0.0;
    let rows = page.rows();
    for pair in rows.windows(2) {
        let terms: f32 = pair[1][first..first + names.len()].iter().sum();
        sum += terms * (steps(&pair[1]) - steps(&pair[0]));
        assert!((sum - pair[1][1]).abs() < 1e-2, "{sum} {}", pair[1][1]);
    }
    assert!(rows.len() > 50 && sum.abs() > 1.0);
    // Commands are within their ranges, and are drawn anew.
    let (first, names) = page.group("Commands");
    assert_eq!(names, ["target.x", "target.y"]);
    let drawn: Vec<u32> = rows.iter().map(|r| r[first].to_bits()).collect();
    let mut kinds = drawn.clone();
    kinds.dedup();
    assert!((3..=6).contains(&kinds.len()), "{kinds:?}");
}

/// Newton: on what rests, the ground presses as it is heavy, where it is.
#[test]
fn contacts_carry_the_weight_of_a_robot_at_rest() {
    let dir = odd();
    // On a plane: on the edges of a field a box does not come to rest.
    let field = "type=\"hfield\" hfield=\"hills\"";
    let robot = super::ODD.replace(field, "type=\"plane\" size=\"0 0 1\"");
    std::fs::write(dir.path().join("odd.xml"), robot).unwrap();
    let config = dir.path().join("odd.toml");
    let args = [config.to_str().unwrap(), "--agent", "zero", "--episodes", "1"];
    let (page, _) = Page::play(&args);
    let at = page.number("/layout/contacts");
    let names = page.data["layout"]["contact_names"].as_array().unwrap();
    assert_eq!(names.len(), 1, "the arm touches nothing: {names:?}");
    let weight = page.data["scene"]["weight"].as_f64().unwrap();
    assert!((weight - 3.2 * 9.81).abs() < 1e-6, "{weight}");
    let rows = page.rows();
    let last = rows.last().unwrap();
    let (place, force) = (&last[at..at + 3], &last[at + 3..at + 6]);
    let up = f64::from(force[2]);
    assert!((up / weight - 1.0).abs() < 0.01, "{force:?}");
    assert!(force[0].abs() < 0.3 && force[1].abs() < 0.3, "{force:?}");
    let body = page.number("/layout/poses") + 7;
    assert!(place[2].abs() < 0.01, "on the ground: {place:?}");
    assert!((place[0] - last[body]).abs() < 0.2 && (place[1] - last[body + 1]).abs() < 0.15);
    // It falls at first.
    assert_eq!(rows[1][at..at + 6], [0.0; 6]);
}

#[test]
fn tendons_go_from_site_to_site() {
    let dir = odd();
    let robot = super::ODD
        .replace("<worldbody>", "<worldbody><site name=\"hook\" pos=\"0.1 0 2\"/>")
        .replace("<joint name=\"swing\"", "<site name=\"eye\"/><joint name=\"swing\"")
        .replace(
            "<actuator>",
            "<tendon><spatial><site site=\"hook\"/><site site=\"eye\"/></spatial></tendon><actuator>",
        );
    std::fs::write(dir.path().join("odd.xml"), robot).unwrap();
    let config = dir.path().join("odd.toml");
    let args = [config.to_str().unwrap(), "--agent", "zero", "--episodes", "1"];
    let (page, _) = Page::play(&args);
    assert_eq!(page.number("/layout/string_count"), 1);
    let (at, arm) = (page.number("/layout/strings"), page.number("/layout/poses") + 7 * 2);
    for row in page.rows() {
        assert_eq!(row[at..at + 3], [0.1, 0.0, 2.0]);
        let apart = (0..3).map(|i| (row[at + 3 + i] - row[arm + i]).abs());
        assert!(apart.fold(0.0, f32::max) < 1e-4, "{:?}", &row[at..at + 6]);
    }
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let dir = odd();
    let config = dir.path().join("odd.toml");
    let args = ["--episodes", "1", "--seconds", "0.2"];
    let (page, _) = play(config.to_str().unwrap(), &args);
    let plain = configs().join("cartpole.toml");
    let (other, _) = play(plain.to_str().unwrap(), &args);
    for mark in ["<script", "</script", "<b", "<!--"] {
        let count = |page: &Page| page.text.matches(mark).count();
        assert_eq!(count(&page), count(&other), "{mark}");
    }
    let bodies = page.data["scene"]["bodies"].as_array().unwrap();
    assert!(bodies.contains(&Value::from("<b>&\"box")), "{bodies:?}");
    let kinds: Vec<_> = page.data["scene"]["solids"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["kind"].clone())
        .collect();
    assert_eq!(kinds, ["mesh", "box", "mesh"], "hills, box, wedge");
    // The wedge: 4 corners with the normals of 3 faces each, 4 triangles.
    let wedge = &page.data["scene"]["meshes"][1];
    assert_eq!((wedge["count"].as_u64(), wedge["index_count"].as_u64()), (Some(12), Some(12)));
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let config = configs().join("cartpole.toml");
    let fails = |args: &[&str]| {
        let out = ostler()
            .arg("play")
            .arg(&config)
            .args(["--agent", "zero"])
            .args(args)
            .forked()
            .unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(out.stdout.is_empty());
        String::from_utf8(out.stderr).unwrap()
    };
    assert!(fails(&["--html", "no/such/folder/x.html"]).contains("there is no such folder"));
    assert!(fails(&["--serve", "nowhere:80"]).contains("ADDRESS:PORT"));
    assert!(fails(&["--serve", "192.0.2.1:8000"]).contains("cannot listen on 192.0.2.1:8000"));
    assert!(fails(&["--serve", "0", "--html", "x.html"]).contains("cannot be used with"));
}

/// MuJoCo's kinematics put the bodies where the page has them.
#[test]
fn bodies_are_where_mujoco_puts_them() {
    let Some(python) = referee_python() else {
        return;
    };
    for name in ["ant", "quadruped", "half_cheetah"] {
        let config = configs().join(format!("{name}.toml"));
        let (page, _) = play(config.to_str().unwrap(), &["--episodes", "1", "--seconds", "1"]);
        let (first, names) = page.group("Positions");
        let poses = page.number("/layout/poses");
        let bodies = page.data["scene"]["bodies"].as_array().unwrap().len();
        let rows = page.rows();
        let qpos: Vec<&[f32]> = rows.iter().map(|r| &r[first..first + names.len()]).collect();
        let script = "import json, sys, mujoco\n\
            q = json.load(sys.stdin)\n\
            m = mujoco.MjModel.from_xml_path(sys.argv[1])\n\
            d = mujoco.MjData(m)\n\
            out = []\n\
            for x in q:\n\
            \x20   d.qpos[:] = x\n\
            \x20   mujoco.mj_kinematics(m, d)\n\
            \x20   out.append([d.xpos.tolist(), d.xquat.tolist()])\n\
            print(json.dumps(out))\n";
        let robot = configs().join(format!("robots/{name}.xml"));
        let mut child = Command::new(&python)
            .args(["-c", script])
            .arg(robot)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let text = serde_json::to_string(&qpos).unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        let told: Vec<[Vec<Vec<f64>>; 2]> = serde_json::from_slice(&out.stdout).unwrap();
        for (row, [xpos, xquat]) in rows.iter().zip(&told) {
            for b in 0..bodies {
                let at = poses + 7 * b;
                let apart = |a: &[f32], b: &[f64]| {
                    let each = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - b).abs());
                    each.fold(0.0, f64::max)
                };
                assert!(apart(&row[at..at + 3], &xpos[b]) < 2e-4, "{name} body {b}");
                // A quaternion and its negative are one orientation.
                let q = &row[at + 3..at + 7];
                let other: Vec<f64> = xquat[b].iter().map(|x| -x).collect();
                assert!(apart(q, &xquat[b]).min(apart(q, &other)) < 2e-4, "{name} body {b}");
            }
        }
    }
}
