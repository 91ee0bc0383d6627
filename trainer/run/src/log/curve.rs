//! The learning curve as a PNG, from `metrics.jsonl` alone, so that it can be drawn
//! again at any time. Fonts come with the program.

use super::lines::Lines;
use ostler_draw::{BESIDE, DrawError, Image, room_for};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Size of the picture; it is drawn at twice this and halved, as plotters' lines
/// have hard edges.
pub(super) const WIDTH: u32 = 960;
pub(super) const HEIGHT: u32 = 600;

pub(super) const INK: RGBColor = RGBColor(38, 50, 66);
pub(super) const FAINT: RGBColor = RGBColor(226, 231, 237);
const BLUE: RGBColor = RGBColor(28, 98, 168);
const ORANGE: RGBColor = RGBColor(217, 119, 30);
const GREEN: RGBColor = RGBColor(36, 130, 110);

/// Larger numbers are not drawn.
const MOST: f64 = 1e30;

/// A learning curve that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum CurveError {
    /// The metrics cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// No iteration has a mean return yet.
    #[error("{} holds no mean return yet: no episode has ended; train for longer", .0.display())]
    Empty(PathBuf),
    /// None of its lines can be read.
    #[error("{}: line {line} cannot be read, and no other one holds a mean return: the file is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first such line, from 1.
        line: usize,
    },
    /// No evaluation was logged.
    #[error("{} holds no evaluation: runner.eval_interval was 0, or the first has not come; --return-of training draws the training returns", .0.display())]
    NotEvaluated(PathBuf),
    /// Runs of one label that have no number of steps in common.
    #[error(
        "the runs of \"{0}\" have no stretch of environment steps in common: one begins after another ends; give them labels of their own"
    )]
    Apart(String),
    /// The picture could not be drawn.
    #[error("cannot draw the learning curve: {0}")]
    Plot(String),
    /// The picture cannot be written.
    #[error(transparent)]
    Write(#[from] DrawError),
}

/// Numbers over environment steps.
pub(super) type Series = Vec<(f64, f64)>;

/// An evaluation.
#[derive(Debug)]
pub(super) struct Evaluated {
    steps: f64,
    wall_s: f64,
    mean: f64,
    /// Half the width of the mean's 95 % confidence interval.
    ci95: f64,
    /// Below it are the worst 5 % of the episodes.
    quantile_5: Option<f64>,
}

/// Curves of a run.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// Training returns, without the first ones.
    returns: Series,
    /// The same over training time (s).
    returns_over_time: Series,
    /// The first ones: means of few episodes, and of short ones alone.
    early: Series,
    early_over_time: Series,
    lengths: Series,
    evaluations: Vec<Evaluated>,
    noise: Series,
    value_loss: Series,
    steps: f64,
    wall_s: f64,
    /// The first line that is no JSON, from 1, unless it is the last.
    pub(super) torn: Option<usize>,
}

impl Metrics {
    pub(super) fn read(path: &Path) -> Result<Self, CurveError> {
        let fail = |source| CurveError::Read { path: path.to_path_buf(), source };
        let mut lines = Lines::open(path).map_err(fail)?;
        let mut all = Self::default();
        let (mut number, mut torn) = (0, None);
        while let Some(line) = lines.next_line().map_err(fail)? {
            number += 1;
            // A line that is being written, or was torn by a crash, is no reason to
            // show nothing.
            let Ok(line) = serde_json::from_slice::<serde_json::Value>(line) else {
                torn.get_or_insert(number);
                continue;
            };
            // Axes of numbers whose difference overflows are counted for ever.
            let get = |tag: &str| {
                let x = line.get(tag).and_then(serde_json::Value::as_f64)?;
                (x.abs() <= MOST).then_some(x)
            };
            let Some(steps) = get("env_steps") else {
                continue;
            };
            all.steps = all.steps.max(steps);
            all.wall_s = all.wall_s.max(get("wall_s").unwrap_or(0.0));
            let (over_steps, over_time) = match get("Train/early_mean") {
                Some(1.0) => (&mut all.early, &mut all.early_over_time),
                _ => (&mut all.returns, &mut all.returns_over_time),
            };
            if let Some(value) = get("Train/mean_reward") {
                over_steps.push((steps, value));
                over_time.extend(get("wall_s").map(|wall| (wall, value)));
            }
            for (tag, series) in [
                ("Train/mean_episode_length", &mut all.lengths),
                ("Policy/mean_std", &mut all.noise),
                ("Loss/value_function", &mut all.value_loss),
            ] {
                series.extend(get(tag).map(|value| (steps, value)));
            }
            if let Some(mean) = get("Eval/mean_reward") {
                all.evaluations.push(Evaluated {
                    steps,
                    wall_s: get("wall_s").unwrap_or(0.0),
                    mean,
                    ci95: get("Eval/ci95_reward").unwrap_or(0.0),
                    quantile_5: get("Eval/quantile_5_reward"),
                });
            }
        }
        // The last one may be being written.
        all.torn = torn.filter(|line| *line < number);
        Ok(all)
    }

    /// Why there is nothing to be drawn.
    pub(super) fn nothing(&self, path: &Path) -> CurveError {
        let path = path.to_path_buf();
        match self.torn {
            Some(line) => CurveError::Damaged { path, line },
            None => CurveError::Empty(path),
        }
    }

    /// Training returns over steps and over time: the first ones only where there are no
    /// others.
    pub(super) fn trained(self) -> (Series, Series) {
        match self.returns.is_empty() {
            true => (self.early, self.early_over_time),
            false => (self.returns, self.returns_over_time),
        }
    }

    /// Means of evaluations over steps and over time.
    pub(super) fn evaluated(&self) -> (Series, Series) {
        let all = self.evaluations.iter();
        let over_steps = all.clone().map(|e| (e.steps, e.mean)).collect();
        (over_steps, all.map(|e| (e.wall_s, e.mean)).collect())
    }

    /// How many evaluations there are.
    pub(super) fn evaluations(&self) -> usize {
        self.evaluations.len()
    }
}

/// Draws the curve of the run whose `metrics.jsonl` is given into the PNG `out`.
pub fn draw(metrics: &Path, out: &Path, title: &str) -> Result<(), CurveError> {
    Ok(picture(metrics, title)?.write_png(out)?)
}

/// The same into the folder of a run, which somebody else may have made: whatever has the
/// name `out` is replaced.
pub(crate) fn redraw(metrics: &Path, out: &Path, title: &str) -> Result<(), CurveError> {
    Ok(picture(metrics, title)?.replace_png(out)?)
}

/// Memory for pictures of so many bytes of metrics: a number of them takes three bytes at least,
/// and is kept twice, with room to grow.
pub(super) fn room(metrics: &[&Path]) -> Result<(), CurveError> {
    // A hole has no line in it, and may claim to be larger than any memory.
    let stored = |m: Metadata| m.len().min(m.blocks().saturating_mul(512));
    let length = |path: &&Path| std::fs::metadata(path).map_or(0, stored);
    let read: u64 = metrics.iter().map(length).sum();
    let pictures = 6 * 3 * (WIDTH * HEIGHT) as usize;
    let read = usize::try_from(read.saturating_mul(2)).unwrap_or(usize::MAX);
    Ok(room_for(read.saturating_add(pictures + BESIDE))?)
}

fn picture(metrics: &Path, title: &str) -> Result<Image, CurveError> {
    room(&[metrics])?;
    let data = Metrics::read(metrics)?;
    if data.returns.is_empty() && data.early.is_empty() && data.evaluations.is_empty() {
        return Err(data.nothing(metrics));
    }
    let mut large = Image::new(2 * WIDTH as usize, 2 * HEIGHT as usize, [255; 3]);
    paint(&mut large.data, &data, title).map_err(CurveError::Plot)?;
    Ok(large.halved())
}

/// Makes the font that comes with the program known.
pub(super) fn font() -> Result<(), String> {
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular())
        .map_err(|_| "the built-in font is damaged".to_string())
}

fn paint(buffer: &mut [u8], data: &Metrics, title: &str) -> Result<(), String> {
    font()?;
    let root = BitMapBackend::with_buffer(buffer, (2 * WIDTH, 2 * HEIGHT)).into_drawing_area();
    let text = |e: DrawingAreaErrorKind<_>| e.to_string();
    let (head, body) = root.split_vertically(120);
    let style = |size: i32| ("sans-serif", size).into_font().color(&INK);
    head.draw(&Text::new(title.to_string(), (48, 24), style(46))).map_err(text)?;
    head.draw(&Text::new(subtitle(data), (48, 80), style(28))).map_err(text)?;
    let (top, bottom) = body.split_vertically(690);
    main_panel(&top, data).map_err(text)?;
    let panels = [
        ("episode length [steps]", &data.lengths, GREEN),
        ("action noise (mean std)", &data.noise, ORANGE),
        ("value loss", &data.value_loss, BLUE),
    ];
    let shown: Vec<_> = panels.into_iter().filter(|p| !p.1.is_empty()).collect();
    for (area, (name, series, color)) in
        bottom.split_evenly((1, shown.len().max(1))).iter().zip(shown)
    {
        small_panel(area, name, series, color, data.steps).map_err(text)?;
    }
    root.present().map_err(text)
}

type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;
pub(super) type Painted<'a> =
    Result<(), DrawingAreaErrorKind<<BitMapBackend<'a> as DrawingBackend>::ErrorType>>;

/// Mean return: in training every iteration faint and a running mean bold, which begins
/// where full-length episodes are among those that count; evaluations as points with the
/// 95 % confidence interval of their means, and the 5 % quantile below.
fn main_panel<'a>(area: &Area<'a>, data: &Metrics) -> Painted<'a> {
    let evaluated = data.evaluations.iter();
    let worst: Series = evaluated.clone().filter_map(|e| Some((e.steps, e.quantile_5?))).collect();
    let values = (data.early.iter().chain(&data.returns).chain(&worst).map(|p| p.1))
        .chain(evaluated.flat_map(|e| [e.mean - e.ci95, e.mean + e.ci95]));
    let (low, high) = span(values);
    let mut chart = ChartBuilder::on(area)
        .margin(24)
        .margin_right(56)
        .x_label_area_size(84)
        .y_label_area_size(130)
        .build_cartesian_2d(0.0..data.steps.max(1.0), low..high)?;
    chart
        .configure_mesh()
        .bold_line_style(FAINT.stroke_width(2))
        .light_line_style(TRANSPARENT)
        .axis_style(INK.stroke_width(2))
        .label_style(("sans-serif", 26).into_font().color(&INK))
        .x_desc("environment steps")
        .y_desc("mean return")
        .axis_desc_style(("sans-serif", 28).into_font().color(&INK))
        .x_label_formatter(&|v| short(*v))
        .y_label_formatter(&|v| short(*v))
        .draw()?;
    for series in [&data.early, &data.returns] {
        let style = BLUE.mix(0.35).stroke_width(1);
        chart.draw_series(LineSeries::new(series.iter().copied(), style))?;
    }
    let line = |color: RGBColor, width: u32| {
        move |(x, y)| PathElement::new(vec![(x, y), (x + 36, y)], color.stroke_width(width))
    };
    chart
        .draw_series(LineSeries::new(smooth(&data.returns), BLUE.stroke_width(5)))?
        .label("in training (last 100 episodes, with exploration)")
        .legend(line(BLUE, 6));
    if data.evaluations.is_empty() {
        return Ok(());
    }
    let means = data.evaluations.iter().map(|e| (e.steps, e.mean));
    chart
        .draw_series(LineSeries::new(means, ORANGE.stroke_width(4)))?
        .label("evaluated, with the mean's 95 % confidence interval")
        .legend(line(ORANGE, 6));
    chart
        .draw_series(LineSeries::new(worst, ORANGE.stroke_width(1)))?
        .label("evaluated: 5 % of the episodes are below")
        .legend(line(ORANGE, 2));
    for e in &data.evaluations {
        let ends = vec![(e.steps, e.mean - e.ci95), (e.steps, e.mean + e.ci95)];
        chart.draw_series([PathElement::new(ends, ORANGE.stroke_width(3))])?;
        chart.draw_series([Circle::new((e.steps, e.mean), 7, ORANGE.filled())])?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .margin(20)
        .legend_area_size(48)
        .background_style(WHITE.mix(0.85))
        .border_style(FAINT)
        .label_font(("sans-serif", 24).into_font().color(&INK))
        .draw()?;
    Ok(())
}

fn small_panel<'a>(
    area: &Area<'a>,
    name: &str,
    series: &Series,
    color: RGBColor,
    steps: f64,
) -> Painted<'a> {
    let (low, high) = span(series.iter().map(|p| p.1));
    let mut chart = ChartBuilder::on(area)
        .margin(20)
        .margin_right(36)
        .caption(name, ("sans-serif", 26).into_font().color(&INK))
        .x_label_area_size(48)
        .y_label_area_size(96)
        .build_cartesian_2d(0.0..steps.max(1.0), low..high)?;
    chart
        .configure_mesh()
        .bold_line_style(FAINT.stroke_width(2))
        .light_line_style(TRANSPARENT)
        .axis_style(INK.stroke_width(2))
        .label_style(("sans-serif", 22).into_font().color(&INK))
        .x_labels(4)
        .y_labels(4)
        .x_label_formatter(&|v| short(*v))
        .y_label_formatter(&|v| short(*v))
        .draw()?;
    // Raw values only as hairlines: wide strokes turn sharp corners into spikes that
    // leave the panel.
    chart.draw_series(LineSeries::new(series.iter().copied(), color.mix(0.35).stroke_width(1)))?;
    chart.draw_series(LineSeries::new(smooth(series), color.stroke_width(4)))?;
    Ok(())
}

/// Its cost and its return.
fn subtitle(data: &Metrics) -> String {
    let seconds = data.wall_s;
    let time = match seconds {
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    };
    let evaluated = data.evaluations.last().map(|e| ("evaluated", e.mean));
    let trained = data.returns.last().or(data.early.last());
    let trained = trained.map(|p| ("in training", p.1));
    let end = evaluated
        .or(trained)
        .map(|(how, value)| format!(", mean return {} at the end ({how})", short(value)));
    format!("{} environment steps in {time}{}", short(data.steps), end.unwrap_or_default())
}

/// Smallest and largest value with a margin; never empty.
pub(super) fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if low > high {
        return (0.0, 1.0);
    }
    let pad = 0.06 * (high - low).max(1e-3 * high.abs()).max(1e-6);
    (low - pad, high + pad)
}

/// Means over a window of a thirtieth of the points, centred, shorter at the ends.
pub(super) fn smooth(series: &Series) -> Series {
    let half = series.len() / 60;
    let mut out = Vec::with_capacity(series.len());
    for k in 0..series.len() {
        let reach = half.min(k).min(series.len() - 1 - k);
        let window = &series[k - reach..=k + reach];
        let mean = window.iter().map(|p| p.1).sum::<f64>() / window.len() as f64;
        out.push((series[k].0, mean));
    }
    out
}

/// A number in few characters: 1.5M, 20k, 0.25.
pub fn short(v: f64) -> String {
    let digits = |v: f64| {
        let text = format!("{v:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    };
    match v.abs() {
        a if a >= 1e9 => digits(v / 1e9) + "G",
        a if a >= 1e6 => digits(v / 1e6) + "M",
        a if a >= 1e4 => digits(v / 1e3) + "k",
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 0.01 => digits(v),
        0.0 => "0".to_string(),
        _ => format!("{v:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn metrics(lines: usize) -> String {
        (1..=lines).fold(String::new(), |mut all, k| {
            let r = 1000.0 * (1.0 - (-(k as f64) / 40.0).exp()) + 30.0 * (k as f64 * 2.7).sin();
            let _ = writeln!(
                all,
                r#"{{"iteration":{k},"env_steps":{},"wall_s":{},"Train/mean_reward":{r},"Train/mean_episode_length":{},"Policy/mean_std":{},"Loss/value_function":{}}}"#,
                k * 2048,
                k as f64 * 0.02,
                r * 0.9,
                1.0 / (1.0 + k as f64 / 50.0),
                (5000.0 / k as f64)
            );
            all
        })
    }

    fn dark(image: &[u8]) -> usize {
        image.chunks(3).filter(|c| c.iter().all(|&b| b < 110)).count()
    }

    #[test]
    fn a_curve_is_drawn_with_its_text_and_rises() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("metrics.jsonl"), dir.path().join("curve.png"));
        std::fs::write(&from, metrics(200) + "{\"iteration\":201,\"env_st").unwrap();
        draw(&from, &to, "cart-pole").unwrap();
        let file = std::io::BufReader::new(std::fs::File::open(&to).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut image = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut image).unwrap();
        assert_eq!(image.len(), (WIDTH * HEIGHT * 3) as usize);
        let row = 3 * WIDTH as usize;
        // The title's letters are there: no font had to be installed.
        assert!(dark(&image[..60 * row]) > 200);
        // The bold line is low at the left and high at the right.
        let blue = |x: usize| {
            (60..400).find(|y| {
                let c = &image[y * row + 3 * x..][..3];
                c[2] > 120 && c[0] < 80 && c[1] < 130
            })
        };
        let (left, right) = (blue(110).unwrap(), blue(900).unwrap());
        assert!(left > right + 80, "{left} {right}");
    }

    #[test]
    fn no_return_yet_is_an_error_that_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("metrics.jsonl");
        std::fs::write(&from, "{\"iteration\":1,\"env_steps\":5,\"Train/mean_reward\":null}\n")
            .unwrap();
        let error = draw(&from, &dir.path().join("c.png"), "x").unwrap_err();
        assert!(matches!(error, CurveError::Empty(_)), "{error}");
        let error = draw(&dir.path().join("none"), &dir.path().join("c.png"), "x").unwrap_err();
        assert!(matches!(error, CurveError::Read { .. }), "{error}");
        // A hole takes no memory.
        let hole = std::fs::File::create(&from).unwrap();
        hole.set_len(1 << 42).unwrap();
        let error = draw(&from, &dir.path().join("c.png"), "x").unwrap_err();
        assert!(matches!(error, CurveError::Empty(_)), "{error}");
    }

    #[test]
    fn one_point_and_constant_values_are_drawn() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("metrics.jsonl");
        std::fs::write(&from, metrics(1)).unwrap();
        draw(&from, &dir.path().join("c.png"), "x").unwrap();
        let flat = "{\"env_steps\":0,\"Train/mean_reward\":0}\n{\"env_steps\":0,\"Train/mean_reward\":0}\n";
        std::fs::write(&from, flat).unwrap();
        draw(&from, &dir.path().join("c.png"), "x").unwrap();
    }

    #[test]
    fn numbers_are_short() {
        let all = [0.0, 0.25, 950.0, 1500.0, 20_000.0, 1.5e6, -3.2e9, 1e-4];
        let texts = all.map(short);
        assert_eq!(texts, ["0", "0.25", "950", "1500", "20k", "1.5M", "-3.2G", "1.0e-4"]);
    }

    #[test]
    fn numbers_beyond_all_bounds_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let metrics = dir.path().join("m.jsonl");
        let lines = [(1e308, -1e308), (1.0, 1e308), (2.0, 5.0)].map(|(steps, x)| {
            format!(
                "{{\"iteration\":1,\"env_steps\":{steps},\"Train/mean_reward\":{x},\"Eval/mean_reward\":{x},\"Eval/ci95_reward\":1e308}}\n"
            )
        });
        std::fs::write(&metrics, lines.concat()).unwrap();
        draw(&metrics, &dir.path().join("c.png"), "t").unwrap();
    }
}
