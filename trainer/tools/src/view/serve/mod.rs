//! A page that is served, and rows that go to everybody who looks at it.
//!
//! Two things are answered: the page itself, and the WebSocket beside it. Neither names a file.
//! A browser is answered where it asked for this server by its own address and shows a page of
//! its own ([`gate`]); from addresses of other machines, and where others use this one, also a
//! token is needed. Whoever may look may not take what others need: connections (`door`), what
//! waits for each (`audience`: less than 1 MiB, 32 MiB for the 32 that there may be), turns
//! and time (`client`) have bounds.

mod audience;
mod client;
mod door;
pub mod gate;
mod users;
mod wish;

pub use wish::{Status, Wish};

use audience::Audience;
use door::Door;
use gate::Gate;
use std::borrow::Cow;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a row at most; as many of the other numbers a connection holds follow from it.
const ROW: usize = 256 << 10;
/// Time before the next connection is taken where the system has no room for one.
const PAUSE: Duration = Duration::from_millis(100);

/// A server that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, not this machine's, or not allowed.
    #[error(
        "cannot listen on {address}: {reason}; --serve ADDRESS:PORT takes another, port 0 any that is free"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        reason: String,
    },
    /// A robot or a task that is too large for it.
    #[error(
        "a moment of this robot has {width} numbers, and --serve sends {most} at most; --html FILE \
         records it"
    )]
    Wide {
        /// Numbers of a row.
        width: usize,
        /// The most.
        most: usize,
    },
    /// No random numbers for a token.
    #[error("the system gives no random numbers for a token: {0}")]
    Token(String),
}

/// A server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    gate: Arc<Gate>,
    audience: Arc<Audience>,
}

impl Server {
    /// Serves `page`, in which `@HOST@` stands for the host that was asked for, and rows of
    /// `width` numbers.
    ///
    /// # Errors
    /// The address cannot be listened on; rows are too long.
    pub fn open(address: SocketAddr, page: &str, width: usize) -> Result<Self, ServeError> {
        let most = ROW / size_of::<f32>();
        if width > most {
            return Err(ServeError::Wide { width, most });
        }
        let failed = |e: std::io::Error| ServeError::Listen { address, reason: e.to_string() };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let gate = Arc::new(Gate::new(address, users::others())?);
        let audience = Arc::new(Audience::default());
        let (before, after) = page.split_once("@HOST@").unwrap_or((page, ""));
        let shared = Arc::new(Shared {
            gate: Arc::clone(&gate),
            audience: Arc::clone(&audience),
            page: (before.into(), after.into()),
        });
        std::thread::Builder::new()
            .name("serve".into())
            .spawn(move || accept(&listener, &shared))
            .map_err(failed)?;
        Ok(Self { address, gate, audience })
    }

    /// What to open in a browser.
    pub fn url(&self) -> String {
        match self.gate.token() {
            Some(token) => format!("http://{}/?token={token}", self.address),
            None => format!("http://{}/", self.address),
        }
    }

    /// At most so many of the wishes that came, each with the name of who wished it: one of each
    /// browser in turn.
    pub fn wishes(&self, most: usize) -> Vec<(u64, Wish)> {
        self.audience.wishes(most)
    }

    /// How many look.
    pub fn lookers(&self) -> usize {
        self.audience.count()
    }

    /// Sends a row of numbers to everybody.
    pub fn row(&self, row: &[f32]) {
        let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.audience.row(bytes.into());
    }

    /// Sends a status to everybody.
    pub fn status(&self, status: &Status) {
        self.audience.status(status);
    }

    /// Tells one browser, or all, of what cannot be.
    pub fn complain(&self, to: Option<u64>, why: &str) {
        self.audience.complain(to, why);
    }
}

/// What threads of connections need.
#[derive(Debug)]
struct Shared {
    gate: Arc<Gate>,
    audience: Arc<Audience>,
    /// Before and behind the host's name.
    page: (String, String),
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let door = Arc::new(Door::default());
    for stream in listener.incoming() {
        let visit = stream.and_then(|s| Ok((door.enter(&s)?, s)));
        let Ok((visit, stream)) = visit else {
            std::thread::sleep(PAUSE);
            continue;
        };
        let own = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("serve one".into());
        let spawned = thread.spawn(move || {
            // Whatever goes wrong with one browser is over when it is gone.
            if let Err(e) = client::answer(stream, visit, &own) {
                tracing::debug!("a browser: {e}");
            }
        });
        if spawned.is_err() {
            std::thread::sleep(PAUSE);
        }
    }
}

/// At most so many characters of a text that may be anything.
pub fn short(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some(_) => {
            let kept = text.chars().take(most.saturating_sub(3));
            kept.chain("...".chars()).collect::<String>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(short("ééééé", 5), "ééééé");
        assert_eq!(short("éééééé", 5), "éé...");
    }
}
