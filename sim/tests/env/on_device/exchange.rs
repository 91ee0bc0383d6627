//! Snapshots go from the host to the device and back.

use super::support::{Device_, Host_, Setup, actions, agents, due, setup};
use ostler_sim::config::OneOrMany;
use ostler_sim::{EpisodeStats, Groups};

fn both(s: &Setup, steps: u64) -> (Host_, Device_) {
    let (mut host, mut device) = (Host_::new(s), Device_::new(s, false));
    host.reset(true);
    device.reset(true);
    take(&mut host, &mut device, 0..steps);
    (host, device)
}

/// Takes the same steps in both.
fn take(host: &mut Host_, device: &mut Device_, steps: std::ops::Range<u64>) {
    let width = host.env.spec().action.width();
    for t in steps {
        let mut a = actions(host.env.spec().rows(), width, t, 0.7);
        host.step(&a);
        device.step(&mut a, None);
        same(host, device, t);
    }
}

fn same(host: &Host_, device: &Device_, t: u64) {
    for ((what, x), (_, y)) in host.rows.all().iter().zip(device.rows.all()) {
        let wrong = x.iter().zip(y).position(|(x, y)| x.to_bits() != y.to_bits());
        assert_eq!(wrong, None, "{what} in step {t}");
    }
}

fn saved(host: &Host_) -> Vec<u8> {
    let mut blob = Vec::new();
    host.env.capture(&mut blob).unwrap();
    blob
}

fn saved_there(device: &mut Device_) -> Vec<u8> {
    let mut blob = Vec::new();
    device.env.capture(&mut blob).unwrap();
    blob
}

#[test]
fn both_save_the_same_bytes() {
    for (name, s) in [
        ("cartpole", setup("cartpole", 7)),
        ("quadruped", setup("quadruped", 7)),
        ("agents", agents(7, true)),
    ] {
        if !due(name, &s, false) {
            continue;
        }
        let (mut host, mut device) = both(&s, 120);
        // Sums are added in another order, and what ended is listed otherwise; without
        // them all bytes are the same.
        let statistics = (host.stats(), device.stats());
        assert_eq!(statistics.0.episodes, statistics.1.episodes);
        assert_eq!(saved(&host), saved_there(&mut device), "{name}");
        take(&mut host, &mut device, 120..150);
    }
}

#[test]
fn what_one_saved_the_other_goes_on_with() {
    let s = setup("hopper", 7);
    let (mut host, mut device) = both(&s, 60);
    let _ = (host.stats(), device.stats());
    let (of_host, of_device) = (saved(&host), saved_there(&mut device));

    let (mut new_host, mut new_device) = (Host_::new(&s), Device_::new(&s, false));
    new_host.env.restore(&of_device).unwrap();
    new_device.env.restore(&of_host).unwrap();
    take(&mut new_host, &mut new_device, 60..120);
    take(&mut host, &mut device, 60..120);
    same(&new_host, &device, 120);

    // Back to what was kept, with statistics that were not yet taken.
    let mut kept = Vec::new();
    device.env.capture(&mut kept).unwrap();
    let then = device.rows.obs.clone();
    take(&mut host, &mut device, 120..160);
    let after = device.rows.obs.clone();
    let stats = device.stats();
    device.env.restore(&kept).unwrap();
    let width = host.env.spec().action.width();
    for t in 120..160 {
        device.step(&mut actions(7, width, t, 0.7), None);
    }
    assert_ne!(then, after);
    assert_eq!(after, device.rows.obs);
    let again = device.stats();
    assert_eq!(stats.episodes, again.episodes);
    assert!((stats.return_sum - again.return_sum).abs() < 1e-9 * stats.return_sum.abs());
}

#[test]
fn fewer_and_more_environments_are_taken_over() {
    taken_over("ant", |n| setup("ant", n));
    taken_over("agents", |n| agents(n, true));
}

fn taken_over(name: &str, setup: impl Fn(usize) -> Setup) {
    if !due(name, &setup(6), false) {
        return;
    }
    let (host, mut device) = both(&setup(6), 40);
    let blob = saved_there(&mut device);
    for n in [4, 9] {
        let s = setup(n);
        let (mut other, mut there) = (Host_::new(&s), Device_::new(&s, false));
        // The rows of environments that go on are the collector's to restore.
        let wide = host.rows.obs.len() / 6;
        let both = 6.min(n) * wide;
        other.rows.obs[..both].copy_from_slice(&host.rows.obs[..both]);
        there.rows.obs[..both].copy_from_slice(&host.rows.obs[..both]);
        let wide = host.rows.critic.len() / 6;
        let both = 6.min(n) * wide;
        other.rows.critic[..both].copy_from_slice(&host.rows.critic[..both]);
        there.rows.critic[..both].copy_from_slice(&host.rows.critic[..both]);
        let mut obs = Groups {
            policy: &mut other.rows.obs[..],
            critic: (wide > 0).then_some(&mut other.rows.critic[..]),
        };
        let taken = other.env.restore_range(&blob, true, &mut obs).unwrap();
        let obs = there.obs();
        assert_eq!(there.env.restore_range(&blob, true, obs).unwrap(), taken);
        assert_eq!(taken, 6.min(n));
        same(&other, &there, 40);
        take(&mut other, &mut there, 40..80);
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let (mut host, mut device) = both(&setup("cartpole", 5), 10);
    let (_, mut other) = both(&setup("cartpole", 4), 3);
    let error = device.env.restore(&saved_there(&mut other)).unwrap_err();
    assert!(error.to_string().contains("4 environments"), "{error}");
    let mut cut = saved_there(&mut device);
    cut.pop();
    let error = device.env.restore(&cut).unwrap_err();
    assert!(error.to_string().contains("too early"), "{error}");
    take(&mut host, &mut device, 10..20);
}

#[test]
fn a_curriculum_changes_numbers_in_a_table_or_in_the_code() {
    let mut s = setup("quadruped", 5);
    s.task.params.insert("share".into(), 1.0);
    s.task.reward[1].expr = format!("param.share * ({})", s.task.reward[1].expr);
    let mut harder = s.task.clone();
    harder.params.insert("share".into(), 0.75);
    harder.reward[0].weight *= 0.5;
    harder.command[0].range[0] = [-0.25, 0.75];
    for changing in [true, false] {
        if !due(&format!("quadruped, {changing}"), &s, changing) {
            continue;
        }
        let (mut host, mut device) = (Host_::new(&s), Device_::new(&s, changing));
        host.reset(true);
        device.reset(true);
        let compiled = device.env.kernel().to_string();
        take(&mut host, &mut device, 0..20);
        let mut heavier = s.task.clone();
        heavier.reward[0].weight *= 2.0;
        host.env.set_task(&heavier).unwrap();
        device.env.set_task(&heavier).unwrap();
        assert_eq!(compiled, device.env.kernel());
        take(&mut host, &mut device, 20..30);
        host.env.set_task(&harder).unwrap();
        device.env.set_task(&harder).unwrap();
        take(&mut host, &mut device, 30..120);
        // Numbers outside expressions are in tables, and change no code.
        assert_eq!(compiled == device.env.kernel(), changing);
        let mut wrong = harder.clone();
        wrong.reward[0].expr = "1".into();
        assert!(device.env.set_task(&wrong).is_err());
        take(&mut host, &mut device, 120..140);
    }
}

/// The default pose, and the servos that hold it since no action drives them: a
/// keyframe's, and that of resets which a curriculum moves.
#[test]
fn the_default_pose_is_the_hosts() {
    let mut s = setup("quadruped", 5);
    s.task.action[0].actuators = vec!["*_f*".into()];
    if due("a keyframe's", &s, false) {
        let (host, _) = both(&s, 60);
        assert_eq!(host.env.held().len(), 6);
    }
    s.task.default_pose = None;
    for (target, value) in [("joint_pos(thigh_*)", 0.8), ("joint_pos(calf_*)", -1.6)] {
        let mut term = s.task.reset[0].clone();
        (term.target, term.uniform) = (target.into(), None);
        term.value = Some(OneOrMany::One(value));
        s.task.reset.insert(0, term);
    }
    let mut bent = s.task.clone();
    bent.reset[0].value = Some(OneOrMany::One(-1.75));
    for changing in [true, false] {
        if !due(&format!("that of resets, {changing}"), &s, changing) {
            continue;
        }
        let (mut host, mut device) = (Host_::new(&s), Device_::new(&s, changing));
        host.reset(true);
        device.reset(true);
        take(&mut host, &mut device, 0..20);
        let held: Vec<f32> = host.env.held().iter().map(|h| h.1).collect();
        assert_eq!(held, [0.0, 0.8, -1.6, 0.0, 0.8, -1.6]);
        host.env.set_task(&bent).unwrap();
        device.env.set_task(&bent).unwrap();
        assert_eq!(host.env.held()[2].1, -1.75);
        take(&mut host, &mut device, 20..120);
    }
}

#[test]
fn a_rollout_is_one_launch_a_step_and_one_copy() {
    let s = setup("cartpole", 8);
    let mut device = Device_::new(&s, false);
    device.reset(true);
    let mut stats = EpisodeStats::with_room(device.env.spec()).unwrap();
    for _ in 0..3 {
        let before = device.env.traffic();
        device.env.begin_rollout(None).unwrap();
        for t in 0..24 {
            device.step(&mut actions(8, 1, t, 0.7), None);
        }
        let inside = device.env.traffic().since(before);
        assert_eq!((inside.launches, inside.downloads), (25, 0));
        assert_eq!((inside.uploads, inside.waits), (0, 0));
        device.env.take_stats(&mut stats).unwrap();
        let all = device.env.traffic().since(before);
        assert_eq!((all.launches, all.downloads, all.waits), (27, 1, 1));
        assert_eq!(all.uploads, 0);
    }
}

#[test]
fn a_state_captured_in_place_is_restored_on_the_device_itself() {
    let (mut host, mut device) = both(&setup("hopper", 7), 60);
    let mut kept = Vec::new();
    assert!(
        device.env.restore_in_place().is_err() && device.env.captured_in_place(&mut kept).is_err()
    );
    let before = device.env.traffic();
    let _ = device.stats();
    device.env.capture_in_place().unwrap();
    device.env.capture_in_place().unwrap();
    let crossed = device.env.traffic().since(before);
    assert_eq!((crossed.launches, crossed.downloads, crossed.uploads), (2, 1, 0));
    let mut then = Vec::new();
    device.env.capture(&mut then).unwrap();

    let width = host.env.spec().action.width();
    let on = |device: &mut Device_| {
        for t in 60..140 {
            // Some break on the way.
            let mut a = actions(7, width, t, 0.7);
            a[2] = if t == 70 { f32::NAN } else { a[2] };
            device.step(&mut a, None);
        }
        (device.rows.obs.clone(), device.rows.reward.clone())
    };
    let first = on(&mut device);
    device.env.captured_in_place(&mut kept).unwrap();
    assert_eq!(kept, then);
    // With statistics that nobody has taken, and with ones that were.
    device.env.restore_in_place().unwrap();
    assert_eq!(first, on(&mut device));
    let stats = device.stats();
    device.env.restore_in_place().unwrap();
    assert_eq!(first, on(&mut device));
    let again = device.stats();
    assert_eq!(
        (stats.episodes, stats.faults, stats.causes),
        (again.episodes, again.faults, again.causes)
    );
    // Others take over what was captured, not what is.
    host.env.restore(&kept).unwrap();
    device.env.restore_in_place().unwrap();
    take(&mut host, &mut device, 60..90);
}
