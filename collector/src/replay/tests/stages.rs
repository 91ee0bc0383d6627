use super::super::{ReplayBuffer, Setup, names};
use super::*;
use crate::replay::tests::{field, host, rollout, setup, spec};

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
        ("kind = 'noise'\nnoise = 1\nscale = 2", "scale"),
        ("kind = 'noise'\nnoise = 1\nfields = ['reward']", "fields[0]"),
        ("kind = 'noise'\nnoise = 1\nfields = ['obs', 'obs']", "fields[1]"),
        ("kind = 'noise'", "kind"),
        ("kind = 'noise'\nnoise = 0", "noise"),
        ("kind = 'reward'\nscale = 2\nnoise_kind = 'normal'", "noise_kind"),
        ("kind = 'reward'\nscale = 2\nname = 'mirror'", "name"),
        ("kind = 'noise'\nnoise = 1\nargs = { x = 1 }", "args"),
        ("kind = 'custom'", "kind"),
        ("kind = 'custom'\nname = 'mirror'\nclip = 1", "clip"),
    ];
    for (text, key) in cases {
        let first = "[[transform]]\nkind = 'reward'\nclip = 1\n";
        let config = parsed(&format!("{first}[[transform]]\n{text}"));
        let paths: Vec<_> = config.validate().into_iter().map(|e| e.path).collect();
        assert_eq!(paths, [format!("replay.transform[1].{key}")], "{text}");
    }
    let all = "[[transform]]\nkind = 'reward'\nscale = -2\nclip = 3\n\
               [[transform]]\nkind = 'noise'\nnoise = 0.1\nnoise_kind = 'normal'\nfields = ['obs']";
    assert!(parsed(all).validate().is_empty());
    assert!(toml::from_str::<ReplayConfig>("[[transform]]\nkind = 'crop'").is_err());
    // Known only with the task.
    let own = parsed("[[transform]]\nkind = 'noise'\nnoise = 1\nfields = ['obs', 'critic_obs']");
    assert!(own.validate().is_empty() && own.layout(&spec(3, Some(2))).is_ok());
    let e = own.layout(&spec(3, None)).unwrap_err();
    assert_eq!(e.path, "replay.transform[0].fields[1]");
}

/// Fields by name, of one draw.
type Drawn = Vec<(String, Vec<Vec<f32>>)>;

fn draw(buffer: &mut ReplayBuffer) -> Drawn {
    let batch = buffer.next().unwrap();
    let names: Vec<String> = batch.fields().map(|(n, _)| n.to_owned()).collect();
    names.iter().map(|n| (n.clone(), field(batch, n))).collect()
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
fn entries_come_in_the_order_of_the_file() {
    let rewards = |transform: &str| {
        let config = ReplayConfig { transform: parsed(transform).transform, ..host(100) };
        let spec = spec(3, None);
        let layout = config.layout(&spec).unwrap();
        let mut buffer = ReplayBuffer::new(&config, layout, setup(50)).unwrap();
        buffer.extend(&rollout(&spec, 0, 10)).unwrap();
        field(buffer.next().unwrap(), names::REWARD).concat()
    };
    let plain = rewards("");
    let three = "[[transform]]\nkind = 'reward'\nscale = 2\n\
                 [[transform]]\nkind = 'reward'\nclip = 300\n\
                 [[transform]]\nkind = 'reward'\nscale = 0.5";
    let expected: Vec<f32> = plain.iter().map(|x| 0.5 * (2.0 * x).min(300.0)).collect();
    assert_eq!(rewards(three), expected);
    assert!(expected.contains(&150.0) && expected.iter().any(|x| *x < 100.0));
}
