//! Who is let in: many at a time, and of those that have not asked for anything yet a few.
//!
//! A connection that says nothing costs nothing to make. So it never takes the place of one that
//! asks: the oldest silent one goes when the next one comes.

use std::io::Result;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections that are answered at a time.
const GUESTS: usize = 32;
/// Connections without a valid request at a time: in all, and of one address.
const STRANGERS: usize = 32;
const OF_ONE: usize = 4;

/// The connections there are.
#[derive(Debug, Default)]
pub(crate) struct Door(Mutex<Crowd>);

#[derive(Debug, Default)]
struct Crowd {
    numbered: u64,
    /// The oldest first.
    strangers: Vec<Stranger>,
    guests: usize,
}

#[derive(Debug)]
struct Stranger {
    number: u64,
    peer: IpAddr,
    stream: TcpStream,
}

impl Door {
    fn lock(&self) -> MutexGuard<'_, Crowd> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection has come.
    ///
    /// # Errors
    /// The system has no more files.
    pub(crate) fn enter(self: &Arc<Self>, stream: &TcpStream) -> Result<Visit> {
        let peer = stream.peer_addr()?.ip().to_canonical();
        let stream = stream.try_clone()?;
        let mut crowd = self.lock();
        let of_one = crowd.strangers.iter().filter(|s| s.peer == peer).count();
        let leaves = match of_one >= OF_ONE {
            true => crowd.strangers.iter().position(|s| s.peer == peer),
            false => (crowd.strangers.len() >= STRANGERS).then_some(0),
        };
        if let Some(at) = leaves {
            // Its thread wakes up and ends.
            let _ = crowd.strangers.remove(at).stream.shutdown(Shutdown::Both);
        }
        crowd.numbered += 1;
        let number = crowd.numbered;
        crowd.strangers.push(Stranger { number, peer, stream });
        Ok(Visit { door: Arc::clone(self), number, is_guest: false })
    }
}

/// A connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Visit {
    door: Arc<Door>,
    number: u64,
    is_guest: bool,
}

impl Visit {
    /// It has asked for something that it may have; whether there is a place.
    pub(crate) fn admit(&mut self) -> bool {
        let mut crowd = self.door.lock();
        let stranger = crowd.strangers.iter().position(|s| s.number == self.number);
        self.is_guest = stranger.is_some() && crowd.guests < GUESTS;
        if let (Some(at), true) = (stranger, self.is_guest) {
            crowd.strangers.remove(at);
            crowd.guests += 1;
        }
        self.is_guest
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut crowd = self.door.lock();
        match self.is_guest {
            true => crowd.guests -= 1,
            false => crowd.strangers.retain(|s| s.number != self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read as _};
    use std::net::TcpListener;
    use std::time::Duration;

    fn is_open(mut stream: &TcpStream) -> bool {
        let wait = Some(Duration::from_millis(20));
        stream.set_read_timeout(wait).unwrap();
        let read = stream.read(&mut [0]);
        read.is_err_and(|e| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    #[test]
    fn a_silent_connection_gives_way_to_the_next_and_an_answered_one_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let door = Arc::new(Door::default());
        let come = || {
            let outside = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let inside = listener.accept().unwrap().0;
            let visit = door.enter(&inside).unwrap();
            (outside, inside, visit)
        };
        let mut first = come();
        assert!(first.2.admit());
        let others: Vec<_> = (0..OF_ONE + 2).map(|_| come()).collect();
        let open: Vec<bool> = others.iter().map(|c| is_open(&c.0)).collect();
        assert_eq!(open, [false, false, true, true, true, true]);
        assert!(is_open(&first.0));
        let mut gone = others;
        assert!(!gone[0].2.admit(), "its place is somebody else's");
        assert!(gone[5].2.admit());
        drop(gone);
        let mut guests = vec![first];
        loop {
            let mut next = come();
            if !next.2.admit() {
                break;
            }
            guests.push(next);
        }
        assert_eq!(guests.len(), GUESTS);
        guests.pop();
        assert!(come().2.admit());
    }
}
