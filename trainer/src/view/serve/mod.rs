//! A page that is served, and rows that go to everybody who looks at it.
//!
//! Two things are answered: the page itself, and the WebSocket beside it. Neither names a file.
//! A browser is answered where it asked for this server by its own address and shows a page of
//! its own ([`gate`]); from addresses of other machines also a token is needed.

mod client;
pub mod gate;
mod wish;

pub use wish::{Status, Wish};

use client::Message;
use gate::Gate;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Browsers that are connected at most.
const CLIENTS: usize = 32;
/// Messages that may wait for a slow one; rows beyond are left out.
const WAITING: usize = 4;

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
    /// No random numbers for a token.
    #[error("the system gives no random numbers for a token: {0}")]
    Token(String),
}

/// Everybody who looks.
#[derive(Debug, Default)]
struct Audience {
    clients: Mutex<Vec<SyncSender<Arc<Message>>>>,
    connections: AtomicUsize,
}

/// A server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    gate: Arc<Gate>,
    audience: Arc<Audience>,
    wishes: Receiver<Wish>,
}

impl Server {
    /// Serves `page`, in which `@HOST@` stands for the host that was asked for.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn open(address: SocketAddr, page: String) -> Result<Self, ServeError> {
        let failed = |e: std::io::Error| ServeError::Listen {
            address,
            reason: e.to_string(),
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let gate = Arc::new(Gate::new(address)?);
        let audience = Arc::new(Audience::default());
        let (say, wishes) = channel();
        let shared = Arc::new(Shared {
            gate: Arc::clone(&gate),
            audience: Arc::clone(&audience),
            page,
        });
        std::thread::Builder::new()
            .name("serve".into())
            .spawn(move || accept(&listener, &shared, &say))
            .map_err(failed)?;
        Ok(Self {
            address,
            gate,
            audience,
            wishes,
        })
    }

    /// What to open in a browser.
    pub fn url(&self) -> String {
        match self.gate.token() {
            Some(token) => format!("http://{}/?token={token}", self.address),
            None => format!("http://{}/", self.address),
        }
    }

    /// What browsers wished since the last call.
    pub fn wishes(&self) -> impl Iterator<Item = Wish> + '_ {
        self.wishes.try_iter()
    }

    /// How many look.
    pub fn lookers(&self) -> usize {
        let clients = self.audience.clients.lock();
        clients.unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Sends a row of numbers to everybody.
    pub fn row(&self, row: &[f32]) {
        let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.send(Message::Row(bytes));
    }

    /// Sends a status to everybody.
    pub fn status(&self, status: &Status) {
        self.text(serde_json::to_string(status));
    }

    /// Tells everybody of a wish that cannot be fulfilled.
    pub fn complain(&self, why: &str) {
        self.text(serde_json::to_string(&serde_json::json!({ "error": why })));
    }

    fn text(&self, text: serde_json::Result<String>) {
        if let Ok(text) = text {
            self.send(Message::Text(text));
        }
    }

    fn send(&self, message: Message) {
        let message = Arc::new(message);
        let clients = self.audience.clients.lock();
        let mut clients = clients.unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| {
            let sent = client.try_send(Arc::clone(&message));
            !matches!(sent, Err(TrySendError::Disconnected(_)))
        });
    }
}

/// What threads of connections need.
#[derive(Debug)]
struct Shared {
    gate: Arc<Gate>,
    audience: Arc<Audience>,
    page: String,
}

impl Shared {
    /// A place among those who look.
    fn join(&self) -> Receiver<Arc<Message>> {
        let (to, from) = sync_channel(WAITING);
        let clients = self.audience.clients.lock();
        clients.unwrap_or_else(PoisonError::into_inner).push(to);
        from
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, say: &Sender<Wish>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let count = &shared.audience.connections;
        if count.fetch_add(1, Ordering::Relaxed) >= CLIENTS {
            count.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (own, say) = (Arc::clone(shared), say.clone());
        let thread = std::thread::Builder::new().name("serve one".into());
        let spawned = thread.spawn(move || {
            // Whatever goes wrong with one browser is over when it is gone.
            if let Err(e) = client::answer(stream, &own, &say) {
                tracing::debug!("a browser: {e}");
            }
            own.audience.connections.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
