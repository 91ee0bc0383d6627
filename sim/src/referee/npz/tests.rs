//! Files that numpy could have written, and files that it could not.

use super::{Expected, Npz, NpzError, NpzWriter};
use std::io::Write;
use std::path::PathBuf;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// An archive with one entry of these bytes.
    fn raw(&self, entry: &str, bytes: &[u8]) -> Npz {
        let path = self.path("raw.npz");
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        zip.start_file(entry, zip::write::FileOptions::default())
            .unwrap();
        zip.write_all(bytes).unwrap();
        zip.finish().unwrap();
        Npz::open(&path).unwrap()
    }

    /// An archive with an array `x` of this header and these bytes.
    fn array(&self, header: &str, data: &[u8]) -> Npz {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        self.raw("x.npy", &bytes)
    }
}

fn wide(columns: usize) -> Expected<'static> {
    Expected {
        rows: None,
        columns: Some(columns),
        label: "nx",
    }
}

fn message(result: Result<(Vec<f64>, usize), NpzError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn arrays_come_back_as_they_were_written() {
    let place = Place::new();
    let path = place.path("a.npz");
    let mut file = NpzWriter::create(&path).unwrap();
    file.array("double", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 1e-300_f64])
        .unwrap();
    file.array("single", &[3, 1], &[0.1_f32, -0.0, 3.0])
        .unwrap();
    file.array("counts", &[2], &[7_i32, 0]).unwrap();
    file.array::<f64>("empty", &[0, 4], &[]).unwrap();
    assert!(!path.exists(), "a file that is not finished is not there");
    file.finish().unwrap();
    let mut file = Npz::open(&path).unwrap();
    let double = file.finite("double", wide(3)).unwrap();
    assert_eq!(double, (vec![1.0, 2.0, 3.0, 4.0, 5.0, 1e-300], 2));
    let single = file.floats("single", wide(1)).unwrap();
    assert_eq!(single, (vec![f64::from(0.1_f32), -0.0, 3.0], 3));
    assert_eq!(file.counts("counts", 2).unwrap(), [7, 0]);
    assert_eq!(file.floats("empty", wide(4)).unwrap(), (Vec::new(), 0));
    assert!(file.has("single") && !file.has("triple"));
}

#[test]
fn column_major_and_big_endian_arrays_are_understood() {
    let place = Place::new();
    let data: Vec<u8> = [1.0_f32, 3.0, 5.0, 2.0, 4.0, 6.0]
        .iter()
        .flat_map(|x| x.to_be_bytes())
        .collect();
    let mut file = place.array(
        "{'descr': '>f4', 'fortran_order': True, 'shape': (3, 2), }\n",
        &data,
    );
    let (x, rows) = file.floats("x", wide(2)).unwrap();
    assert_eq!((x, rows), (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3));
}

#[test]
fn errors_quote_what_was_found_and_what_was_expected() {
    let place = Place::new();
    let path = place.path("a.npz");
    let mut file = NpzWriter::create(&path).unwrap();
    file.array("x", &[2, 3], &[0.0, 1.0, 2.0, 3.0, f64::NAN, 5.0])
        .unwrap();
    file.array("flat", &[3], &[0.0_f64; 3]).unwrap();
    file.array("whole", &[1, 3], &[1_i64; 3]).unwrap();
    file.array("minus", &[1], &[-1_i32]).unwrap();
    file.finish().unwrap();
    let mut file = Npz::open(&path).unwrap();
    let mut says = |name: &str, expected: Expected<'_>, words: &[&str]| {
        let text = message(file.finite(name, expected));
        for word in words {
            assert!(text.contains(word), "{text} lacks {word}");
        }
    };
    says(
        "x",
        wide(4),
        &["a.npz", "x", "[2, 3]", "[K,nx] with nx = 4"],
    );
    says("x", wide(3), &["x[1,1] is NaN"]);
    says("flat", wide(3), &["[3]", "[K,nx] with nx = 3"]);
    says("whole", wide(3), &["'<i8'", "float32 or float64"]);
    says("y", wide(3), &["no array \"y\"", "flat, minus, whole, x"]);
    let rows = Expected {
        rows: Some(5),
        ..wide(3)
    };
    says("x", rows, &["K = 5", "[2, 3]"]);
    assert!(
        file.counts("minus", 1)
            .unwrap_err()
            .to_string()
            .contains("-1")
    );
    assert!(file.counts("flat", 3).is_err());
}

#[test]
fn damaged_and_hostile_files_are_refused() {
    let place = Place::new();
    let path = place.path("text.npz");
    std::fs::write(&path, "qpos").unwrap();
    assert!(matches!(Npz::open(&path), Err(NpzError::Format { .. })));
    assert!(matches!(
        Npz::open(&place.path("none.npz")),
        Err(NpzError::File { .. })
    ));
    let head =
        |shape: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}");
    // Data that end early.
    let mut file = place.array(&head("(2, 3)"), &[0; 8]);
    assert!(matches!(
        file.floats("x", wide(3)),
        Err(NpzError::Format { .. })
    ));
    // More rows than memory: claimed, not there.
    let mut file = place.array(&head("(4611686018427387904, 3)"), &[0; 8]);
    assert!(file.floats("x", wide(3)).is_err());
    let mut file = place.array(&head("(18446744073709551615, 18446744073709551615)"), &[]);
    assert!(file.floats("x", wide(3)).is_err());
    for nonsense in [
        "",
        "{",
        "()",
        "{'descr': 3}",
        &"(".repeat(900),
        &"[".repeat(9000),
    ] {
        let mut file = place.array(nonsense, &[0; 64]);
        assert!(file.floats("x", wide(3)).is_err(), "{nonsense}");
    }
    // A header of 4 GB, and no header at all.
    for bytes in [&b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..], b"\x93NUM", b""] {
        assert!(place.raw("x.npy", bytes).floats("x", wide(3)).is_err());
    }
}
