//! Which wheels are fetched: pinned by version and hash, in two lists of the checkout.

use crate::SetupError;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The libtorch that the pinned tch is made for.
pub const VERSION: &str = "2.11.0";

/// One wheel to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wheel {
    /// `torch==2.11.0`
    pub requirement: String,
    /// Lower-case hexadecimal.
    pub sha256: String,
    /// pip's name of the platform it was built for: pip matches it exactly.
    pub platform: String,
    /// How many megabytes will come.
    pub size_mb: u64,
    /// Their size on the disk. (MB)
    pub unpacked_mb: u64,
}

impl Wheel {
    /// Whether the file at `path` has this wheel's hash.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is(&self, path: &Path) -> Result<bool, SetupError> {
        let (mut hash, mut piece) = (Sha256::new(), vec![0; 1 << 20]);
        let mut file = File::open(path).map_err(SetupError::io("read", path))?;
        loop {
            match file.read(&mut piece).map_err(SetupError::io("read", path))? {
                0 => break,
                n => hash.update(&piece[..n]),
            }
        }
        let found: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        Ok(found == self.sha256)
    }
}

/// A list of wheels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The file: pip's requirements, one a line.
    pub text: String,
    /// Its file.
    pub wheels: Vec<Wheel>,
}

impl List {
    /// Wheels for a processor.
    ///
    /// # Errors
    /// The checkout lacks the list.
    pub fn processor(root: &Path) -> Result<Self, SetupError> {
        Self::read(root, "wheels.txt")
    }

    /// Further wheels for a GPU.
    ///
    /// # Errors
    /// The checkout lacks the list.
    pub fn cuda(root: &Path) -> Result<Self, SetupError> {
        Self::read(root, "cuda.txt")
    }

    fn read(root: &Path, name: &str) -> Result<Self, SetupError> {
        let path = root.join("xtask/src/libtorch").join(name);
        let text = std::fs::read_to_string(&path).map_err(SetupError::io("read", &path))?;
        let wheels = text.lines().filter_map(wheel).collect();
        Ok(Self { text, wheels })
    }
}

/// `NAME==VERSION --hash=sha256:SUM # PLATFORM, N MB, N MB unpacked`
fn wheel(line: &str) -> Option<Wheel> {
    let (requirement, rest) = line.split_once(" --hash=sha256:")?;
    let (sha256, rest) = rest.split_once(" # ")?;
    let mut facts = rest.split(", ");
    let platform = facts.next()?;
    let mut number = || facts.next()?.split(' ').next()?.parse().ok();
    Some(Wheel {
        requirement: requirement.into(),
        sha256: sha256.into(),
        platform: platform.into(),
        size_mb: number()?,
        unpacked_mb: number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists() -> (Vec<Wheel>, Vec<Wheel>) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let wheels = |list: Result<List, SetupError>| list.unwrap().wheels;
        (wheels(List::processor(root)), wheels(List::cuda(root)))
    }

    #[test]
    fn a_file_is_a_wheel_where_its_sha256_is_the_lists() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "abc").unwrap();
        // FIPS 180-4's example.
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let line = format!("a==1 --hash=sha256:{sum} # manylinux, 1 MB, 1 MB unpacked");
        let wheel = wheel(&line).unwrap();
        assert!(wheel.is(file.path()).unwrap());
        std::fs::write(&file, "abd").unwrap();
        assert!(!wheel.is(file.path()).unwrap());
        assert!(wheel.is(Path::new("/no/such/file")).is_err());
    }

    #[test]
    fn every_wheel_has_a_version_a_hash_and_a_platform() {
        let (processor, cuda) = lists();
        let torch = format!("torch=={VERSION}");
        assert!(processor.iter().any(|w| w.requirement == torch));
        assert_eq!((processor.len(), cuda.len()), (3, 12));
        for wheel in processor.iter().chain(&cuda) {
            let (name, version) = wheel.requirement.split_once("==").unwrap();
            assert!(!name.is_empty() && !version.is_empty(), "{wheel:?}");
            assert_eq!(wheel.sha256.len(), 64, "{wheel:?}");
            let hexadecimal = wheel.sha256.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(hexadecimal, "{wheel:?}");
            assert!(wheel.platform.starts_with("manylinux"), "{wheel:?}");
            assert!(wheel.unpacked_mb >= wheel.size_mb, "{wheel:?}");
        }
    }

    /// The names of torch's own list, which a machine that has fetched it holds.
    #[test]
    fn no_library_is_named_twice() {
        let (processor, cuda) = lists();
        let all = processor.iter().chain(&cuda);
        let mut names: Vec<_> = all.map(|w| &w.requirement).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
