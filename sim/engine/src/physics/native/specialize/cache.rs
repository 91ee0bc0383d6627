//! The folder in which compiled code is kept.

use super::SpecializeError;
use ostler_base::files;
use ostler_base::owner::{Foreign, Trust};
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant, SystemTime};

/// Bytes that entries may take together; the longest unused go first.
pub const SIZE_LIMIT: u64 = 512 << 20;

/// Bytes of one entry's code, at most: kernels take some 100 kB.
const MAX_CODE: u64 = SIZE_LIMIT;
/// Bytes of the file with its hash.
const MAX_CHECKSUM: u64 = 1024;

/// The code of an entry in the cache of kernels for the host.
const LIBRARY: &str = "kernel.so";
/// Ending of an entry's name for that of its hash, in hexadecimal.
const CHECKSUM: &str = ".blake3";
const BUILDING: &str = "building-";
const LOCK: &str = ".lock";

/// A folder of entries `<hash>/`, each renamed there when complete, beside
/// `building-<hash>/` and `<hash>.lock` of compilations.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
    /// The file of an entry that is its code.
    code: &'static str,
    /// Users whose entries count.
    trust: Trust,
}

/// The right to compile one kernel, among all processes.
#[derive(Debug)]
pub(crate) struct Lock {
    key: String,
    _file: File,
}

/// A folder to compile in, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Building<'a> {
    cache: &'a Cache,
    lock: Lock,
    path: PathBuf,
}

impl Cache {
    /// In the folder that the environment names: `OSTLER_CACHE`, else
    /// `XDG_CACHE_HOME/ostler`, else `HOME/.cache/ostler`, there `kernels`.
    ///
    /// # Errors
    /// None of them is set.
    pub fn from_environment(
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SpecializeError> {
        Ok(Self::new(root(variable)?.join("kernels"), SIZE_LIMIT))
    }

    /// Why the folder that the environment names is not the one in use, where that is so.
    pub fn refused(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<SpecializeError> {
        let (_, refused) = trusted(variable).ok()?;
        refused.map(SpecializeError::Distrusted)
    }

    /// In this folder, with so many bytes at most.
    pub fn new(folder: PathBuf, limit: u64) -> Self {
        Self::of(LIBRARY, folder, limit)
    }

    /// Of entries whose code is a file of this name.
    pub(crate) fn of(code: &'static str, folder: PathBuf, limit: u64) -> Self {
        // The compiler runs in a folder of its own.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        // A name that is wrong was said where the folder was looked for.
        let trust = Trust::from_environment(&|name| std::env::var_os(name)).unwrap_or_default();
        Self { folder, limit, code, trust }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The code of an entry, if it is there, whole, and nobody's but a trusted user's: its
    /// file and what is in it.
    pub(crate) fn find(&self, key: &str) -> Result<(PathBuf, Vec<u8>), SpecializeError> {
        // A key comes from files, too: it names nothing outside of the cache.
        if key.len() != 64 || !key.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(SpecializeError::NotCached(key.to_owned()));
        }
        let entry = self.folder.join(key);
        let path = entry.join(self.code);
        let file = match files::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !entry.exists() => {
                return Err(SpecializeError::NotCached(key.to_owned()));
            }
            Err(_) => return Err(SpecializeError::Damaged(path)),
        };
        self.trust.check(&path).map_err(SpecializeError::Distrusted)?;
        // Of the very file that is read, whatever has its name by now.
        let own = file.metadata().map(|m| self.trust.of(&m, false));
        match own {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return Err(SpecializeError::Distrusted(Foreign { path, why })),
            Err(_) => return Err(SpecializeError::Damaged(path)),
        }
        let mut bytes = Vec::new();
        // It may grow meanwhile.
        let read = file.take(MAX_CODE + 1).read_to_end(&mut bytes);
        if read.is_err() || bytes.len() as u64 > MAX_CODE {
            return Err(SpecializeError::Damaged(path));
        }
        let checksum = entry.join(self.checksum());
        let expected = files::read_text(&checksum, MAX_CHECKSUM).unwrap_or_default();
        if expected.trim() != blake3::hash(&bytes).to_hex().as_str() {
            return Err(SpecializeError::Damaged(path));
        }
        // A kernel in use is not old. A cache that cannot be written is as good.
        if let Ok(file) = files::open(&checksum) {
            let _ = file.set_modified(SystemTime::now());
        }
        Ok((path, bytes))
    }

    /// Whether an entry could be made.
    pub(crate) fn check_writable(&self, key: &str) -> Result<(), SpecializeError> {
        self.make_folder()?;
        let path = self.lock_path(key);
        open_lock(&path).map_err(SpecializeError::cache("write", &path))?;
        Ok(())
    }

    fn make_folder(&self) -> Result<(), SpecializeError> {
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(SpecializeError::cache("make", &self.folder))
    }

    /// Waits for the right to compile.
    pub(crate) fn lock(
        &self,
        key: &str,
        waiting: &mut dyn FnMut(Duration) -> ControlFlow<()>,
    ) -> Result<Lock, SpecializeError> {
        self.make_folder()?;
        let path = self.lock_path(key);
        let start = Instant::now();
        loop {
            let file = open_lock(&path).map_err(SpecializeError::cache("write", &path))?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => {
                    return Ok(Lock { key: key.to_owned(), _file: file });
                }
                // Swept away between opening and locking.
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    return Err(SpecializeError::cache("lock", path)(error));
                }
            }
            if waiting(start.elapsed()).is_break() {
                return Err(SpecializeError::Stopped);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// An empty folder to compile in. One that is there was left by a process that
    /// was killed: nobody else holds the lock.
    pub(crate) fn building(&self, lock: Lock) -> Result<Building<'_>, SpecializeError> {
        let path = self.folder.join(format!("{BUILDING}{}", lock.key));
        remove(&path).map_err(SpecializeError::cache("remove", &path))?;
        fs::create_dir(&path).map_err(SpecializeError::cache("make", &path))?;
        Ok(Building { cache: self, lock, path })
    }

    /// Removes the leftovers of killed processes, and the longest unused entries beyond the
    /// limit, but never `keep`. Best effort: entries that cannot be removed stay.
    fn sweep(&self, keep: &str) {
        let Ok(list) = fs::read_dir(&self.folder) else {
            return;
        };
        let mut entries = Vec::new();
        for path in list.filter_map(|entry| entry.ok().map(|e| e.path())) {
            let Some(name) = path.file_name().and_then(|n| n.to_str()) else {
                continue;
            };
            if let Some(key) = name.strip_prefix(BUILDING) {
                self.remove_unused(key, &path);
            } else if let Some(key) = name.strip_suffix(LOCK) {
                if !self.folder.join(key).exists() {
                    self.remove_unused(key, &path);
                }
            } else if name.len() == 64 && path.is_dir() {
                let used = path.join(self.checksum()).metadata().and_then(|m| m.modified());
                let used = used.unwrap_or(SystemTime::UNIX_EPOCH);
                let size = fs::read_dir(&path).map_or(0, |files| {
                    let sizes = files.filter_map(|f| f.ok()?.metadata().ok().map(|m| m.len()));
                    sizes.sum::<u64>()
                });
                entries.push((name == keep, used, size, path));
            }
        }
        // The newest first; behind the limit begins what goes.
        entries.sort_by_key(|e| std::cmp::Reverse((e.0, e.1)));
        let mut total = 0_u64;
        for (kept, _, size, path) in entries {
            total = total.saturating_add(size);
            let key = path.file_name().and_then(|n| n.to_str());
            if let (false, true, Some(key)) = (kept, total > self.limit, key) {
                self.remove_unused(key, &path);
            }
        }
    }

    /// Removes a path unless somebody compiles that kernel, and the lock with it.
    fn remove_unused(&self, key: &str, path: &Path) {
        let lock = self.lock_path(key);
        let Ok(file) = open_lock(&lock) else { return };
        if file.try_lock().is_ok() && is_at(&file, &lock) {
            let _ = remove(path);
            let _ = remove(&lock);
        }
    }

    fn checksum(&self) -> String {
        format!("{}{CHECKSUM}", self.code)
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}{LOCK}"))
    }
}

impl Building<'_> {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the compiler writes.
    pub(crate) fn code(&self) -> PathBuf {
        self.path.join(self.cache.code)
    }

    /// Writes the code, where no compiler does.
    pub(crate) fn write(&self, code: serde_json::Result<Vec<u8>>) -> Result<(), SpecializeError> {
        let path = self.code();
        code.map_err(io::Error::from)
            .and_then(|bytes| files::create_with(&path, &bytes))
            .map_err(SpecializeError::cache("write", &path))
    }

    /// Makes the compiled code an entry; `about` is for people.
    pub(crate) fn publish(self, about: &str) -> Result<(), SpecializeError> {
        let code = self.code();
        let bytes = files::read(&code, MAX_CODE).map_err(SpecializeError::cache("read", &code))?;
        // Only what an entry consists of.
        let complete = self.path.join("entry");
        fs::create_dir(&complete).map_err(SpecializeError::cache("make", &complete))?;
        let write = |name: &str, text: &str| {
            let path = complete.join(name);
            files::create_with(&path, text.as_bytes())
                .map_err(SpecializeError::cache("write", &path))
        };
        write(&self.cache.checksum(), blake3::hash(&bytes).to_hex().as_str())?;
        write("about.txt", about)?;
        let place = complete.join(self.cache.code);
        fs::rename(&code, &place).map_err(SpecializeError::cache("write", &place))?;
        // After a power cut the entry is either absent or whole.
        File::open(&place)
            .and_then(|file| file.sync_all())
            .map_err(SpecializeError::cache("write", &place))?;
        let entry = self.cache.folder.join(&self.lock.key);
        remove(&entry).map_err(SpecializeError::cache("remove", &entry))?;
        fs::rename(&complete, &entry).map_err(SpecializeError::cache("write", &entry))?;
        self.cache.sweep(&self.lock.key);
        Ok(())
    }
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        let _ = remove(&self.path);
    }
}

/// The name of an entry: a hash of all parts that its code depends on.
#[derive(Default)]
pub(crate) struct ContentHash(blake3::Hasher);

impl ContentHash {
    /// One more part; where it ends is part of it.
    pub(crate) fn add(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// In hexadecimal.
    pub(crate) fn finish(self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// The cache folder of this program: in the folder that the environment names, or in one of this
/// user's own where others may write there.
pub(crate) fn root(
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, SpecializeError> {
    static SAID: Once = Once::new();
    let (folder, refused) = trusted(variable)?;
    if let Some(foreign) = refused {
        SAID.call_once(|| {
            tracing::warn!(
                target: "ostler::kernels",
                "{}; {} is used in its place",
                SpecializeError::Distrusted(foreign),
                folder.display()
            );
        });
    }
    Ok(folder)
}

/// The folder that is used, and why another one that was named is not.
fn trusted(
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(PathBuf, Option<Foreign>), SpecializeError> {
    let wanted = named(variable)?;
    let trust = Trust::from_environment(variable).map_err(SpecializeError::TrustOwner)?;
    let Err(foreign) = trust.check(&wanted) else {
        return Ok((wanted, None));
    };
    let home = variable("HOME").map(|home| PathBuf::from(home).join(".cache/ostler"));
    let temporary = variable("TMPDIR").filter(|t| !t.is_empty());
    let temporary = PathBuf::from(temporary.unwrap_or_else(|| "/tmp".into()));
    let temporary = temporary.join(format!("ostler-{}", uzers::get_effective_uid()));
    let usable = |folder: &PathBuf| {
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(folder);
        made.is_ok() && trust.check(folder).is_ok()
    };
    let own = home.into_iter().chain([temporary]).find(usable);
    match own {
        Some(own) => Ok((own, Some(foreign))),
        None => Err(SpecializeError::Distrusted(foreign)),
    }
}

fn named(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, SpecializeError> {
    let set = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("OSTLER_CACHE")
        // A relative XDG folder is to be ignored, says its specification.
        .or_else(|| set("XDG_CACHE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("ostler")))
        .or_else(|| set("HOME").map(|p| p.join(".cache/ostler")))
        .ok_or(SpecializeError::NoCacheFolder)
}

fn open_lock(path: &Path) -> io::Result<File> {
    files::update(path)
}

/// Whether the open file is still the one of that name.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.metadata()) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Removes a file or folder, if there is one.
fn remove(path: &Path) -> io::Result<()> {
    let result = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
