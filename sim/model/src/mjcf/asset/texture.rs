//! `<texture>`, read for pictures alone.
//!
//! Source: MuJoCo, XML reference, "asset/texture", and `mjCTexture::Compile`.

use super::Assets;
use super::builtin::{Builtin, Mark, Pattern, bytes};
use super::picture::{self, Picture};
use crate::looks::{Texture, TextureKind};
use crate::mjcf::compiler::Dir;
use crate::mjcf::defaults::MAIN;
use crate::mjcf::element::{At, Element, Fault, Read};
use crate::mjcf::files::TEXTURE;
use crate::mjcf::value::{BOOL, Keywords};

const KIND: Keywords<TextureKind> =
    &[("2d", TextureKind::Flat), ("cube", TextureKind::Cube), ("skybox", TextureKind::Cube)];
const BUILTIN: Keywords<Builtin> = &[
    ("none", Builtin::None),
    ("gradient", Builtin::Gradient),
    ("checker", Builtin::Checker),
    ("flat", Builtin::Flat),
];
const MARK: Keywords<Mark> =
    &[("none", Mark::None), ("edge", Mark::Edge), ("cross", Mark::Cross), ("random", Mark::Random)];

/// Letters of `gridlayout`, in the order of a cube's sides.
const SIDES: &[u8] = b"RLUDFB";

/// Sides of a cube: their width and what is in them, `[side][width][width][3]`; or one that is
/// all of them. Width and height of the file.
struct Sides {
    width: usize,
    data: Vec<u8>,
    whole: [usize; 2],
}

impl Assets<'_> {
    /// Index in `textures` of the texture `name`, which it enters on first use.
    ///
    /// # Errors
    /// There is none, or it cannot be drawn.
    pub(crate) fn texture(
        &mut self,
        name: &str,
        at: At,
        textures: &mut Vec<Texture>,
    ) -> Read<usize> {
        if let Some(known) = textures.iter().position(|t| t.name == name) {
            return Ok(known);
        }
        let e = super::find(&self.textures, "texture", name, at)?;
        let e = &with_defaults(e, &self.classes.of(e, MAIN)?.texture);
        let mut kind = TextureKind::Cube;
        e.keyword("type", KIND, &mut kind)?;
        let pattern = pattern(e)?;
        let fault = |why: String| Fault::new(e.at, format!("texture \"{name}\": {why}"));
        let most = self.pixels.most().map_err(fault)?;
        let (width, height, data, whole) = match (pattern.builtin, kind) {
            (Builtin::None, TextureKind::Flat) => {
                if e.text("file").is_none() {
                    return Err(fault("needs a file, or builtin".into()));
                }
                let picture = self.picture(e, "file", most)?;
                (picture.width, picture.height, picture.data, picture.whole)
            }
            (Builtin::None, TextureKind::Cube) => {
                let sides = match e.text("file") {
                    Some(_) => self.one_file(e, &pattern, most)?,
                    None => self.six_files(e, &pattern, most)?,
                };
                let height = sides.data.len() / (3 * sides.width);
                (sides.width, height, sides.data, sides.whole)
            }
            (_, kind) => {
                let (mut width, mut height) = (0, 0);
                e.unsigned("width", &mut width)?;
                e.unsigned("height", &mut height)?;
                let mut whole = [width as usize, height as usize];
                if kind == TextureKind::Cube {
                    whole[1] = 6 * whole[0];
                }
                if whole.contains(&0) {
                    return Err(fault("needs width, and height if its type is 2d".into()));
                }
                let divisor = picture::divisor(whole[0], whole[1], most);
                let [width, height] = whole.map(|n| n.div_ceil(divisor));
                match kind {
                    TextureKind::Flat => (width, height, pattern.flat(width, height), whole),
                    TextureKind::Cube => (width, 6 * width, pattern.cube(width), whole),
                }
            }
        };
        self.pixels.keep(data.len() / 3);
        textures.push(Texture {
            name: name.to_string(),
            kind,
            width,
            height,
            data,
            reduced: ([width, height] != whole).then_some(whole),
        });
        Ok(textures.len() - 1)
    }

    /// The picture that attribute `attr` names.
    fn picture(&mut self, e: &Element, attr: &str, most: usize) -> Read<Picture> {
        let attr = e
            .attr(attr)
            .ok_or_else(|| Fault::new(e.at, format!("<texture> needs {attr}=\"...\"")))?;
        let at = attr.value_at(0);
        let mut channels = 3;
        e.integer("nchannel", &mut channels)?;
        let ending = attr.value.rsplit('.').next().unwrap_or_default();
        let kind = match (e.text("content_type"), channels) {
            (Some(kind), _) => kind.to_string(),
            (None, _) => format!("image/{}", ending.to_ascii_lowercase()),
        };
        if kind != "image/png" {
            let why = "only PNG pictures are drawn; convert it to PNG";
            return Err(Fault::new(at, format!("{}: {why}", attr.value)));
        }
        if !(3..=4).contains(&channels) {
            let why = "only textures of three or four channels are drawn";
            return Err(Fault::new(at, format!("{}: {why}", attr.value)));
        }
        let path = self.settings.file(e.at, Dir::Texture, &attr.value);
        let path = path.map_err(|why| Fault::new(at, why))?;
        let bytes = super::bytes(&path, &mut self.texture_bytes);
        let bytes = bytes.map_err(|why| Fault::new(at, why))?;
        let picture = picture::png(&bytes, most, &mut self.pixels);
        let mut picture =
            picture.map_err(|why| Fault::new(at, format!("{}: {why}", path.display())))?;
        let (mut across, mut down) = (false, false);
        e.keyword("hflip", BOOL, &mut across)?;
        e.keyword("vflip", BOOL, &mut down)?;
        picture.flip(across, down);
        Ok(picture)
    }

    /// A cube from one file: a square for all sides, or a grid of them.
    fn one_file(&mut self, e: &Element, pattern: &Pattern, most: usize) -> Read<Sides> {
        let at = |name: &str| e.attr(name).map_or(e.at, |a| a.value_at(0));
        let mut grid = [1.0; 2];
        e.array("gridsize", &mut grid)?;
        let [rows, columns] = grid.map(|n| n as usize);
        // As large numbers as a file may have wrap where they are multiplied.
        if rows == 0 || columns == 0 || rows.saturating_mul(columns) > 12 {
            let why = "gridsize has rows and columns, at most 12 squares in all";
            return Err(Fault::new(at("gridsize"), why));
        }
        if rows * columns == 1 {
            let picture = self.picture(e, "file", most)?;
            if picture.whole[0] != picture.whole[1] {
                let [w, h] = picture.whole;
                let why = format!("a side of a cube is square, and this is {w} x {h} pixels");
                return Err(Fault::new(at("file"), why));
            }
            return Ok(Sides { width: picture.width, data: picture.data, whole: picture.whole });
        }
        let picture = self.picture(e, "file", picture::MAX_KEPT)?;
        let width = picture.width / columns;
        let even = picture.width == width * columns && picture.height == width * rows;
        if width == 0 || !even {
            let [w, h] = picture.whole;
            let why = format!(
                "{rows} rows and {columns} columns of squares do not make {w} x {h} pixels{}",
                match picture.whole == [picture.width, picture.height] {
                    true => "",
                    false => " (it is read smaller: make it so)",
                }
            );
            return Err(Fault::new(at("gridsize"), why));
        }
        let layout = e.text("gridlayout").unwrap_or("............");
        let mut found = [None; 6];
        for (k, letter) in layout.bytes().take(rows * columns).enumerate() {
            match SIDES.iter().position(|s| *s == letter) {
                Some(side) => found[side] = Some((width * (k % columns), width * (k / columns))),
                None if letter == b'.' => {}
                None => {
                    let why = "gridlayout is made of . R L U D F B";
                    return Err(Fault::new(at("gridlayout"), why));
                }
            }
        }
        let sides = found.map(|place| {
            let (x, y) = place?;
            Some(Picture {
                width,
                height: width,
                data: picture.square(x, y, width).collect(),
                whole: [width; 2],
            })
        });
        Ok(joined(sides, width, pattern, most))
    }

    /// A cube from a file for each side.
    fn six_files(&mut self, e: &Element, pattern: &Pattern, most: usize) -> Read<Sides> {
        let mut sides = [const { None }; 6];
        let mut width = None;
        for (side, name) in sides.iter_mut().zip(&TEXTURE[1..]) {
            let Some(attr) = e.attr(name).filter(|a| !a.value.is_empty()) else {
                continue;
            };
            let picture = self.picture(e, name, most / 6)?;
            let [w, h] = picture.whole;
            if w != h || *width.get_or_insert(w) != w {
                let why = format!("sides of a cube are square and alike; {name} is {w} x {h}");
                return Err(Fault::new(attr.value_at(0), why));
            }
            *side = Some(picture);
        }
        match sides.iter().flatten().next().map(|s| s.width) {
            Some(width) => Ok(joined(sides, width, pattern, most)),
            None => Err(Fault::new(
                e.at,
                "<texture> needs builtin, file, or fileright and the other sides",
            )),
        }
    }
}

/// Sides of `width` pixels one below the other, with at most `most` pixels; those that are not
/// there have the first colour.
fn joined(sides: [Option<Picture>; 6], width: usize, pattern: &Pattern, most: usize) -> Sides {
    let whole = sides.iter().flatten().map(|s| s.whole[0]).next();
    let whole = whole.unwrap_or(width);
    let small = width.div_ceil(picture::divisor(width, 6 * width, most));
    let side = |side: Option<Picture>| match side {
        Some(picture) => picture.shrunk(small * small).data,
        None => bytes(pattern.rgb1).repeat(small * small),
    };
    Sides {
        width: small,
        data: sides.into_iter().flat_map(side).collect(),
        whole: [whole, 6 * whole],
    }
}

/// The element with the attributes that it lacks and its class has.
fn with_defaults(e: &Element, class: &[Element]) -> Element {
    let mut e = e.clone();
    for attr in class.iter().rev().flat_map(|c| &c.attrs) {
        if e.attr(&attr.name).is_none() {
            e.attrs.push(attr.clone());
        }
    }
    e
}

fn pattern(e: &Element) -> Read<Pattern> {
    let mut pattern = Pattern {
        builtin: Builtin::None,
        rgb1: [0.8; 3],
        rgb2: [0.5; 3],
        mark: Mark::None,
        markrgb: [0.0; 3],
        random: 0.01,
    };
    e.keyword("builtin", BUILTIN, &mut pattern.builtin)?;
    e.array("rgb1", &mut pattern.rgb1)?;
    e.array("rgb2", &mut pattern.rgb2)?;
    e.keyword("mark", MARK, &mut pattern.mark)?;
    e.array("markrgb", &mut pattern.markrgb)?;
    e.scalar("random", &mut pattern.random)?;
    Ok(pattern)
}
