//! Learning curves of several runs in one picture: over environment steps and over
//! training time, as learners that remember take few of the one and much of the other.

use super::curve::{CurveError, FAINT, HEIGHT, INK, Metrics, Outcome, Series, WIDTH};
use super::curve::{font, short, smooth, span};
use crate::draw::Image;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::{Path, PathBuf};

/// Colours that are told apart by most eyes (Okabe and Ito 2008).
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

/// A run to draw.
#[derive(Debug, Clone)]
pub struct Curve {
    /// What the picture calls it; runs of one label share a colour.
    pub label: String,
    /// Its `metrics.jsonl`.
    pub metrics: PathBuf,
}

/// One run's returns.
struct Drawn {
    label: usize,
    over_steps: Series,
    over_time: Series,
}

/// Draws all of `curves` into the PNG `out`; `title` stands above.
///
/// # Errors
/// A run's metrics cannot be read or hold no return, or the picture cannot be written.
pub fn draw(curves: &[Curve], out: &Path, title: &str) -> Result<(), CurveError> {
    let mut labels: Vec<String> = Vec::new();
    let mut drawn = Vec::new();
    for curve in curves {
        let label = labels.iter().position(|l| *l == curve.label);
        let label = label.unwrap_or_else(|| {
            labels.push(curve.label.clone());
            labels.len() - 1
        });
        let data = Metrics::read(&curve.metrics)?;
        if data.returns.is_empty() {
            return Err(CurveError::Empty(curve.metrics.clone()));
        }
        drawn.push(Drawn {
            label,
            over_steps: data.returns,
            over_time: data.returns_over_time,
        });
    }
    let mut large = Image::new(2 * WIDTH as usize, 2 * HEIGHT as usize, [255; 3]);
    paint(&mut large.data, &drawn, &labels, title).map_err(CurveError::Plot)?;
    Ok(large.halved().write_png(out)?)
}

fn paint(buffer: &mut [u8], drawn: &[Drawn], labels: &[String], title: &str) -> Result<(), String> {
    font()?;
    let root = BitMapBackend::with_buffer(buffer, (2 * WIDTH, 2 * HEIGHT)).into_drawing_area();
    let text = |e: DrawingAreaErrorKind<_>| e.to_string();
    let (head, body) = root.split_vertically(100);
    let style = ("sans-serif", 46).into_font().color(&INK);
    head.draw(&Text::new(title.to_string(), (48, 24), style))
        .map_err(text)?;
    let panels = body.split_evenly((1, 2));
    let steps: Vec<_> = drawn.iter().map(|d| (d.label, &d.over_steps)).collect();
    let time: Vec<_> = drawn.iter().map(|d| (d.label, &d.over_time)).collect();
    panel(&panels[0], &steps, labels, "environment steps").map_err(text)?;
    panel(&panels[1], &time, &[], "training time [s]").map_err(text)?;
    root.present().map_err(text)
}

fn panel<'a>(
    area: &DrawingArea<BitMapBackend<'a>, Shift>,
    series: &[(usize, &Series)],
    labels: &[String],
    x: &str,
) -> Outcome<'a> {
    let (low, high) = span(series.iter().flat_map(|(_, s)| s.iter().map(|p| p.1)));
    let most = |s: &Series| s.iter().map(|p| p.0).fold(0.0, f64::max);
    let end = series.iter().map(|(_, s)| most(s)).fold(1.0, f64::max);
    let start = series.iter().filter_map(|(_, s)| s.first());
    let start = start.map(|p| p.0).fold(end, f64::min).max(end * 1e-4);
    let mut chart = ChartBuilder::on(area)
        .margin(24)
        .x_label_area_size(84)
        .y_label_area_size(110)
        .build_cartesian_2d((start..end).log_scale(), low..high)?;
    chart
        .configure_mesh()
        .bold_line_style(FAINT.stroke_width(2))
        .light_line_style(TRANSPARENT)
        .axis_style(INK.stroke_width(2))
        .label_style(("sans-serif", 24).into_font().color(&INK))
        .x_desc(x)
        .y_desc("mean return")
        .axis_desc_style(("sans-serif", 26).into_font().color(&INK))
        .x_label_formatter(&|v| tick(*v))
        .y_label_formatter(&|v| short(*v))
        .draw()?;
    for (label, series) in series {
        let color = COLORS[label % COLORS.len()];
        let shown = smooth(series);
        let shown = shown.into_iter().filter(|p| p.0 >= start);
        chart.draw_series(LineSeries::new(shown, color.stroke_width(4)))?;
    }
    for (i, label) in labels.iter().enumerate() {
        // An empty line carries the entry of the legend, once per label.
        let color = COLORS[i % COLORS.len()];
        chart
            .draw_series(LineSeries::new(
                std::iter::empty::<(f64, f64)>(),
                color.stroke_width(4),
            ))?
            .label(label)
            .legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 36, y)], color.stroke_width(6))
            });
    }
    if !labels.is_empty() {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .margin(20)
            .legend_area_size(48)
            .background_style(WHITE.mix(0.85))
            .border_style(FAINT)
            .label_font(("sans-serif", 26).into_font().color(&INK))
            .draw()?;
    }
    Ok(())
}

/// Labels of a logarithmic axis: 1, 2 and 5 of each power of ten. The others would stand
/// on top of one another.
fn tick(v: f64) -> String {
    let mantissa = v / 10_f64.powf(v.abs().max(f64::MIN_POSITIVE).log10().floor());
    let shown = [1.0, 2.0, 5.0, 10.0];
    match shown.iter().any(|m| (mantissa - m).abs() < 1e-3) {
        true => short(v),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn a_logarithmic_axis_is_labelled_sparsely() {
        for (v, label) in [(1e6, "1M"), (2e5, "200k"), (0.5, "0.5"), (1000.0, "1000")] {
            assert_eq!(tick(v), label);
        }
        assert_eq!([3e5, 7e5, 40.0].map(tick), ["", "", ""]);
    }

    #[test]
    fn several_runs_are_drawn_each_label_in_its_colour() {
        let dir = tempfile::tempdir().unwrap();
        let curves: Vec<Curve> = [("ppo", 1.0), ("ppo", 1.1), ("sac", 3.0)]
            .iter()
            .enumerate()
            .map(|(i, (label, height))| {
                let text = (1..200).fold(String::new(), |mut all, k| {
                    let r = height * f64::from(k);
                    let (steps, wall) = (k * 100 * (1 + i as i32), f64::from(k) * 0.1);
                    let _ = writeln!(
                        all,
                        r#"{{"env_steps":{steps},"wall_s":{wall},"Train/mean_reward":{r}}}"#
                    );
                    all
                });
                let metrics = dir.path().join(format!("{i}.jsonl"));
                std::fs::write(&metrics, text).unwrap();
                Curve {
                    label: (*label).to_string(),
                    metrics,
                }
            })
            .collect();
        let out = dir.path().join("all.png");
        draw(&curves, &out, "two learners").unwrap();
        let file = std::io::BufReader::new(std::fs::File::open(&out).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut image = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut image).unwrap();
        for color in &COLORS[..2] {
            let near = |c: &&[u8]| {
                let of = [color.0, color.1, color.2];
                c.iter().zip(of).all(|(a, b)| a.abs_diff(b) < 40)
            };
            assert!(image.chunks(3).filter(near).count() > 500);
        }
        std::fs::write(&curves[0].metrics, "").unwrap();
        let e = draw(&curves, &out, "t").unwrap_err().to_string();
        assert!(
            e.contains("0.jsonl") && e.contains("train for longer"),
            "{e}"
        );
    }
}
