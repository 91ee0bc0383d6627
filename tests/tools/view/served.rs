//! `--serve`: who is answered, what comes, what wishes do.

use super::browser;
use super::{Page, odd, ostler};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::{Message, WebSocket};

pub const PATIENCE: Duration = Duration::from_secs(120);

/// A server that ends with the test.
pub struct Served {
    child: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    pub fn start(dir: &Path, what: &[&str], address: &str) -> Self {
        let mut child = ostler()
            .arg("play")
            .args(what)
            .args(["--serve", address])
            .current_dir(dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let url = line.split_whitespace().nth(1);
        let url = url.unwrap_or_else(|| panic!("{line:?}")).to_string();
        Self { child, url }
    }

    pub fn host(&self) -> &str {
        self.url.split('/').nth(2).unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A target with the token, which a machine with other users needs on any address.
    pub fn own(&self, target: &str) -> String {
        let query = self.url.split_once('?').map(|(_, query)| query);
        query.map_or(target.into(), |query| format!("{target}?{query}"))
    }

    /// Status and body of a GET with these header lines.
    pub fn get(&self, target: &str, headers: &str) -> (u16, String) {
        self.raw(&format!("GET {target} HTTP/1.1\r\n{headers}\r\n"))
    }

    pub fn connect(&self) -> TcpStream {
        let port = self.host().rsplit(':').next().unwrap();
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, body.to_string())
    }

    pub fn page(&self) -> Page {
        let host = format!("Host: {}\r\n", self.host());
        let (status, body) = self.get(&self.own("/"), &host);
        assert_eq!(status, 200, "{body}");
        Page::read(&body)
    }

    pub fn look(&self) -> Looker {
        let url = format!("ws://{}{}", self.host(), self.own("/live"));
        let mut request = url.into_client_request().unwrap();
        let origin = format!("http://{}", self.host());
        request.headers_mut().insert("Origin", origin.parse().unwrap());
        let stream = TcpStream::connect(self.host()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = tungstenite::client(request, stream).unwrap();
        Looker { socket }
    }
}

pub struct Looker {
    socket: WebSocket<TcpStream>,
}

impl Looker {
    pub fn say(&mut self, wish: Value) {
        self.socket.send(Message::Text(wish.to_string().into())).unwrap();
    }

    /// The next row.
    pub fn row(&mut self) -> Vec<f32> {
        loop {
            if let Message::Binary(bytes) = self.socket.read().unwrap() {
                let numbers = bytes.chunks_exact(4);
                return numbers.map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
            }
        }
    }

    /// The next status or complaint that fits.
    pub fn heard(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                let status: Value = serde_json::from_str(&text).unwrap();
                if fits(&status) {
                    return status;
                }
                assert!(began.elapsed() < PATIENCE, "{status}");
            }
        }
    }

    /// The first row that fits.
    fn until(&mut self, what: &str, fits: impl Fn(&[f32]) -> bool) -> Vec<f32> {
        let began = Instant::now();
        loop {
            let row = self.row();
            if fits(&row) {
                return row;
            }
            assert!(began.elapsed() < PATIENCE, "never: {what}");
        }
    }
}

#[test]
fn rows_come_and_wishes_are_fulfilled() {
    let dir = odd();
    let served = Served::start(dir.path(), &["odd.toml", "--agent", "zero"], "127.0.0.1:0");
    let page = served.page();
    assert_eq!(page.data["live"], true);
    let width = page.number("/layout/width");
    let mut looker = served.look();
    let row = looker.row();
    assert_eq!(row.len(), width);
    // Time goes on.
    looker.until("time", |r| r[0] > row[0] + 0.1);
    // A command stays what it is told to be, beyond its next draw.
    let (commands, _) = page.group("Commands");
    looker.say(json!({ "do": "command", "index": 0, "values": [0.25, -0.75] }));
    let is = |r: &[f32]| r[commands..commands + 2] == [0.25, -0.75];
    let held = looker.until("the command", is);
    let mut last = held[0];
    while last < held[0] + 1.5 && last >= held[0] {
        let row = looker.row();
        assert!(is(&row), "{:?} at {}", &row[commands..commands + 2], row[0]);
        last = row[0];
    }
    // The policy sees it, too.
    let (seen, names) = page.group("Observations");
    let at = seen + names.iter().position(|n| n == "target.x").unwrap();
    assert_eq!(looker.row()[at..at + 2], [0.25, -0.75]);
    looker.say(json!({ "do": "command", "index": 0, "values": null }));
    looker.until("the task's own command", |r| !is(r));
    // Nothing moves in a pause.
    looker.say(json!({ "do": "pause", "on": true }));
    looker.heard(|s| s["paused"] == true);
    let still = looker.row();
    for _ in 0..5 {
        assert_eq!(looker.row()[0], still[0]);
    }
    // A push changes the velocity by what it says.
    let (v, _) = page.group("Velocities");
    looker.say(json!({ "do": "push", "body": 1, "point": [0, 0, 0], "change": [0.0, 0.0, 3.0] }));
    let pushed = looker.until("the push", |r| r[v + 2] != still[v + 2]);
    assert!((pushed[v + 2] - still[v + 2] - 3.0).abs() < 1e-4, "{}", pushed[v + 2]);
    looker.say(json!({ "do": "pause", "on": false }));
    let poses = page.number("/layout/poses") + 7;
    looker.until("it flies", |r| r[poses + 2] > still[poses + 2] + 0.2);
    // A new episode, in slow motion.
    looker.say(json!({ "do": "speed", "factor": 0.1 }));
    assert_eq!(looker.heard(|s| s["speed"] != 1.0)["speed"], 0.1);
    looker.say(json!({ "do": "reset" }));
    let again = looker.until("a new episode", |r| r[0] < 0.1);
    assert!(again[3] < 10.0);
    looker.say(json!({ "do": "agent", "who": "random" }));
    let (actions, _) = page.group("Actions");
    looker.until("actions by chance", |r| r[actions] != 0.0);
    // What cannot be is said, and nothing ends.
    for wish in [
        json!({ "do": "push", "body": 0, "point": [0, 0, 0], "change": [1, 0, 0] }),
        json!({ "do": "command", "index": 7, "values": [1.0] }),
        json!({ "do": "command", "index": 0, "values": [1.0] }),
        json!({ "do": "checkpoint", "name": "../../odd.toml" }),
        json!({ "do": "agent", "who": "policy" }),
        json!({ "do": "format" }),
    ] {
        looker.say(wish);
        looker.heard(|s| s["error"].is_string());
    }
    looker.row();
    // Many may look.
    assert_eq!(served.look().row().len(), width);
}

#[test]
fn other_origins_foreign_names_and_files_are_refused() {
    let dir = odd();
    let served = Served::start(dir.path(), &["odd.toml", "--agent", "zero"], "0");
    let host = served.host().to_string();
    assert!(host.starts_with("127.0.0.1:"), "{host}");
    let own = format!("Host: {host}\r\n");
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (target, headers, status) in [
        ("/live", format!("{own}Origin: http://evil.example\r\n{upgrade}"), 403),
        ("/live", format!("{own}{upgrade}"), 403),
        ("/live", format!("{own}Origin: http://{host}\r\n"), 426),
        ("/", format!("{own}Origin: http://evil.example\r\n"), 403),
        ("/", "Host: evil.example\r\n".into(), 421),
        ("/", format!("{own}Host: evil.example\r\n"), 421),
        ("/", String::new(), 421),
        ("/odd.toml", own.clone(), 404),
        ("/../odd.toml", own.clone(), 404),
        ("/%2e%2e/odd.toml", own.clone(), 404),
        ("/etc/passwd", own.clone(), 404),
    ] {
        let target = served.own(target);
        assert_eq!(served.get(&target, &headers).0, status, "{target} {headers}");
    }
    assert_eq!(served.raw(&format!("POST / HTTP/1.1\r\n{own}\r\n")).0, 400);
    assert_eq!(served.raw("\u{0}\u{1}garbage\r\n\r\n").0, 400);
    // After all that the page is still there, and lets connect to this server alone.
    let page = served.page();
    assert!(page.text.contains(&format!("connect-src ws://{host};")), "the policy");
}

#[test]
fn an_address_for_others_needs_the_token() {
    let dir = odd();
    let served = Served::start(dir.path(), &["odd.toml", "--agent", "zero"], "0.0.0.0:0");
    let (_, token) = served.url.split_once("?token=").unwrap();
    let own = format!("Host: {}\r\n", served.host());
    assert_eq!(served.get("/", &own).0, 403);
    assert_eq!(served.get("/?token=0123", &own).0, 403);
    assert_eq!(served.get(&format!("/?token={token}"), &own).0, 200);
}

#[test]
fn a_run_that_is_trained_is_watched_with_its_newest_weights() {
    let dir = odd();
    let train = |more: &[&str]| {
        let out = ostler()
            .args(["train", "--quiet"])
            .args(more)
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    };
    train(&["odd.toml", "--out", "run"]);
    let served = Served::start(dir.path(), &["run"], "0");
    let mut looker = served.look();
    let before = looker.heard(|s| s["shown"].is_string());
    assert_eq!((&before["agent"], &before["checkpoint"]), (&json!("policy"), &json!("newest")));
    // The run goes on while it is watched: nothing is locked.
    train(&["--resume", "run", "runner.max_iterations=5"]);
    let after = looker.heard(|s| s["shown"] != before["shown"]);
    assert!(after["shown"].as_str().unwrap().contains('5'), "{after}");
    let old = after["checkpoints"].as_array().unwrap().last().unwrap().clone();
    looker.say(json!({ "do": "checkpoint", "name": old }));
    looker.heard(|s| s["shown"] == old);
    looker.say(json!({ "do": "agent", "who": "zero" }));
    looker.heard(|s| s["shown"] == "zero");
    looker.row();
}

#[test]
fn a_browser_shows_what_happens_and_pushes_it() {
    let Some(mut browser) = browser::open(640, 360) else {
        return;
    };
    let dir = odd();
    let served = Served::start(dir.path(), &["odd.toml", "--agent", "zero"], "0");
    browser.show(&served.url);
    browser.until("ostler.source.received > 10");
    assert_eq!(browser.eval("document.querySelectorAll('#sliders input[type=range]').length"), 2);
    browser.until("ostler.source.row[0] > 1");
    browser.eval("globalThis.fastest = 0; ostler.source.take = ((take) => function (row) { globalThis.fastest = Math.max(globalThis.fastest, row[ostler.data.layout.groups.find((g) => g.name === 'Velocities').first + 2]); return take.call(this, row); })(ostler.source.take), 0");
    // A push, by the mouse: from the robot's middle upwards, by so much that the speed is seen in a
    // row that comes up to 1/30 s later: gravity takes 0.3 m/s until then. The robot may have gone
    // from the place meanwhile: then once more.
    let began = Instant::now();
    while browser.eval("globalThis.fastest > 0.5") != json!(true) {
        assert!(began.elapsed() < PATIENCE, "no push was seen: {:?}", browser.errors);
        let place = browser.eval(
            "(() => { const at = ostler.data.layout.poses + 7, r = ostler.source.row, v = ostler.view;\
               const p = new Vendor.Vector3(r[at], r[at + 1], r[at + 2]).project(v.camera);\
               const b = v.canvas.getBoundingClientRect();\
               return [b.left + (p.x + 1) / 2 * b.width, b.top + (1 - p.y) / 2 * b.height]; })()",
        );
        let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
        for (kind, up) in [
            ("mousePressed", 0.0),
            ("mouseMoved", 80.0),
            ("mouseMoved", 160.0),
            ("mouseReleased", 160.0),
        ] {
            let event = json!({ "type": kind, "x": x, "y": y - up, "button": "left", "buttons": 1,
                                "clickCount": 1, "modifiers": 8 });
            browser.call("Input.dispatchMouseEvent", event);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    let host = served.host();
    let outside = |r: &&String| !r.contains(host) && !r.starts_with("data:");
    assert_eq!(browser.requests.iter().find(outside), None);
}
