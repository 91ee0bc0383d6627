//! Chromium without a window, spoken to by its own protocol.

use crate::support::need::Need;
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tungstenite::{Message, WebSocket};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// A tab, and what happened in it.
pub struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    session: String,
    next: u64,
    /// Errors of the console and of scripts.
    pub errors: Vec<String>,
    /// Addresses that were asked for.
    pub requests: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find() -> Result<String, String> {
    let named = std::env::var("OSTLER_BROWSER").ok();
    let usual = ["chromium", "chromium-browser", "google-chrome"].map(String::from);
    let all: Vec<String> = named.into_iter().chain(usual).collect();
    let runs = |p: &&String| crate::support::need::runs(p).is_ok();
    all.iter().find(runs).cloned().ok_or_else(|| format!("none of {} starts", all.join(", ")))
}

/// A tab of `width` x `height`; none where the machine has no browser. No name is resolved: what
/// is not on this machine cannot be reached.
pub fn open(width: u32, height: u32) -> Option<Browser> {
    let program = Need::Browser.or_skip(find())?;
    let profile = tempfile::tempdir().unwrap();
    let mut child = Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--use-gl=angle",
            "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--remote-debugging-port=0",
            "--force-device-scale-factor=1",
        ])
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("about:blank")
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let url = lines.find_map(|l| Some(l.strip_prefix("DevTools listening on ")?.to_string()));
    let url = url.expect("the browser says where it listens");
    // It must not block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    let host = url.split('/').nth(2).unwrap();
    let stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (socket, _) = tungstenite::client(url.as_str(), stream).unwrap();
    let mut browser = Browser {
        child,
        socket,
        session: String::new(),
        next: 0,
        errors: Vec::new(),
        requests: Vec::new(),
        _profile: profile,
    };
    let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
    let id = &target["targetId"];
    let attached =
        browser.call("Target.attachToTarget", json!({ "targetId": id, "flatten": true }));
    browser.session = attached["sessionId"].as_str().unwrap().to_string();
    for domain in ["Page", "Runtime", "Log", "Network"] {
        browser.call(&format!("{domain}.enable"), json!({}));
    }
    let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
    browser.call("Emulation.setDeviceMetricsOverride", size);
    Some(browser)
}

impl Browser {
    /// Calls a method of the protocol; what happens meanwhile is noted.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::Text(message.to_string().into())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else {
                continue;
            };
            let heard: Value = serde_json::from_str(&text).unwrap();
            if heard["id"] == id {
                assert!(heard["error"].is_null(), "{method}: {heard}");
                return heard["result"].clone();
            }
            self.note(&heard);
        }
    }

    fn note(&mut self, heard: &Value) {
        let params = &heard["params"];
        match heard["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.errors.push(params.to_string()),
            "Runtime.consoleAPICalled" if params["type"] == "error" => {
                self.errors.push(params["args"].to_string());
            }
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                self.errors.push(params["entry"].to_string());
            }
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                self.requests.push(url.chars().take(200).collect());
            }
            _ => {}
        }
    }

    /// Opens a page of ours and waits until it draws.
    pub fn show(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
        self.until("document.body?.dataset.state !== undefined && document.body.dataset.state !== 'loading'");
        let state = self.eval(
            "document.body.dataset.state + ' ' + document.getElementById('message').textContent",
        );
        assert_eq!(state.as_str().unwrap().trim(), "ready", "{:?}", self.errors);
    }

    /// The value of an expression of the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let began = Instant::now();
        while self.eval(expression) != json!(true) {
            assert!(began.elapsed() < PATIENCE, "never: {expression}: {:?}", self.errors);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The tab as a PNG.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        BASE64.decode(shot["data"].as_str().unwrap().as_bytes()).unwrap()
    }
}

/// Pixels (red, green, blue) of a PNG.
pub fn pixels(png: &[u8]) -> Vec<[u8; 3]> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let each = info.color_type.samples();
    bytes[..info.buffer_size()].chunks_exact(each).map(|c| [c[0], c[1], c[2]]).collect()
}
