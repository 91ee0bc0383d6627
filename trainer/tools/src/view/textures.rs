//! Textures of a page: PNG pictures in its numbers, no more than a mail can hold.

use super::scene::Blob;
use ostler_draw::paint::{Coat, Lie};
use ostler_draw::picture::Picture;
use serde::Serialize;
use std::sync::Arc;

/// A texture as the page reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextureData {
    /// Whether it is a cube.
    pub cube: bool,
    /// Where the PNG file of each side lies in the blob, and its bytes.
    pub sides: Vec<(usize, usize)>,
}

/// A texture on a shape, see [`Coat`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PaintData {
    /// Index into the textures.
    pub texture: usize,
    /// The colour that it is multiplied with, 0 to 1.
    pub tint: [f32; 3],
    /// flat, around, coords or cube.
    pub lie: &'static str,
    /// flat: factors and offsets of x and y; else repetitions or factors.
    pub values: [f32; 4],
}

/// Textures of a scene, each once.
#[derive(Debug, Default)]
pub struct Textures(Vec<Arc<Picture>>);

impl Textures {
    /// A texture on a shape, which it enters on first use.
    pub fn paint(&mut self, coat: &Coat) -> PaintData {
        let known = self.0.iter().position(|p| Arc::ptr_eq(p, &coat.picture));
        let texture = known.unwrap_or_else(|| {
            self.0.push(Arc::clone(&coat.picture));
            self.0.len() - 1
        });
        let (lie, values) = match coat.lie {
            Lie::Flat([a, b], [c, d]) => ("flat", [a, b, c, d]),
            Lie::Around([a, b]) => ("around", [a, b, 0.0, 0.0]),
            Lie::Coords([a, b]) => ("coords", [a, b, 0.0, 0.0]),
            Lie::Cube(v) => ("cube", [v.x, v.y, v.z, 0.0]),
        };
        PaintData { texture, tint: coat.tint, lie, values }
    }

    /// Puts them into `blob`. While they have more than `most` bytes in all, the largest is made
    /// half as wide and high, which `notes` say.
    pub fn pack(self, most: usize, blob: &mut Blob, notes: &mut Vec<String>) -> Vec<TextureData> {
        let size = |sides: &[Vec<u8>]| sides.iter().map(Vec::len).sum::<usize>();
        let encoded = |picture: &Picture, halvings: usize| -> Vec<Vec<u8>> {
            let sides = picture.sides(halvings);
            sides.map(|(w, h, data)| png(w, h, data)).collect()
        };
        let mut packed: Vec<(usize, Vec<Vec<u8>>)> =
            self.0.iter().map(|p| (0, encoded(p, 0))).collect();
        let all =
            |packed: &[(usize, Vec<Vec<u8>>)]| packed.iter().map(|p| size(&p.1)).sum::<usize>();
        while all(&packed) > most {
            let largest = packed.iter_mut().zip(&self.0).max_by_key(|(p, _)| size(&p.1));
            // Thousands of pictures of a pixel are as they are.
            let Some(((halvings, sides), picture)) = largest.filter(|(p, _)| p.0 < 16) else {
                break;
            };
            *halvings += 1;
            *sides = encoded(picture, *halvings);
        }
        for ((halvings, _), picture) in packed.iter().zip(&self.0) {
            let size = |k| picture.sides(k).next().map_or((0, 0), |(w, h, _)| (w, h));
            if *halvings > 0 {
                let ((w, h), (x, y)) = (size(*halvings), size(0));
                let name = &picture.name;
                notes.push(format!(
                    "texture {name} is {w} x {h} of its {x} x {y} pixels here: a page holds {} MiB of \
                     textures",
                    most >> 20
                ));
            }
        }
        let put = |sides: Vec<Vec<u8>>, blob: &mut Blob| {
            let sides = sides.iter().map(|s| (blob.push(s), s.len()));
            sides.collect()
        };
        let packed = packed.into_iter().zip(&self.0);
        packed
            .map(|((_, sides), picture)| TextureData {
                cube: picture.cube,
                sides: put(sides, blob),
            })
            .collect()
    }
}

/// A PNG file; none where it cannot be made, which only a lack of memory can cause.
fn png(width: usize, height: usize, data: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut w| {
        w.write_image_data(data)?;
        w.finish()
    });
    debug_assert!(written.is_ok(), "{written:?}");
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_sim::model::looks::{Texture, TextureKind};

    fn coat(name: &str, width: usize) -> Coat {
        let noise = (0..3 * width * width).map(|k| {
            let word = ostler_sim::rng::philox_raw([k as u32, 0, 0, 0], [1, 2])[0];
            word as u8
        });
        let texture = Texture {
            name: name.into(),
            kind: TextureKind::Flat,
            width,
            height: width,
            data: noise.collect(),
            reduced: None,
        };
        Coat {
            picture: Arc::new(Picture::new(&texture).unwrap()),
            tint: [1.0; 3],
            lie: Lie::Around([1.0; 2]),
        }
    }

    #[test]
    fn the_largest_are_made_smaller_and_said() {
        let (large, small) = (coat("large", 128), coat("small", 16));
        let packed = |most| {
            let (mut textures, mut blob, mut notes) =
                (Textures::default(), Blob::default(), vec![]);
            let at = [&large, &small, &large].map(|c| textures.paint(c).texture);
            assert_eq!(at, [0, 1, 0]);
            let data = textures.pack(most, &mut blob, &mut notes);
            let wide = data.iter().map(|t| {
                let (at, size) = t.sides[0];
                let png = std::io::Cursor::new(&blob.bytes()[at..at + size]);
                let reader = png::Decoder::new(png).read_info().unwrap();
                reader.info().width
            });
            (wide.collect::<Vec<_>>(), blob.bytes().len(), notes)
        };
        let (wide, whole, notes) = packed(1 << 20);
        assert_eq!((wide, notes.len()), (vec![128, 16], 0));
        let (wide, less, notes) = packed(whole / 2);
        assert_eq!(wide, [64, 16]);
        assert!(less <= whole / 2 + 8, "{less} of {whole}");
        assert!(notes[0].contains("texture large is 64 x 64 of its 128 x 128"), "{notes:?}");
        assert_eq!(packed(0).0, [1, 1]);
    }
}
