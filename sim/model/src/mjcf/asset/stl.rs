//! Binary STL files.

use super::solid::Surface;
use std::collections::HashMap;

/// MuJoCo's largest number of faces in an STL file.
const MAX_FACES: usize = 200_000;
/// Header and number of faces, then one record per face (bytes).
const HEADER: usize = 84;
const RECORD: usize = 50;

/// Vertices that several faces share are made one.
///
/// # Errors
/// Not a binary STL file, or numbers that cannot be a robot's.
pub(super) fn read(bytes: &[u8]) -> Result<Surface, String> {
    let ascii = "this may be a text STL: save it as binary STL or OBJ";
    let count = bytes.get(80..HEADER).and_then(|b| <[u8; 4]>::try_from(b).ok());
    let count = count.map_or(0, |b| u32::from_le_bytes(b) as usize);
    if count == 0 || count > MAX_FACES || bytes.len() != HEADER + RECORD * count {
        return Err(format!("not a binary STL file of 1 to {MAX_FACES} faces ({ascii})"));
    }
    let mut known = HashMap::new();
    let mut surface = Surface::default();
    for record in bytes[HEADER..].chunks_exact(RECORD) {
        let mut face = [0; 3];
        // The normal comes first and is not used.
        for (corner, place) in face.iter_mut().zip(record[12..48].chunks_exact(12)) {
            let mut v = [0.0_f32; 3];
            for (x, b) in v.iter_mut().zip(place.chunks_exact(4)) {
                *x = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            }
            let next = surface.vertices.len();
            *corner = *known.entry(v.map(f32::to_bits)).or_insert_with(|| {
                surface.vertices.push(v);
                next
            });
        }
        surface.faces.push(face);
    }
    Ok(surface)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(faces: &[[[f32; 3]; 3]]) -> Vec<u8> {
        let mut out = vec![b' '; 80];
        out.extend((faces.len() as u32).to_le_bytes());
        for face in faces {
            out.extend([0; 12]);
            for x in face.iter().flatten() {
                out.extend(x.to_le_bytes());
            }
            out.extend([0; 2]);
        }
        out
    }

    #[test]
    fn shared_corners_are_one_vertex() {
        let [a, b, c, d] = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let surface = read(&file(&[[a, b, c], [a, c, d]])).unwrap();
        assert_eq!(surface.vertices, [a, b, c, d]);
        assert_eq!(surface.faces, [[0, 1, 2], [0, 2, 3]]);
    }

    #[test]
    fn other_files_are_refused() {
        let whole = file(&[[[0.0; 3]; 3]]);
        let text = b"solid cube\nfacet normal 0 0 1\n".repeat(9);
        for bytes in [&[][..], &whole[..83], &whole[..whole.len() - 1], &text] {
            assert!(read(bytes).unwrap_err().contains("binary STL"));
        }
    }
}
