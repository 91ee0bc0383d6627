//! Those who look: what they are told, and what they wish.
//!
//! Nothing waits here without bounds. Of rows and of the status everybody gets the newest alone;
//! wishes and complaints of each have a place for [`WAITING`] of them, and whoever sends more is
//! not read until there is room.

use super::{Status, Wish};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tungstenite::{Bytes, Message, Utf8Bytes};

/// Wishes and complaints of one that wait at most.
const WAITING: usize = 8;
/// Characters that somebody is told of an error at most.
const COMPLAINT: usize = 2000;

/// Everybody who looks.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lookers: Vec<Looker>,
    /// Names of lookers that were given.
    named: u64,
    /// Index of the looker who is asked first.
    next: usize,
    row: News<Bytes>,
    status: News<Utf8Bytes>,
}

/// The newest of its kind, and how many there were.
#[derive(Debug, Default)]
struct News<T> {
    count: u64,
    newest: T,
}

impl<T: Clone> News<T> {
    fn put(&mut self, newest: T) {
        self.count += 1;
        self.newest = newest;
    }

    /// The newest, if it is newer than the one that was `seen`.
    fn since(&self, seen: &mut u64) -> Option<T> {
        let newer = self.count > *seen;
        *seen = self.count;
        newer.then(|| self.newest.clone())
    }
}

/// One who looks.
#[derive(Debug)]
struct Looker {
    name: u64,
    wishes: VecDeque<Wish>,
    told: VecDeque<Utf8Bytes>,
}

impl Looker {
    fn tell(&mut self, text: Utf8Bytes) {
        // One that complains faster than it reads knows enough.
        if self.told.len() < WAITING {
            self.told.push_back(text);
        }
    }
}

impl Audience {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place among those who look.
    pub(crate) fn join(self: &Arc<Self>) -> Seat {
        let mut state = self.lock();
        state.named += 1;
        let name = state.named;
        state.lookers.push(Looker { name, wishes: VecDeque::new(), told: VecDeque::new() });
        Seat { audience: Arc::clone(self), name, row: state.row.count, status: 0 }
    }

    /// How many look.
    pub(crate) fn count(&self) -> usize {
        self.lock().lookers.len()
    }

    /// At most so many wishes, one of each who has some in turn; the next call goes on with the
    /// one behind.
    pub(crate) fn wishes(&self, most: usize) -> Vec<(u64, Wish)> {
        let mut state = self.lock();
        let mut taken = Vec::new();
        while taken.len() < most {
            let n = state.lookers.len();
            let mut order = (0..n).map(|k| (state.next + k) % n);
            let Some(at) = order.find(|&i| !state.lookers[i].wishes.is_empty()) else {
                break;
            };
            state.next = at + 1;
            let looker = &mut state.lookers[at];
            taken.extend(looker.wishes.pop_front().map(|wish| (looker.name, wish)));
        }
        taken
    }

    /// Sends a row to everybody.
    pub(crate) fn row(&self, row: Bytes) {
        self.lock().row.put(row);
        self.news.notify_all();
    }

    /// Sends a status to everybody.
    pub(crate) fn status(&self, status: &Status) {
        if let Ok(text) = serde_json::to_string(status) {
            self.lock().status.put(text.into());
            self.news.notify_all();
        }
    }

    /// Tells one of an error, or everybody.
    pub(crate) fn complain(&self, to: Option<u64>, why: &str) {
        let error = super::short(why, COMPLAINT);
        let text = Utf8Bytes::from(serde_json::json!({ "error": error }).to_string());
        let mut state = self.lock();
        for looker in &mut state.lookers {
            if to.is_none_or(|name| name == looker.name) {
                looker.tell(text.clone());
            }
        }
        drop(state);
        self.news.notify_all();
    }
}

/// The place of one who looks, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    audience: Arc<Audience>,
    name: u64,
    /// Rows and statuses that there were when the last one was taken.
    row: u64,
    status: u64,
}

impl Seat {
    /// What to send next.
    pub(crate) fn news(&mut self) -> Option<Message> {
        let mut state = self.audience.lock();
        let looker = state.lookers.iter_mut().find(|l| l.name == self.name);
        if let Some(text) = looker.and_then(|l| l.told.pop_front()) {
            return Some(Message::Text(text));
        }
        if let Some(text) = state.status.since(&mut self.status) {
            return Some(Message::Text(text));
        }
        state.row.since(&mut self.row).map(Message::Binary)
    }

    /// Waits for news, but not longer than this.
    pub(crate) fn wait(&self, most: Duration) {
        let state = self.audience.lock();
        let nothing = |state: &mut State| {
            let looker = state.lookers.iter().find(|l| l.name == self.name);
            looker.is_none_or(|l| l.told.is_empty())
                && state.row.count == self.row
                && state.status.count == self.status
        };
        let news = &self.audience.news;
        drop(news.wait_timeout_while(state, most, nothing));
    }

    /// Whether another wish has room.
    pub(crate) fn has_room(&self) -> bool {
        let state = self.audience.lock();
        let looker = state.lookers.iter().find(|l| l.name == self.name);
        looker.is_some_and(|l| l.wishes.len() < WAITING)
    }

    /// Whether all wishes have been taken.
    pub(crate) fn is_heard(&self) -> bool {
        let state = self.audience.lock();
        let looker = state.lookers.iter().find(|l| l.name == self.name);
        looker.is_none_or(|l| l.wishes.is_empty())
    }

    /// A wish; ask first whether there is room.
    pub(crate) fn wish(&self, wish: Wish) {
        let mut state = self.audience.lock();
        let looker = state.lookers.iter_mut().find(|l| l.name == self.name);
        if let Some(looker) = looker {
            looker.wishes.push_back(wish);
        }
    }

    /// A complaint to this one.
    pub(crate) fn complain(&self, why: &str) {
        self.audience.complain(Some(self.name), why);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.audience.lock();
        if let Some(at) = state.lookers.iter().position(|l| l.name == self.name) {
            state.lookers.remove(at);
            // The turn stays whose it is.
            state.next -= usize::from(at < state.next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_taken_in_turn_and_one_cannot_take_all_turns() {
        let audience = Arc::new(Audience::default());
        let (loud, quiet) = (audience.join(), audience.join());
        let speed = |factor: f64| Wish::Speed { factor };
        let fill = || {
            let mut n = 0;
            while loud.has_room() {
                loud.wish(speed(f64::from(n)));
                n += 1;
            }
            n
        };
        assert_eq!(fill(), WAITING as i32);
        quiet.wish(Wish::Reset {});
        let taken = audience.wishes(3);
        assert_eq!(
            taken,
            [(loud.name, speed(0.0)), (quiet.name, Wish::Reset {}), (loud.name, speed(1.0))]
        );
        // Whose turn it is stays when somebody comes or goes, and when one has more than all.
        fill();
        quiet.wish(Wish::Reset {});
        assert_eq!(audience.wishes(1), [(quiet.name, Wish::Reset {})]);
        drop(loud);
        quiet.wish(Wish::Reset {});
        assert_eq!(audience.wishes(16), [(quiet.name, Wish::Reset {})]);
        assert!(quiet.is_heard() && audience.wishes(16).is_empty());
    }

    #[test]
    fn one_that_reads_nothing_holds_the_newest_alone() {
        let audience = Arc::new(Audience::default());
        let mut seat = audience.join();
        for i in 0..1000_u32 {
            audience.row(Bytes::copy_from_slice(&i.to_le_bytes()));
            audience.status(&Status { shown: i.to_string(), ..Status::default() });
            seat.complain(&"x".repeat(15_000));
        }
        let mut got = Vec::new();
        while let Some(message) = seat.news() {
            got.push(message);
        }
        assert_eq!(got.len(), WAITING + 2);
        let longest = got.iter().map(Message::len).max().unwrap();
        assert!(longest < COMPLAINT + 100, "{longest}");
        assert!(matches!(&got[WAITING], Message::Text(t) if t.contains("999")));
        let row = 999_u32.to_le_bytes();
        assert!(matches!(&got[WAITING + 1], Message::Binary(b) if b[..] == row));
    }
}
