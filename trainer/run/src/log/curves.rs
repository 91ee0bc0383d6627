//! Learning curves of several runs in one picture: over environment steps and over
//! training time, as learners that remember take few of the one and much of the other.

use super::curve::{CurveError, FAINT, HEIGHT, INK, Metrics, Painted, Series, WIDTH};
use super::curve::{font, room, short, smooth, span};
use crate::stats::{Interval, interquartile};
use ostler_draw::Image;
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
    /// Its name in the picture; runs of one label are seeds of one thing.
    pub label: String,
    /// Its `metrics.jsonl`.
    pub metrics: PathBuf,
}

/// Which returns are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ReturnOf {
    /// The mean returns of evaluations.
    Evaluation,
    /// The mean of the last 100 training episodes, which explore.
    Training,
}

impl ReturnOf {
    fn axis(self) -> &'static str {
        match self {
            Self::Evaluation => "mean return of evaluations",
            Self::Training => "mean return in training",
        }
    }
}

/// Result of the runs of one label.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The label.
    pub label: String,
    /// Environment steps that all of its runs have done.
    pub steps: f64,
    /// The interquartile mean of their returns there, over runs, with its 95 % interval.
    pub ret: Interval,
}

/// A picture of several runs.
#[derive(Debug)]
pub struct Drawn {
    /// Which returns it shows.
    pub of: ReturnOf,
    /// Result of each label, in the order of the curves.
    pub outcomes: Vec<Outcome>,
    /// Which metrics have a line that cannot be read, and the first such line, from 1.
    pub torn: Vec<(PathBuf, usize)>,
}

/// The runs of one label.
struct Group {
    label: String,
    runs: usize,
    over_steps: Vec<Band>,
    over_time: Vec<Band>,
}

/// A point of a curve over runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// Environment steps, or time (s).
    pub x: f64,
    /// The interquartile mean over runs, with its interval.
    pub ret: Interval,
}

/// Points of a curve whose runs were not looked at in the same places.
const POINTS: usize = 80;

/// Draws all of `curves` into the PNG `out`; `title` stands above. Without `of` they are
/// evaluations where every run has two or more, else training returns.
///
/// Several runs of one label are drawn as their interquartile mean with its 95 % bootstrap
/// interval (see [`interquartile`]), as far as all of them have come.
///
/// # Errors
/// A run's metrics cannot be read or hold no return, or the picture cannot be written.
pub fn draw(
    curves: &[Curve],
    of: Option<ReturnOf>,
    out: &Path,
    title: &str,
) -> Result<Drawn, CurveError> {
    let metrics: Vec<&Path> = curves.iter().map(|c| c.metrics.as_path()).collect();
    room(&metrics)?;
    let mut read = Vec::new();
    for curve in curves {
        read.push((curve, Metrics::read(&curve.metrics)?));
    }
    let evaluated = read.iter().all(|(_, data)| data.evaluations() > 1);
    let of = of.unwrap_or(match evaluated {
        true => ReturnOf::Evaluation,
        false => ReturnOf::Training,
    });
    let torn = read.iter().filter_map(|(curve, data)| Some((curve.metrics.clone(), data.torn?)));
    let torn = torn.collect();
    let mut labels: Vec<(String, Vec<(Series, Series)>)> = Vec::new();
    for (curve, data) in read {
        let nothing = data.nothing(&curve.metrics);
        let (over_steps, over_time) = match of {
            ReturnOf::Evaluation => data.evaluated(),
            ReturnOf::Training => {
                let (steps, time) = data.trained();
                (smooth(&steps), smooth(&time))
            }
        };
        if over_steps.is_empty() {
            let path = curve.metrics.clone();
            return Err(match of {
                ReturnOf::Evaluation => CurveError::NotEvaluated(path),
                ReturnOf::Training => nothing,
            });
        }
        let at = labels.iter().position(|l| l.0 == curve.label);
        let at = at.unwrap_or_else(|| {
            labels.push((curve.label.clone(), Vec::new()));
            labels.len() - 1
        });
        labels[at].1.push((over_steps, over_time));
    }
    let mut groups = Vec::new();
    for (label, runs) in labels {
        let over_steps: Vec<&Series> = runs.iter().map(|r| &r.0).collect();
        let over_time: Vec<&Series> = runs.iter().map(|r| &r.1).collect();
        let over_steps = over_runs(&over_steps);
        if over_steps.is_empty() {
            return Err(CurveError::Apart(label));
        }
        groups.push(Group {
            label,
            runs: runs.len(),
            over_steps,
            over_time: over_runs(&over_time),
        });
    }
    let mut large = Image::new(2 * WIDTH as usize, 2 * HEIGHT as usize, [255; 3]);
    paint(&mut large.data, &groups, of, title).map_err(CurveError::Plot)?;
    large.halved().write_png(out)?;
    let outcome = |g: Group| {
        let end = g.over_steps.last()?;
        Some(Outcome { label: g.label, steps: end.x, ret: end.ret })
    };
    Ok(Drawn { of, outcomes: groups.into_iter().filter_map(outcome).collect(), torn })
}

/// The curve over runs that each are points (x, y) with ascending x: see [`draw`]. Empty where
/// they have no stretch in common.
pub fn bands(runs: &[Vec<(f64, f64)>]) -> Vec<Band> {
    over_runs(&runs.iter().collect::<Vec<_>>())
}

/// The interquartile mean over runs, from where all of them have a value to where the
/// first ends; between its values a run is on a straight line. Empty where the runs have
/// no stretch in common.
fn over_runs(runs: &[&Series]) -> Vec<Band> {
    let first = |s: &&Series| s.first().map_or(f64::NAN, |p| p.0);
    let last = |s: &&Series| s.last().map_or(f64::NAN, |p| p.0);
    let (Some(start), Some(end)) =
        (runs.iter().map(first).reduce(f64::max), runs.iter().map(last).reduce(f64::min))
    else {
        return Vec::new();
    };
    if start > end {
        return Vec::new();
    }
    let same = |s: &&Series| s.iter().map(|p| p.0).eq(runs[0].iter().map(|p| p.0));
    let places: Vec<f64> = match runs.iter().all(same) {
        true => runs[0].iter().map(|p| p.0).collect(),
        // Evenly on the axis, which is logarithmic.
        false => {
            let low = start.max(end * 1e-4);
            let step = |k: usize| (end / low).powf(k as f64 / (POINTS - 1) as f64);
            let between = (0..POINTS - 1).map(|k| (low * step(k)).clamp(start, end));
            between.chain([end]).collect()
        }
    };
    let at = |x: f64| {
        let values: Vec<f64> = runs.iter().filter_map(|s| value_at(s, x)).collect();
        let ret = interquartile(&values, 0.95)?;
        (values.len() == runs.len()).then_some(Band { x, ret })
    };
    places.into_iter().filter_map(at).collect()
}

/// A series between its points; `None` outside.
fn value_at(series: &Series, x: f64) -> Option<f64> {
    let after = series.partition_point(|p| p.0 < x);
    let &(x1, y1) = series.get(after)?;
    if x1 == x {
        return Some(y1);
    }
    let &(x0, y0) = series.get(after.checked_sub(1)?)?;
    Some(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
}

fn paint(buffer: &mut [u8], groups: &[Group], of: ReturnOf, title: &str) -> Result<(), String> {
    font()?;
    let root = BitMapBackend::with_buffer(buffer, (2 * WIDTH, 2 * HEIGHT)).into_drawing_area();
    let text = |e: DrawingAreaErrorKind<_>| e.to_string();
    let several = groups.iter().any(|g| g.runs > 1);
    let (head, body) = root.split_vertically(if several { 130 } else { 100 });
    let style = |size: i32| ("sans-serif", size).into_font().color(&INK);
    head.draw(&Text::new(title.to_string(), (48, 24), style(46))).map_err(text)?;
    if several {
        let meaning = "lines: interquartile mean over the runs of a label; bands: its 95 % bootstrap interval";
        head.draw(&Text::new(meaning, (48, 84), style(26))).map_err(text)?;
    }
    let panels = body.split_evenly((1, 2));
    let steps: Vec<_> = groups.iter().map(|g| g.over_steps.as_slice()).collect();
    let time: Vec<_> = groups.iter().map(|g| g.over_time.as_slice()).collect();
    let label = |g: &Group| match g.runs {
        1 => g.label.clone(),
        n => format!("{} ({n} runs)", g.label),
    };
    let labels: Vec<String> = groups.iter().map(label).collect();
    let y = of.axis();
    panel(&panels[0], &steps, &labels, "environment steps", y).map_err(text)?;
    panel(&panels[1], &time, &[], "training time [s]", y).map_err(text)?;
    root.present().map_err(text)
}

fn panel<'a>(
    area: &DrawingArea<BitMapBackend<'a>, Shift>,
    curves: &[&[Band]],
    labels: &[String],
    x: &str,
    y: &str,
) -> Painted<'a> {
    let points = || curves.iter().flat_map(|c| c.iter());
    let ends = |p: &Band| [p.ret.low, Some(p.ret.mean), p.ret.high].into_iter().flatten();
    let (low, high) = span(points().flat_map(ends));
    let end = points().map(|p| p.x).fold(1.0, f64::max);
    let start = points().map(|p| p.x).fold(end, f64::min).max(end * 1e-4);
    // A decade at the least: a shorter axis has no labels.
    let start = start.min(end * 0.1);
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
        .y_desc(y)
        .axis_desc_style(("sans-serif", 26).into_font().color(&INK))
        .x_label_formatter(&|v| tick(*v))
        .y_label_formatter(&|v| short(*v))
        .draw()?;
    let shown = |i: usize| curves[i].iter().filter(|p| p.x >= start);
    for i in 0..curves.len() {
        let bound = |of: fn(&Interval) -> Option<f64>| {
            shown(i).filter_map(move |p| Some((p.x, of(&p.ret)?)))
        };
        let mut band: Vec<_> = bound(|r| r.low).collect();
        let above: Vec<_> = bound(|r| r.high).collect();
        band.extend(above.into_iter().rev());
        let color = COLORS[i % COLORS.len()].mix(0.2);
        chart.draw_series([Polygon::new(band, color.filled())])?;
    }
    for i in 0..curves.len() {
        let color = COLORS[i % COLORS.len()];
        let means = shown(i).map(|p| (p.x, p.ret.mean));
        chart.draw_series(LineSeries::new(means, color.stroke_width(4)))?;
    }
    for (i, label) in labels.iter().enumerate() {
        // An empty line carries the entry of the legend, once per label.
        let color = COLORS[i % COLORS.len()];
        chart
            .draw_series(LineSeries::new(std::iter::empty::<(f64, f64)>(), color.stroke_width(4)))?
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

    /// `metrics.jsonl` of a run whose training return rises to `height`, and which is
    /// evaluated at twice that every 20 iterations, if at all.
    fn run(dir: &Path, name: &str, height: f64, each: u32, evaluated: bool) -> PathBuf {
        let text = (1..200).fold(String::new(), |mut all, k| {
            let r = height * f64::from(k) / 199.0;
            let (steps, wall) = (k * each, f64::from(k) * 0.1);
            let mean = match evaluated && k % 20 == 0 {
                true => format!(",\"Eval/mean_reward\":{}", 2.0 * r),
                false => String::new(),
            };
            let _ = writeln!(
                all,
                r#"{{"env_steps":{steps},"wall_s":{wall},"Train/mean_reward":{r}{mean}}}"#
            );
            all
        });
        let metrics = dir.join(format!("{name}.jsonl"));
        std::fs::write(&metrics, text).unwrap();
        metrics
    }

    fn curve(label: &str, metrics: PathBuf) -> Curve {
        let label = label.to_string();
        Curve { label, metrics }
    }

    fn pixels(png: &Path, near: [u8; 3]) -> usize {
        let file = std::io::BufReader::new(std::fs::File::open(png).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut image = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut image).unwrap();
        let is_near = |c: &&[u8]| c.iter().zip(near).all(|(a, b)| a.abs_diff(b) < 12);
        image.chunks(3).filter(is_near).count()
    }

    #[test]
    fn runs_of_a_label_are_one_curve_with_a_band() {
        let dir = tempfile::tempdir().unwrap();
        let heights = [100.0, 104.0, 96.0, 102.0, 0.0];
        let mut curves: Vec<Curve> = heights
            .iter()
            .enumerate()
            .map(|(i, h)| curve("ppo", run(dir.path(), &format!("p{i}"), *h, 100, true)))
            .collect();
        curves.push(curve("sac", run(dir.path(), "s", 300.0, 300, true)));
        let out = dir.path().join("all.png");
        let drawn = draw(&curves, None, &out, "two learners").unwrap();
        assert_eq!(drawn.of, ReturnOf::Evaluation);
        let [ppo, sac] = drawn.outcomes.as_slice() else {
            panic!("{drawn:?}");
        };
        // The last evaluation is that of iteration 180; of 0, 96, 100, 102 and 104 the
        // three in the middle count.
        let at = 2.0 * 180.0 / 199.0;
        let middle = (96.0 + 100.0 + 102.0) / 3.0 * at;
        assert!((ppo.ret.mean - middle).abs() < 1e-6, "{ppo:?}");
        assert_eq!((ppo.ret.n, ppo.steps), (5, 18_000.0));
        assert!(ppo.ret.low.unwrap() < middle - 20.0 && ppo.ret.high.unwrap() < 104.0 * at);
        assert_eq!((sac.ret.n, sac.ret.low, sac.steps), (1, None, 54_000.0));
        // The line, and the band in a fifth of its colour over white.
        let RGBColor(r, g, b) = COLORS[0];
        assert!(pixels(&out, [r, g, b]) > 300);
        let faint = [r, g, b].map(|c| (255.0 - 0.2 * (255.0 - f64::from(c))) as u8);
        assert!(pixels(&out, faint) > 2000, "{}", pixels(&out, faint));
        let RGBColor(r, g, b) = COLORS[1];
        assert!(pixels(&out, [r, g, b]) > 300);
    }

    #[test]
    fn training_returns_are_drawn_where_a_run_was_not_evaluated() {
        let dir = tempfile::tempdir().unwrap();
        let curves = [
            curve("a", run(dir.path(), "a", 100.0, 100, true)),
            curve("b", run(dir.path(), "b", 50.0, 100, false)),
        ];
        let out = dir.path().join("all.png");
        let drawn = draw(&curves, None, &out, "").unwrap();
        assert_eq!(drawn.of, ReturnOf::Training);
        assert!((drawn.outcomes[0].ret.mean - 100.0).abs() < 1e-9);
        let e = draw(&curves, Some(ReturnOf::Evaluation), &out, "").unwrap_err();
        assert!(e.to_string().contains("b.jsonl holds no evaluation"), "{e}");
        std::fs::write(&curves[0].metrics, "").unwrap();
        let e = draw(&curves, None, &out, "t").unwrap_err().to_string();
        assert!(e.contains("a.jsonl") && e.contains("train for longer"), "{e}");
    }

    #[test]
    fn runs_of_different_steps_are_averaged_where_all_have_values() {
        let a: Series = vec![(0.0, 0.0), (10.0, 10.0), (20.0, 20.0)];
        let b: Series = vec![(4.0, 8.0), (16.0, 32.0)];
        let all = over_runs(&[&a, &b]);
        let (first, last) = (all[0], all[all.len() - 1]);
        assert_eq!((first.x, last.x), (4.0, 16.0));
        assert!((first.ret.mean - 6.0).abs() < 1e-9 && (last.ret.mean - 24.0).abs() < 1e-9);
        assert!(over_runs(&[&a, &vec![(30.0, 1.0)]]).is_empty());
        assert_eq!(value_at(&a, 5.0), Some(5.0));
        assert_eq!((value_at(&b, 3.0), value_at(&b, 17.0)), (None, None));
    }
}
