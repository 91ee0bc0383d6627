//! MuJoCo's own binary MSH files, which it still reads.
//!
//! Source: MuJoCo, XML reference, "asset/mesh": four 32-bit numbers (of vertices, normals,
//! texture coordinates, faces), then the vertices, normals, texture coordinates as 32-bit
//! floats, then the faces' vertices as 32-bit integers.

use super::solid::Surface;

/// Bytes of the four numbers in front.
const HEADER: usize = 16;

/// `coords`: with texture coordinates.
///
/// # Errors
/// Not such a file, or faces of vertices that are not there.
pub(super) fn read(bytes: &[u8], coords: bool) -> Result<Surface, String> {
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let other =
        || "not one of MuJoCo's binary MSH files (of other programs: save as OBJ)".to_string();
    let mut counts = [0_usize; 4];
    for (i, count) in counts.iter_mut().enumerate() {
        *count = word(4 * i).ok_or_else(other)? as usize;
    }
    let [vertices, normals, textures, faces] = counts;
    let numbers = [(vertices, 3), (normals, 3), (textures, 2), (faces, 3)];
    let length = numbers
        .iter()
        .try_fold(HEADER, |sum, (count, each)| sum.checked_add(count.checked_mul(4 * each)?));
    if length != Some(bytes.len()) || vertices == 0 {
        return Err(other());
    }
    if faces == 0 {
        return Err("a mesh without faces: save it with its triangles".into());
    }
    let float = |at: usize| word(at).map_or(0.0, f32::from_bits);
    let mut surface = Surface::default();
    for v in 0..vertices {
        let at = HEADER + 12 * v;
        surface.vertices.push([float(at), float(at + 4), float(at + 8)]);
    }
    for t in 0..if coords { textures } else { 0 } {
        let at = HEADER + 12 * (vertices + normals) + 8 * t;
        surface.coords.points.push([float(at), float(at + 4)]);
    }
    let first = bytes.len() - 12 * faces;
    for f in 0..faces {
        let corner = |k: usize| word(first + 12 * f + 4 * k).unwrap_or(u32::MAX) as usize;
        let face = [corner(0), corner(1), corner(2)];
        if let Some(lost) = face.iter().find(|v| **v >= vertices) {
            return Err(format!("face {f} has vertex {lost} of {vertices}"));
        }
        surface.faces.push(face);
    }
    Ok(surface)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(counts: [u32; 4], floats: &[f32], faces: &[u32]) -> Vec<u8> {
        let mut out: Vec<u8> = counts.iter().flat_map(|c| c.to_le_bytes()).collect();
        out.extend(floats.iter().flat_map(|x| x.to_le_bytes()));
        out.extend(faces.iter().flat_map(|x| x.to_le_bytes()));
        out
    }

    #[test]
    fn vertices_and_faces_are_read_past_normals_and_textures() {
        let vertices = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0];
        let rest = [9.0; 3 + 2];
        let floats = [&vertices[..], &rest].concat();
        let surface = read(&file([3, 1, 1, 2], &floats, &[0, 1, 2, 2, 1, 0]), false).unwrap();
        assert_eq!(surface.vertices[2], [0.0, 2.0, 0.0]);
        assert_eq!(surface.faces, [[0, 1, 2], [2, 1, 0]]);
    }

    #[test]
    fn damaged_files_are_refused() {
        let whole = file([1, 0, 0, 1], &[0.0; 3], &[0, 0, 0]);
        assert!(read(&whole, false).is_ok());
        for bytes in [&[][..], &whole[..15], &whole[..whole.len() - 1]] {
            assert!(read(bytes, false).unwrap_err().contains("MSH"));
        }
        let huge = file([u32::MAX; 4], &[], &[]);
        assert!(read(&huge, false).unwrap_err().contains("MSH"));
        let lost = file([1, 0, 0, 1], &[0.0; 3], &[0, 0, 1]);
        assert!(read(&lost, false).unwrap_err().contains("vertex 1 of 1"));
        let none = file([1, 0, 0, 0], &[0.0; 3], &[]);
        assert!(read(&none, false).unwrap_err().contains("without faces"));
    }
}
