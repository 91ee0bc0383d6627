//! Bytes of a model file -> text: UTF-8, or what the file's first line or mark declares.

/// Windows-1252 from 0x80 to 0x9F, which ISO-8859-1 leaves open (WHATWG, Encoding).
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Where ISO-8859-15 differs from ISO-8859-1.
const LATIN_9: [(u8, char); 8] = [
    (0xA4, '€'),
    (0xA6, 'Š'),
    (0xA8, 'š'),
    (0xB4, 'Ž'),
    (0xB8, 'ž'),
    (0xBC, 'Œ'),
    (0xBD, 'œ'),
    (0xBE, 'Ÿ'),
];

/// The text of a file. What is UTF-8 is taken as that, whatever the file declares. Of another
/// encoding that is not known here, or not declared, what is not UTF-8 becomes U+FFFD: comments
/// may have it, values may not.
pub(super) fn decode(bytes: Vec<u8>) -> String {
    let utf16 = |pair: fn([u8; 2]) -> u16, bytes: &[u8]| {
        let units = bytes.chunks(2).map(|c| match c {
            [a, b] => pair([*a, *b]),
            _ => u16::from(b'\n'),
        });
        char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    match &bytes[..] {
        [0xEF, 0xBB, 0xBF, rest @ ..] if std::str::from_utf8(rest).is_ok() => {
            return String::from_utf8_lossy(rest).into_owned();
        }
        [0xFF, 0xFE, rest @ ..] => return utf16(u16::from_le_bytes, rest),
        [0xFE, 0xFF, rest @ ..] => return utf16(u16::from_be_bytes, rest),
        [b'<', 0, ..] => return utf16(u16::from_le_bytes, &bytes),
        [0, b'<', ..] => return utf16(u16::from_be_bytes, &bytes),
        _ => {}
    }
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return text,
        Err(error) => error.into_bytes(),
    };
    let latin_9 = |b: u8| LATIN_9.iter().find(|(byte, _)| *byte == b).map(|(_, c)| *c);
    let windows = |b: u8| WINDOWS.get(usize::from(b.wrapping_sub(0x80))).copied();
    let own: &dyn Fn(u8) -> Option<char> = match declared(&bytes).as_str() {
        "iso-8859-15" | "iso8859-15" | "latin-9" => &latin_9,
        "iso-8859-1" | "iso_8859-1" | "iso8859-1" | "latin1" | "latin-1" | "windows-1252"
        | "cp1252" | "ansi" | "us-ascii" | "ascii" => &windows,
        _ => return String::from_utf8_lossy(&bytes).into_owned(),
    };
    bytes
        .iter()
        .map(|b| own(*b).unwrap_or(char::from(*b)))
        .collect()
}

/// The encoding that the file's first line declares, in lower case.
fn declared(bytes: &[u8]) -> String {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).to_ascii_lowercase();
    let line = head
        .split_once("<?xml")
        .and_then(|(_, rest)| rest.split_once("?>"));
    let name = line.and_then(|(line, _)| line.split_once("encoding"));
    let name = name.map_or("", |(_, value)| {
        value.trim_start_matches([' ', '\t', '=', '"', '\''])
    });
    let end = name.find(['"', '\'', ' ']).unwrap_or(name.len());
    name[..end].to_string()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn a_file_is_read_in_the_encoding_that_it_declares() {
        let text = "<?xml version='1.0' encoding='NAME'?>\n<robot name=\"Gerät\"/>";
        let bytes = |name: &str, byte: u8| -> Vec<u8> {
            let text = text.replace("NAME", name);
            let chars = text.chars();
            chars
                .map(|c| if c == 'ä' { byte } else { c as u8 })
                .collect()
        };
        for (name, byte, letter) in [
            ("ISO-8859-1", 0xE4, 'ä'),
            ("latin1", 0xA4, '¤'),
            ("ISO-8859-15", 0xA4, '€'),
            ("Windows-1252", 0x80, '€'),
            ("windows-1252", 0xE4, 'ä'),
            // Not known: said where it matters.
            ("gb2312", 0xE4, '\u{fffd}'),
            ("UTF-8", 0xE4, '\u{fffd}'),
        ] {
            let read = decode(bytes(name, byte));
            assert!(
                read.ends_with(&format!("\"Ger{letter}t\"/>")),
                "{name}: {read}"
            );
        }
        // What is UTF-8 is that.
        for name in ["UTF-8", "ISO-8859-1", "gb2312"] {
            let whole = text.replace("NAME", name);
            assert_eq!(decode(whole.clone().into_bytes()), whole);
            let marked = [b"\xEF\xBB\xBF", whole.as_bytes()].concat();
            assert_eq!(decode(marked), whole);
        }
        let (le, be): (Vec<_>, Vec<_>) = text
            .encode_utf16()
            .map(|u| (u.to_le_bytes(), u.to_be_bytes()))
            .unzip();
        for (mark, bytes) in [([0xFF, 0xFE], le), ([0xFE, 0xFF], be)] {
            let bytes = bytes.concat();
            assert_eq!(decode(bytes.clone()), text);
            assert_eq!(decode([&mark[..], &bytes].concat()), text);
        }
    }
}
