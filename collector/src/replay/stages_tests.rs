use super::super::buffer::tests::{field, host, rollout, setup, spec};
use super::super::{ReplayBuffer, SamplerKind, Setup, StorageKind};
use super::*;

fn parsed(text: &str) -> ReplayConfig {
    toml::from_str(text).unwrap()
}

#[test]
fn what_an_entry_cannot_say_is_named_with_its_place() {
    let cases = [
        ("kind = 'reward'\nscale = 0", "scale"),
        ("kind = 'reward'\nscale = inf", "scale"),
        ("kind = 'reward'\nclip = -1", "clip"),
        ("kind = 'reward'", "kind"),
        ("kind = 'reward'\nscale = 2\nfields = ['obs']", "fields"),
        ("kind = 'half'\nscale = 2", "scale"),
        ("kind = 'half'\nfields = ['reward']", "fields[0]"),
        ("kind = 'half'\nfields = ['obs', 'obs']", "fields[1]"),
        ("kind = 'noise'", "kind"),
        ("kind = 'noise'\nnoise = 0", "noise"),
        ("kind = 'half'\nnoise_kind = 'normal'", "noise_kind"),
    ];
    for (text, key) in cases {
        let first = "[[transform]]\nkind = 'half'\n";
        let config = parsed(&format!("{first}[[transform]]\n{text}"));
        let paths: Vec<_> = config.validate().into_iter().map(|e| e.path).collect();
        assert_eq!(paths, [format!("replay.transform[1].{key}")], "{text}");
    }
    let all = "[[transform]]\nkind = 'half'\n[[transform]]\nkind = 'reward'\nscale = -2\nclip = 3\n\
               [[transform]]\nkind = 'noise'\nnoise = 0.1\nnoise_kind = 'normal'\nfields = ['obs']";
    assert!(parsed(all).validate().is_empty());
    assert!(toml::from_str::<ReplayConfig>("[[transform]]\nkind = 'crop'").is_err());
    // Known only with the task.
    let own = parsed("[[transform]]\nkind = 'half'\nfields = ['obs', 'critic_obs']");
    assert!(own.validate().is_empty() && own.layout(&spec(3, Some(2))).is_ok());
    let e = own.layout(&spec(3, None)).unwrap_err();
    assert_eq!(e.path, "replay.transform[0].fields[1]");
}

/// Observations as (number, environment, third), scaled so that halves round them.
fn odd(first: i64, steps: i64) -> crate::Rollout {
    let mut r = rollout(&spec(3, Some(2)), first, steps);
    for x in [&mut r.obs, &mut r.final_obs] {
        x.policy = &x.policy * 1.000_3 + 0.1;
        x.critic = x.critic.as_ref().map(|c| c * 0.37);
    }
    r
}

/// Fields by name, of one draw.
type Drawn = Vec<(String, Vec<Vec<f32>>)>;

fn draw(buffer: &mut ReplayBuffer) -> Drawn {
    let batch = buffer.next().unwrap();
    let names: Vec<String> = batch.fields().map(|(n, _)| n.to_owned()).collect();
    names.iter().map(|n| (n.clone(), field(batch, n))).collect()
}

/// For every storage, and after a resume: draws equal those of full precision, rounded.
#[test]
fn halves_are_the_rounded_numbers_in_every_storage_and_after_a_resume() {
    let spec = spec(3, Some(2));
    let half = vec![TransformConfig::new(TransformKind::Half)];
    for (n_step, sampler) in [(1, SamplerKind::Uniform), (3, SamplerKind::Prioritized)] {
        for storage in
            [StorageKind::Host, StorageKind::Device, StorageKind::Memmap, StorageKind::Tiered]
        {
            let config = |transform: &[TransformConfig]| ReplayConfig {
                storage,
                recent: 20,
                n_step,
                sampler,
                save: true,
                transform: transform.to_vec(),
                ..host(60)
            };
            let (full, halved) = (config(&[]), config(&half));
            let layouts = [&full, &halved].map(|c| c.layout(&spec).unwrap());
            // 2 (3 + 2) observations, 2 actions, 4 flags and the version: of the five
            // observations each of two odd numbers takes two words.
            let bytes = layouts.each_ref().map(|l| l.bytes_per_transition());
            assert_eq!(bytes, [4 * 17, 4 * (7 + 2 * (2 + 1))]);
            let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
            let open = |at: usize, config: &ReplayConfig, reopen: bool| {
                let setup =
                    Setup { folder: Some(folders[at].path()), margin: 30, reopen, ..setup(64) };
                ReplayBuffer::new(config, layouts[at].clone(), setup).unwrap()
            };
            let (mut a, mut b) = (open(0, &full, false), open(1, &halved, false));
            let rounded = |name: &str, x: f32| match name.ends_with("obs") {
                true => half::f16::from_f32(x).to_f32(),
                false => x,
            };
            let mut apart = 0;
            let mut compare = |a: Drawn, b: &Drawn| {
                for ((name, a), (_, b)) in a.into_iter().zip(b) {
                    apart += usize::from(name == names::OBS && &a != b);
                    let map = |row: Vec<f32>| row.into_iter().map(|x| rounded(&name, x)).collect();
                    let a: Vec<Vec<f32>> = a.into_iter().map(map).collect();
                    assert_eq!(&a, b, "{name}, {storage:?}, n = {n_step}");
                }
            };
            for i in 0..5 {
                a.extend(&odd(6 * i, 6)).unwrap();
                b.extend(&odd(6 * i, 6)).unwrap();
                compare(draw(&mut a), &draw(&mut b));
            }
            let saved = b.save().unwrap();
            let (after_a, after_b) = (draw(&mut a), draw(&mut b));
            compare(after_a, &after_b);
            drop(b);
            let mut again = open(1, &halved, true);
            let restored = again.restore(&saved).unwrap();
            assert!(restored.exact(), "{restored:?}");
            assert_eq!(draw(&mut again), after_b, "{storage:?}, n = {n_step}");
            assert!(apart > 0, "nothing was rounded");
        }
    }
}

fn buffer(transform: &str, seed: u64, prefetch: usize) -> ReplayBuffer {
    let config = ReplayConfig { prefetch, ..host(100) };
    let config = ReplayConfig { transform: parsed(transform).transform, ..config };
    assert!(config.validate().is_empty());
    let spec = spec(3, Some(2));
    let setup = Setup { seed, ..setup(400) };
    let mut buffer = ReplayBuffer::new(&config, config.layout(&spec).unwrap(), setup).unwrap();
    buffer.extend(&rollout(&spec, 0, 10)).unwrap();
    buffer
}

const NOISY: &str = "[[transform]]\nkind = 'noise'\nnoise = 0.5\nnoise_kind = 'normal'\nfields = ['obs']\n\
                     [[transform]]\nkind = 'noise'\nnoise = 0.5\nfields = ['critic_obs']";

#[test]
fn noise_has_its_size_and_is_keyed_by_the_draw() {
    let (mut plain, mut noisy) = (buffer("", 11, 0), buffer(NOISY, 11, 0));
    let mut added: Vec<(String, Vec<f32>)> = Vec::new();
    for _ in 0..10 {
        for ((name, a), (_, b)) in draw(&mut plain).into_iter().zip(draw(&mut noisy)) {
            let (a, b) = (a.concat(), b.concat());
            let noise: Vec<f32> = b.iter().zip(&a).map(|(b, a)| b - a).collect();
            match added.iter_mut().find(|(n, _)| *n == name) {
                Some((_, all)) => all.extend(noise),
                None => added.push((name, noise)),
            }
        }
    }
    for (name, x) in &added {
        let n = x.len() as f32;
        let mean = x.iter().sum::<f32>() / n;
        let deviation = (x.iter().map(|x| x * x).sum::<f32>() / n).sqrt();
        let expected = match name.as_str() {
            names::OBS | names::NEXT_OBS => 0.5,
            names::CRITIC_OBS | names::NEXT_CRITIC_OBS => 0.5 / 3.0_f32.sqrt(),
            _ => 0.0,
        };
        assert!(mean.abs() < 0.02, "{name}: {mean}");
        assert!((deviation - expected).abs() < 0.02, "{name}: {deviation}");
    }
    // Numbers of their own for each field, draw and seed; the same when it is repeated.
    let of = |name: &str| &added.iter().find(|(n, _)| n == name).unwrap().1;
    assert_ne!(of(names::OBS)[..9], of(names::NEXT_OBS)[..9]);
    assert_ne!(of(names::OBS)[..9], of(names::OBS)[1200..1209]);
    let draws = |seed, prefetch| {
        let mut buffer = buffer(NOISY, seed, prefetch);
        buffer.begin_update(3);
        [(); 3].map(|()| draw(&mut buffer))
    };
    assert_eq!(draws(11, 0), draws(11, 2), "also when it is drawn ahead");
    assert_ne!(draws(11, 0), draws(12, 0));
}

#[test]
fn entries_come_in_the_order_of_the_file_after_the_keys() {
    let rewards = |transform: &str, scale: f64| {
        let config = ReplayConfig {
            reward_scale: scale,
            transform: parsed(transform).transform,
            ..host(100)
        };
        let spec = spec(3, None);
        let layout = config.layout(&spec).unwrap();
        let mut buffer = ReplayBuffer::new(&config, layout, setup(50)).unwrap();
        buffer.extend(&rollout(&spec, 0, 10)).unwrap();
        field(buffer.next().unwrap(), names::REWARD).concat()
    };
    let plain = rewards("", 1.0);
    let two = "[[transform]]\nkind = 'reward'\nclip = 300\n\
               [[transform]]\nkind = 'reward'\nscale = 0.5";
    let expected: Vec<f32> = plain.iter().map(|x| 0.5 * (2.0 * x).min(300.0)).collect();
    assert_eq!(rewards(two, 2.0), expected);
    assert!(expected.contains(&150.0) && expected.iter().any(|x| *x < 100.0));
}
