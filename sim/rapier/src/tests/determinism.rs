//! The same bits, whoever computes them, wherever, after whatever.

use super::robots::{cartpole, free_ball, walker};
use super::{bits, controls, poses, wiggle, worlds};
use ostler_engine::physics::{Physics, fault};

/// Steps environments `ids` and returns each one's bits after every step.
fn run(ids: &[usize], threads: usize, steps: usize) -> Vec<Vec<Vec<u32>>> {
    let model = walker();
    let mut w = worlds(model.clone(), ids.len(), threads);
    let mask = vec![1; ids.len()];
    let qvel = vec![0.0; model.nv * ids.len()];
    w.reset(&mask, &poses(&model, ids), &qvel);
    (0..steps)
        .map(|t| {
            w.step(&controls(ids, model.nu(), t), 2);
            (0..ids.len()).map(|e| bits(w.state(), e)).collect()
        })
        .collect()
}

#[test]
fn one_two_and_eight_threads_give_the_same_bits() {
    let ids: Vec<usize> = (0..37).collect();
    let one = run(&ids, 1, 60);
    assert_eq!(one, run(&ids, 2, 60));
    assert_eq!(one, run(&ids, 8, 60));
    // The robots did touch the floor, and did different things.
    assert_ne!(one[59][0], one[59][1]);
}

#[test]
fn slot_and_neighbours_do_not_matter() {
    let alone = run(&[5], 1, 60);
    let among = run(&[9, 2, 5, 7], 2, 60);
    for (a, b) in alone.iter().zip(&among) {
        assert_eq!(a[0], b[2]);
    }
}

#[test]
fn reset_forgets_history_and_leaves_the_others_alone() {
    let model = walker();
    let ids = [0, 1, 2];
    let start = poses(&model, &ids);
    let qvel: Vec<f32> = (0..model.nv * 3).map(|i| 0.1 * wiggle(i, 3, 1)).collect();
    let fresh = || {
        let mut w = worlds(model.clone(), 3, 2);
        w.reset(&[1; 3], &start, &qvel);
        w
    };
    let mut a = fresh();
    for t in 0..80 {
        a.step(&controls(&ids, model.nu(), t), 2);
    }
    let others = [bits(a.state(), 0), bits(a.state(), 2)];
    a.reset(&[0, 1, 0], &start, &qvel);
    assert_eq!(others, [bits(a.state(), 0), bits(a.state(), 2)]);
    let mut b = fresh();
    assert_eq!(bits(a.state(), 1), bits(b.state(), 1));
    for t in 0..80 {
        let ctrl = controls(&ids, model.nu(), t);
        a.step(&ctrl, 2);
        b.step(&ctrl, 2);
        assert_eq!(bits(a.state(), 1), bits(b.state(), 1), "step {t}");
    }
}

#[test]
fn a_snapshot_goes_on_with_the_same_bits() {
    let model = walker();
    let ids = [0, 1, 2, 3];
    let mut a = worlds(model.clone(), 4, 2);
    a.reset(&[1; 4], &poses(&model, &ids), &vec![0.0; model.nv * 4]);
    for t in 0..50 {
        a.step(&controls(&ids, model.nu(), t), 2);
    }
    let touching = |w: &dyn Physics| w.state().contact_force.iter().any(|f| *f > 0.0);
    assert!(touching(&*a), "the snapshot must hold live contacts");
    let mut blob = vec![7; 3];
    a.capture(&mut blob).unwrap();
    let mut b = worlds(model.clone(), 4, 1);
    b.restore(&blob[3..]).unwrap();
    for t in 50..150 {
        for e in 0..4 {
            assert_eq!(bits(a.state(), e), bits(b.state(), e), "step {t}");
        }
        let ctrl = controls(&ids, model.nu(), t);
        a.step(&ctrl, 2);
        b.step(&ctrl, 2);
    }
}

#[test]
fn worlds_that_another_number_takes_over_go_on_with_the_same_bits() {
    let model = walker();
    let ids: Vec<usize> = (0..5).collect();
    let mut a = worlds(model.clone(), 5, 2);
    a.reset(&[1; 5], &poses(&model, &ids), &vec![0.0; model.nv * 5]);
    for t in 0..50 {
        a.step(&controls(&ids, model.nu(), t), 2);
    }
    let mut kept = Vec::new();
    a.capture(&mut kept).unwrap();
    let room = kept.capacity();
    kept.clear();
    a.capture(&mut kept).unwrap();
    assert_eq!(kept.capacity(), room);
    let mut others = Vec::new();
    for n in [1, 3, 5, 8] {
        let mut b = worlds(model.clone(), n, 1);
        b.step(&vec![0.3; model.nu() * n], 1);
        assert_eq!(b.restore_range(&kept, 0).unwrap(), n.min(5));
        if n == 5 {
            b.step(&controls(&ids, model.nu(), 1), 1);
            b.restore(&kept).unwrap();
        }
        others.push(b);
    }
    for t in 50..100 {
        a.step(&controls(&ids, model.nu(), t), 2);
        for b in &mut others {
            let ids: Vec<usize> = (0..b.state().num_envs).collect();
            b.step(&controls(&ids, model.nu(), t), 2);
            for e in 0..ids.len().min(5) {
                assert_eq!(bits(a.state(), e), bits(b.state(), e), "step {t}");
            }
        }
    }
    for len in [0, 8, 60, kept.len() - 1] {
        assert!(others[1].restore_range(&kept[..len], 0).is_err(), "{len}");
    }
}

#[test]
fn a_damaged_or_foreign_snapshot_is_refused_and_changes_nothing() {
    let mut a = worlds(cartpole(), 2, 1);
    a.step(&[0.3, -0.2], 3);
    let mut blob = Vec::new();
    a.capture(&mut blob).unwrap();
    let before = [bits(a.state(), 0), bits(a.state(), 1)];
    for at in (0..blob.len()).step_by(97) {
        assert!(a.restore(&blob[..at]).is_err(), "length {at}");
    }
    assert!(a.restore(&[]).is_err());
    let text = worlds(cartpole(), 3, 1).restore(&blob).unwrap_err().to_string();
    assert!(text.contains("2 environments, not 3"), "{text}");
    let text = worlds(free_ball([0.0; 3]), 2, 1).restore(&blob).unwrap_err().to_string();
    assert!(text.contains("another robot"), "{text}");
    assert_eq!(before, [bits(a.state(), 0), bits(a.state(), 1)]);
    // Damage that a file's checksum would have told: an error or a world that is merely
    // wrong, but no panic and no huge allocation. Such a world is not stepped here.
    for at in (0..blob.len()).step_by(53) {
        let mut bad = blob.clone();
        bad[at] = 0xff;
        let mut w = worlds(cartpole(), 2, 1);
        let _ = w.restore(&bad);
    }
    a.restore(&blob).unwrap();
    assert_eq!(before, [bits(a.state(), 0), bits(a.state(), 1)]);
}

#[test]
fn a_broken_world_waits_for_its_reset_and_disturbs_nobody() {
    let model = walker();
    let ids = [0, 1, 2];
    let qvel = vec![0.0; model.nv * 3];
    let mut a = worlds(model.clone(), 3, 2);
    let mut b = worlds(model.clone(), 3, 2);
    a.reset(&[1; 3], &poses(&model, &ids), &qvel);
    b.reset(&[1; 3], &poses(&model, &ids), &qvel);
    // Velocities no world survives.
    let mut wild = qvel.clone();
    for v in 0..model.nv {
        wild[v * 3 + 1] = 1e30;
    }
    a.reset(&[0, 1, 0], &poses(&model, &ids), &wild);
    for t in 0..20 {
        let ctrl = controls(&ids, model.nu(), t);
        a.step(&ctrl, 2);
        b.step(&ctrl, 2);
        assert_ne!(a.state().fault[1] & !fault::CONTROL, 0);
        for e in [0, 2] {
            assert_eq!(bits(a.state(), e), bits(b.state(), e), "step {t}");
        }
    }
    assert!(a.state().qpos.iter().all(|x| x.is_finite()));
    a.reset(&[0, 1, 0], &poses(&model, &ids), &qvel);
    b.reset(&[0, 1, 0], &poses(&model, &ids), &qvel);
    for t in 0..20 {
        let ctrl = controls(&ids, model.nu(), t);
        a.step(&ctrl, 2);
        b.step(&ctrl, 2);
        assert_eq!(bits(a.state(), 1), bits(b.state(), 1), "step {t}");
    }
}
