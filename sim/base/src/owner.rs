//! Owners of files: code is loaded only where nobody but trusted users could have put it.
//!
//! Trusted are this user, root, and whom `OSTLER_TRUST_OWNER` names. A file counts if it
//! and the folders that lead to it belong to them and nobody else may write there; folders
//! with the sticky bit, such as `/tmp`, may lead to it.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The variable with the name, or the number, of one more user to trust.
pub const VARIABLE: &str = "OSTLER_TRUST_OWNER";

/// Users whose files are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    users: Vec<u32>,
}

impl Default for Trust {
    /// This user and root.
    fn default() -> Self {
        Self { users: vec![uzers::get_effective_uid(), 0] }
    }
}

/// A file or folder that somebody else could have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// It.
    pub path: PathBuf,
    /// Who could.
    pub why: String,
}

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.path.display(), self.why)
    }
}

impl Trust {
    /// This user, root, and whom the environment names.
    ///
    /// # Errors
    /// The environment names nobody of this system.
    pub fn from_environment(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let Self { mut users } = Self::default();
        if let Some(name) = variable(VARIABLE).filter(|n| !n.is_empty()) {
            let number = name.to_str().and_then(|n| n.parse().ok());
            let named = number.or_else(|| uzers::get_user_by_name(&name).map(|u| u.uid()));
            users.push(named.ok_or_else(|| {
                format!("{VARIABLE}={}: there is no such user", name.to_string_lossy())
            })?);
        }
        Ok(Self { users })
    }

    /// Checks a file or folder, and the folders that lead to where it really is. Of a path
    /// that is not there yet, the part that is.
    ///
    /// # Errors
    /// Somebody else could have written it.
    pub fn check(&self, path: &Path) -> Result<(), Foreign> {
        let foreign = |path: &Path, why: String| Foreign { path: path.to_path_buf(), why };
        let there = path.ancestors().find(|p| p.symlink_metadata().is_ok());
        let there = there.unwrap_or(Path::new("/"));
        let real = there
            .canonicalize()
            .map_err(|e| foreign(there, format!("cannot be looked up: {e}")))?;
        let parents = real.ancestors().skip(1);
        for (place, leads) in
            std::iter::once((real.as_path(), false)).chain(parents.map(|p| (p, true)))
        {
            let metadata = place
                .symlink_metadata()
                .map_err(|e| foreign(place, format!("cannot be looked up: {e}")))?;
            self.of(&metadata, leads || there != path).map_err(|why| foreign(place, why))?;
        }
        Ok(())
    }

    /// Checks all that is in a folder and in its folders; links are checked where they lead.
    ///
    /// # Errors
    /// Somebody else could have written it, or it cannot be listed.
    pub fn below(&self, folder: &Path) -> Result<(), Foreign> {
        let foreign = |path: &Path, why: String| Foreign { path: path.to_path_buf(), why };
        let failed = |e: std::io::Error| foreign(folder, format!("cannot be looked up: {e}"));
        self.of(&folder.metadata().map_err(failed)?, false).map_err(|why| foreign(folder, why))?;
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, metadata) = (entry.path(), entry.metadata().map_err(failed)?);
            if metadata.is_symlink() {
                self.check(&path)?;
            } else if metadata.is_dir() {
                self.below(&path)?;
            } else {
                self.of(&metadata, false).map_err(|why| foreign(&path, why))?;
            }
        }
        Ok(())
    }

    /// Checks one file by what the system says of it; `leads`: whether it is a folder on
    /// the way, which may be everybody's where the sticky bit keeps entries their owners'.
    ///
    /// # Errors
    /// Who else could have written it.
    pub fn of(&self, metadata: &Metadata, leads: bool) -> Result<(), String> {
        const STICKY: u32 = 0o1000;
        let (owner, mode) = (metadata.uid(), metadata.permissions().mode());
        if !self.users.contains(&owner) {
            return Err(format!("belongs to {}", user(owner)));
        }
        if metadata.is_dir() && leads && mode & STICKY != 0 {
            return Ok(());
        }
        if mode & 0o002 != 0 {
            return Err("can be written by everybody (chmod o-w)".into());
        }
        if mode & 0o020 != 0 && !is_own_group(owner, metadata.gid()) {
            return Err(format!(
                "can be written by the group {} (chmod g-w)",
                group(metadata.gid())
            ));
        }
        Ok(())
    }
}

/// Whether a group is a user's own, as many systems give every user one: of the same
/// number, and nobody else in it.
fn is_own_group(owner: u32, gid: u32) -> bool {
    let Some(group) = uzers::get_group_by_gid(gid).filter(|_| gid == owner) else {
        return false;
    };
    let members = uzers::os::unix::GroupExt::members(&group).iter();
    is_alone(owner, members.map(uzers::get_user_by_name))
}

/// Whether none of these is somebody else; a name that is nobody's yet may become anybody's.
fn is_alone(owner: u32, mut members: impl Iterator<Item = Option<uzers::User>>) -> bool {
    members.all(|user| user.is_some_and(|u| u.uid() == owner))
}

fn user(uid: u32) -> String {
    let name = uzers::get_user_by_uid(uid);
    name.map_or(format!("user {uid}"), |u| u.name().to_string_lossy().into_owned())
}

fn group(gid: u32) -> String {
    let name = uzers::get_group_by_gid(gid);
    name.map_or(format!("{gid}"), |g| g.name().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    fn trust() -> Trust {
        Trust::from_environment(&|_| None).unwrap()
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_may_write_is_foreign_and_so_is_what_lies_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, file) = (dir.path().join("a"), dir.path().join("a/file"));
        fs::create_dir(&folder).unwrap();
        fs::write(&file, "").unwrap();
        mode(&folder, 0o755);
        mode(&file, 0o644);
        assert_eq!(trust().check(&file), Ok(()));
        assert_eq!(trust().check(&dir.path().join("a/none/yet")), Ok(()));
        mode(&file, 0o646);
        assert!(trust().check(&file).unwrap_err().why.contains("everybody"));
        mode(&file, 0o644);
        mode(&folder, 0o777);
        let found = trust().check(&file).unwrap_err();
        assert_eq!(found.path, folder.canonicalize().unwrap());
        // A sticky folder leads to what is its owner's, but is not one's own.
        mode(&folder, 0o1777);
        assert_eq!(trust().check(&file), Ok(()));
        assert!(trust().check(&folder).is_err());
        // Where something is to be made, it leads there.
        assert_eq!(trust().check(&folder.join("none")), Ok(()));
        // Everybody may replace what is no folder, whatever its bits.
        mode(&folder, 0o755);
        mode(&file, 0o1646);
        assert!(trust().check(&file).is_err());
        mode(&file, 0o644);
        // The group of all who work here: not this user's own. Root can name one.
        mode(&folder, 0o775);
        let of = fs::metadata(&folder).unwrap();
        let named = std::os::unix::fs::chown(&folder, None, Some(4242)).is_ok();
        if named || of.gid() != of.uid() {
            mode(&folder, 0o775);
            assert!(trust().check(&file).unwrap_err().why.contains("group"));
            mode(&folder, 0o755);
            assert_eq!(trust().check(&file), Ok(()));
        }
    }

    #[test]
    fn a_group_is_a_users_own_if_it_has_the_users_number_and_no_other_member() {
        // Root's has both everywhere; root is no member of others, which exist or do not.
        assert!(is_own_group(0, 0));
        assert!(!is_own_group(4242, 0) && !is_own_group(0, 4242));
        assert!(!is_own_group(4_242_424, 4_242_424), "there is no such group");
        let user = |uid: u32| Some(uzers::User::new(uid, "name", uid));
        let alone = |members: Vec<_>| is_alone(7, members.into_iter());
        assert!(alone(vec![]) && alone(vec![user(7)]));
        assert!(!alone(vec![user(7), user(8)]) && !alone(vec![None]));
    }

    #[test]
    fn a_folder_counts_with_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/file");
        fs::create_dir_all(deep.parent().unwrap()).unwrap();
        fs::write(&deep, "").unwrap();
        assert_eq!(trust().below(&dir.path().join("a")), Ok(()));
        let below = |name: &str| trust().below(&dir.path().join(name)).map_err(|f| f.path);
        mode(&deep, 0o666);
        assert_eq!(below("a"), Err(deep.clone()));
        mode(&deep, 0o644);
        // The folder itself, one in it, and what a link in it leads to.
        for name in ["a", "a/b"] {
            let folder = dir.path().join(name);
            mode(&folder, 0o1777);
            assert_eq!(below("a"), Err(folder.clone()));
            mode(&folder, 0o755);
        }
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "").unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.path().join("a/b/link")).unwrap();
        assert_eq!(below("a"), Ok(()));
        mode(&elsewhere, 0o666);
        assert_eq!(below("a"), Err(elsewhere.canonicalize().unwrap()));
        assert!(below("none").is_err());
    }

    #[test]
    fn a_link_is_as_good_as_what_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("open");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), "").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(folder.join("file"), &link).unwrap();
        assert_eq!(trust().check(&link), Ok(()));
        mode(&folder, 0o777);
        assert!(trust().check(&link).is_err());
    }

    #[test]
    fn files_of_another_user_count_where_that_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let somebody = Trust { users: vec![0, 4242] };
        // Root owns the file, or a user that is neither.
        if uzers::get_effective_uid() == 0 {
            std::os::unix::fs::chown(&file, Some(4242), None).unwrap();
            assert!(trust().check(&file).unwrap_err().why.contains("belongs to"));
            assert_eq!(somebody.check(&file), Ok(()));
        } else {
            assert!(somebody.check(&file).unwrap_err().why.contains("belongs to"));
        }
        let named = |name: &str| {
            let name = OsString::from(name);
            Trust::from_environment(&move |n| (n == VARIABLE).then(|| name.clone()))
        };
        assert!(named("4242").unwrap().users.contains(&4242));
        assert!(named("root").unwrap().users.contains(&0));
        assert!(named("no such user").unwrap_err().contains(VARIABLE));
    }
}
