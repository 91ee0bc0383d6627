//! numpy's `.npz` files: as they are, and built anew with sizes and checksums put right.

use super::drive::Target;
use super::mutate::Corpus;
use super::runs::{CUT, folder, sections};
use ostler_sim::npz::{Expected, Npz, NpzWriter};

/// The checksum of zip archives (CRC-32, ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    let step = |mut crc: u32, byte: &u8| {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
        crc
    };
    !bytes.iter().fold(!0, step)
}

/// One entry: its name, its sizes as the directory has them, its bytes.
struct Entry<'a> {
    name: &'a str,
    sizes: [u32; 2],
    bytes: Vec<u8>,
}

/// An archive of entries that are not packed.
fn zipped(entries: &[Entry<'_>], count: u16) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let (at, name) = (out.len() as u32, entry.name.as_bytes());
        let mut middle = [0; 10].to_vec();
        middle.extend(crc32(&entry.bytes).to_le_bytes());
        entry.sizes.iter().for_each(|n| middle.extend(n.to_le_bytes()));
        middle.extend((name.len() as u16).to_le_bytes());
        middle.extend([0; 2]);
        for part in [&b"PK\x03\x04"[..], &middle, name, &entry.bytes] {
            out.extend_from_slice(part);
        }
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend(middle);
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(name);
    }
    let (begin, size) = (out.len() as u32, directory.len() as u32);
    out.extend(directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    for n in [count, count] {
        out.extend(n.to_le_bytes());
    }
    for n in [size, begin] {
        out.extend(n.to_le_bytes());
    }
    out.extend([0; 2]);
    out
}

/// The archive that a text stands for: the number of entries that it claims, then for each
/// entry its name, the sizes that it claims or `-`, the head of its array, and how many
/// bytes of zeros follow.
fn built(text: &[u8]) -> Option<Vec<u8>> {
    let parts = sections(text);
    let count = String::from_utf8_lossy(parts.first()?).trim().parse().ok()?;
    let mut entries = Vec::new();
    let texts: Vec<String> =
        (parts.iter().skip(1)).map(|p| String::from_utf8_lossy(p).into_owned()).collect();
    for text in &texts {
        let mut lines = text.splitn(4, '\n');
        let (name, sizes) = (lines.next()?, lines.next()?);
        let zeros = lines.next()?.trim().parse::<usize>().ok()?.min(1 << 16);
        let head = lines.next()?;
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((head.len() as u16).to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes.resize(bytes.len() + zeros, 0);
        let whole = bytes.len() as u32;
        let mut sizes = sizes.split(' ').map(|n| n.parse().unwrap_or(whole));
        entries.push(Entry {
            name: name.get(..name.len().min(99))?,
            sizes: [sizes.next()?, sizes.next().unwrap_or(whole)],
            bytes,
        });
    }
    Some(zipped(&entries, count))
}

/// Whether two of the entries that such a text claims have the same name.
fn named_twice(text: &[u8]) -> bool {
    let all = sections(text);
    let count = all.first().map(|c| String::from_utf8_lossy(c).into_owned());
    let count: usize = count.and_then(|c| c.trim().parse().ok()).unwrap_or(0);
    let mut names: Vec<String> = (all.into_iter().skip(1).take(count))
        .map(|p| String::from_utf8_lossy(p).into_owned())
        .filter_map(|p| Some(p.lines().next()?.to_string()))
        .collect();
    names.sort();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

pub fn npz() -> Target {
    let dir = folder();
    let path = dir.path().join("a.npz");
    let mut file = NpzWriter::create(&path).unwrap();
    file.array("qpos", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0_f64]).unwrap();
    file.array("qvel", &[3, 2], &[0.5_f32; 6]).unwrap();
    file.array("ncon", &[3], &[1_i32, 0, 2]).unwrap();
    file.finish().unwrap();
    let real = std::fs::read(&path).unwrap();
    let entry = |name: &str, zeros: usize, descr: &str, fortran: &str, shape: &str| {
        let head =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        format!("\n%%\n{name}.npy\n- -\n{zeros}\n{head}").into_bytes()
    };
    let text = [
        b"3".to_vec(),
        entry("qpos", 48, "<f8", "False", "(3, 2)"),
        entry("qvel", 24, ">f4", "True", "(3, 2)"),
        entry("ncon", 12, "<i4", "False", "(3,)"),
    ]
    .concat();
    // Rows without a number in them.
    let empty = [b"1".to_vec(), entry("none", 0, "<f8", "False", "(3, 0)")].concat();
    assert!(sections(&text).len() == 4 && CUT == b"\n%%\n");
    let words = [
        "'<f8'", "'<f4'", "'|O'", "True", "False", "(3, 2)", "(3, 0)", "(0, 2)", "(2,)", "qpos",
        "qvel", "ncon", "shape", "descr", "- -", "\n%%\n",
    ];
    Target {
        corpus: Corpus::of_text(vec![text.clone(), real, text, empty], &words),
        read: Box::new(move |bytes| {
            let path = dir.path().join("a.npz");
            let mut good = false;
            let made = built(bytes);
            for file_bytes in [Some(bytes), made.as_deref()].into_iter().flatten() {
                std::fs::write(&path, file_bytes).unwrap();
                let Ok(mut file) = Npz::open(&path) else {
                    continue;
                };
                let twice = named_twice(bytes);
                assert!(made.as_deref() != Some(file_bytes) || !twice, "which one is it?");
                let mut rows = None;
                for (name, columns) in [("qpos", 2), ("qvel", 2), ("none", 0)] {
                    let expected = Expected { rows, columns: Some(columns), label: "n" };
                    let Ok((x, count)) = file.finite(name, expected) else {
                        continue;
                    };
                    assert!(x.len() == count * columns && x.iter().all(|x| x.is_finite()));
                    // As one that reads states goes through them.
                    (0..count).for_each(|i| {
                        std::hint::black_box(i);
                    });
                    rows = Some(count);
                    good = true;
                }
                if let Ok(counts) = file.counts("ncon", rows.unwrap_or(3)) {
                    assert_eq!(counts.len(), rows.unwrap_or(3));
                }
            }
            good
        }),
    }
}
