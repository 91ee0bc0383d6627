//! Files that numpy could have written, and files that it could not.

use super::header::{Header, Kind};
use super::{Expected, Npz, NpzError, NpzWriter, Numbers};
use std::io::Write;
use std::path::PathBuf;
use zip::CompressionMethod::{self, Deflated, Stored};

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
        zip.start_file(entry, zip::write::FileOptions::default()).unwrap();
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
    Expected { rows: None, columns: Some(columns), label: "nx" }
}

fn message(result: Result<(Vec<f64>, usize), NpzError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn arrays_come_back_as_they_were_written() {
    let place = Place::new();
    let path = place.path("a.npz");
    let mut file = NpzWriter::create(&path).unwrap();
    file.array("double", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 1e-300_f64]).unwrap();
    file.array("single", &[3, 1], &[0.1_f32, -0.0, 3.0]).unwrap();
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
fn arrays_of_any_shape_and_text_come_back() {
    let place = Place::new();
    let path = place.path("a.npz");
    let mut file = NpzWriter::create(&path).unwrap();
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    file.array("cube", &[2, 3, 4], &values).unwrap();
    file.array("fps", &[1], &[50_i64]).unwrap();
    file.array("small", &[2], &[-3_i8, 7]).unwrap();
    file.array("large", &[1], &[200_u8]).unwrap();
    file.texts("names", &["knee", "", "tail-\u{e9}"]).unwrap();
    file.texts("nobody", &[]).unwrap();
    file.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut file = Npz::read(&path, &bytes).unwrap();
    let cube = file.numbers("cube").unwrap();
    assert_eq!((cube.shape, cube.values.len(), cube.values[23]), (vec![2, 3, 4], 24, 23.0));
    assert_eq!(file.numbers("fps").unwrap().values, [50.0]);
    assert_eq!(file.numbers("small").unwrap().values, [-3.0, 7.0]);
    assert_eq!(file.numbers("large").unwrap().values, [200.0]);
    assert_eq!(file.texts("names").unwrap(), ["knee", "", "tail-\u{e9}"]);
    assert!(file.texts("nobody").unwrap().is_empty());
    assert_eq!(file.names(), ["cube", "fps", "large", "names", "nobody", "small"]);
    assert!(file.texts("fps").unwrap_err().to_string().contains("'<i8'"));
    assert!(file.numbers("names").unwrap_err().to_string().contains("'<U6'"));
    let head = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 1, 2), }\n";
    let data: Vec<u8> = [1_i16, -2, 3, 4].iter().flat_map(|x| x.to_be_bytes()).collect();
    let turned = place.array(head, &data).numbers("x").unwrap();
    assert_eq!(turned.values, [1.0, 3.0, -2.0, 4.0]);
    let scalar = place.array("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", &[0; 8]);
    let mut scalar = scalar;
    assert_eq!(scalar.numbers("x").unwrap(), Numbers { shape: vec![], values: vec![0.0] });
    let head = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }";
    for text in [
        place.array(head, &[0; 40]).texts("x").unwrap_err().to_string(),
        place.array(head, &[0; 40]).numbers("x").unwrap_err().to_string(),
    ] {
        assert!(text.contains("a pickle"), "{text}");
    }
    let head = "{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }";
    assert!(place.array(head, &[0xff; 4]).texts("x").is_err());
}

#[test]
fn column_major_and_big_endian_arrays_are_understood() {
    let place = Place::new();
    let data: Vec<u8> =
        [1.0_f32, 3.0, 5.0, 2.0, 4.0, 6.0].iter().flat_map(|x| x.to_be_bytes()).collect();
    let mut file =
        place.array("{'descr': '>f4', 'fortran_order': True, 'shape': (3, 2), }\n", &data);
    let (x, rows) = file.floats("x", wide(2)).unwrap();
    assert_eq!((x, rows), (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3));
}

#[test]
fn errors_quote_what_was_found_and_what_was_expected() {
    let place = Place::new();
    let path = place.path("a.npz");
    let mut file = NpzWriter::create(&path).unwrap();
    file.array("x", &[2, 3], &[0.0, 1.0, 2.0, 3.0, f64::NAN, 5.0]).unwrap();
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
    says("x", wide(4), &["a.npz", "x", "[2, 3]", "[K,nx] with nx = 4"]);
    says("x", wide(3), &["x[1,1] is NaN"]);
    says("flat", wide(3), &["[3]", "[K,nx] with nx = 3"]);
    says("whole", wide(3), &["'<i8'", "float32 or float64"]);
    says("y", wide(3), &["no array \"y\"", "flat, minus, whole, x"]);
    let rows = Expected { rows: Some(5), ..wide(3) };
    says("x", rows, &["K = 5", "[2, 3]"]);
    assert!(file.counts("minus", 1).unwrap_err().to_string().contains("-1"));
    assert!(file.counts("flat", 3).is_err());
}

#[test]
fn damaged_and_hostile_files_are_refused() {
    let place = Place::new();
    let path = place.path("text.npz");
    std::fs::write(&path, "qpos").unwrap();
    assert!(matches!(Npz::open(&path), Err(NpzError::Format { .. })));
    assert!(matches!(Npz::open(&place.path("none.npz")), Err(NpzError::File { .. })));
    let head =
        |shape: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}");
    // Data that end early.
    let mut file = place.array(&head("(2, 3)"), &[0; 8]);
    assert!(matches!(file.floats("x", wide(3)), Err(NpzError::Format { .. })));
    // More rows than memory: claimed, not there.
    let mut file = place.array(&head("(4611686018427387904, 3)"), &[0; 8]);
    assert!(file.floats("x", wide(3)).is_err());
    let mut file = place.array(&head("(18446744073709551615, 18446744073709551615)"), &[]);
    assert!(file.floats("x", wide(3)).is_err());
    for nonsense in ["", "{", "()", "{'descr': 3}", &"(".repeat(900), &"[".repeat(9000)] {
        let mut file = place.array(nonsense, &[0; 64]);
        assert!(file.floats("x", wide(3)).is_err(), "{nonsense}");
    }
    // A header of 4 GB, and no header at all.
    for bytes in [&b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..], b"\x93NUM", b""] {
        assert!(place.raw("x.npy", bytes).floats("x", wide(3)).is_err());
    }
}

/// An array's file: head and numbers.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

const TWO: &str = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }\n";

/// An archive of these entries.
fn zipped(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::FileOptions::default().compression_method(method);
    for (name, bytes) in entries {
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

impl Place {
    fn open(&self, bytes: &[u8]) -> Result<Npz, NpzError> {
        std::fs::write(self.path("a.npz"), bytes).unwrap();
        Npz::open(&self.path("a.npz"))
    }
}

fn put(bytes: &mut [u8], at: usize, number: u64, width: usize) {
    bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
}

/// Where this signature is last.
fn last(bytes: &[u8], signature: &[u8]) -> usize {
    let at = bytes.windows(4).rposition(|w| w == signature);
    at.unwrap()
}

#[test]
fn heads_are_read_in_the_one_form_that_there_is() {
    let read = |text: &str| Header::read(&mut npy(text, &[]).as_slice());
    let good = read("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n").unwrap();
    assert_eq!((good.kind, &good.shape[..]), (Some(Kind::F8), &[3, 4][..]));
    assert!(!good.fortran && !good.big_endian && good.length == 73);
    let other = read("{\"shape\":(7,),'fortran_order':True,'descr':\">i4\"}").unwrap();
    assert_eq!((other.kind, &other.shape[..]), (Some(Kind::I4), &[7][..]));
    assert!(other.fortran && other.big_endian);
    let none = read("{'descr': '|O', 'fortran_order': False, 'shape': (), }").unwrap();
    assert_eq!((none.kind, none.count()), (None, Some(1)));
    let fields = read("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }");
    assert_eq!(fields.unwrap().kind, None);
    for bad in [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } x",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, -4), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4)",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1+1,), }",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (3,), }",
        "{'descr': '<f8', 'shape': (3,), }",
        "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1, }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': __import__('os'), }",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
    let deep = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}", "1,".repeat(99));
    assert!(read(&deep).is_err());
    assert_eq!(Header { shape: vec![1 << 40; 2], ..good }.count(), None);
}

#[test]
fn a_shape_is_that_of_the_bytes_that_are_there() {
    let place = Place::new();
    for (shape, bytes) in [("(2, 1)", 15), ("(2, 1)", 17), ("(1, 1)", 16), ("(0, 1)", 1)] {
        let head = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
        for method in [Stored, Deflated] {
            let file = zipped(&[("x.npy", &npy(&head, &vec![0; bytes]))], method);
            let text = message(place.open(&file).unwrap().floats("x", wide(1)));
            assert!(text.contains("is not that of"), "{shape} {bytes}: {text}");
        }
    }
    // No number, but a row for each of them would be looked at.
    let head = "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 0), }";
    let file = zipped(&[("x.npy", &npy(head, &[]))], Stored);
    let e = place.open(&file).unwrap().floats("x", wide(0)).unwrap_err();
    assert!(matches!(e, NpzError::Memory { .. }), "{e}");
}

#[test]
fn sizes_that_an_entry_cannot_have_are_refused_before_anything_is_unpacked() {
    let place = Place::new();
    let data = [[1.0_f64, 2.0].map(f64::to_le_bytes).concat()].concat();
    for method in [Stored, Deflated] {
        let good = zipped(&[("x.npy", &npy(TWO, &data))], method);
        let x = place.open(&good).unwrap().floats("x", wide(1)).unwrap();
        assert_eq!(x, (vec![1.0, 2.0], 2));
        let entry = last(&good, b"PK\x01\x02");
        for (packed, unpacked) in [(None, 1 << 30), (Some(1 << 31), 1 << 30)] {
            let mut forged = good.clone();
            put(&mut forged, entry + 24, unpacked, 4);
            if let Some(packed) = packed {
                put(&mut forged, entry + 20, packed, 4);
            }
            let text = message(place.open(&forged).unwrap().floats("x", wide(1)));
            assert!(text.contains("which they cannot"), "{text}");
        }
        // Damage in the numbers, which the checksum tells.
        let mut forged = good.clone();
        put(&mut forged, entry + 16, 0, 4);
        let text = message(place.open(&forged).unwrap().floats("x", wide(1)));
        assert!(text.contains("hecksum"), "{text}");
    }
}

#[test]
fn all_that_is_read_of_a_file_has_a_bound() {
    let place = Place::new();
    // A thousand times smaller than what is in it.
    let zeros = npy(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (250000, 1), }",
        &vec![0; 1_000_000],
    );
    let bytes = zipped(&[("x.npy", &zeros), ("y.npy", &zeros)], Deflated);
    assert!(bytes.len() < 5000);
    let mut file = place.open(&bytes).unwrap();
    assert_eq!(file.room, 1 << 30);
    file.room = 3_999_999;
    assert_eq!(file.floats("x", wide(1)).unwrap().1, 250_000);
    assert_eq!(file.room, 1_999_999);
    let e = file.floats("y", wide(1)).unwrap_err();
    assert!(matches!(e, NpzError::Memory { bytes: 2_000_000, .. }), "{e}");
}

#[test]
fn directories_that_claim_too_much_are_refused() {
    let place = Place::new();
    let array = npy(TWO, &[0; 16]);
    let good = zipped(&[("x.npy", &array), ("y.npy", &array)], Stored);
    let says = |bytes: &[u8], words: &str| {
        let text = place.open(bytes).err().unwrap().to_string();
        assert!(text.contains(words), "{text} lacks {words}");
    };
    // Two of one name: which one it would be, nobody knows.
    let mut same = good.clone();
    let entry = last(&same, b"PK\x01\x02");
    same[entry + 46] = b'x';
    says(&same, "two entries of the same name");
    let end = last(&good, b"PK\x05\x06");
    for (at, number, width) in [(8, 65_535, 2), (10, 3, 2), (12, 1 << 31, 4), (16, 1 << 30, 4)] {
        let mut forged = good.clone();
        put(&mut forged, end + at, number, width);
        says(&forged, "directory is damaged");
    }
    says(&[&good[..], b"x"].concat(), "directory is damaged");
    // The records of longer archives say any number of entries.
    let mut long = good[..end].to_vec();
    long.extend(b"PK\x06\x06");
    long.extend(44_u64.to_le_bytes());
    long.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [1_u64 << 40, 1 << 40, 0, 0] {
        long.extend(number.to_le_bytes());
    }
    long.extend(b"PK\x06\x07");
    long.extend([0; 4]);
    long.extend((end as u64).to_le_bytes());
    long.extend([1, 0, 0, 0]);
    long.extend(&good[end..]);
    says(&long, "more than 65,535 arrays");
    // More entries than any file has.
    let names: Vec<String> = (0..4097).map(|i| format!("{i}.npy")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|n| (n.as_str(), &[][..])).collect();
    says(&zipped(&many, Stored), "4097 entries");
    assert!(place.open(&zipped(&many[1..], Stored)).is_ok());
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let place = Place::new();
    let pipe = place.path("pipe.npz");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for path in [pipe, PathBuf::from("/dev/zero"), place.0.path().to_path_buf()] {
        let e = Npz::open(&path).err().unwrap();
        assert!(e.to_string().contains("not a file"), "{e}");
    }
}

#[test]
fn nothing_is_written_through_a_link() {
    let place = Place::new();
    let precious = place.path("precious");
    std::fs::write(&precious, "kept").unwrap();
    for name in ["a.npz", "a.npz.part"] {
        std::os::unix::fs::symlink(&precious, place.path(name)).unwrap();
    }
    let mut file = NpzWriter::create(&place.path("a.npz")).unwrap();
    file.array("x", &[1], &[1.0_f64]).unwrap();
    file.finish().unwrap();
    assert_eq!(std::fs::read(&precious).unwrap(), b"kept");
    assert!(Npz::open(&place.path("a.npz")).unwrap().has("x"));
    drop(NpzWriter::create(&place.path("b.npz")).unwrap());
    assert_eq!(std::fs::read_dir(place.0.path()).unwrap().count(), 3);
}
