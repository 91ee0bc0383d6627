//! Robots whose joints, actuators and actions stand in any order: every number is its name's.

use super::*;
use crate::config::TaskConfig;
use ostler_model::mjcf;
use std::sync::Arc;

/// Small numbers that look random.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            all.swap(i, self.below(i + 1));
        }
        all
    }
}

fn robot(joints: &[usize], actuators: &[usize]) -> Arc<Model> {
    let mut text = String::from("<mujoco><compiler angle=\"radian\"/><worldbody>");
    for j in joints {
        text += &format!(
            "<body pos=\"{j} 0 0\"><joint name=\"j{j}\" axis=\"0 1 0\"/><geom size=\"0.1\"/></body>"
        );
    }
    text += "</worldbody><actuator>";
    for j in actuators {
        text += &format!("<position name=\"m{j}\" joint=\"j{j}\" kp=\"{}\" kv=\"{j}\"/>", 10 + j);
    }
    text += "</actuator></mujoco>";
    Arc::new(mjcf::parse("r.xml".as_ref(), text).unwrap())
}

fn list(of: &[usize], each: impl Fn(usize) -> String) -> String {
    of.iter().map(|j| each(*j)).collect::<Vec<_>>().join(", ")
}

#[test]
fn every_number_of_a_list_is_that_of_the_name_in_its_place() {
    let mut draws = Draws(41);
    for robot_number in 0..200 {
        let n = 2 + draws.below(7);
        let (joints, actuators) = (draws.shuffled(n), draws.shuffled(n));
        let model = robot(&joints, &actuators);
        // Two tables of some of the actuators each; the first may be written by a pattern.
        let written = draws.shuffled(n);
        let (first, rest) = written.split_at(1 + draws.below(n - 1));
        let second = &rest[..draws.below(rest.len() + 1)];
        let pattern = second.is_empty() && draws.below(2) == 0;
        let names = match pattern {
            true => "\"m*\"".to_string(),
            false => list(first, |j| format!("\"m{j}\"")),
        };
        let order: Vec<usize> = match pattern {
            true => actuators.clone(),
            false => [first, second].concat(),
        };
        let own = if pattern { &order[..] } else { first };
        let mut text = format!(
            "[[action]]\nactuators = [{names}]\nkind = \"position\"\nscale = [{}]\noffset = [{}]\n",
            list(own, |j| format!("{}.5", j)),
            list(own, |j| format!("0.{j}")),
        );
        if !second.is_empty() {
            text += &format!(
                "[[action]]\nactuators = [{}]\nkind = \"position\"\nscale = [{}]\noffset = [{}]\n",
                list(second, |j| format!("\"m{j}\"")),
                list(second, |j| format!("{}.5", j)),
                list(second, |j| format!("0.{j}")),
            );
        }
        text += &format!(
            "[[reset]]\ntarget = \"joint_pos([{}])\"\nvalue = [{}]\n\
             [[observation]]\nname = \"q\"\nexpr = \"joint_pos([{}])\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n",
            list(&written, |j| format!("j{j}")),
            list(&written, |j| format!("0.0{j}")),
            list(&written, |j| format!("j{j}")),
        );
        let cfg: TaskConfig = toml::from_str(&text).unwrap();
        let task = Task::compile(&model, &cfg, 0.01).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let of = Deployment::new(&task, &model, None, 0.01, 100).unwrap();
        let entries = of.entries();
        assert_eq!(entries.len(), order.len(), "{robot_number}");
        let actions: Vec<f32> = (0..order.len()).map(|k| k as f32 - 1.5).collect();
        let (_, controls) = of.act(&actions);
        for ((k, j), row) in order.iter().enumerate().zip(of.rows()) {
            let (entry, x) = (&entries[k], *j as f32);
            let joint = entry.joint.unwrap();
            assert_eq!((entry.name, &joint.name), (&*format!("m{j}"), &format!("j{j}")));
            assert_eq!(model.joints[joint.qpos].name, format!("j{j}"));
            assert!((joint.pose as f32 - 0.01 * x).abs() < 1e-6);
            assert_eq!(entry.control.unwrap().stiffness, Some(10.0 + *j as f64));
            let [scale, offset] = entry.affine().unwrap();
            assert!((scale - x - 0.5).abs() < 1e-5 && (offset - 0.11 * x).abs() < 1e-5);
            assert!((controls[k] - offset - scale * actions[k]).abs() < 1e-5);
            assert_eq!(
                row[..4],
                [k.to_string(), format!("m{j}"), format!("j{j}"), joint.qpos.to_string()]
            );
        }
        let others: Vec<&str> = of.others().iter().map(|(j, _)| j.name.as_str()).collect();
        let left = joints.iter().filter(|j| !order.contains(j));
        assert_eq!(others, left.map(|j| format!("j{j}")).collect::<Vec<_>>());
        assert_eq!(of.rows().len() + Deployment::idle(&task, &model).len(), n);
    }
}

#[test]
fn a_narrow_table_has_blocks_that_name_their_rows() {
    let cells = |of: &str| -> Row { std::array::from_fn(|k| format!("{of}{k}")) };
    let rows = [cells("a"), cells("b\u{7}")];
    let wide = aligned(&rows, None);
    assert_eq!(wide.len(), 3);
    assert!(wide[2].contains("b?1") && wide[0].starts_with("output  actuator  joint"));
    let narrow = aligned(&rows, Some(40));
    assert!(narrow.iter().all(|line| line.chars().count() <= 40), "{narrow:?}");
    let blocks: Vec<&[String]> = narrow.split(|line| line.is_empty()).collect();
    assert!(blocks.len() > 2 && blocks.iter().all(|block| block.len() == 3));
    assert!(blocks.iter().all(|block| block[1].trim_start().starts_with("a0")));
    for k in 0..HEAD.len() {
        assert!(narrow.iter().any(|line| line.contains(&format!("a{k}"))), "{k}");
    }
    let long = [std::array::from_fn(|_| "x".repeat(70_000))];
    assert!(aligned(&long, Some(40)).iter().map(String::len).max().unwrap() < 300_000);
}

/// What is added to a joint's position is no target of it: programs are told to what.
#[test]
fn controls_that_are_added_to_something_say_to_what() {
    let model = robot(&[0, 1], &[0, 1]);
    for (kind, to) in [("relative", "the joint's position"), ("increment", "the control of the")] {
        let text = format!(
            "robot = \"\"\n[[action]]\nactuators = [\"*\"]\nkind = \"{kind}\"\nscale = 0.5\n\
             [[observation]]\nname = \"q\"\nexpr = \"joint_pos\"\n[[reward]]\nname = \"r\"\nexpr = \"1\""
        );
        let task: TaskConfig = toml::from_str(&text).unwrap();
        let task = Task::compile(&model, &task, 0.02).unwrap();
        let of = Deployment::new(&task, &model, None, 0.02, 100).unwrap();
        assert!(of.controls.iter().all(|c| !c.position && c.added_to.unwrap().0.starts_with(to)));
        // Unclipped: the range is the sum's.
        assert_eq!(of.act(&[7.0, -1.0]).1, [3.5, -0.5]);
        assert!(of.entries().iter().all(|entry| entry.affine().is_none()));
        let error = of.measured(&[]).unwrap_err().to_string();
        assert!(error.contains(&format!("\"m0\" is added to {to}")), "{error}");
    }
}
