//! The real program's output for each mistake: file, line, column, words, exit code 2.

use crate::common::{Place, TASK, metrics, root};

#[test]
fn what_is_no_configuration_is_said_to_be_something_else() {
    let place = Place::new();
    let said = place.fails(2, &["train", "robots/cartpole.xml"]);
    assert!(said.contains("is a robot's file"), "{said}");
    assert!(said.contains("[task] robot = \"FILE\""), "{said}");
    let plural = TASK.replace("[[task.reward]]", "[[task.observations]]");
    std::fs::write(place.path("pole.toml"), plural).unwrap();
    let said = place.fails(2, &["check", "pole.toml"]);
    assert!(said.contains("did you mean [[task.observation]]"), "{said}");
    let case = "config = \"pole.toml\"\nseeds = [1]\n[budget]\niterations = 2\n[expect]\n";
    std::fs::write(place.path("case.toml"), case).unwrap();
    for command in ["check", "train"] {
        let said = place.fails(2, &[command, "case.toml"]);
        assert!(said.contains("case.toml is a case of `ostler regress`"), "{said}");
        assert!(
            said.contains("`ostler regress case.toml` trains and judges what its `config` names"),
            "{said}"
        );
        assert!(!said.contains("unknown key"), "{said}");
    }
}

#[test]
fn runs_that_are_damaged_are_named_with_what_goes_on() {
    let place = Place::new();
    let run = place.train("a", 4, &["runner.save_interval=1"]);
    let replay = place.fails(2, &["replay", "a"]);
    assert!(replay.contains("a run without a failure"), "{replay}");
    let replay = place.fails(2, &["replay", "pole.toml"]);
    assert!(replay.contains("is not the report of a failure"), "{replay}");
    let plot = place.fails(2, &["plot", "a="]);
    assert!(plot.contains("\"a=\" names no run"), "{plot}");
    // As many iterations as can be counted, and one more than the kernels would.
    let hopper = root().join("configs/hopper.toml").display().to_string();
    place.ok(&["check", &hopper, "-q", "--set", "task.option.iterations=2147483647"]);
    let mut files: Vec<_> = std::fs::read_dir(run.join("checkpoints"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "safetensors"))
        .collect();
    files.sort();
    let newest = files.iter().rfind(|p| p.to_string_lossy().contains("iter_"));
    let newest = newest.unwrap().clone();
    let mut bytes = std::fs::read(&newest).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&newest, bytes).unwrap();
    let go_on = ["train", "--resume", "a", "--quiet", "runner.max_iterations=5"];
    let out = place.run(&go_on);
    let said = crate::common::text(&out);
    assert!(out.status.success(), "{said}");
    assert!(said.contains("WARN ") && said.contains("an earlier one is taken"), "{said}");
    for file in files {
        std::fs::write(file, "").unwrap();
    }
    let left = std::fs::read_dir(run.join("checkpoints")).unwrap();
    let left = left.map(|e| e.unwrap().path()).filter(|p| p.is_file());
    left.for_each(|file| std::fs::write(file, "").unwrap());
    for command in [&["eval", "a"][..], &["train", "--resume", "a"]] {
        let said = place.fails(2, command);
        assert!(said.contains("no other file of checkpoints/ is whole"), "{said}");
        assert!(said.contains("a/config.toml` starts the same run anew"), "{said}");
    }
    std::fs::write(run.join("metrics.jsonl"), "{}\n{bad\n{}\n").unwrap();
    let said = place.fails(2, &["plot", "a", "--return-of", "training"]);
    assert!(said.contains("line 2 cannot be read"), "{said}");
    // Where something is left to be drawn, a line says so.
    let line =
        |steps: u32| format!("{{\"env_steps\":{steps},\"wall_s\":1,\"Train/mean_reward\":1}}\n");
    let lines = [line(100), "{bad\n".into(), line(200), line(1000)].concat();
    std::fs::write(run.join("metrics.jsonl"), lines).unwrap();
    let said = |command: &[&str]| {
        let out = place.run(command);
        let said = crate::common::text(&out);
        assert!(out.status.success(), "{said}");
        said
    };
    let plot = ["plot", "A=a", "A=b", "--return-of", "training"];
    let torn = "a/metrics.jsonl: line 2 cannot be read and is left out";
    assert!(said(&[plot[0], "a", plot[3], plot[4]]).contains(torn));
    said(&["report", "a", "--no-animation"]);
    assert!(std::fs::read_to_string(place.path("report.html")).unwrap().contains(torn));

    let set = place.fails(2, &["play", "a", "--set", "seed=3"]);
    assert!(set.contains("ostler export RUN") && set.contains("--policy FILE.onnx"), "{set}");

    // One run is no two seeds, and runs of two tasks are not seeds of one.
    let twice = place.fails(2, &["plot", "A=a", "A=./a"]);
    assert!(twice.contains("a is given twice as A"), "{twice}");
    let named = place.fails(2, &["plot", "a", "--png", "curves.svg"]);
    assert!(named.contains("its name ends with .png"), "{named}");
    assert!(!place.path("curves.svg").exists());
    let other = "the runs of A have different tasks";
    for differ in [false, true] {
        let mut task = std::fs::read_to_string(place.path("pole.toml")).unwrap();
        if differ {
            task += "[[task.reward]]\nname = \"other\"\nexpr = \"joint_pos(slider)\"\n";
        }
        std::fs::write(place.path("b.toml"), task).unwrap();
        let _ = std::fs::remove_dir_all(place.path("b"));
        place.ok(&[
            "train",
            "b.toml",
            "--quiet",
            "--out",
            "b",
            "seed=7",
            "runner.max_iterations=3",
        ]);
        assert_eq!(said(&plot).contains(other), differ);
    }
}

#[test]
fn mistakes_name_file_line_and_column() {
    let swap = |a: &str, b: &str| {
        assert!(TASK.contains(a), "{a}");
        TASK.replacen(a, b, 1)
    };
    let line = |text: &str, word: &str| text[..text.find(word).unwrap()].matches('\n').count() + 1;
    for (task, word, column, expected) in [
        (
            swap("num_envs = 8", "num_actors = 8"),
            "num_actors",
            1,
            "num_actors is called env.num_envs here",
        ),
        (swap("num_envs = 8", "num_envs = 0"), "num_envs", 12, "0 environments"),
        (swap("num_envs = 8", "num_envs = 2.1"), "num_envs", 12, "a whole number"),
        (
            swap("num_mini_batches = 2", "num_mini_batches = 129"),
            "num_mini",
            20,
            "only 128 samples",
        ),
        (swap("threads = 1", "threads = 1\ndt = -0.01"), "dt =", 6, "a time step of -0.01 s"),
        (
            swap(
                "target = \"qpos\"\nuniform = [-0.01, 0.01]",
                "target = \"joint_pos(hinge)\"\nvalue = 45.0",
            ),
            "value =",
            9,
            "in degrees it would lie within: 0.7854",
        ),
        (swap("robots/cartpole.xml", "robots/cart.xml"), "robot =", 9, "there is no file"),
        (
            swap(
                "expr = \"abs(joint_pos(hinge)) > 0.2\"",
                "expr = \"abs(joint_pos(hinje)) > 0.2\"",
            ),
            "hinje",
            23,
            "hinge",
        ),
        (swap("actuators = [\"slide\"]", "actuators = [\"slid\"]"), "\"slid\"", 14, "slide"),
        (
            // One range, one for each coordinate, or a table: the value itself is named.
            swap("uniform = [-0.01, 0.01]", "uniform = [-0.01, 0.01, 4]"),
            "uniform =",
            11,
            "takes a range [low, high], a list of such or a table",
        ),
        (
            swap("num_envs = 8", "num_envs = -8"),
            "num_envs",
            12,
            "env.num_envs takes \"auto\" or a whole number from 0 on, this is -8",
        ),
        (swap("robots/cartpole.xml", "robots"), "robot =", 9, "robots is a folder"),
        (
            format!("{TASK}[[task.command]]\nname = \"go\"\nrange = [0, 1.5]\n"),
            "range = [0",
            9,
            "task.command.range is a list of such lists: write [[0, 1.5]]",
        ),
        (
            swap("target = \"qpos\"", "target = \"vel(pole)\""),
            "target =",
            11,
            "did you mean \"joint_vel\" or \"lin_vel\" or \"ang_vel\"?",
        ),
        (
            swap("expr = \"1\"", "expr = \"1 - termination.fallen\""),
            "termination.fallen",
            13,
            "a termination cannot be read in an expression",
        ),
        (swap("expr = \"1\"", "expr = \"1 - qval.x\""), "qval.x", 13, "did you mean qvel?"),
        (
            swap("[ppo]", "[ppo]\nnormalize_advantage = \"none\"\nadvantage_floor = 0.4"),
            "advantage_floor",
            19,
            "only advantages that are normalised over the batch have a floor",
        ),
        (swap("[learner]", "[learner"), "[learner", 9, "not valid TOML"),
    ] {
        let place = Place::with(&task);
        let at = format!("pole.toml:{}:{column}: ", line(&task, word));
        for command in ["train", "check"] {
            let err = place.fails(2, &[command, "pole.toml"]);
            assert!(err.starts_with("error: "), "{err}");
            assert!(err.contains(&at), "{at:?} not in\n{err}");
            assert!(err.contains(expected), "{expected:?} not in\n{err}");
            assert!(err.contains(" | "), "the line is quoted\n{err}");
        }
        assert!(!place.path("runs").exists(), "nothing is left behind");
    }
}

#[test]
fn mistakes_on_the_command_line_point_into_it() {
    let place = Place::new();
    for (args, expected) in [
        (&["--set", "env.num_env=3"][..], "--set: unknown key \"num_env\""),
        (&["task.reward.alife.weight=3"], "did you mean \"alive\"?"),
        (&["--num-envs", "0"], "--num-envs: env.num_envs: 0 environments"),
        (&["--num_envs", "0"], "--num-envs: env.num_envs: 0 environments"),
        (&["--device", "gpu"], "\"gpu\" is not a device"),
        (&["--device", "cuda:4096"], "device \"cuda:4096\" cannot be used"),
        (&["other.toml"], "two configurations"),
        (&["--max-time", "2x"], "write 90s, 15m, 2h"),
        (&["--sed", "1"], "--seed"),
        (&["--resume", "nowhere"], "there is no such folder"),
        (&["--init-from", "robots"], "it has no config.toml"),
    ] {
        let mut all = vec!["train", "pole.toml"];
        all.extend(args);
        let err = place.fails(2, &all);
        assert!(err.contains(expected), "{expected:?} not in\n{err}");
    }
    assert!(place.fails(2, &["trian"]).contains("train"));
    assert!(place.fails(2, &["train"]).contains("ostler envs"));
    assert!(place.fails(2, &["train", "none.toml"]).contains("no such file"));
    assert!(place.fails(2, &["train", "robots"]).contains("it is a folder"));
}

#[test]
fn a_robot_that_does_not_parse_is_named_with_its_line() {
    let place = Place::new();
    let file = place.path("robots/cartpole.xml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("damping=", "dampnig=", 1)).unwrap();
    let err = place.fails(2, &["train", "pole.toml"]);
    assert!(err.contains("cartpole.xml:") && err.contains("dampnig"), "{err}");
    std::fs::write(&file, "<mujoco").unwrap();
    let err = place.fails(2, &["train", "pole.toml"]);
    assert!(err.contains("cartpole.xml:1:"), "{err}");
}

#[test]
fn what_a_robot_lacks_for_an_action_is_said() {
    let place = Place::new();
    let file = place.path("robots/cartpole.xml");
    let text = std::fs::read_to_string(&file).unwrap();
    let goal = "<worldbody><body name=\"goal\" mocap=\"true\"/>";
    std::fs::write(&file, text.replacen("<worldbody>", goal, 1)).unwrap();
    let err = place.fails(2, &["check", "pole.toml", "task.action[0].actuators=[\"goal\"]"]);
    assert!(err.contains("\"goal\" is a mocap body: it stays where"), "{err}");
    let bare = "<mujoco><worldbody><body><joint name=\"slide\" type=\"slide\"/>\
                <joint name=\"hinge\"/><geom size=\"0.1\"/></body></worldbody></mujoco>";
    std::fs::write(&file, bare).unwrap();
    let err = place.fails(2, &["check", "pole.toml", "task.action[0].actuators=[\"*\"]"]);
    assert!(err.contains("the robot's file has no actuators: [[task.actuator]]"), "{err}");
}

#[test]
fn what_comes_to_nothing_is_said() {
    let place = Place::new();
    let ars = ["runner.algorithm=ars", "collector.reset_at_each_iter=true"];
    let more = ["runner.init_at_random_ep_len=false", "ars.top_directions=100"];
    let out = place.ok(&[&["check", "pole.toml", "-q"][..], &ars, &more].concat());
    assert!(out.contains("4 directions tried, all of them counted: ars.top_directions"), "{out}");
    let drill = "nan parameter name=actor.nope update=1";
    let out = place.run(&["train", "pole.toml", "--out", "a", "--inject", drill]);
    let said = crate::common::text(&out);
    assert!(said.contains("the learner has no parameter called \"actor.nope\""), "{said}");
}

#[test]
fn check_prints_what_the_configuration_comes_to() {
    let place = Place::new();
    let out = place.ok(&["check", "pole.toml", "env.num_envs=32"]);
    for expected in [
        "num_envs = 32",
        "dt = 0.02",
        "nq 2, nv 2",
        "state",
        "velocity",
        "slide",
        "32 environments x 16 steps = 512 transitions",
        "time-out after 20 steps",
        "physics: native, kernel generic-",
        "memory: about ",
        "pole.toml is sound",
    ] {
        assert!(out.contains(expected), "{expected:?} not in\n{out}");
    }
    let out = place.ok(&["check", "pole.toml", "sim.backend=rapier"]);
    for expected in [
        "physics: rapier",
        "contacts: rapier's own compliance",
        "sim.backend = \"native\" supports all of this robot",
    ] {
        assert!(out.contains(expected), "{expected:?} not in\n{out}");
    }
}

#[test]
fn check_says_in_words_what_has_no_numbers() {
    let quadruped = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/quadruped.toml");
    let task = std::fs::read_to_string(quadruped).unwrap();
    let robots = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/robots/");
    let task = task.replace("robots/", robots);
    let more = "[[task.reset]]\ntarget = \"quat(trunk)\"\n\
        [[task.command]]\nname = \"walk\"\nkind = \"velocity\"\nframe = \"trunk\"\n\
        lin_vel_x = [0.0, 1.0]\nlin_vel_y = [0.0, 0.0]\nang_vel_z = [0.0, 0.0]\nresample_s = inf\n";
    let place = Place::new();
    std::fs::write(place.path("quadruped.toml"), format!("{task}\n{more}")).unwrap();
    let said = place.ok(&["check", "quadruped.toml", "--quiet"]);
    for line in ["quat(trunk)          any orientation, all alike", "velocity; for the episode"] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[test]
fn check_prints_the_default_pose_and_underlines_one_that_does_not_exist() {
    let configs = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs");
    let quadruped = format!("{configs}/quadruped.toml");
    let place = Place::new();
    let front = "task.action.0.actuators=[\"*_f*\"]";
    let out = place.ok(&["check", &quadruped, "--quiet", front]);
    for expected in [
        "default pose: keyframe(home)\n",
        "  thigh_fl               0.9000 rad\n",
        "  4 other joints at 0\n",
        "position on *_f*, about the default pose",
        // The calf that nothing drives holds its pose; one that an output drives is scaled.
        "held  calf_rl",
        "-1.8  ",
        "-2.818..-0.888",
    ] {
        assert!(out.contains(expected), "{expected:?} not in\n{out}");
    }
    let task = std::fs::read_to_string(&quadruped).unwrap();
    let task = task.replace("keyframe(home)", "keyframe(hmoe)");
    let task = task.replace("robots/", &format!("{configs}/robots/"));
    std::fs::write(place.path("quadruped.toml"), &task).unwrap();
    let err = place.fails(2, &["check", "quadruped.toml"]);
    let line = task.lines().position(|l| l.starts_with("default_pose"));
    let at = format!("quadruped.toml:{}:26: task.default_pose", line.unwrap() + 1);
    for expected in [&at, "^^^^", "did you mean \"home\"?"] {
        assert!(err.contains(expected), "{expected:?} not in\n{err}");
    }
    // The cart-pole's file has none.
    let set = "task.default_pose=keyframe(home)";
    let err = place.fails(2, &["check", "pole.toml", set]);
    assert!(err.contains("the robot has no keyframes"), "{err}");
    let out = place.ok(&["check", "pole.toml", "--quiet"]);
    assert!(out.contains("default pose: reset\n  every joint at 0\n"), "{out}");
}

#[test]
fn limits_of_joints_are_checked_and_shown() {
    let limit = |text: &str| format!("{TASK}[[sim.limit]]\n{text}\n");
    let first = TASK.lines().count() + 1;
    for (text, line, expected) in [
        ("joints = [\"hing\"]\nmax_speed = 9", 1, "did you mean \"hinge\"?"),
        ("joints = [\"hinge\"]\nmax_speed = -9", 2, "not above 0"),
        ("joints = [\"hinge\"]\nmax_sped = 9", 2, "max_speed"),
        ("joints = []\nmax_speed = 9", 1, "no joints"),
    ] {
        let place = Place::with(&limit(text));
        let err = place.fails(2, &["check", "pole.toml"]);
        let at = format!("pole.toml:{}", first + line);
        assert!(err.contains(&at) && err.contains(expected), "{at}: {err}");
    }
    let place = Place::with(&limit("joints = [\"h*\"]\nmax_speed = 0.001"));
    let said = place.ok(&["check", "pole.toml"]);
    assert!(said.contains("[[sim.limit]]") && said.contains("max_speed = 0.001"), "{said}");
    // So slow a limit breaks every environment, and names the joint.
    let run = place.train("slow", 1, &[]);
    let broken = metrics(&run)[0]["Guard/speed/joint/hinge"].as_f64();
    assert!(broken.is_some_and(|n| n > 0.0), "{broken:?}");
}

#[test]
fn what_an_engine_cannot_do_is_named_where_the_engine_was_chosen() {
    let place = Place::with(&TASK.replacen("[sim]\n", "[sim]\nbackend = \"native\"\n", 1));
    let file = place.path("robots/cartpole.xml");
    let text = std::fs::read_to_string(&file).unwrap();
    let power = "damping=\"1\" solimplimit=\"0.9 0.95 0.001 0.5 200\"";
    let steep = text.replacen("damping=\"1\"", power, 1);
    assert_ne!(text, steep);
    std::fs::write(&file, steep).unwrap();
    for command in ["train", "check"] {
        let err = place.fails(2, &[command, "pole.toml"]);
        for expected in [
            "pole.toml:4:11: sim.backend: ",
            "the native engine does not support solimp power 200 of the limit of joint \"slider\"",
            "100 is the most",
            "backend = \"native\"",
            "sim.backend = \"rapier\" is the other engine",
        ] {
            assert!(err.contains(expected), "{expected:?} not in\n{err}");
        }
    }
    // By default it is native, too.
    std::fs::write(place.path("pole.toml"), TASK).unwrap();
    let err = place.fails(2, &["train", "pole.toml"]);
    assert!(err.contains("sim.backend = \"rapier\""), "{err}");
    assert!(err.contains("pole.toml"), "{err}");
    assert!(!place.path("runs").exists(), "nothing is left behind");
    let out = place.ok(&["check", "pole.toml", "sim.backend=rapier"]);
    assert!(
        out.contains("sim.backend = \"native\" does not do: ") && out.contains("power 200"),
        "{out}"
    );
    std::fs::write(&file, text).unwrap();
    let err = place.fails(2, &["check", "pole.toml", "sim.kernel=generic-sse"]);
    for expected in ["--set: sim.kernel: ", "no kernel is called so", "\"auto\""] {
        assert!(err.contains(expected), "{expected:?} not in\n{err}");
    }
}

#[test]
fn envs_lists_configurations_with_a_line_each() {
    let place = Place::new();
    std::fs::write(place.path("broken.toml"), "[env]\nnum_env = 3\n").unwrap();
    let out = place.ok(&["envs", "--dir", "."]);
    assert!(out.contains("pole.toml") && out.contains("a small cart-pole"), "{out}");
    assert!(out.contains("broken.toml") && out.contains("unusable"), "{out}");
}

#[test]
fn check_tells_muscles_ranges_of_forces_and_whose_friction_counts() {
    let place = Place::new();
    let robot = r#"<mujoco><worldbody><body name="arm" pos="0 0 1">
      <joint name="elbow" axis="0 1 0" range="-60 60" limited="true" actuatorfrcrange="-3 3"/>
      <geom name="hand" size="0.1" priority="2" friction="0.3"/></body></worldbody>
      <actuator><muscle name="flexor" joint="elbow" force="20" lengthrange="-1 1"/>
      <motor name="motor" joint="elbow"/></actuator></mujoco>"#;
    std::fs::write(place.path("arm.xml"), robot).unwrap();
    let task = "[task]\nrobot = \"arm.xml\"\nfloor = true\n\
        [task.rewards]\nclip = [0, inf]\n\
        [[task.action]]\nactuators = [\"*\"]\nclip = [-inf, 1.0]\n\
        [[task.observation]]\nname = \"q\"\nexpr = \"qpos\"\nclip = [-inf, inf]\n\
        [[task.reward]]\nname = \"alive\"\nexpr = \"1\"\n\
        [[task.reset]]\ntarget = \"joint_pos(elbow)\"\nvalue = 1.2\n";
    std::fs::write(place.path("arm.toml"), task).unwrap();
    let said = place.ok(&["check", "arm.toml", "--quiet"]);
    for line in [
        "muscle: peak force 20 times activation, and passive, over lengths -1 .. 1",
        "all actuators of the joint together within -3 .. 3",
        "whatever the other's is: hand (sliding friction 0.3)",
        "note: the default pose (reset) has joints beyond their limits, which push them back: elbow by 0.1528 rad",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[test]
fn resuming_without_a_run_says_what_may_stand_there() {
    let said = Place::new().fails(2, &["train", "--resume"]);
    assert!(said.contains("--resume runs/NAME") && said.contains("--resume auto"), "{said}");
}
