//! Small mesh files for tests.

use std::path::Path;

/// A binary STL file of these triangles.
pub fn stl(faces: &[[[f32; 3]; 3]]) -> Vec<u8> {
    let mut out = vec![0; 80];
    out.extend((faces.len() as u32).to_le_bytes());
    for face in faces {
        out.extend([0; 12]);
        out.extend(face.iter().flatten().flat_map(|x| x.to_le_bytes()));
        out.extend([0; 2]);
    }
    out
}

/// A tetrahedron that no turn maps onto itself, away from its origin: an STL file.
pub fn wedge() -> Vec<u8> {
    let [a, b, c, d] = [[0.1, 0.2, 0.3], [0.5, 0.2, 0.3], [0.1, 0.4, 0.3], [0.1, 0.2, 0.9]];
    stl(&[[a, c, b], [a, b, d], [a, d, c], [b, c, d]])
}

/// Writes a file and the folders it is in.
///
/// # Panics
/// It cannot be written.
pub fn put(path: &Path, bytes: impl AsRef<[u8]>) {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, bytes)).unwrap();
}
