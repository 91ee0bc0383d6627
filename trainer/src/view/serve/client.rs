//! One browser: a request, then the page or a WebSocket.

use super::gate::{Answer, Asked};
use super::{Shared, Wish};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message as Frame, WebSocket};

/// Bytes and lines of a request's head at most.
const HEAD: usize = 16 << 10;
const LINES: usize = 64;
/// Time for a request and for an answer to go away.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a wish at most.
const WISH: usize = 16 << 10;
/// How often a browser's wishes are looked for.
const LOOK: Duration = Duration::from_millis(10);

/// What is sent to browsers.
#[derive(Debug)]
pub enum Message {
    /// Numbers.
    Row(Vec<u8>),
    /// JSON.
    Text(String),
}

/// Answers one connection until it ends.
///
/// # Errors
/// The browser is gone, or speaks in another way.
pub fn answer(mut stream: TcpStream, shared: &Shared, say: &Sender<Wish>) -> Result<(), Error> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let head = head(&mut stream)?;
    let mut lines = [httparse::EMPTY_HEADER; LINES];
    let mut request = httparse::Request::new(&mut lines);
    let parsed = request.parse(&head);
    let (Ok(httparse::Status::Complete(_)), Some("GET"), Some(target)) =
        (parsed, request.method, request.path)
    else {
        return refuse(&mut stream, 400, "only GET is understood");
    };
    let header = |name: &str| {
        let mut found = request
            .headers
            .iter()
            .filter(|h| h.name.eq_ignore_ascii_case(name));
        let one = found.next().and_then(|h| std::str::from_utf8(h.value).ok());
        // Two of them are no answer to whose they are.
        one.filter(|_| found.next().is_none())
    };
    let asked = Asked {
        target,
        host: header("host"),
        origin: header("origin"),
    };
    match shared.gate.judge(&asked) {
        Answer::Refused(status, why) => refuse(&mut stream, status, why),
        Answer::Page => {
            let page = shared
                .page
                .replacen("@HOST@", asked.host.unwrap_or_default(), 1);
            write(
                &mut stream,
                "200 OK",
                "text/html; charset=utf-8",
                page.as_bytes(),
            )
        }
        Answer::Live => {
            let upgrade = header("upgrade").is_some_and(|u| u.eq_ignore_ascii_case("websocket"));
            let Some(key) = header("sec-websocket-key").filter(|_| upgrade) else {
                return refuse(&mut stream, 426, "this is a WebSocket");
            };
            let accepted = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: {}\r\n\r\n",
                derive_accept_key(key.as_bytes())
            );
            stream.write_all(accepted.as_bytes())?;
            live(stream, shared, say)
        }
    }
}

/// The head of a request.
fn head(stream: &mut TcpStream) -> Result<Vec<u8>, Error> {
    let (mut head, mut chunk) = (Vec::new(), [0; 2048]);
    let began = Instant::now();
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        let n = stream.read(&mut chunk)?;
        if n == 0 || head.len() + n > HEAD || began.elapsed() > PATIENCE {
            return Err(Error::new(ErrorKind::InvalidData, "no request"));
        }
        head.extend_from_slice(&chunk[..n]);
    }
    Ok(head)
}

fn refuse(stream: &mut TcpStream, status: u16, why: &str) -> Result<(), Error> {
    let name = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        421 => "Misdirected Request",
        _ => "Upgrade Required",
    };
    let text = format!("{why}\n");
    write(
        stream,
        &format!("{status} {name}"),
        "text/plain; charset=utf-8",
        text.as_bytes(),
    )
}

fn write(stream: &mut TcpStream, status: &str, kind: &str, body: &[u8]) -> Result<(), Error> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()
}

/// Rows to the browser, wishes from it.
fn live(stream: TcpStream, shared: &Shared, say: &Sender<Wish>) -> Result<(), Error> {
    stream.set_nonblocking(true)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(WISH))
        .max_frame_size(Some(WISH))
        .write_buffer_size(0);
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, Some(config));
    let rows = shared.join();
    loop {
        match rows.recv_timeout(LOOK) {
            // A row that finds the last one still on its way is left out.
            Ok(message) => match (sent(socket.flush())?, &*message) {
                (true, Message::Row(bytes)) => {
                    sent(socket.send(Frame::Binary(bytes.clone().into())))?;
                }
                (_, Message::Text(text)) => {
                    sent(socket.send(Frame::Text(text.as_str().into())))?;
                }
                (false, Message::Row(_)) => {}
            },
            Err(RecvTimeoutError::Timeout) => {
                sent(socket.flush())?;
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        loop {
            match socket.read() {
                Ok(Frame::Text(text)) => match serde_json::from_str(&text) {
                    Ok(wish) => {
                        if say.send(wish).is_err() {
                            return Ok(());
                        }
                    }
                    Err(e) => {
                        let why = serde_json::json!({ "error": format!("not understood: {e}") });
                        sent(socket.send(Frame::Text(why.to_string().into())))?;
                    }
                },
                Ok(Frame::Close(_)) => return Ok(()),
                Ok(_) => {}
                Err(tungstenite::Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(Error::other(e)),
            }
        }
    }
}

/// Whether all of it has gone away; else it waits.
fn sent(result: tungstenite::Result<()>) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(true),
        Err(tungstenite::Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(e) => Err(Error::other(e)),
    }
}
