//! Heights of a tile from a file.

/// Largest number of rows and of columns, most samples in all.
const MOST: usize = 1 << 13;
const MOST_SAMPLES: usize = 1 << 22;
/// Largest height (m).
const MOST_HEIGHT: f64 = 1000.0;

/// Heights from edge to edge of a square.
#[derive(Debug)]
pub(super) struct Samples {
    rows: usize,
    columns: usize,
    /// `[y][x]`: m, or 0 to 1 of a picture.
    data: Vec<f64>,
    pub picture: bool,
}

impl Samples {
    /// # Errors
    /// Neither a PNG picture nor a NumPy file of heights.
    pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let lower = name.to_ascii_lowercase();
        let samples = match () {
            () if lower.ends_with(".png") => picture(bytes)?,
            () if lower.ends_with(".npy") => numpy(bytes)?,
            () => return Err("neither a .png nor a .npy file".into()),
        };
        let bad = |x: &f64| !x.is_finite() || x.abs() > MOST_HEIGHT;
        if let Some(i) = samples.data.iter().position(bad) {
            let (row, column, x) = (i / samples.columns, i % samples.columns, samples.data[i]);
            return Err(format!("{x} at row {row}, column {column} is no height in m"));
        }
        Ok(samples)
    }

    /// Between the four nearest samples; `y` and `x` from 0 to 1.
    pub(super) fn at(&self, y: f64, x: f64) -> f64 {
        let place = |t: f64, n: usize| {
            let t = t * (n - 1) as f64;
            let i = (t as usize).min(n - 2);
            (i, t - i as f64)
        };
        let ((r, v), (c, u)) = (place(y, self.rows), place(x, self.columns));
        let row = |r: usize| {
            let at = r * self.columns + c;
            self.data[at] * (1.0 - u) + self.data[at + 1] * u
        };
        row(r) * (1.0 - v) + row(r + 1) * v
    }
}

fn bounded(rows: usize, columns: usize) -> Result<(), String> {
    let side = 2..=MOST;
    if !side.contains(&rows) || !side.contains(&columns) || rows * columns > MOST_SAMPLES {
        return Err(format!(
            "{rows} rows of {columns} heights; 2 to {MOST} each are supported, {MOST_SAMPLES} in \
             all"
        ));
    }
    Ok(())
}

/// The heights of a grey picture, its last row first. One that is stored with colours is grey if
/// they are the same everywhere.
fn picture(bytes: &[u8]) -> Result<Samples, String> {
    use png::ColorType::{GrayscaleAlpha, Rgba};
    let said = |e: png::DecodingError| format!("not a PNG picture that can be read: {e}");
    // Four samples of two bytes, of which one is kept.
    let limits = png::Limits { bytes: 8 * MOST_SAMPLES };
    let mut decoder = png::Decoder::new_with_limits(std::io::Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(said)?;
    let (columns, rows) = (reader.info().width as usize, reader.info().height as usize);
    bounded(rows, columns)?;
    let size = reader.output_buffer_size().ok_or("it is too large")?;
    let mut buffer = vec![0; size];
    let frame = reader.next_frame(&mut buffer).map_err(said)?;
    let wide = frame.bit_depth == png::BitDepth::Sixteen;
    let (color, size) = (frame.color_type, if wide { 2 } else { 1 });
    let step = size * color.samples();
    let shown = step - size * usize::from(matches!(color, Rgba | GrayscaleAlpha));
    for (row, line) in buffer.chunks_exact(frame.line_size.max(1)).take(rows).enumerate() {
        for (column, pixel) in line.chunks_exact(step).take(columns).enumerate() {
            let (grey, alpha) = pixel.split_at(shown);
            let what = match () {
                () if grey.chunks_exact(size).any(|x| x != &grey[..size]) => "is coloured",
                () if alpha.iter().any(|x| *x != u8::MAX) => "is transparent",
                () => continue,
            };
            return Err(format!(
                "the pixel at row {row}, column {column} {what}; heights are shades of grey"
            ));
        }
    }
    let value = |pixel: &[u8]| match (wide, pixel) {
        (true, [a, b, ..]) => f64::from(u16::from_be_bytes([*a, *b])) / 65535.0,
        (_, [a, ..]) => f64::from(*a) / 255.0,
        _ => 0.0,
    };
    let lines = buffer.chunks_exact(frame.line_size.max(1)).take(rows).rev();
    let data = lines.flat_map(|line| line.chunks_exact(step).take(columns).map(value));
    Ok(Samples { rows, columns, data: data.collect(), picture: true })
}

/// NumPy's own format: a header that is a Python dictionary, then the numbers.
fn numpy(bytes: &[u8]) -> Result<Samples, String> {
    let broken = "not a NumPy file that can be read";
    let version = bytes.strip_prefix(b"\x93NUMPY").ok_or(broken)?;
    let (length, rest) = match version {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        _ => return Err(broken.into()),
    };
    let (header, data) = rest.split_at_checked(length).ok_or(broken)?;
    let header = std::str::from_utf8(header).map_err(|_| broken)?;
    let after = |key: &str| header.split_once(key).map(|(_, rest)| rest.trim_start());
    let descr = after("'descr':").and_then(|rest| rest.split('\'').nth(1)).ok_or(broken)?;
    let bytes_each = match descr {
        "<f4" => 4,
        "<f8" => 8,
        other => return Err(format!("numbers of type {other}; float32 or float64 are supported")),
    };
    let turned = after("'fortran_order':").is_some_and(|rest| rest.starts_with("True"));
    let shape = after("'shape':").and_then(|rest| rest.strip_prefix('('));
    let (shape, _) = shape.and_then(|rest| rest.split_once(')')).ok_or(broken)?;
    let sizes = shape.split(',').map(str::trim).filter(|s| !s.is_empty());
    let sizes: Result<Vec<usize>, _> = sizes.map(str::parse).collect();
    let [rows, columns] = sizes.map_err(|_| broken)?[..] else {
        return Err(format!("an array of shape ({shape}); it must have two dimensions"));
    };
    bounded(rows, columns)?;
    if data.len() != rows * columns * bytes_each {
        let wanted = rows * columns * bytes_each;
        return Err(format!("{} bytes of numbers; {rows} x {columns} are {wanted}", data.len()));
    }
    let number = |i: usize| match &data[i * bytes_each..(i + 1) * bytes_each] {
        [a, b, c, d] => f64::from(f32::from_le_bytes([*a, *b, *c, *d])),
        eight => eight.try_into().map_or(f64::NAN, f64::from_le_bytes),
    };
    let place = |i: usize| match turned {
        true => i % columns * rows + i / columns,
        false => i,
    };
    let data = (0..rows * columns).map(|i| number(place(i))).collect();
    Ok(Samples { rows, columns, data, picture: false })
}
