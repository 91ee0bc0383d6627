//! Which wheels are fetched: pinned by version and hash.

/// What a run on the processor needs: pip's requirements, one a line.
const PROCESSOR: &str = include_str!("wheels.txt");
/// What a run on a GPU needs besides.
pub const CUDA: &str = include_str!("cuda.txt");

/// One wheel to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wheel {
    /// `torch==2.11.0`
    pub requirement: &'static str,
    /// Lower-case hexadecimal.
    pub sha256: &'static str,
    /// pip's name of the platform it was built for: pip matches it exactly.
    pub platform: &'static str,
    /// How many megabytes will come.
    pub size_mb: u64,
    /// What they become on the disk. (MB)
    pub unpacked_mb: u64,
}

/// Those of a run on the processor.
pub fn processor() -> Vec<Wheel> {
    PROCESSOR.lines().filter_map(wheel).collect()
}

/// Those of a run on a GPU besides.
pub fn cuda() -> Vec<Wheel> {
    CUDA.lines().filter_map(wheel).collect()
}

/// `NAME==VERSION --hash=sha256:SUM # PLATFORM, N MB, N MB unpacked`
fn wheel(line: &'static str) -> Option<Wheel> {
    let (requirement, rest) = line.split_once(" --hash=sha256:")?;
    let (sha256, rest) = rest.split_once(" # ")?;
    let mut facts = rest.split(", ");
    let platform = facts.next()?;
    let mut number = || facts.next()?.split(' ').next()?.parse().ok();
    Some(Wheel {
        requirement,
        sha256,
        platform,
        size_mb: number()?,
        unpacked_mb: number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::libtorch::VERSION;

    #[test]
    fn every_wheel_has_a_version_a_hash_and_a_platform() {
        let (processor, cuda) = (processor(), cuda());
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
        let mut names: Vec<_> = processor()
            .iter()
            .chain(&cuda())
            .map(|w| w.requirement)
            .collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
