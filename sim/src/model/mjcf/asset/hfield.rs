//! `<hfield>`: elevations inline, from a PNG picture or from MuJoCo's own format.

use crate::model::HField;
use crate::model::mjcf::source::{Element, Fault, Read};
use crate::model::mjcf::value::wrong;

/// Elevations as they were given, least y first.
pub(super) struct Grid {
    pub nrow: usize,
    pub ncol: usize,
    pub data: Vec<f32>,
}

/// Largest number of rows and of columns.
const MOST: usize = 1 << 14;

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
        (Some(nrow @ 1..=MOST), Some(ncol @ 1..=MOST)) if bytes.len() == 8 + 4 * nrow * ncol => {
            let floats = bytes[8..].chunks_exact(4);
            let data = floats.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            Ok(Grid {
                nrow,
                ncol,
                data: data.collect(),
            })
        }
        _ => Err(
            "neither a .png picture nor rows, columns (int32) and elevations (float32)".to_string(),
        ),
    }
}

/// The first channel at 8 bits, with the picture's last row first.
fn picture(bytes: &[u8]) -> Result<Grid, String> {
    let mut decoder = png::Decoder::new_with_limits(
        std::io::Cursor::new(bytes),
        png::Limits {
            bytes: 2 * MOST * MOST,
        },
    );
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|e| e.to_string())?;
    let size = reader.output_buffer_size().ok_or("it is too large")?;
    let (ncol, nrow) = (reader.info().width as usize, reader.info().height as usize);
    if ncol > MOST || nrow > MOST {
        return Err(format!("more than {MOST} pixels to a side"));
    }
    let mut buffer = vec![0; size];
    let frame = reader.next_frame(&mut buffer).map_err(|e| e.to_string())?;
    let step = frame.color_type.samples();
    let rows = buffer.chunks_exact(frame.line_size).take(nrow).rev();
    let data = rows.flat_map(|r| r.iter().step_by(step).take(ncol).map(|p| f32::from(*p)));
    Ok(Grid {
        nrow,
        ncol,
        data: data.collect(),
    })
}

impl Grid {
    /// Elevations stretched to 0..1.
    ///
    /// # Errors
    /// Elevations that are not finite.
    pub fn field(mut self, name: String, size: [f64; 4]) -> Result<HField, String> {
        if self.data.iter().any(|x| !x.is_finite()) {
            return Err("an elevation is not finite".into());
        }
        let low = self.data.iter().copied().fold(f32::MAX, f32::min);
        let high = self.data.iter().copied().fold(f32::MIN, f32::max);
        let range = high - low;
        for x in &mut self.data {
            *x -= low;
            if f64::from(range) > crate::model::rotation::EPS {
                *x /= range;
            }
        }
        Ok(HField {
            name,
            nrow: self.nrow,
            ncol: self.ncol,
            size,
            data: self.data,
        })
    }
}
