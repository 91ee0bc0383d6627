//! The unpacking script, run by a real Python on real wheels (zip archives).

use crate::need::Need;
use std::path::Path;
use std::process::{Command, Output};

const SCRIPT: &str = include_str!("../../src/libtorch/unpack.py");

/// Makes two small wheels, one with a program and a link.
const MAKE: &str = r"
import stat, sys, zipfile
folder = sys.argv[1]
with zipfile.ZipFile(folder + '/a.whl', 'w', zipfile.ZIP_DEFLATED) as z:
    z.writestr('torch/version.py', '__version__ = 1\n' * 1000)
    tool = zipfile.ZipInfo('torch/bin/tool')
    tool.external_attr = (stat.S_IFREG | 0o755) << 16
    z.writestr(tool, '#!/bin/sh\n')
    link = zipfile.ZipInfo('torch/lib/libx.so')
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    z.writestr(link, 'libx.so.1')
with zipfile.ZipFile(folder + '/b.whl', 'w') as z:
    z.writestr('nvidia/cu13/lib/libcudart.so.13', 'library')
    z.writestr('../outside', 'not here')
";

fn python(script: &str, args: &[&Path]) -> Output {
    Command::new("python3").arg("-c").arg(script).args(args).output().unwrap()
}

#[test]
fn wheels_are_unpacked_side_by_side() {
    let Some(()) = Need::Python.or_skip(crate::need::runs("python3")) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let made = python(MAKE, &[dir.path()]);
    assert!(made.status.success(), "{made:?}");
    let (a, b) = (dir.path().join("a.whl"), dir.path().join("b.whl"));
    let out = dir.path().join("deep/out");
    let unpacked = python(SCRIPT, &[&out, &a, &b]);
    assert!(unpacked.status.success(), "{unpacked:?}");
    let said = String::from_utf8_lossy(&unpacked.stderr);
    assert!(said.contains("100 %"), "progress: {said}");
    use std::os::unix::fs::PermissionsExt;
    let mode = |name: &str| out.join(name).metadata().unwrap().permissions().mode() & 0o111;
    assert_ne!(mode("torch/bin/tool"), 0);
    assert_eq!(mode("torch/version.py"), 0);
    let link = std::fs::read_link(out.join("torch/lib/libx.so")).unwrap();
    assert_eq!(link, Path::new("libx.so.1"));
    assert!(out.join("nvidia/cu13/lib/libcudart.so.13").is_file());
    assert!(!dir.path().join("deep/outside").exists(), "names stay inside the folder");
}

#[test]
fn a_damaged_archive_is_an_error() {
    let Some(()) = Need::Python.or_skip(crate::need::runs("python3")) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    assert!(python(MAKE, &[dir.path()]).status.success());
    let wheel = dir.path().join("a.whl");
    let mut bytes = std::fs::read(&wheel).unwrap();
    let middle = 60;
    bytes[middle] ^= 0xff;
    std::fs::write(&wheel, bytes).unwrap();
    let out = dir.path().join("out");
    let unpacked = python(SCRIPT, &[&out, &wheel]);
    assert!(!unpacked.status.success());
}
