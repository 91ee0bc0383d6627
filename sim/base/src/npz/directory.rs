//! The directory of a zip archive, looked at before anything is made of it.
//!
//! The reader then makes room for as many entries as it claims, and looks for its parts
//! in all of the file. So it must be a small one, at the file's end, without the records
//! of archives beyond 4 GiB.

use std::io::{Read, Result, Seek, SeekFrom};

/// Most entries.
const ENTRIES: usize = 4096;
/// Longest directory (bytes).
const LONGEST: u64 = 1 << 20;
/// Longest archive (bytes): numpy writes other records in longer ones.
const ARCHIVE: u64 = (1 << 31) - 1;
/// Bytes of its last record without the comment behind it, and of an entry without names.
const END: usize = 22;
const ENTRY: u64 = 46;
/// Bytes of the record of longer archives that would lie before the last one.
const LOCATOR: usize = 20;

/// Why the directory is not read; `None` where it can be.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn refusal(file: &mut (impl Read + Seek)) -> Result<Option<String>> {
    let length = file.seek(SeekFrom::End(0))?;
    if length > ARCHIVE {
        return Ok(Some(format!("{length} bytes, more than 2 GiB")));
    }
    let most = (END + LOCATOR + usize::from(u16::MAX)) as u64;
    let from = length.saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.take(most).read_to_end(&mut tail)?;
    file.rewind()?;
    Ok(look(&tail, from).err())
}

/// Looks at the last bytes of a file, which begin at `from`.
fn look(tail: &[u8], from: u64) -> std::result::Result<(), String> {
    let damaged = || "its directory is damaged".to_string();
    let u16_at = |at: usize| {
        let bytes = tail.get(at..at + 2).and_then(|b| b.try_into().ok());
        bytes.map(u16::from_le_bytes).map(usize::from)
    };
    let u32_at = |at: usize| {
        let bytes = tail.get(at..at + 4).and_then(|b| b.try_into().ok());
        bytes.map(u32::from_le_bytes).map(u64::from)
    };
    // The last one there is.
    let at = tail
        .len()
        .checked_sub(END)
        .and_then(|last| (0..=last).rev().find(|&i| tail[i..].starts_with(b"PK\x05\x06")))
        .ok_or("it has no directory, as zip archives have")?;
    let numbers = || {
        let (count, comment) = (u16_at(at + 10)?, u16_at(at + 20)?);
        Some((count, u32_at(at + 12)?, u32_at(at + 16)?, comment))
    };
    let (count, size, offset, comment) = numbers().ok_or_else(damaged)?;
    let position = from + at as u64;
    let fits = u16_at(at + 8) == Some(count)
        && tail.len() == at + END + comment
        && offset + size <= position
        && count as u64 <= size / ENTRY;
    let longer = at.checked_sub(LOCATOR);
    if longer.is_some_and(|i| tail[i..].starts_with(b"PK\x06\x07")) {
        return Err("it is of more than 65,535 arrays or of more than 2 GiB".into());
    }
    if !fits {
        return Err(damaged());
    }
    if count > ENTRIES || size > LONGEST {
        return Err(format!(
            "it has {count} entries, named in {size} bytes; {ENTRIES} in {LONGEST} are the most"
        ));
    }
    Ok(())
}
