//! Whether others use this machine: they reach its loopback addresses, too.

use ostler_sim::files;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The first number of a person's account; smaller ones are the system's own services.
const PERSON: u32 = 1000;
/// Numbers above it that are no person's: `nobody`, and systemd's services.
const NOBODY: u32 = 65534;
const SERVICES: std::ops::RangeInclusive<u32> = 61184..=65519;
/// Directories of accounts that no file here lists.
const DIRECTORIES: [&str; 6] = ["ldap", "sss", "nis", "nisplus", "winbind", "hesiod"];
/// Bytes of a file about accounts at most.
const LONGEST: u64 = 16 << 20;

/// Whether somebody but this user and root can log in here or has a program running. Where this
/// cannot be known, others are assumed.
pub(crate) fn others() -> bool {
    let own = rustix::process::geteuid().as_raw();
    let read = |path: &str| {
        let bytes = files::read(Path::new(path), LONGEST).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    // Where processes of others are hidden, also the first one is.
    if !Path::new("/proc/1").exists() || has_directory(&read("/etc/nsswitch.conf")) {
        return true;
    }
    let owners = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let owners = owners
        .filter(|e| e.file_name().to_str().is_some_and(|n| n.parse::<u32>().is_ok()))
        .filter_map(|e| Some(e.metadata().ok()?.uid()));
    let accounts = read("/etc/passwd");
    owners.chain(logins(&accounts)).any(|user| user != own && is_person(user))
}

fn is_person(user: u32) -> bool {
    user >= PERSON && user != NOBODY && !SERVICES.contains(&user)
}

/// Users of `/etc/passwd` with a shell.
fn logins(passwd: &str) -> impl Iterator<Item = u32> + '_ {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let user = fields.nth(2)?.parse().ok()?;
        let shell = fields.nth(3).unwrap_or_default().trim();
        let name = shell.rsplit('/').next().unwrap_or_default();
        (!["nologin", "false"].contains(&name)).then_some(user)
    })
}

/// Whether `/etc/nsswitch.conf` takes accounts from elsewhere.
fn has_directory(nsswitch: &str) -> bool {
    let mut lines = nsswitch.lines().filter_map(|l| l.trim().strip_prefix("passwd:"));
    lines.any(|sources| {
        let sources = sources.split('#').next().unwrap_or_default();
        sources.split_whitespace().any(|s| DIRECTORIES.contains(&s))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persons_are_told_from_services() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\n\
                      www-data:x:33:33::/var/www:/usr/sbin/nologin\n\
                      me:x:1000:1000::/home/me:/bin/bash\n\
                      you:x:1001:1001::/home/you:\n\
                      build:x:1002:1002::/home/build:/bin/false\n\
                      nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n\
                      cut:x\n";
        let persons: Vec<u32> = logins(passwd).filter(|u| is_person(*u)).collect();
        assert_eq!(persons, [1000, 1001]);
        assert!(!is_person(65534) && !is_person(62000) && is_person(1_000_000));
        for (text, elsewhere) in [
            ("passwd: files systemd\ngroup: files ldap\n", false),
            ("passwd:\tfiles sss\n", true),
            ("passwd: files # ldap\n", false),
            ("", false),
        ] {
            assert_eq!(has_directory(text), elsewhere, "{text}");
        }
    }
}
