//! One browser: a request, then the page or a WebSocket.

use super::audience::Seat;
use super::door::Visit;
use super::gate::{Answer, Asked};
use super::{ROW, Shared, short};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message as Frame, WebSocket};

/// Bytes and lines of a request's head at most.
const HEAD: usize = 16 << 10;
const LINES: usize = 64;
/// Time for a request, and for the next [`PART`] of what is sent to go away.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a slow reader has to take in [`PATIENCE`] (bytes).
const PART: usize = 64 << 10;
/// Time for a browser to take the end of an answer.
const PARTING: Duration = Duration::from_secs(1);
/// Bytes that the system holds for a browser that does not take them.
const SENT: usize = 128 << 10;
/// Bytes of a wish at most.
const WISH: usize = 16 << 10;
/// How often a browser's wishes are looked for, and how many, and how many bytes are read then.
const LOOK: Duration = Duration::from_millis(10);
const WISHES: usize = 16;
const BYTES: usize = 64 << 10;
/// Characters of an answer to what is not understood, which may be anything.
const ECHO: usize = 180;

/// Answers one connection until it ends.
///
/// # Errors
/// The browser is gone, or speaks in another way.
pub(crate) fn answer(
    mut stream: TcpStream,
    mut visit: Visit,
    shared: &Shared,
) -> Result<(), Error> {
    bound(&stream)?;
    let head = head(&mut stream)?;
    let mut lines = [httparse::EMPTY_HEADER; LINES];
    let mut request = httparse::Request::new(&mut lines);
    let parsed = request.parse(&head);
    let (Ok(httparse::Status::Complete(length)), Some("GET"), Some(target)) =
        (parsed, request.method, request.path)
    else {
        return refuse(&mut stream, 400, "only GET is understood");
    };
    let header = |name: &str| {
        let mut found = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name));
        let one = found.next().and_then(|h| std::str::from_utf8(h.value).ok());
        // Two of them are no answer to whose they are.
        one.filter(|_| found.next().is_none())
    };
    let asked = Asked { target, host: header("host"), origin: header("origin") };
    let answer = shared.gate.judge(&asked);
    if let Answer::Refused(status, why) = answer {
        return refuse(&mut stream, status, why);
    }
    if !visit.admit() {
        return refuse(&mut stream, 503, "too many look already: close a page");
    }
    if answer == Answer::Page {
        let (before, after) = &shared.page;
        let host = asked.host.unwrap_or_default();
        return write(&mut stream, "200 OK", "text/html; charset=utf-8", &[before, host, after]);
    }
    let upgrade = header("upgrade").is_some_and(|u| u.eq_ignore_ascii_case("websocket"));
    let Some(key) = header("sec-websocket-key").filter(|_| upgrade) else {
        return refuse(&mut stream, 426, "this is a WebSocket");
    };
    let accepted = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    send(&mut stream, accepted.as_bytes())?;
    // Frames may have come with the request.
    live(stream, head[length..].to_vec(), shared)
}

/// Bounds what the system holds for a connection, and for how long without an answer.
fn bound(stream: &TcpStream) -> Result<(), Error> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    sockopt::set_socket_send_buffer_size(stream, SENT)?;
    // A machine that is gone says nothing.
    sockopt::set_tcp_user_timeout(stream, PATIENCE.as_millis() as u32)?;
    Ok(())
}

/// A request up to the end of its head, and what came with it.
fn head(stream: &mut TcpStream) -> Result<Vec<u8>, Error> {
    let (mut head, mut chunk) = (Vec::new(), [0; 2048]);
    let until = Instant::now() + PATIENCE;
    loop {
        let n = before(until, |left| {
            stream.set_read_timeout(Some(left))?;
            stream.read(&mut chunk)
        })?;
        if n == 0 || head.len() + n > HEAD {
            return Err(Error::new(ErrorKind::InvalidData, "no request"));
        }
        let new = head.len().saturating_sub(3);
        head.extend_from_slice(&chunk[..n]);
        if head[new..].windows(4).any(|w| w == b"\r\n\r\n") {
            return Ok(head);
        }
    }
}

/// Does something in the time that is left.
fn before<T>(until: Instant, what: impl FnOnce(Duration) -> Result<T, Error>) -> Result<T, Error> {
    let left = until.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(ErrorKind::TimedOut.into()),
        false => what(left),
    }
}

/// Sends all of `bytes` to somebody who takes a [`PART`] of them in [`PATIENCE`].
fn send(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), Error> {
    for mut part in bytes.chunks(PART) {
        let until = Instant::now() + PATIENCE;
        while !part.is_empty() {
            let n = before(until, |left| {
                stream.set_write_timeout(Some(left))?;
                stream.write(part)
            })?;
            part = &part[n..];
        }
    }
    Ok(())
}

/// Ends an answer: what was sent arrives also where the browser has said more than was read.
fn part(stream: &mut TcpStream) -> Result<(), Error> {
    stream.shutdown(Shutdown::Write)?;
    let until = Instant::now() + PARTING;
    let (mut chunk, mut read) = ([0; 2048], 0);
    while read < PART {
        let n = before(until, |left| {
            stream.set_read_timeout(Some(left))?;
            stream.read(&mut chunk)
        })?;
        match n {
            0 => break,
            n => read += n,
        }
    }
    Ok(())
}

fn refuse(stream: &mut TcpStream, status: u16, why: &str) -> Result<(), Error> {
    let name = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        421 => "Misdirected Request",
        503 => "Service Unavailable",
        _ => "Upgrade Required",
    };
    let text = format!("{why}\n");
    write(stream, &format!("{status} {name}"), "text/plain; charset=utf-8", &[&text])
}

fn write(stream: &mut TcpStream, status: &str, kind: &str, body: &[&str]) -> Result<(), Error> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
        body.iter().map(|part| part.len()).sum::<usize>()
    );
    send(stream, head.as_bytes())?;
    for part in body {
        send(stream, part.as_bytes())?;
    }
    part(stream)
}

/// A connection of which so many bytes more are read.
struct Rationed {
    stream: TcpStream,
    left: usize,
}

impl Read for Rationed {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let most = into.len().min(self.left);
        if most == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let n = self.stream.read(&mut into[..most])?;
        self.left -= n;
        Ok(n)
    }
}

impl Write for Rationed {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.stream.flush()
    }
}

/// Rows to the browser, wishes from it.
fn live(stream: TcpStream, came: Vec<u8>, shared: &Shared) -> Result<(), Error> {
    stream.set_nonblocking(true)?;
    let config = WebSocketConfig::default()
        .read_buffer_size(WISH)
        .max_message_size(Some(WISH))
        .max_frame_size(Some(WISH))
        .write_buffer_size(0)
        .max_write_buffer_size(2 * ROW);
    let stream = Rationed { stream, left: 0 };
    let mut socket = WebSocket::from_partially_read(stream, came, Role::Server, Some(config));
    let mut seat = shared.audience.join();
    let mut taken = Instant::now();
    loop {
        let mut is_taken = sent(socket.flush())?;
        if is_taken {
            // One that does not take what it is sent is not listened to either.
            if !listen(&mut socket, &seat)? {
                return Ok(());
            }
            taken = Instant::now();
        }
        // A row that finds the last one still on its way is left out.
        while is_taken && let Some(message) = seat.news() {
            is_taken = sent(socket.send(message))?;
        }
        match is_taken {
            true => seat.wait(LOOK),
            false if taken.elapsed() > PATIENCE => return Err(ErrorKind::TimedOut.into()),
            false => std::thread::sleep(LOOK),
        }
    }
}

/// Takes wishes that have come; whether more may come.
fn listen(socket: &mut WebSocket<Rationed>, seat: &Seat) -> Result<bool, Error> {
    socket.get_mut().left = BYTES;
    for _ in 0..WISHES {
        if !seat.has_room() {
            break;
        }
        match socket.read() {
            Ok(Frame::Text(text)) => match serde_json::from_str(&text) {
                Ok(wish) => seat.wish(wish),
                Err(e) => seat.complain(&short(&format!("not understood: {e}"), ECHO)),
            },
            Err(tungstenite::Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => break,
            Ok(Frame::Close(_)) | Err(_) => {
                // What it wished before it left counts.
                let _ = sent(socket.flush());
                let until = Instant::now() + PARTING;
                while !seat.is_heard() && Instant::now() < until {
                    std::thread::sleep(LOOK);
                }
                return Ok(false);
            }
            Ok(_) => {}
        }
    }
    Ok(true)
}

/// Whether all of it has gone away; else it waits.
fn sent(result: tungstenite::Result<()>) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(true),
        Err(tungstenite::Error::Io(e)) if e.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(e) => Err(Error::other(e)),
    }
}
