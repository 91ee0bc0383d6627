//! `<hfield>`: elevations inline, from a PNG picture or from MuJoCo's own format.

use crate::HField;
use crate::mjcf::element::{Element, Fault, Read};
use crate::mjcf::value::wrong;

/// Elevations as they were given, least y first.
pub(super) struct Grid {
    pub nrow: usize,
    pub ncol: usize,
    pub data: Vec<f32>,
}

/// Largest number of rows and of columns.
const MOST: usize = 1 << 14;
/// Most elevations: 1024 by 2048. A few bytes can ask for more than a computer has.
const MOST_CELLS: usize = 1 << 21;

fn too_many(nrow: usize, ncol: usize) -> String {
    format!("{nrow} rows of {ncol} elevations; at most {MOST_CELLS} in all are supported")
}

/// Elevations in the element itself, top row first; zeros without `elevation`.
pub(super) fn inline(e: &Element) -> Read<Grid> {
    let (mut nrow, mut ncol) = (0, 0);
    e.unsigned("nrow", &mut nrow)?;
    e.unsigned("ncol", &mut ncol)?;
    let (nrow, ncol) = (nrow as usize, ncol as usize);
    if !(1..=MOST).contains(&nrow) || !(1..=MOST).contains(&ncol) {
        let why = format!("<hfield> needs a file, or nrow and ncol between 1 and {MOST}");
        return Err(Fault::new(e.at, why));
    }
    if nrow * ncol > MOST_CELLS {
        return Err(Fault::new(e.at, too_many(nrow, ncol)));
    }
    let data = match (e.numbers("elevation")?, e.attr("elevation")) {
        (Some(values), Some(attr)) => {
            if values.len() != nrow * ncol {
                let why = format!("needs {} numbers, not {}", nrow * ncol, values.len());
                return Err(wrong(attr, &why));
            }
            let rows = values.chunks_exact(ncol).rev();
            rows.flatten().map(|x| *x as f32).collect()
        }
        _ => vec![0.0; nrow * ncol],
    };
    Ok(Grid { nrow, ncol, data })
}

/// Elevations of a file.
///
/// # Errors
/// Neither a PNG picture nor a file of MuJoCo's format.
pub(super) fn file(name: &str, bytes: &[u8]) -> Result<Grid, String> {
    if name.to_ascii_lowercase().ends_with(".png") {
        return picture(bytes).map_err(|e| format!("not a PNG picture that can be read: {e}"));
    }
    let number = |i: usize| -> Option<usize> {
        let b = bytes.get(4 * i..4 * i + 4)?;
        usize::try_from(i32::from_le_bytes(b.try_into().ok()?)).ok()
    };
    match (number(0), number(1)) {
        (Some(nrow @ 1..=MOST), Some(ncol @ 1..=MOST)) if nrow * ncol > MOST_CELLS => {
            Err(too_many(nrow, ncol))
        }
        (Some(nrow @ 1..=MOST), Some(ncol @ 1..=MOST)) if bytes.len() == 8 + 4 * nrow * ncol => {
            let floats = bytes[8..].chunks_exact(4);
            let data = floats.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            Ok(Grid { nrow, ncol, data: data.collect() })
        }
        _ => {
            Err("neither a .png picture nor rows, columns (int32) and elevations (float32)"
                .to_string())
        }
    }
}

/// The first channel at 8 bits, with the picture's last row first.
fn picture(bytes: &[u8]) -> Result<Grid, String> {
    let mut decoder = png::Decoder::new_with_limits(
        std::io::Cursor::new(bytes),
        png::Limits {
            // Several samples, of which one is kept.
            bytes: 8 * MOST_CELLS,
        },
    );
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|e| e.to_string())?;
    let (ncol, nrow) = (reader.info().width as usize, reader.info().height as usize);
    if ncol > MOST || nrow > MOST {
        return Err(format!("more than {MOST} pixels to a side"));
    }
    if ncol * nrow > MOST_CELLS {
        return Err(too_many(nrow, ncol));
    }
    let size = reader.output_buffer_size().ok_or("it is too large")?;
    let mut buffer = vec![0; size];
    let frame = reader.next_frame(&mut buffer).map_err(|e| e.to_string())?;
    let step = frame.color_type.samples();
    let rows = buffer.chunks_exact(frame.line_size).take(nrow).rev();
    let data = rows.flat_map(|r| r.iter().step_by(step).take(ncol).map(|p| f32::from(*p)));
    Ok(Grid { nrow, ncol, data: data.collect() })
}

impl Grid {
    /// Elevations stretched to 0..1.
    ///
    /// # Errors
    /// Elevations that are not finite.
    pub(crate) fn field(mut self, name: String, size: [f64; 4]) -> Result<HField, String> {
        if self.data.iter().any(|x| !x.is_finite()) {
            return Err("an elevation is not finite".into());
        }
        let low = self.data.iter().copied().fold(f32::MAX, f32::min);
        let high = self.data.iter().copied().fold(f32::MIN, f32::max);
        let range = high - low;
        for x in &mut self.data {
            *x -= low;
            if f64::from(range) > crate::rotation::EPS {
                *x /= range;
            }
        }
        Ok(HField { name, nrow: self.nrow, ncol: self.ncol, size, data: self.data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32, whole: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Grayscale);
        let mut writer = encoder.write_header().unwrap();
        match whole {
            true => {
                let data = vec![0; (width * height) as usize];
                writer.write_image_data(&data).unwrap();
            }
            false => writer.write_chunk(png::chunk::IDAT, &[0x78, 0x9c]).unwrap(),
        }
        drop(writer);
        bytes
    }

    /// A picture of zeros, or its header alone, is small.
    #[test]
    fn fields_are_bounded_before_they_are_made() {
        for (width, height, words) in [
            (16_000, 16_000, "at most 2097152"),
            (60_000, 60_000, "more than 16384 pixels"),
            (2, 20_000, "more than 16384 pixels"),
        ] {
            let bytes = png(width, height, false);
            let why = file("a.png", &bytes).err().unwrap();
            assert!(why.contains(words), "{why}");
        }
        let bytes = png(2049, 1024, true);
        assert!(bytes.len() < 10_000, "{}", bytes.len());
        let why = file("a.png", &bytes).err().unwrap();
        assert!(why.contains("at most 2097152"), "{why}");
        let grid = file("a.png", &png(2048, 1024, true)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((grid.nrow, grid.ncol, grid.data.len()), (1024, 2048, 1 << 21));

        let head = |nrow: i32, ncol: i32| [nrow.to_le_bytes(), ncol.to_le_bytes()].concat();
        for (nrow, ncol) in [(16_384, 16_384), (2049, 1024)] {
            let why = file("a.bin", &head(nrow, ncol)).err().unwrap();
            assert!(why.contains("at most"), "{why}");
        }
        let text = "<mujoco><asset><hfield name=\"h\" size=\"1 1 1 1\" nrow=\"16384\" ncol=\"16384\"/></asset><worldbody><geom type=\"hfield\" hfield=\"h\"/></worldbody></mujoco>";
        let path = std::path::Path::new("r.xml");
        let why = crate::mjcf::parse(path, text.into()).unwrap_err();
        assert!(why.to_string().contains("at most 2097152"), "{why}");
    }
}
