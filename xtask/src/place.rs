//! Where things are: the checkout, the cache, the link.

use crate::SetupError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that tells tests where the referees' Python is.
pub const REFEREE: &str = "OSTLER_REFEREE_PYTHON";

/// The folders that set-up works in.
#[derive(Debug, Clone)]
pub struct Place {
    /// The checkout.
    pub root: PathBuf,
    /// This user's cache, for all checkouts. Need not exist yet.
    pub cache: PathBuf,
    /// `LIBTORCH` as the user set it: not the link, which `.cargo/config.toml`
    /// sets for whatever `cargo run` starts.
    pub libtorch: Option<PathBuf>,
    /// Whether what a GPU takes is fetched: `OSTLER_CUDA`, 1 or 0; `None`: where there
    /// is an NVIDIA driver.
    pub cuda: Option<bool>,
}

impl Place {
    /// Reads the environment.
    ///
    /// # Errors
    /// Not in a checkout, or no place for a cache.
    pub fn from_env() -> Result<Self, SetupError> {
        // cargo names the package it runs; without cargo, the one compiled in.
        let package = std::env::var_os("CARGO_MANIFEST_DIR")
            .unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
        let root = Path::new(&package).parent().unwrap_or(Path::new("/")).to_path_buf();
        if !root.join("Cargo.toml").is_file() {
            return Err(SetupError::NotACheckout(root));
        }
        let cache = cache_folder(|name| std::env::var_os(name))?;
        let libtorch = std::env::var_os("LIBTORCH")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
            .filter(|value| *value != root.join(".libtorch/torch"));
        Ok(Self { root, cache, libtorch, cuda: cuda(std::env::var_os("OSTLER_CUDA"))? })
    }

    /// `LIBTORCH` of every build: a link to the libtorch that was found.
    pub fn link(&self) -> PathBuf {
        self.root.join(".libtorch/torch")
    }
}

/// `OSTLER_CUDA`.
fn cuda(value: Option<OsString>) -> Result<Option<bool>, SetupError> {
    let value = value.unwrap_or_default();
    match value.to_string_lossy().as_ref() {
        "" => Ok(None),
        "0" => Ok(Some(false)),
        "1" => Ok(Some(true)),
        other => Err(SetupError::Usage(format!(
            "OSTLER_CUDA={other}: 1 fetches what a GPU takes, 0 does not, unset does where there is an NVIDIA driver"
        ))),
    }
}

/// `OSTLER_CACHE`, else `XDG_CACHE_HOME/ostler`, else `HOME/.cache/ostler`, made
/// absolute.
fn cache_folder(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, SetupError> {
    let set = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = set("OSTLER_CACHE")
        // A relative XDG folder is to be ignored, says its specification.
        .or_else(|| set("XDG_CACHE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("ostler")))
        .or_else(|| set("HOME").map(|p| p.join(".cache/ostler")))
        .ok_or(SetupError::NoCacheFolder)?;
    std::path::absolute(&folder).map_err(SetupError::io("find", folder))
}

/// Refuses other platforms before anything is fetched.
///
/// # Errors
/// Not Linux on x86-64 with glibc.
pub fn check_platform(os: &str, arch: &str, libc: &str) -> Result<(), SetupError> {
    if (os, arch, libc) == ("linux", "x86_64", "gnu") {
        return Ok(());
    }
    Err(SetupError::Platform(format!("{os} {arch} {libc}").trim_end().to_owned()))
}

/// The C library this was built for.
pub const LIBC: &str = if cfg!(target_env = "gnu") {
    "gnu"
} else if cfg!(target_env = "musl") {
    "musl"
} else {
    ""
};

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(vars: &[(&str, &str)]) -> Result<PathBuf, SetupError> {
        cache_folder(|name| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_cache_is_the_first_of_ostler_cache_xdg_home() {
        let all = [("OSTLER_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(cache(&all).unwrap(), Path::new("/a"));
        assert_eq!(cache(&all[1..]).unwrap(), Path::new("/b/ostler"));
        assert_eq!(cache(&all[2..]).unwrap(), Path::new("/c/.cache/ostler"));
        assert!(cache(&[("OSTLER_CACHE", "rel")]).unwrap().is_absolute());
        assert_eq!(
            cache(&[("OSTLER_CACHE", ""), ("XDG_CACHE_HOME", "rel"), ("HOME", "/c")]).unwrap(),
            Path::new("/c/.cache/ostler")
        );
        assert!(cache(&[]).unwrap_err().to_string().contains("OSTLER_CACHE"));
    }

    #[test]
    fn what_a_gpu_takes_is_fetched_never_always_or_where_there_is_one() {
        let of = |value: &str| cuda(Some(value.into()));
        assert_eq!(cuda(None).unwrap(), None);
        assert_eq!(of("").unwrap(), None);
        assert_eq!(of("0").unwrap(), Some(false));
        assert_eq!(of("1").unwrap(), Some(true));
        assert!(of("yes").unwrap_err().to_string().contains("OSTLER_CUDA=yes"));
    }

    #[test]
    fn other_platforms_are_named_and_refused() {
        assert!(check_platform("linux", "x86_64", "gnu").is_ok());
        for (os, arch, libc) in [
            ("macos", "aarch64", ""),
            ("linux", "aarch64", "gnu"),
            ("linux", "x86_64", "musl"),
            ("windows", "x86_64", ""),
        ] {
            let text = check_platform(os, arch, libc).unwrap_err().to_string();
            assert!(text.contains("Linux x86-64") && text.contains(os) && text.contains(arch));
        }
    }
}
