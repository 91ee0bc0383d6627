//! Who is answered.
//!
//! Any page in a browser may send requests to this machine's ports. What tells them apart is the
//! `Origin` that the browser adds, and the `Host` that it asked for: a foreign name that was made
//! to mean this machine (DNS rebinding) shows there.

use super::ServeError;
use data_encoding::HEXLOWER;
use std::net::SocketAddr;

/// Random bytes of a token.
const TOKEN: usize = 16;

/// What a request says about itself.
#[derive(Debug, Default, Clone, Copy)]
pub struct Asked<'a> {
    /// Path and query.
    pub target: &'a str,
    /// The header `Host`.
    pub host: Option<&'a str>,
    /// The header `Origin`.
    pub origin: Option<&'a str>,
}

/// What is asked for, by someone who may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The page.
    Page,
    /// Rows and wishes.
    Live,
    /// The status of an HTTP answer, and why.
    Refused(u16, &'static str),
}

/// Rules of a server.
#[derive(Debug)]
pub struct Gate {
    address: SocketAddr,
    token: Option<String>,
}

impl Gate {
    /// Of a server on this address; it makes a token unless the address is reached from this
    /// machine alone, which nobody else uses (`others`).
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(address: SocketAddr, others: bool) -> Result<Self, ServeError> {
        let token = match address.ip().is_loopback() && !others {
            true => None,
            false => {
                let mut bytes = [0; TOKEN];
                let mut source = std::fs::File::open("/dev/urandom");
                let source = source.as_mut().map_err(|e| ServeError::Token(e.to_string()))?;
                let read = std::io::Read::read_exact(source, &mut bytes);
                read.map_err(|e| ServeError::Token(e.to_string()))?;
                Some(HEXLOWER.encode(&bytes))
            }
        };
        Ok(Self { address, token })
    }

    /// The token, if one is needed.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// What becomes of a request.
    pub fn judge(&self, asked: &Asked<'_>) -> Answer {
        let Some(host) = asked.host.filter(|h| self.is_own(h)) else {
            return Answer::Refused(421, "this server is asked for by its own address alone");
        };
        let own = format!("http://{host}");
        if asked.origin.is_some_and(|o| !o.eq_ignore_ascii_case(&own)) {
            return Answer::Refused(403, "pages of other origins are not answered");
        }
        let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
        let answer = match path {
            "/" => Answer::Page,
            // A browser always says whose page opens a WebSocket.
            "/live" if asked.origin.is_some() => Answer::Live,
            "/live" => return Answer::Refused(403, "an origin is needed"),
            _ => return Answer::Refused(404, "there is nothing but the page"),
        };
        if let Some(token) = &self.token {
            let given = query.split('&').find_map(|q| q.strip_prefix("token="));
            if !given.is_some_and(|given| same(given, token)) {
                return Answer::Refused(
                    403,
                    "the address that was printed has a token, which is needed",
                );
            }
        }
        answer
    }

    /// Whether a `Host` is this server's.
    fn is_own(&self, host: &str) -> bool {
        let plain = |c: u8| c.is_ascii_alphanumeric() || b".-:[]".contains(&c);
        if host.is_empty() || host.len() > 255 || !host.bytes().all(plain) {
            return false;
        }
        let port = format!(":{}", self.address.port());
        let bare = host.strip_suffix(&port);
        let bare = bare.or_else(|| (self.address.port() == 80).then_some(host));
        let Some(name) = bare else { return false };
        match self.address.ip().is_loopback() {
            true => ["localhost", "127.0.0.1", "[::1]"].contains(&name) || self.is_address(name),
            // All addresses of this machine: the token is what counts.
            false if self.address.ip().is_unspecified() => true,
            false => self.is_address(name),
        }
    }

    fn is_address(&self, name: &str) -> bool {
        let name = name.trim_start_matches('[').trim_end_matches(']');
        name.parse() == Ok(self.address.ip())
    }
}

/// Compares in a time that does not tell where two texts differ.
fn same(a: &str, b: &str) -> bool {
    let differs = a.bytes().zip(b.bytes()).fold(0, |d, (a, b)| d | (a ^ b));
    a.len() == b.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(gate: &Gate, target: &str, host: &str, origin: &str) -> Answer {
        let some = |text| Some(text).filter(|t: &&str| !t.is_empty());
        gate.judge(&Asked { target, host: some(host), origin: some(origin) })
    }

    fn refused(answer: Answer) -> bool {
        matches!(answer, Answer::Refused(..))
    }

    #[test]
    fn a_page_of_another_origin_and_a_foreign_name_are_refused() {
        let gate = Gate::new("127.0.0.1:8123".parse().unwrap(), false).unwrap();
        let own = "127.0.0.1:8123";
        assert_eq!(judge(&gate, "/", own, ""), Answer::Page);
        assert_eq!(judge(&gate, "/?x", "localhost:8123", "http://localhost:8123"), Answer::Page);
        assert_eq!(judge(&gate, "/live", own, "http://127.0.0.1:8123"), Answer::Live);
        for (target, host, origin) in [
            ("/live", own, "http://evil.example"),
            ("/live", own, "https://127.0.0.1:8123"),
            ("/live", own, "null"),
            ("/live", own, ""),
            ("/", "evil.example:8123", ""),
            ("/", "127.0.0.1:8124", ""),
            ("/", "127.0.0.1", ""),
            ("/", "", ""),
            ("/", "127.0.0.1:8123\"><script>", ""),
            ("/config.toml", own, ""),
            ("/../config.toml", own, ""),
            ("//etc/passwd", own, ""),
            ("/live/", own, "http://127.0.0.1:8123"),
        ] {
            assert!(refused(judge(&gate, target, host, origin)), "{target} {host} {origin}");
        }
    }

    #[test]
    fn an_address_that_others_reach_needs_the_token() {
        let shared = Gate::new("127.0.0.1:8123".parse().unwrap(), true).unwrap();
        assert!(refused(judge(&shared, "/", "127.0.0.1:8123", "")));
        let with = format!("/?token={}", shared.token().unwrap());
        assert_eq!(judge(&shared, &with, "127.0.0.1:8123", ""), Answer::Page);
        let gate = Gate::new("0.0.0.0:8123".parse().unwrap(), false).unwrap();
        let token = gate.token().unwrap().to_string();
        assert_eq!(token.len(), 2 * TOKEN);
        let other = Gate::new("0.0.0.0:8123".parse().unwrap(), false).unwrap();
        assert_ne!(other.token().unwrap(), token);
        let host = "robots.local:8123";
        let with = |t: &str| judge(&gate, &format!("/?token={t}"), host, "");
        assert_eq!(with(&token), Answer::Page);
        for bad in ["", "x", &token[1..], &format!("{token}0")] {
            assert!(refused(with(bad)), "{bad}");
        }
        assert!(refused(judge(&gate, "/", host, "")));
        let live = format!("/live?token={token}");
        assert_eq!(judge(&gate, &live, host, "http://robots.local:8123"), Answer::Live);
        assert!(refused(judge(&gate, &live, host, "http://evil.example")));
    }
}
