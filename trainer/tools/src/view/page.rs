//! One file that shows everything and asks for nothing: no request leaves it.

use super::ViewError;
use super::feed::Layout;
use super::record::{Episode, Recording};
use super::scene::{Blob, SceneData};
use data_encoding::BASE64;
use flate2::{Compression, write::GzEncoder};
use ostler_sim::files;
use serde::Serialize;
use std::io::Write as _;
use std::path::Path;

const PAGE: &str = include_str!("page/view.html");
const STYLE: [&str; 2] = [include_str!("vendor/uplot.min.css"), include_str!("page/view.css")];
/// three.js and uPlot, as the global `Vendor`.
pub const VENDOR: &str = include_str!("vendor/vendor.min.js");
const SCRIPTS: [&str; 7] = [
    include_str!("page/scene.js"),
    include_str!("page/ground.js"),
    include_str!("page/paint.js"),
    include_str!("page/panel.js"),
    include_str!("page/player.js"),
    include_str!("page/live.js"),
    include_str!("page/boot.js"),
];
/// Licences of what is in [`VENDOR`].
const LICENCES: [(&str, &str); 2] = [
    ("three.js", include_str!("vendor/LICENSE-three")),
    ("uPlot", include_str!("vendor/LICENSE-uPlot")),
];
/// Nothing is loaded from anywhere. `@CONNECT@`: where live pictures come from.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data:; connect-src @CONNECT@; base-uri 'none'; form-action 'none'";

/// What the page says and shows.
#[derive(Debug, Serialize)]
pub struct PageData {
    /// What is seen.
    pub title: String,
    /// More about it, in a line.
    pub subtitle: String,
    /// Names and values of a table.
    pub about: Vec<(String, String)>,
    /// Rows come over a WebSocket.
    pub live: bool,
    /// What does not change.
    pub scene: SceneData,
    /// What the numbers of a row are.
    pub layout: Layout,
    /// Episodes of a recording.
    pub episodes: Vec<Episode>,
    /// Time between its rows (s).
    pub dt: f64,
    /// Where its rows begin in the blob.
    pub rows_at: usize,
    /// How many there are.
    pub row_count: usize,
}

impl PageData {
    /// Puts the rows of a recording into the blob: column by column, the bytes of each
    /// significance together, which pack to a third of what rows side by side do.
    pub fn add(&mut self, recording: &Recording, blob: &mut Blob) {
        let width = recording.width.max(1);
        let count = recording.rows.len() / width;
        let mut planes = vec![0_u8; 4 * width * count];
        for (r, row) in recording.rows.chunks_exact(width).enumerate() {
            for (c, x) in row.iter().enumerate() {
                for (b, byte) in x.to_le_bytes().into_iter().enumerate() {
                    planes[(4 * c + b) * count + r] = byte;
                }
            }
        }
        self.rows_at = blob.push(&planes);
        self.row_count = count;
        self.dt = recording.dt;
        self.episodes.clone_from(&recording.episodes);
    }
}

/// The page. `connect`: the address that live rows come from, of a page that is served.
///
/// # Errors
/// Numbers that cannot be packed; there is no memory.
pub fn html(data: &PageData, blob: &Blob, connect: Option<&str>) -> std::io::Result<String> {
    let json = serde_json::to_string(data)?;
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(blob.bytes())?;
    let packed = BASE64.encode(&packer.finish()?);
    // Nothing of a robot's or a task's names can end an element of the page.
    let data = format!(
        "<script type=\"application/json\" id=\"data\">{}</script>\n\
         <script type=\"application/gzip\" id=\"blob\">{packed}</script>\n{}",
        escaped(&json),
        licences()
    );
    let policy = policy(connect);
    Ok(filled(
        PAGE,
        &[
            ("@POLICY@", &policy),
            ("@STYLE@", &style()),
            ("@DATA@", &data),
            ("@VENDOR@", VENDOR),
            ("@SCRIPT@", &format!("{{\n{}\n}}", scripts())),
        ],
    ))
}

/// The policy of a page; `connect`: the address that live rows come from.
pub fn policy(connect: Option<&str>) -> String {
    POLICY.replace("@CONNECT@", connect.unwrap_or("'none'"))
}

/// What all pages look like.
pub fn style() -> String {
    STYLE.join("\n")
}

/// Licences of [`VENDOR`], as a comment of a page.
pub fn licences() -> String {
    let each = LICENCES.map(|(name, text)| format!("{name}:\n{text}"));
    format!("<!--\n{}\n-->", each.join("\n"))
}

/// Our own scripts as one.
fn scripts() -> String {
    SCRIPTS.map(|s| s.replacen("'use strict';\n", "", 1)).join("\n")
}

/// JSON in which nothing ends or begins an element of HTML.
pub fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// The template with its places filled, in order; what is filled in is not looked at again.
pub fn filled(template: &str, places: &[(&str, &str)]) -> String {
    let mut rest = template;
    let mut page = String::new();
    for (place, text) in places {
        if let Some((before, after)) = rest.split_once(place) {
            page.push_str(before);
            page.push_str(text);
            rest = after;
        }
    }
    page + rest
}

/// Writes the page into a file; returns its size in bytes.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, data: &PageData, blob: &Blob) -> Result<usize, ViewError> {
    if data.row_count == 0 {
        return Err(ViewError::Empty(path.to_path_buf()));
    }
    let page = html(data, blob, None).map_err(|e| ViewError::write(path, e))?;
    files::output(path, page.as_bytes()).map_err(|e| ViewError::write(path, e))?;
    Ok(page.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_once_and_nothing_in_them_is_a_place() {
        let page = filled("<@A@><@B@>", &[("@A@", "@B@@A@"), ("@B@", "b")]);
        assert_eq!(page, "<@B@@A@><b>");
        let text = escaped(r#"{"a":"</script><!--&"}"#);
        assert!(!text.contains(['<', '>', '&']), "{text}");
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["a"], "</script><!--&");
    }

    #[test]
    fn scripts_end_where_the_page_ends_them_and_name_nothing_outside() {
        for script in SCRIPTS.iter().chain([&VENDOR]) {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
        for place in ["@POLICY@", "@STYLE@", "@DATA@", "@VENDOR@", "@SCRIPT@"] {
            assert_eq!(PAGE.matches(place).count(), 1, "{place}");
        }
        assert!(!PAGE.contains("src=") && !PAGE.contains("href="));
    }
}
