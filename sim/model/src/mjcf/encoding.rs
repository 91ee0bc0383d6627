//! Bytes of a model file -> text: UTF-8, or what the file's mark or first line declares.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// The text of a file. What is UTF-8 is taken as that, whatever the file declares. Of another
/// encoding that is not known, or not declared, what is not UTF-8 becomes U+FFFD: comments may
/// have it, values may not.
pub(super) fn decode(bytes: Vec<u8>) -> String {
    let wide = match &bytes[..] {
        [0xFF, 0xFE, ..] | [b'<', 0, ..] => Some(UTF_16LE),
        [0xFE, 0xFF, ..] | [0, b'<', ..] => Some(UTF_16BE),
        _ => None,
    };
    let own = wide.unwrap_or_else(|| match std::str::from_utf8(&bytes) {
        Ok(_) => UTF_8,
        Err(_) => Encoding::for_label(declared(&bytes).as_bytes()).unwrap_or(UTF_8),
    });
    own.decode_with_bom_removal(&bytes).0.into_owned()
}

/// The encoding that the file's first line declares, in lower case.
fn declared(bytes: &[u8]) -> String {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).to_ascii_lowercase();
    let line = head.split_once("<?xml").and_then(|(_, rest)| rest.split_once("?>"));
    let name = line.and_then(|(line, _)| line.split_once("encoding"));
    let name = name.map_or("", |(_, value)| value.trim_start_matches([' ', '\t', '=', '"', '\'']));
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
            chars.map(|c| if c == 'ä' { byte } else { c as u8 }).collect()
        };
        for (name, byte, letter) in [
            ("ISO-8859-1", 0xE4, 'ä'),
            ("latin1", 0xA4, '¤'),
            ("ISO-8859-15", 0xA4, '€'),
            ("Windows-1252", 0x80, '€'),
            ("windows-1252", 0xE4, 'ä'),
            // Not known: said where it matters.
            ("no-such-name", 0xE4, '\u{fffd}'),
            ("UTF-8", 0xE4, '\u{fffd}'),
        ] {
            let read = decode(bytes(name, byte));
            assert!(read.ends_with(&format!("\"Ger{letter}t\"/>")), "{name}: {read}");
        }
        // What is UTF-8 is that.
        for name in ["UTF-8", "ISO-8859-1", "gb2312"] {
            let whole = text.replace("NAME", name);
            assert_eq!(decode(whole.clone().into_bytes()), whole);
            let marked = [b"\xEF\xBB\xBF", whole.as_bytes()].concat();
            assert_eq!(decode(marked), whole);
        }
        let (le, be): (Vec<_>, Vec<_>) =
            text.encode_utf16().map(|u| (u.to_le_bytes(), u.to_be_bytes())).unzip();
        for (mark, bytes) in [([0xFF, 0xFE], le), ([0xFE, 0xFF], be)] {
            let bytes = bytes.concat();
            assert_eq!(decode(bytes.clone()), text);
            assert_eq!(decode([&mark[..], &bytes].concat()), text);
        }
    }
}
