//! PNG files of textures.

use super::drive::Target;
use super::mutate::Corpus;
use ostler_sim::model::mjcf;
use ostler_trainer::draw::picture::Picture;

/// A robot that shows one picture in all ways.
const ROBOT: &str = r#"<mujoco><asset>
    <texture name="flat" type="2d" file="t.png" hflip="true"/><texture name="cube" file="t.png" vflip="true"/>
    <texture name="grid" file="t.png" gridsize="3 4" gridlayout=".U..LFRB.D.."/><texture name="six" fileup="t.png" fileleft="t.png"/>
    <material name="flat" texture="flat"/><material name="cube" texture="cube"/><material name="grid" texture="grid"/><material name="six" texture="six"/></asset>
    <worldbody><geom size="1" material="flat"/><geom size="1" material="cube"/><geom size="1" material="grid"/><geom size="1" material="six"/></worldbody></mujoco>"#;

fn png(wide: u32, high: u32, color: png::ColorType, depth: png::BitDepth) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, wide, high);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == png::ColorType::Indexed {
        encoder.set_palette((0..48).collect::<Vec<u8>>());
    }
    let row = (wide as usize * color.samples() * depth as usize).div_ceil(8);
    let data: Vec<u8> = (0..row * high as usize).map(|k| (k * 7) as u8).collect();
    encoder.write_header().unwrap().write_image_data(&data).unwrap();
    bytes
}

/// Puts the checksums of all chunks right, so that what lies behind them is reached.
fn righted(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 8;
    while let Some(head) = bytes.get(at..at + 8) {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let end = at.saturating_add(8).saturating_add(length);
        let Some(chunk) = bytes.get(at + 4..end) else {
            break;
        };
        let mut crc = flate2::Crc::new();
        crc.update(chunk);
        if let Some(sum) = bytes.get_mut(end..end + 4) {
            sum.copy_from_slice(&crc.sum().to_be_bytes());
        }
        at = end + 4;
    }
    bytes
}

pub fn pictures() -> Target {
    use png::{BitDepth::*, ColorType::*};
    let files = vec![
        png(8, 6, Rgb, Eight),
        png(8, 6, Rgba, Sixteen),
        png(9, 9, Grayscale, Two),
        png(16, 16, Indexed, Four),
        // Small files of many pixels.
        png(800, 600, Grayscale, One),
        png(600, 700, GrayscaleAlpha, Eight),
    ];
    let words = [b"IHDR", b"PLTE", b"IDAT", b"tRNS", b"acTL", b"fcTL", b"IEND"];
    let folder = tempfile::tempdir().unwrap();
    Target {
        corpus: Corpus { files, words: words.iter().map(|w| w.to_vec()).collect(), text: false },
        read: Box::new(move |bytes| {
            let at = folder.path().join("robot.xml");
            std::fs::write(folder.path().join("t.png"), righted(bytes.to_vec())).unwrap();
            let shown =
                mjcf::Reading { text: Some(ROBOT.into()), looks: true, ..Default::default() };
            let (model, looks) = shown.read(&at).unwrap();
            assert_eq!(model.geoms.len(), 4);
            assert_eq!(looks.textures.len() + looks.plain.len(), 4);
            for texture in &looks.textures {
                let picture = Picture::new(texture).unwrap();
                picture.flat([0.3, 0.7], [0.1, 0.0], [0.0, 0.1]);
            }
            !looks.textures.is_empty()
        }),
    }
}
