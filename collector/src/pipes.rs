//! Pipes to other programs, of which none is waited for without end.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

/// How long a program may take to end by itself.
const GRACE: Duration = Duration::from_millis(500);
/// How often is looked whether to [give up](ostler_sim::process::gives_up).
const LOOK: Duration = Duration::from_millis(200);

/// A program that is told things over its standard input and says some on its standard output.
/// It ends with this value: its input is closed; one that hangs is killed.
#[derive(Debug)]
pub struct Piped {
    /// The program.
    pub child: Child,
    /// Closed to end it.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    /// Whether waiting for it ends where what is in the making is [given
    /// up](ostler_sim::process::gives_up).
    pub may_be_given_up: bool,
}

impl Piped {
    /// Of a program that was started with pipes for both.
    ///
    /// # Errors
    /// It has none; the system's. The program is ended then.
    pub fn of(mut child: Child) -> Result<Self> {
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::other("has no pipes"));
        };
        let piped =
            Self { child, to: Some(to), from: BufReader::new(from), may_be_given_up: false };
        let to = piped.to.as_ref();
        // Nothing waits for it without end.
        let flags =
            to.map(|to| fcntl_getfl(to).and_then(|f| fcntl_setfl(to, f | OFlags::NONBLOCK)));
        flags.transpose()?;
        Ok(piped)
    }

    /// Writes all of `bytes`, by then or not at all: a program that stands still takes none.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`]; [`ErrorKind::BrokenPipe`] where it is gone.
    pub fn write(&mut self, mut bytes: &[u8], until: Instant) -> Result<()> {
        let Some(to) = &mut self.to else {
            return Err(ErrorKind::BrokenPipe.into());
        };
        while !bytes.is_empty() {
            match to.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    ready(to, PollFlags::OUT, until, self.may_be_given_up)?;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Fills `into`, by then or not at all.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`]; [`ErrorKind::UnexpectedEof`] where it says no more.
    pub fn read(&mut self, mut into: &mut [u8], until: Instant) -> Result<()> {
        while !into.is_empty() {
            if self.from.buffer().is_empty() {
                self.wait(until)?;
            }
            match self.from.read(into) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => into = &mut into[n..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// A line of at most `longest` bytes, with its end.
    ///
    /// # Errors
    /// As [`read`](Self::read); the line is longer.
    pub fn line(&mut self, longest: usize, until: Instant) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        while line.len() < longest {
            if self.from.buffer().is_empty() {
                self.wait(until)?;
            }
            let there = match self.from.fill_buf() {
                Ok([]) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(there) => &there[..there.len().min(longest - line.len())],
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            let end = there.iter().position(|b| *b == b'\n');
            let taken = end.map_or(there.len(), |end| end + 1);
            line.extend_from_slice(&there[..taken]);
            self.from.consume(taken);
            if end.is_some() {
                return Ok(line);
            }
        }
        Err(Error::new(ErrorKind::InvalidData, "wrote a line that is too long"))
    }

    /// Nothing more is written.
    pub fn close(&mut self) {
        self.to = None;
    }

    /// What became of a program whose pipe gave this error.
    pub fn said(&mut self, e: &Error) -> String {
        // One that closes its output ends, but not at once.
        let until = Instant::now() + GRACE;
        while e.kind() == ErrorKind::UnexpectedEof
            && Instant::now() < until
            && matches!(self.child.try_wait(), Ok(None))
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        match (self.child.try_wait(), e.kind()) {
            (Ok(Some(status)), _) => format!("ended: {status}"),
            (_, ErrorKind::UnexpectedEof) => "closed its output".into(),
            _ => e.to_string(),
        }
    }

    /// Until there is something to read.
    fn wait(&self, until: Instant) -> Result<()> {
        let from = self.from.get_ref();
        ready(from, PollFlags::IN, until, self.may_be_given_up)
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.close();
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Until a pipe can be read or written.
fn ready(pipe: &impl AsFd, flags: PollFlags, until: Instant, looks: bool) -> Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let wait = if looks { left.min(LOOK) } else { left };
        let time = Timespec::try_from(wait).ok();
        let mut fds = [PollFd::new(pipe, flags)];
        match poll(&mut fds, time.as_ref()) {
            Ok(0) if looks && ostler_sim::process::gives_up() => {
                return Err(Error::other("was given up"));
            }
            Ok(0) if wait < left => {}
            Ok(0) => return Err(Error::new(ErrorKind::TimedOut, "did not answer in time")),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn shell(text: &str) -> Piped {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Piped::of(command.spawn().unwrap()).unwrap()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn lines_come_back_and_the_end_is_said() {
        let mut echo = shell("read x; echo \"$x $x\"; echo; exit 3");
        echo.write(b"one\n", soon()).unwrap();
        assert_eq!(echo.line(100, soon()).unwrap(), b"one one\n");
        assert_eq!(echo.line(100, soon()).unwrap(), b"\n");
        let e = echo.line(100, soon()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnexpectedEof);
        assert!(echo.said(&e).contains("exit status: 3"), "{}", echo.said(&e));
    }

    #[test]
    fn who_stands_still_is_not_waited_for() {
        let mut hangs = shell("exec sleep 1000");
        let clock = Instant::now();
        let until = clock + Duration::from_millis(100);
        let e = hangs.write(&vec![b'x'; 1 << 20], until).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::TimedOut);
        assert_eq!(hangs.line(10, until).unwrap_err().kind(), ErrorKind::TimedOut);
        drop(hangs);
        assert!(clock.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        let mut flood = shell("yes | tr -d '\\n'");
        let e = flood.line(1000, soon()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidData);
    }
}
