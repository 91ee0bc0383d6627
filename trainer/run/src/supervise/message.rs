//! Messages of the training process to the one that watches it: one JSON object a line,
//! through a pipe.
//!
//! The run comes first: a message that does not fit into the pipe is dropped, and a
//! reader that is gone is ignored.

use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A write of so many bytes into a pipe happens whole or not at all (`PIPE_BUF`).
const WHOLE: usize = 4096;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The run's folder, absolute.
    Folder(PathBuf),
    /// Environments now.
    NumEnvs(usize),
    /// A checkpoint of this iteration is on the disk.
    Saved(u64),
    /// The run is done and its last checkpoint on the disk: this is to be the exit code.
    Done(i32),
    /// How tight memory is.
    Memory {
        /// Name of the level.
        level: String,
        /// Share of the tightest limit in use.
        share: f64,
        /// The limit, in words, with its numbers.
        what: String,
    },
}

/// Tells the supervising process, if there is one.
#[derive(Debug, Clone, Default)]
pub struct Reporter(Option<Arc<OwnedFd>>);

impl Reporter {
    /// Through the writing end of a pipe that does not block.
    pub(super) fn new(pipe: OwnedFd) -> Self {
        Self(Some(Arc::new(pipe)))
    }

    /// Whether anybody listens.
    pub fn supervised(&self) -> bool {
        self.0.is_some()
    }

    /// Says something; never waits, never fails.
    pub fn say(&self, message: &Message) {
        let Some(pipe) = &self.0 else { return };
        let Ok(mut line) = serde_json::to_vec(message) else {
            return;
        };
        line.push(b'\n');
        if line.len() <= WHOLE {
            let _ = rustix::io::write(pipe, &line);
        }
    }

    /// The folder as the supervising process can use it, wherever it is.
    pub fn folder(&self, path: &Path) {
        if self.supervised() {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
            self.say(&Message::Folder(path));
        }
    }
}

/// Reads lines as they come.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Adds the bytes that were read; gives every whole message to `each`. Other lines are
    /// dropped: the other end may have died in the middle of one.
    pub(crate) fn add(&mut self, bytes: &[u8], mut each: impl FnMut(Message)) {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|&b| b == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            if let Ok(message) = serde_json::from_slice(&line) {
                each(message);
            }
        }
        if self.rest.len() > WHOLE {
            self.rest.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    #[test]
    fn messages_arrive_however_they_are_cut() {
        let all = [
            Message::Folder("/a folder/with\nodd \"signs\"".into()),
            Message::NumEnvs(4096),
            Message::Saved(17),
            Message::Memory { level: "warn".into(), share: 0.9, what: "x".into() },
        ];
        let mut text = Vec::new();
        for m in &all {
            text.extend(serde_json::to_vec(m).unwrap());
            text.push(b'\n');
        }
        for size in [1, 2, 7, 4096] {
            let (mut lines, mut got) = (Lines::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.add(piece, |m| got.push(m));
            }
            assert_eq!(got, all);
        }
        let mut lines = Lines::default();
        let mut got = 0;
        lines.add(b"nonsense\n{\"saved\":3}\n{\"sav", |_| got += 1);
        lines.add(&[b'x'; 9000], |_| got += 1);
        assert!(lines.rest.len() <= WHOLE, "what never ends is not kept");
        lines.add(b"\n{\"saved\":4}\n", |_| got += 1);
        assert_eq!(got, 2);
    }

    #[test]
    fn a_full_pipe_or_a_reader_that_is_gone_stops_nothing() {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
        let reporter = Reporter::new(write);
        for i in 0..100_000 {
            reporter.say(&Message::Saved(i));
        }
        drop(read);
        reporter.say(&Message::Saved(0));
        // Longer than a pipe takes whole.
        reporter.folder(Path::new(&"x".repeat(5000)));
        assert!(!Reporter::default().supervised());
        Reporter::default().say(&Message::Saved(0));
    }
}
