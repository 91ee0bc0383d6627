//! Wavefront OBJ files: vertices, and the faces of the first object that has any.

use super::cut::Cutter;
use super::solid::Surface;

/// `coords`: with texture coordinates. A mistake in these is told beside them.
///
/// # Errors
/// A line that cannot be understood, with its number.
pub(super) fn read(text: &str, coords: bool) -> Result<Surface, String> {
    let mut surface = Surface::default();
    let mut first_object = true;
    let mut cutter = Cutter::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split_ascii_whitespace();
        let wrong = |why: &str| format!("line {number} of the OBJ file: {why}");
        match words.next() {
            Some("v") => {
                let mut v = [0.0_f32; 3];
                for x in &mut v {
                    *x = words
                        .next()
                        .and_then(|w| w.parse().ok())
                        .ok_or_else(|| wrong("a vertex has three numbers"))?;
                }
                surface.vertices.push(v);
            }
            Some("vt") if coords => {
                let u = words.next().map(str::parse);
                let v = words.next().map_or(Ok(0.0), str::parse::<f32>);
                match (u, v) {
                    // MuJoCo counts from the top.
                    (Some(Ok(u)), Ok(v)) => surface.coords.points.push([u, 1.0 - v]),
                    _ => {
                        let why = wrong("a texture coordinate has two numbers");
                        surface.coords.wrong.get_or_insert(why);
                    }
                }
            }
            // As MuJoCo: only the first object's faces, but all vertices.
            Some("o" | "g") if !surface.faces.is_empty() => first_object = false,
            Some("f") if first_object => {
                let texture = words.clone();
                let corners = words
                    .map(|w| corner(w.split('/').next()?, surface.vertices.len()))
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| wrong("a face has numbers of vertices before it"))?;
                // Points and lines, which MuJoCo leaves out.
                if corners.len() < 3 {
                    continue;
                }
                let ring: Vec<_> = corners.iter().map(|c| surface.vertices[*c]).collect();
                let cut = cutter.cut(&ring).map_err(|why| wrong(&why))?;
                surface.faces.extend(cut.iter().map(|t| t.map(|k| corners[k])));
                if !coords {
                    continue;
                }
                let count = surface.coords.points.len();
                let at = texture.map(|w| match w.split('/').nth(1) {
                    None | Some("") => Some(usize::MAX),
                    Some(w) => corner(w, count),
                });
                match at.collect::<Option<Vec<_>>>() {
                    Some(at) => surface.coords.faces.extend(cut.iter().map(|t| t.map(|k| at[k]))),
                    None => {
                        let why = "a face has numbers of texture coordinates before it";
                        surface.coords.wrong.get_or_insert(wrong(why));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(surface)
}

/// `3`, `-1`: counted from 1, or backwards from the last.
fn corner(word: &str, vertices: usize) -> Option<usize> {
    let number: i64 = word.parse().ok()?;
    let vertices = i64::try_from(vertices).ok()?;
    let index = if number < 0 { vertices + number } else { number - 1 };
    (0..vertices).contains(&index).then_some(index as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_are_counted_from_one_or_backwards() {
        let text = "# a comment\nv 0 0 0\nv 1 0 0 # w\nv 0 1 0\nvn 0 0 1\nvt 0 0\nv 0 0 1\n\
                    f 1/1/1 2/1/1 3/1/1\nf 1//1 2//1 3//1 4//1\nf -1 -2 -3\nf 1 2 3 4 1\nf 1 2\no next\nv 5 5 5\nf 1 2 5\n";
        let surface = read(text, false).unwrap();
        assert_eq!(surface.vertices.len(), 5);
        let five = [[2, 3, 0], [2, 0, 0], [0, 1, 2]];
        let faces = [&[[0, 1, 2], [0, 1, 2], [0, 2, 3], [3, 2, 1]], &five[..]].concat();
        assert_eq!(surface.faces, faces);
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, words) in
            [("v 0 0", "line 1"), ("v 0 0 0\nf 1 1 2", "line 2"), ("v 0 0 0\n\nf 0 1 1", "line 3")]
        {
            assert!(read(text, false).unwrap_err().contains(words), "{text}");
        }
    }
}
