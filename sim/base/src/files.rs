//! Files that may lie in a folder which somebody else filled.
//!
//! A run, a robot or a cache from elsewhere may hold links to files outside of it, devices and
//! pipes. Only regular files are read. A file is written under its very name: never through a
//! link, never where it has a second name.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use tempfile::NamedTempFile;

/// Permissions of files that others may read, where the user's mask lets them.
pub const SHARED: u32 = 0o666;
/// Permissions of files for this user alone.
pub const PRIVATE: u32 = 0o600;

/// Opens a regular file to be read; a link to one will do.
///
/// # Errors
/// The system's; it is a folder, a device, a pipe or a socket (`InvalidInput`).
pub fn open(path: &Path) -> Result<File> {
    // Opening a pipe would wait for whoever writes into it.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(not_opened)?;
    regular(&file)?;
    Ok(file)
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open`]; it is larger (`FileTooLarge`); there is no memory for it (`OutOfMemory`).
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    let too_large = || {
        let why = format!("it has more than {most} bytes, the most that is read");
        Error::new(ErrorKind::FileTooLarge, why)
    };
    if length > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let room = usize::try_from(length).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(room).map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
    // It may grow meanwhile.
    match at_most(most, file, &mut bytes)? {
        true => Ok(bytes),
        false => Err(too_large()),
    }
}

/// Reads to the end, if that comes within `most` bytes; else one more, and whether it did.
fn at_most(most: u64, from: impl Read, bytes: &mut Vec<u8>) -> Result<bool> {
    from.take(most.saturating_add(1)).read_to_end(bytes)?;
    Ok(bytes.len() as u64 <= most)
}

/// The last bytes of a regular file, `most` at the most, and whether they are all of it.
///
/// # Errors
/// As [`open`].
pub fn end_of(path: &Path, most: u64) -> Result<(Vec<u8>, bool)> {
    let mut file = open(path)?;
    let from = file.metadata()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok((bytes, from == 0))
}

/// As [`read`], for text.
///
/// # Errors
/// As [`read`]; it is not UTF-8 (`InvalidData`).
pub fn read_text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(read(path, most)?).map_err(|e| Error::new(ErrorKind::InvalidData, e))
}

/// Opens a file to append to it and to read it; makes it where there is none.
///
/// # Errors
/// The system's; the name is a link's, a file's with another name, or no regular file's
/// (`InvalidInput`).
pub fn append(path: &Path) -> Result<File> {
    own(OpenOptions::new().create(true).read(true).append(true), path)
}

/// Opens a file to read and write it in place; makes it where there is none.
///
/// # Errors
/// As [`append`].
pub fn update(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    own(options.create(true).truncate(false).read(true).write(true), path)
}

fn own(options: &mut OpenOptions, path: &Path) -> Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = options.custom_flags(flags).open(path);
    let file = opened.map_err(|e| match e.raw_os_error() {
        Some(libc::ELOOP) => refused(THROUGH),
        _ => not_opened(e),
    })?;
    regular(&file)?;
    match file.metadata()?.nlink() {
        0 | 1 => Ok(file),
        _ => Err(refused(
            "it has another name (a hard link), which would change with it; put a copy in its place",
        )),
    }
}

const THROUGH: &str = "it is a link, which is not written through";
const NO_FILE: &str = "it is a device, a pipe or a socket, not a file";

/// The system's errors for a socket, and of a pipe that nobody reads, in plain words.
fn not_opened(e: Error) -> Error {
    match e.raw_os_error() {
        Some(libc::ENXIO) => refused(NO_FILE),
        _ => e,
    }
}

fn regular(file: &File) -> Result<()> {
    let kind = file.metadata()?.file_type();
    match kind.is_file() {
        true => Ok(()),
        false if kind.is_dir() => Err(refused("it is a folder, not a file")),
        false => Err(refused(NO_FILE)),
    }
}

/// Puts a file's name before its error, for callers that know its folder alone.
pub fn named(path: &Path) -> impl FnOnce(Error) -> Error + '_ {
    move |e| {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Error::new(e.kind(), format!("{}: {e}", name.display()))
    }
}

fn refused(why: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, why.to_string())
}

/// Puts a file in the place of whatever has this name, whole: after a crash the old or the
/// new one is there. A link of this name is replaced, not followed. `mode` is its
/// permissions before the user's mask.
///
/// # Errors
/// The system's; nothing is left of the new file then.
pub fn replace(path: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
    replace_with(path, mode, |file| file.write_all(bytes))
}

/// As [`replace`]; `put` writes the file.
///
/// # Errors
/// As [`replace`], and what `put` gives.
pub fn replace_with(
    path: &Path,
    mode: u32,
    put: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let mut new = NewFile::replacing(path, mode)?;
    put(new.file_mut())?;
    new.finish()
}

/// Makes a file that is not there yet.
///
/// # Errors
/// The system's: the name is taken, if only by a link (`AlreadyExists`).
pub fn create(path: &Path) -> Result<File> {
    File::create_new(path)
}

/// As [`create`], with `bytes` in it.
///
/// # Errors
/// As [`create`].
pub fn create_with(path: &Path, bytes: &[u8]) -> Result<()> {
    create(path)?.write_all(bytes)
}

/// Makes a folder and those above it, unless it is there. Its own name may not be a link's.
///
/// # Errors
/// The system's; the name is a link's (`InvalidInput`).
pub fn own_folder(path: &Path) -> Result<()> {
    match path.is_symlink() {
        true => Err(refused(THROUGH)),
        false => std::fs::create_dir_all(path),
    }
}

/// A file in the making, which is put in the place of whatever has its name once it is whole;
/// nothing is left of it otherwise.
#[derive(Debug)]
pub struct NewFile {
    made: Made,
    path: PathBuf,
}

#[derive(Debug)]
enum Made {
    Aside(NamedTempFile),
    /// A device or a pipe, written as it is.
    Stream(File),
}

impl NewFile {
    /// Begins what [`replace`] does. `mode`: its permissions before the user's mask.
    ///
    /// # Errors
    /// The system's.
    pub fn replacing(path: &Path, mode: u32) -> Result<Self> {
        // A name that nobody can foresee, and a file that is new.
        let new =
            temporary().permissions(Permissions::from_mode(mode)).tempfile_in(folder_of(path))?;
        Ok(Self { made: Made::Aside(new), path: path.to_path_buf() })
    }

    /// Begins a file under a name that the user gave: it may be that of a device, a pipe or an
    /// open file of this process (`/dev/stdout`), which are written into. A file of the user's
    /// that is replaced leaves its permissions.
    ///
    /// # Errors
    /// The system's.
    pub fn output(path: &Path) -> Result<Self> {
        if let Some(stream) = stream(path)? {
            return Ok(Self { made: Made::Stream(stream), path: path.to_path_buf() });
        }
        let new = Self::replacing(path, SHARED)?;
        let old = path.symlink_metadata().ok().filter(|m| m.is_file());
        let file = new.file();
        if let Some(old) = old
            && old.uid() == file.metadata()?.uid()
        {
            file.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
        }
        Ok(new)
    }

    fn file(&self) -> &File {
        match &self.made {
            Made::Aside(new) => new.as_file(),
            Made::Stream(file) => file,
        }
    }

    fn file_mut(&mut self) -> &mut File {
        match &mut self.made {
            Made::Aside(new) => new.as_file_mut(),
            Made::Stream(file) => file,
        }
    }

    /// Ends it: the file has its name now.
    ///
    /// # Errors
    /// The system's; nothing is left of the new file then.
    pub fn finish(self) -> Result<()> {
        let Made::Aside(new) = self.made else {
            return Ok(());
        };
        new.as_file().sync_all()?;
        new.persist(&self.path).map_err(|e| e.error)?;
        File::open(folder_of(&self.path))?.sync_all()
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file_mut().write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file_mut().flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.file_mut().seek(to)
    }
}

/// Writes `bytes` into what the user named: see [`NewFile::output`].
///
/// # Errors
/// The system's.
pub fn output(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut new = NewFile::output(path)?;
    new.write_all(bytes)?;
    new.finish()
}

/// A device, a pipe or an open file of this process, if that is what `path` names itself, not
/// by a link of somebody's.
fn stream(path: &Path) -> Result<Option<File>> {
    let own = ["/dev/stdout", "/dev/stderr"].map(Path::new).contains(&path)
        || ["/dev/fd", "/proc/self/fd"].map(Path::new).contains(&folder_of(path));
    let mut options = OpenOptions::new();
    options.write(true);
    if own {
        return options.truncate(true).open(path).map(Some);
    }
    let kind = path.symlink_metadata().map(|m| m.file_type());
    if !kind.is_ok_and(|k| k.is_char_device() || k.is_fifo()) {
        return Ok(None);
    }
    let flags = libc::O_NOFOLLOW | libc::O_NOCTTY;
    let file = options.custom_flags(flags).open(path)?;
    // It may be another one by now.
    match file.metadata()?.is_file() {
        true => Err(refused("it changed while it was opened")),
        false => Ok(Some(file)),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Gives a file a second name, in the place of whatever has that name; copies it where the
/// file system has no hard links.
///
/// # Errors
/// The system's.
pub fn replace_by_link(original: &Path, path: &Path) -> Result<()> {
    let made = temporary().make_in(folder_of(path), |new| {
        std::fs::hard_link(original, new).or_else(|e| match e.kind() {
            ErrorKind::AlreadyExists => Err(e),
            _ => {
                let mut from = open(original)?;
                std::io::copy(&mut from, &mut create(new)?).map(|_| ())
            }
        })
    })?;
    made.into_temp_path().persist(path).map_err(|e| e.error)
}

fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(12);
    builder
}

const PREFIX: &str = ".new-";
const SUFFIX: &str = ".tmp";

/// Whether a file of this name is one that [`replace`] had not finished.
pub fn is_leftover(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// Removes the leftovers of a process that was killed while it replaced a file in this folder.
pub fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_leftover(&entry.file_name()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A path from the root without `.` and `..`; each `..` takes the name before it off, wherever
/// a link of that name leads.
pub fn plain(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut plain = PathBuf::new();
    for part in whole.components() {
        match part {
            // Above the root is the root.
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Whether a path is one in a folder, links followed. Of what is not there, its name says so.
pub fn lies_within(path: &Path, folder: &Path) -> bool {
    let here = Path::new(".");
    let folder = match folder.as_os_str().is_empty() {
        true => here,
        false => folder,
    };
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => plain(path).starts_with(plain(folder)),
    }
}

/// The first link below a folder, in it and in its folders; links are not followed, nor are
/// folders deeper than `depth`.
pub fn link_below(folder: &Path, depth: u32) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_symlink() {
            return Some(entry.path());
        }
        if kind.is_dir() && depth > 0 {
            let found = link_below(&entry.path(), depth - 1);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// A new folder in the system's temporary one, for this user alone, which goes with the
/// value. `what` is part of its name.
///
/// # Errors
/// The system's.
pub fn scratch(what: &str) -> Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix(&format!("ostler-{what}-"))
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}

/// The open file that a process of this machine knows by a number, to read and write: what it
/// says of itself, so no name that a stranger can lay a link under.
///
/// # Errors
/// It has none of this number, or may not be asked.
pub fn of_process(pid: i64, number: i64) -> Result<File> {
    OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/fd/{number}"))
}

/// A file in memory; `flags` beyond `MFD_CLOEXEC` are `memfd_create`'s.
///
/// # Errors
/// The system's.
pub fn unnamed(flags: libc::c_uint) -> Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: the name is a C string; the kernel copies it.
    let fd = unsafe { libc::memfd_create(c"ostler".as_ptr(), libc::MFD_CLOEXEC | flags) };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that nothing else owns.
    Ok(unsafe { File::from_raw_fd(fd) })
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
