//! `--serve` and those who ask for too much: memory, turns, places and time have bounds.

use super::served::{PATIENCE, Served};
use super::{odd, ostler};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a server may take beyond what it has with one browser (MiB).
const GROWTH: u64 = 64;
/// How long it is attacked at least.
const ATTACK: Duration = Duration::from_secs(4);

/// A frame as browsers send them, masked with zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        n @ 0..126 => bytes.push(0x80 | n as u8),
        n => {
            bytes.push(0x80 | 126);
            bytes.extend((n as u16).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

const TEXT: u8 = 0x81;
const PING: u8 = 0x89;

/// The request for a WebSocket.
fn request(served: &Served) -> String {
    let (host, target) = (served.host(), served.own("/live"));
    format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n\
         Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

/// A WebSocket that reads nothing behind its answer.
fn deaf(served: &Served) -> std::io::Result<TcpStream> {
    let mut stream = served.connect();
    stream.write_all(request(served).as_bytes())?;
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        answer.push(byte[0]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "));
    Ok(stream)
}

/// Sends the same again and again until told to stop, on new connections where one ends.
fn flood(served: &Served, begin: &[u8], again: &[u8], stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut stream) = deaf(served) else {
            continue;
        };
        let wait = Some(Duration::from_millis(100));
        stream.set_write_timeout(wait).unwrap();
        let mut sent = stream.write(begin);
        let mut at = 0;
        while !stop.load(Ordering::Relaxed) {
            match sent {
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break,
                Ok(_) => {}
            }
            sent = stream.write(&again[at..]);
            at = (at + *sent.as_ref().unwrap_or(&0)) % again.len();
        }
    }
}

/// The most memory that a process has had (MiB).
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib: u64 = line.unwrap().trim_end_matches(" kB").trim().parse().unwrap();
    kib >> 10
}

/// Connections that a server answers.
fn connections(pid: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let names = tasks.filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "serve one").count()
}

/// Raises a flag when it goes.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn floods_take_neither_memory_nor_the_turns_of_others() {
    let dir = odd();
    let train = ["train", "odd.toml", "--quiet", "--out", "run"];
    let out = ostler().args(train).current_dir(dir.path()).output().unwrap();
    assert!(out.status.success());
    let served = Served::start(dir.path(), &["run"], "0");
    served.page();
    let mut looker = served.look();
    looker.say(json!({ "do": "agent", "who": "policy" }));
    (0..10).for_each(|_| drop(looker.row()));
    let unknown = frame(TEXT, json!({ "do": "x".repeat(15_000) }).to_string().as_bytes());
    let nobody =
        frame(TEXT, json!({ "do": "agent", "who": "x".repeat(15_000) }).to_string().as_bytes());
    let policy = frame(TEXT, br#"{"do":"agent","who":"policy"}"#);
    let swap = [frame(TEXT, br#"{"do":"agent","who":"zero"}"#), policy.clone()];
    let values = vec![0; 8000];
    let long = json!({ "do": "command", "index": 0, "values": values }).to_string();
    let long = frame(TEXT, long.as_bytes());
    let ping = frame(PING, &[0; 125]);
    // A message in parts that never ends, of which none has a byte.
    let (begun, part) = (frame(0x01, b""), frame(0x00, b""));
    let huge = [&[TEXT, 0x80 | 127][..], &[0x7f; 8], &[0; 4]].concat();
    let packed = frame(0xc1, b"compressed");
    let floods: [(&[u8], Vec<u8>); 9] = [
        (b"", unknown),
        (b"", nobody),
        (b"", policy.repeat(100)),
        (b"", swap.concat().repeat(100)),
        (b"", long),
        (b"", ping.repeat(100)),
        (&begun, part.repeat(1000)),
        (&huge, vec![b' '; 4096]),
        (&packed, vec![0xff; 4096]),
    ];
    let (before, began) = (peak(served.pid()), Instant::now());
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for (begin, again) in &floods {
            let (served, stop) = (&served, &stop);
            threads.spawn(move || flood(served, begin, again, stop));
        }
        // Whatever fails here: the floods end, too.
        let _end = Ends(&stop);
        let mut rows = 0;
        while rows < 60 || began.elapsed() < ATTACK {
            looker.row();
            rows += 1;
            if began.elapsed() > PATIENCE {
                break;
            }
        }
        // Whoever comes now sees everything, too, and is heard.
        let late = rows >= 60 && {
            let mut late = served.look();
            late.say(json!({ "do": "speed", "factor": 0.25 }));
            late.heard(|s| s["speed"] == 0.25);
            served.page().data["live"] == true
        };
        assert!(rows >= 60 && late, "{rows} rows in {:?}", began.elapsed());
    });
    let grown = peak(served.pid()).saturating_sub(before);
    assert!(grown < GROWTH, "{grown} MiB");
}

#[test]
fn connections_that_say_nothing_lock_nobody_out() {
    let dir = odd();
    let served = Served::start(dir.path(), &["odd.toml", "--agent", "zero"], "0");
    let silent: Vec<TcpStream> = (0..64).map(|_| served.connect()).collect();
    served.page();
    let mut looker = served.look();
    looker.row();
    // Of one address only a few are kept.
    let count = connections(served.pid());
    assert!(count < 16, "{count}");
    drop(silent);
}

#[test]
fn connections_without_progress_are_ended() {
    let dir = odd();
    let served = Served::start(dir.path(), &["odd.toml", "--agent", "zero"], "0");
    // A page that is not read; nor are answers; a request that comes by the byte.
    let mut page = served.connect();
    let (host, target) = (served.host(), served.own("/"));
    let asked = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    page.write_all(asked.as_bytes()).unwrap();
    let stop = &AtomicBool::new(false);
    let mut live = deaf(&served).unwrap();
    live.set_write_timeout(Some(PATIENCE)).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut slow = served.connect();
            for byte in request(&served).bytes().cycle() {
                if stop.load(Ordering::Relaxed) || slow.write_all(&[byte]).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        threads.spawn(|| {
            let wish = frame(TEXT, b"{}");
            while live.write_all(&wish).is_ok() && !stop.load(Ordering::Relaxed) {}
        });
        let began = Instant::now();
        while connections(served.pid()) > 0 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(100));
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(connections(served.pid()), 0);
    });
    // One that reads goes on.
    served.look().row();
}

#[test]
fn what_comes_with_a_request_is_heard_and_answers_are_short() {
    let dir = odd();
    let served = Served::start(dir.path(), &["odd.toml", "--agent", "zero"], "0");
    let mut looker = served.look();
    // A wish right behind the request.
    let mut hasty = served.connect();
    let pause = frame(TEXT, br#"{"do":"pause","on":true}"#);
    let all = [request(&served).into_bytes(), pause].concat();
    hasty.write_all(&all).unwrap();
    looker.heard(|s| s["paused"] == true);
    drop(hasty);
    // A second request does not cut the answer to the first.
    let get = format!("GET {} HTTP/1.1\r\nHost: {}\r\n", served.own("/"), served.host());
    let (status, body) =
        served.get(&served.own("/"), &format!("Host: {}\r\n\r\n{get}", served.host()));
    assert_eq!(status, 200);
    assert!(body.trim_end().ends_with("</html>"), "the whole page");
    for wish in [
        json!({ "do": "é\n\"".repeat(2000) }),
        json!({ "do": "agent", "who": "é\n\"".repeat(2000) }),
        json!({ "do": "checkpoint", "name": "\u{7}".repeat(2000) }),
        json!({ "do": "speed", "factor": "9".repeat(8000) }),
    ] {
        looker.say(wish);
        let error = looker.heard(|s| s["error"].is_string());
        let length = error["error"].as_str().unwrap().chars().count();
        assert!(length <= 200, "{length}: {error}");
    }
    looker.say(json!({ "do": "command", "index": 0, "values": [1e39, 0.0] }));
    looker.heard(|s| s["error"].as_str().is_some_and(|e| e.contains("precision")));
}
