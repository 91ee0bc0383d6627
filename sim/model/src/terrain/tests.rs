use super::*;
use ostler_base::rng::{Purpose, philox};

const NOTHING: &dyn Fn(&str) -> Result<Vec<u8>, String> = &|_| Err("there is no such file".into());

fn of(kinds: &[KindWord]) -> TerrainPlan {
    let kinds = kinds.iter().map(|kind| KindPlan::new(*kind)).collect();
    TerrainPlan { tile: 6.0, levels: 3, columns: 11, kinds, ..TerrainPlan::default() }
}

fn all() -> TerrainPlan {
    use KindWord::*;
    let mut plan = of(&[Flat, Rough, Wave, Slope, Stairs, Boxes, Stones, Gap, Rails, Pit, File]);
    plan.kinds[10].file = Some("hill.npy".into());
    plan.kinds[1].downsampled_scale = Some(0.4);
    plan
}

/// A NumPy file.
fn numpy(rows: usize, columns: usize, data: &[f32]) -> Vec<u8> {
    let header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(data.iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

fn hill(_: &str) -> Result<Vec<u8>, String> {
    Ok(numpy(3, 2, &[0.0, 0.25, 0.5, 0.75, -0.5, 1.0]))
}

fn make(plan: &TerrainPlan) -> (Terrain, Vec<String>) {
    Terrain::generate(plan, &hill).unwrap_or_else(|e| panic!("{e}"))
}

/// Points of the world within the tiles, and a little beyond.
fn points(terrain: &Terrain, count: u32) -> impl Iterator<Item = [f64; 2]> {
    let [x, y] = terrain.corner().map(|c| 2.1 * c);
    (0..count)
        .map(move |i| {
            let [a, b, ..] = philox(3, 0, Purpose::Custom, 0, i);
            [x, y]
                .into_iter()
                .zip([a, b])
                .map(|(side, w)| side * (f64::from(w) / 2f64.powi(32) - 0.5))
        })
        .map(|mut p| [p.next().unwrap_or(0.0), p.next().unwrap_or(0.0)])
}

#[test]
fn a_seed_gives_one_ground() {
    let mut plan = all();
    let (first, _) = make(&plan);
    assert_eq!(make(&plan).0, first);
    plan.seed = 1;
    let (other, _) = make(&plan);
    for (column, kind) in first.column_kinds.iter().enumerate() {
        let random = ["rough", "boxes", "stones"].contains(&first.kinds[*kind].as_str());
        let tile = 2 * first.columns + column;
        let range = first.index(tile, 0, 0)..first.index(tile + 1, 0, 0);
        assert_eq!(first.heights[range.clone()] != other.heights[range], random, "{column}");
    }
}

#[test]
fn a_tile_depends_on_its_own_place_alone() {
    let plan = of(&[KindWord::Boxes]);
    let (few, _) = make(&TerrainPlan { columns: 2, ..plan.clone() });
    let (many, _) = make(&plan);
    for level in 0..3 {
        let tile = |t: &Terrain, column| {
            let tile = level * t.columns + column;
            t.heights[t.index(tile, 0, 0)..t.index(tile + 1, 0, 0)].to_vec()
        };
        assert_eq!(tile(&few, 1), tile(&many, 1));
        assert!(level == 0 || tile(&many, 1) != tile(&many, 2));
    }
}

#[test]
fn stairs_go_up_and_down_in_whole_steps() {
    let mut plan = of(&[KindWord::Stairs, KindWord::Stairs, KindWord::Stairs]);
    plan.columns = 3;
    plan.tile = 8.0;
    plan.kinds[1].inverted = Some(true);
    plan.kinds[2].step_width = Some(0.33);
    let (terrain, notes) = make(&plan);
    assert_eq!(terrain.kinds, ["stairs", "stairs_inverted", "stairs 2"]);
    assert_eq!(
        notes,
        ["terrain kind stairs 2: step_width 0.33 m became 0.3 m, a whole number of cells"]
    );
    let [x, y] = terrain.corner();
    for (level, step) in [(0, 0.0), (1, 0.1), (2, 0.2)] {
        let at = |column: f64, along: f64| {
            terrain.height(x + 8.0 * level as f64 + along, y + 8.0 * column + 4.0)
        };
        // The border, each step in its middle, the platform.
        for k in 0..7 {
            let along = if k == 0 { 0.5 } else { 0.85 + 0.3 * f64::from(k) };
            let height = step * f64::from(k);
            assert!((at(0.0, along) - height).abs() < 1e-6, "{level} {k}");
            assert!((at(1.0, along) + height).abs() < 1e-6, "{level} {k}");
            assert!((at(0.0, 8.0 - along) - height).abs() < 1e-6, "{level} {k}");
        }
        let origin = terrain.origins[3 * level];
        assert!((origin[2] - 6.0 * step).abs() < 1e-9);
        assert!((origin[0] - (x + 8.0 * level as f64 + 4.0)).abs() < 1e-9);
        assert!((origin[1] - (y + 4.0)).abs() < 1e-9);
    }
}

#[test]
fn levels_grow() {
    let (terrain, _) = make(&all());
    let size = terrain.index(1, 0, 0);
    for (column, kind) in terrain.column_kinds.iter().enumerate() {
        let spread = |level: usize| {
            let tile = &terrain.heights[(level * terrain.columns + column) * size..][..size];
            let low = tile.iter().copied().fold(f32::MAX, f32::min);
            tile.iter().copied().fold(f32::MIN, f32::max) - low
        };
        let [easy, middle, hard] = [0, 1, 2].map(spread);
        match terrain.kinds[*kind].as_str() {
            "flat" => assert!(hard < 1e-6),
            "rough" => assert!((0.05..0.2).contains(&easy) && (0.05..0.2).contains(&hard)),
            // Wider, and as deep.
            "gap" | "file" => assert!(easy == middle && middle == hard),
            name => assert!(easy < middle && middle < hard, "{name}: {easy} {middle} {hard}"),
        }
    }
}

#[test]
fn kinds_are_level_or_triangles() {
    let (terrain, _) = make(&all());
    for (column, kind) in terrain.column_kinds.iter().enumerate() {
        let level = !["rough", "wave", "slope", "file"].contains(&terrain.kinds[*kind].as_str());
        for (r, c) in [(0, 0), (17, 31), (59, 59)] {
            assert_eq!(terrain.is_level(column, r, c), level);
        }
        for (r, c) in [(0, 60), (60, 17), (60, 60)] {
            assert!(!terrain.is_level(column, r, c));
        }
    }
    let ends = [f32::min, f32::max].map(|f| terrain.heights.iter().copied().fold(0.0, f));
    assert!((0..2).all(|k| (f64::from(ends[k]) - terrain.range[k]).abs() < 1e-6), "{ends:?}");
    assert!(ends[0] < 0.0 && ends[1] > 0.0);
}

#[test]
fn heights_between_corners_follow_the_triangles() {
    let terrain = Terrain {
        levels: 1,
        columns: 1,
        cells: 2,
        cell: 0.5,
        heights: [0.0, 0.5, 0.0, 0.25, 1.0, 0.0, 0.0, 0.0, 2.0]
            .map(|h: f32| f32::from_bits(h.to_bits() & !1))
            .to_vec(),
        origins: vec![[0.0; 3]],
        column_kinds: vec![0],
        kinds: vec!["file".into()],
        range: [0.0, 2.0],
        roof: Roof::default(),
    };
    // The first cell: corners 0 and 0.5 along x, 0.25 and 1 beyond. u = 0.5, v = 0.25.
    assert_eq!(terrain.height(-0.25, -0.375), 0.5 * 0.5 + 0.25 * 0.5);
    // v above u.
    assert_eq!(terrain.height(-0.375, -0.25), 0.5 * 0.25 + 0.25 * 0.75);
    let slant = |x: f64, y: f64| {
        let length = (x * x + y * y + 1.0).sqrt();
        [-x / length, -y / length, 1.0 / length]
    };
    assert_eq!(terrain.normal(-0.25, -0.375), slant(1.0, 1.0));
    assert_eq!(terrain.normal(-0.375, -0.25), slant(1.5, 0.5));
    for (x, y) in [(-0.51, 0.0), (0.0, 0.5), (0.5, 0.0), (1e300, 0.0), (f64::NAN, 0.0)] {
        assert_eq!((terrain.height(x, y), terrain.normal(x, y)), (0.0, [0.0, 0.0, 1.0]));
    }
    let mut terrain = terrain;
    terrain.heights[4] = f32::from_bits(terrain.heights[4].to_bits() | 1);
    assert_eq!(terrain.height(0.49, 0.01), 1.0);
    assert_eq!(terrain.normal(0.49, 0.01), [0.0, 0.0, 1.0]);
}

/// Height of a part at a point that it covers.
fn covered(part: &TerrainPart, x: f64, y: f64) -> Option<f64> {
    match part {
        TerrainPart::Box { center, size } => {
            let inside = (x - center[0]).abs() < size[0] && (y - center[1]).abs() < size[1];
            inside.then_some(center[2] + size[2])
        }
        TerrainPart::Field { corner, cells, cell, heights, bottom } => {
            let [u, v] = [(x - corner[0]) / cell, (y - corner[1]) / cell];
            if u < 0.0 || v < 0.0 || u >= cells[1] as f64 || v >= cells[0] as f64 {
                return None;
            }
            let (r, c) = (v as usize, u as usize);
            let [u, v] = [u - c as f64, v - r as f64];
            let at = |r: usize, c: usize| f64::from(heights[r * (cells[1] + 1) + c]);
            assert!(*bottom < at(r, c));
            let (low, high) = (at(r, c), at(r + 1, c + 1));
            Some(match v >= u {
                true => low + v * (at(r + 1, c) - low) + u * (high - at(r + 1, c)),
                false => low + u * (at(r, c + 1) - low) + v * (high - at(r, c + 1)),
            })
        }
    }
}

#[test]
fn parts_cover_the_ground_once() {
    let (mut terrain, _) = make(&all());
    // A tile of both.
    for r in 10..20 {
        for c in 5..40 {
            let at = terrain.index(1, r, c);
            terrain.heights[at] = f32::from_bits(terrain.heights[at].to_bits() | 1);
        }
    }
    let parts = terrain.parts();
    for [x, y] in points(&terrain, 4000) {
        let heights: Vec<f64> = parts.iter().filter_map(|p| covered(p, x, y)).collect();
        let expected = terrain.height(x, y);
        assert_eq!(heights.len(), 1, "at {x}, {y}");
        assert!((heights[0] - expected).abs() < 1e-6, "{heights:?} {expected} at {x}, {y}");
    }
    // A flat tile is one box, stairs are few.
    assert!(parts.len() < 3000, "{}", parts.len());
    let (flat, _) = make(&of(&[KindWord::Flat]));
    assert_eq!(flat.parts().len(), 33 + 4);
}

#[test]
fn columns_are_dealt_by_shares() {
    let mut plan = of(&[KindWord::Flat, KindWord::Stairs, KindWord::Rails, KindWord::Pit]);
    for (shares, columns, expected) in [
        ([0.2, 0.3, 0.5, 0.0], 10, [2, 3, 5, 0]),
        ([0.1, 0.1, 0.4, 0.4], 20, [2, 2, 8, 8]),
        // A small share gets a column of the largest.
        ([0.001, 0.0, 0.399, 0.6], 3, [1, 0, 1, 1]),
    ] {
        plan.columns = columns;
        for (kind, share) in plan.kinds.iter_mut().zip(shares) {
            kind.share = Some(share);
        }
        let (terrain, _) = make(&plan);
        let count = |k: usize| terrain.column_kinds.iter().filter(|c| **c == k).count();
        assert_eq!([0, 1, 2, 3].map(count), expected);
        assert!(terrain.column_kinds.is_sorted());
    }
}

#[test]
fn lengths_are_rounded_and_clipped_with_a_note() {
    let mut plan = of(&[KindWord::Gap, KindWord::Rails, KindWord::Rough]);
    plan.kinds[0].platform = Some(5.05);
    plan.kinds[1].rail_thickness = Some(LevelRange::Range([0.1, 2.0]));
    plan.kinds[2].border = Some(0.25);
    plan.kinds[2].downsampled_scale = Some(0.5);
    let (_, mut notes) = make(&plan);
    notes.sort();
    let words = [
        "terrain kind gap: gap_width 0.45 m became 0.5 m, a whole number of cells",
        "terrain kind gap: platform 5.05 m became 5 m, a whole number of cells in the middle",
        "terrain kind rails: rail_thickness",
        "terrain kind rough: border 0.25 m became 0.3 m, a whole number of cells",
        "terrain kind rough: downsampled_scale became 0.490909 m, so that points lie at the edges",
    ];
    assert_eq!(notes.len(), words.len(), "{notes:?}");
    for (note, words) in notes.iter().zip(words) {
        assert!(note.starts_with(words), "{note}");
    }
}

#[test]
fn plans_are_written_as_they_are_read() {
    let text = r#"{"tile": 4, "kinds": [
        {"kind": "stairs", "step_height": [0.05, 0.2], "platform": 1.0},
        {"kind": "wave", "amplitude": 0.1, "waves": 2}]}"#;
    let plan: TerrainPlan = serde_json::from_str(text).unwrap();
    assert_eq!(plan.kinds[0].step_height, Some(LevelRange::Range([0.05, 0.2])));
    assert_eq!(plan.kinds[1].amplitude, Some(LevelRange::One(0.1)));
    let again: TerrainPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(again, plan);
    assert_eq!(
        Terrain::summary(&plan).unwrap(),
        [
            "stairs: 10 columns, step_height 0.05 to 0.2 m, step_width 0.3 m, platform 1 m, \
             border 1 m",
            "wave: 10 columns, amplitude 0.1 m, waves 2, border 0.2 m",
        ]
    );
    for wrong in [
        r#"{"kinds": [{"kind": "stairs", "step": 1}]}"#,
        r#"{"kinds": [{"kind": "hills"}]}"#,
        r#"{"kinds": [{"kind": "stairs", "step_height": [1, 2, 3]}]}"#,
        r#"{"kinds": [{"share": 1}]}"#,
    ] {
        assert!(serde_json::from_str::<TerrainPlan>(wrong).is_err(), "{wrong}");
    }
}

/// A change of [`all`], where the error is, and words of it.
type Case = (fn(&mut TerrainPlan), &'static str, &'static str);

#[test]
fn errors_say_where_and_why() {
    let cases: &[Case] = &[
        (|p| p.kinds.clear(), "kinds", "no kinds"),
        (|p| p.tile = 6.04, "tile", "no whole number of cells of 0.1 m (tile = 6)"),
        (|p| p.tile = 0.1, "tile", "less than two cells"),
        (|p| p.tile = f64::NAN, "tile", "not a positive number"),
        (|p| p.cell = -0.1, "cell", "not a positive number"),
        (|p| p.cell = 1e-300, "cell", "at most 16777216 cells"),
        (|p| p.levels = 0, "levels", "at least 1"),
        (|p| p.columns = 0, "columns", "at least 1"),
        (|p| p.levels = 1 << 30, "cell", "at most 16777216 cells"),
        (|p| p.columns = 10, "columns", "10 columns are too few for 11 kinds (at least 11)"),
        (|p| p.kinds[2].share = Some(0.5), "kinds[0].share", "all or none"),
        (|p| p.kinds[2].share = Some(f64::NAN), "kinds[0].share", "all or none"),
        (
            |p| p.kinds.iter_mut().for_each(|k| k.share = Some(0.1)),
            "kinds",
            "shares sum to 1.1, not to 1",
        ),
        (
            |p| p.kinds.iter_mut().for_each(|k| k.share = Some(-0.1)),
            "kinds[0].share",
            "-0.1 is not between 0 and 1",
        ),
        (
            |p| p.kinds[0].border = Some(1.0),
            "kinds[0].border",
            "flat does not take it (flat takes nothing but share)",
        ),
        (
            |p| p.kinds[4].slope = Some(LevelRange::One(1.0)),
            "kinds[4].slope",
            "takes step_height, step_width, platform, border, inverted",
        ),
        (|p| p.kinds[5].inverted = Some(false), "kinds[5].inverted", "boxes does not take it"),
        (|p| p.kinds[5].file = Some("a".into()), "kinds[5].file", "boxes does not take it"),
        (|p| p.kinds[10].file = None, "kinds[10].file", "missing"),
        (|p| p.kinds[4].platform = Some(6.5), "kinds[4].platform", "more than a tile of 6 m"),
        (|p| p.kinds[4].border = Some(2.0), "kinds[4].border", "too much for a tile of 6 m"),
        (|p| p.kinds[1].border = Some(3.0), "kinds[1].border", "3 m on both sides is too much"),
        (
            |p| p.kinds[4].step_height = Some(LevelRange::Range([0.1, f64::INFINITY])),
            "kinds[4].step_height",
            "not a finite number",
        ),
        (
            |p| p.kinds[4].step_height = Some(LevelRange::Range([0.1, -0.2])),
            "kinds[4].step_height",
            "-0.2 m is negative",
        ),
        (|p| p.kinds[4].step_width = Some(0.0), "kinds[4].step_width", "0 m is not positive"),
        (|p| p.kinds[2].waves = Some(0), "kinds[2].waves", "0 is not positive"),
        (
            |p| p.kinds[3].slope = Some(LevelRange::One(1e9)),
            "kinds[3].slope",
            "1000000000 is more than 1000",
        ),
        (
            |p| p.kinds[1].noise_low = Some(LevelRange::Range([0.0, 0.2])),
            "kinds[1].noise_low",
            "0.2 m is above noise_high = 0.1 m",
        ),
        (|p| p.kinds[1].noise_step = Some(1e-9), "kinds[1].noise_step", "too small"),
        (
            |p| p.kinds[1].downsampled_scale = Some(0.05),
            "kinds[1].downsampled_scale",
            "0.05 m is less than a cell",
        ),
        (
            |p| p.kinds[10].height = Some(LevelRange::One(1.0)),
            "kinds[10].height",
            "height is for pictures",
        ),
    ];
    for (change, path, words) in cases {
        let mut plan = all();
        change(&mut plan);
        let error = Terrain::generate(&plan, &hill).unwrap_err();
        assert_eq!(error.path, *path, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

fn png(bits: png::BitDepth, width: u32, data: &[u8]) -> Vec<u8> {
    coloured(png::ColorType::Grayscale, bits, width, data)
}

fn coloured(color: png::ColorType, bits: png::BitDepth, width: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, 2);
    encoder.set_color(color);
    encoder.set_depth(bits);
    encoder.write_header().unwrap().write_image_data(data).unwrap();
    bytes
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let mut plan = of(&[KindWord::File]);
    let mut fails = |name: &str, bytes: Vec<u8>, words: &str| {
        plan.kinds[0].file = Some(name.into());
        let error = Terrain::generate(&plan, &|_| Ok(bytes.clone())).unwrap_err();
        assert_eq!(error.path, "kinds[0].file");
        assert!(error.message.starts_with(&format!("\"{name}\": ")), "{error}");
        assert!(error.message.contains(words), "{error}");
    };
    let good = numpy(2, 2, &[0.0; 4]);
    fails("a.bin", good.clone(), "neither a .png nor a .npy");
    fails("a.png", good.clone(), "not a PNG picture");
    fails("a.png", png(png::BitDepth::Eight, 1, &[0, 0]), "2 rows of 1 heights");
    use png::BitDepth::{Eight, Sixteen};
    let (rgb, both) = (png::ColorType::Rgb, png::ColorType::GrayscaleAlpha);
    let red = [9, 9, 9, 8, 8, 8, 7, 7, 7, 7, 6, 7];
    fails("a.png", coloured(rgb, Eight, 2, &red), "row 1, column 1 is coloured");
    let wide = [1, 2, 255, 255, 1, 2, 255, 255, 3, 4, 255, 254, 3, 4, 255, 255];
    fails("a.png", coloured(both, Sixteen, 2, &wide), "row 1, column 0 is transparent");
    fails("a.npy", good[..good.len() - 1].to_vec(), "15 bytes of numbers; 2 x 2 are 16");
    fails("a.npy", good[..9].to_vec(), "not a NumPy file");
    fails("a.npy", numpy(1, 4, &[0.0; 4]), "1 rows of 4 heights; 2 to 8192");
    fails("a.npy", numpy(1 << 13, 1 << 13, &[]), "4194304 in all");
    fails("a.npy", numpy(2, 2, &[0.0, 0.0, f32::NAN, 0.0]), "NaN at row 1, column 0");
    fails("a.npy", numpy(2, 2, &[0.0, 2000.0, 0.0, 0.0]), "2000 at row 0, column 1");
    let changed = |from: &str, to: &str| {
        let text = good.iter().map(|b| char::from(*b)).collect::<String>().replace(from, to);
        text.chars().map(|c| c as u8).collect::<Vec<u8>>()
    };
    fails("a.npy", changed("<f4", "<i4"), "numbers of type <i4");
    fails("a.npy", changed("(2, 2)", "(2,  )"), "two dimensions");
    fails("a.npy", changed("(2, 2)", "(2, x)"), "not a NumPy file");
    plan.kinds[0].file = Some("gone.png".into());
    let error = Terrain::generate(&plan, NOTHING).unwrap_err();
    assert_eq!(error.to_string(), "kinds[0].file: \"gone.png\": there is no such file");
}

#[test]
fn files_reach_from_edge_to_edge() {
    let mut plan = of(&[KindWord::File]);
    plan.kinds[0].file = Some("hill.npy".into());
    let corners = |t: &Terrain| {
        [(0, 0), (0, 60), (60, 0), (60, 60)].map(|(r, c)| t.heights[t.index(0, r, c)])
    };
    let close = |got: [f32; 4], want: [f32; 4]| {
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?} {want:?}");
    };
    let (terrain, _) = make(&plan);
    close(corners(&terrain), [0.0, 0.25, -0.5, 1.0]);
    let middle = terrain.heights[terrain.index(0, 30, 30)];
    assert!((middle - 0.625).abs() < 1e-6);
    // A picture's last row is at least y; white is as high as the level says.
    plan.kinds[0].file = Some("hill.png".into());
    plan.kinds[0].height = Some(LevelRange::Range([2.0, 4.0]));
    let eight = png(png::BitDepth::Eight, 2, &[0, 255, 51, 0]);
    let sixteen = png(png::BitDepth::Sixteen, 2, &[0, 0, 255, 255, 51, 51, 0, 0]);
    for bytes in [eight, sixteen] {
        let (terrain, _) = Terrain::generate(&plan, &|_| Ok(bytes.clone())).unwrap();
        close(corners(&terrain), [0.4, 0.0, 0.0, 2.0]);
        let last = terrain.heights[terrain.index(2 * 11, 60, 60)];
        assert!((last - 4.0).abs() < 1e-6);
    }
}

#[test]
fn a_roof_is_over_all_that_is_near() {
    for cell in [0.05, 0.1, 0.3] {
        let (terrain, _) = make(&TerrainPlan { cell, ..all() });
        let [[x0, y0], [_, up]] = [terrain.corner(), terrain.blocks().map(|n| n as f64)];
        let side = terrain.block() as f64 * cell;
        let (mut told, mut lower) = (0, 0);
        for (i, [x, y]) in points(&terrain, 4000).enumerate() {
            let (bx, by) = (((x - x0) / side).floor(), ((y - y0) / side).floor());
            if bx < 0.0 || by < 0.0 || bx >= terrain.blocks()[0] as f64 || by >= up {
                continue;
            }
            let roof = f64::from(terrain.roof()[(bx * up + by) as usize]);
            let near = |k: usize| side * (((i * 7 + k * 13) % 41) as f64 / 20.0 - 1.0);
            let highest = (0..40).map(|k| terrain.height(x + near(k), y + near(3 * k + 1)));
            let highest = highest.fold(f64::NEG_INFINITY, f64::max);
            assert!(highest <= roof + 1e-6, "{cell}: {highest} at {x}, {y} beside {roof}");
            told += 1;
            lower += usize::from(roof < terrain.range[1] - 0.1);
        }
        assert!(told > 2000 && lower > told / 2, "{cell}: {told}, {lower}");
    }
}

#[test]
fn pictures_have_a_pixel_for_each_cell() {
    let mut plan = of(&[KindWord::Stairs]);
    let size = |plan: &TerrainPlan| {
        let bytes = make(plan).0.picture().unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        (reader.info().width, reader.info().height)
    };
    assert_eq!(size(&plan), (180, 660));
    plan.columns = 60;
    assert_eq!(size(&plan), (90, 1800));
}
