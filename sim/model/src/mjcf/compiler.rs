//! `<compiler>`: how the rest of the file is to be understood.

use super::element::{Element, Fault, Read};
use super::value::{BOOL, Keywords, wrong};
use crate::rotation::about;
use crate::{Quat, Vec3};

/// When a body's inertia comes from its geoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FromGeoms {
    Always,
    Never,
    /// When the body has no `<inertial>`.
    Auto,
}

/// MuJoCo's compiler settings.
#[derive(Debug, Clone)]
pub(super) struct Compiler {
    pub degrees: bool,
    pub autolimits: bool,
    /// Three of `xyzXYZ`; lower case turns about moving axes.
    pub eulerseq: [u8; 3],
    pub inertia_from_geoms: FromGeoms,
    /// Geom groups that count for mass and inertia, both ends included.
    pub inertia_groups: [i32; 2],
    /// Masses are scaled to this sum (kg), if positive.
    pub total_mass: f64,
    /// Least mass of a body (kg).
    pub bound_mass: f64,
    /// Least principal moment of inertia of a body (kg m^2).
    pub bound_inertia: f64,
    /// Replace impossible moments of inertia by their mean.
    pub balance_inertia: bool,
    /// The same of moments that are not positive, which MuJoCo refuses.
    pub balance_all: bool,
    /// Frames of free bodies without children move to their principal axes.
    pub align_free: bool,
    /// Bodies without joints become part of their parents.
    pub fuse_static: bool,
    /// Shapes that are only seen are not counted.
    pub discard_visual: bool,
    /// Primitives fitted to meshes hold the mesh's bounding box.
    pub fit_aabb: bool,
    /// Muscles without a length range take the range of their transmission.
    pub length_from_limit: bool,
    /// Muscles keep the length range that they give.
    pub length_given: bool,
    /// Folder of meshes and height fields in the model's folder.
    pub mesh_dir: String,
    /// Folder of textures in the model's folder.
    pub texture_dir: String,
    /// Assets lie directly in that folder, whatever folder they name.
    pub strip_path: bool,
    /// A difference between a model and one it attaches is no reason to complain, as
    /// long as its own holds.
    pub own_options: bool,
}

impl Default for Compiler {
    fn default() -> Self {
        Self {
            degrees: true,
            autolimits: true,
            eulerseq: *b"xyz",
            inertia_from_geoms: FromGeoms::Auto,
            inertia_groups: [0, 5],
            total_mass: -1.0,
            bound_mass: 0.0,
            bound_inertia: 0.0,
            balance_inertia: false,
            balance_all: false,
            align_free: false,
            fuse_static: false,
            discard_visual: false,
            fit_aabb: false,
            length_from_limit: false,
            length_given: true,
            mesh_dir: String::new(),
            texture_dir: String::new(),
            strip_path: false,
            own_options: true,
        }
    }
}

/// Folder of `<compiler>` in which a kind of file is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dir {
    /// `meshdir`: meshes, height fields and skins.
    Mesh,
    /// `texturedir`.
    Texture,
}

const ANGLE: Keywords<bool> = &[("degree", true), ("radian", false)];
const CONFLICT: Keywords<bool> = &[("warning", true), ("merge", false), ("error", false)];
const COORDINATE: Keywords<bool> = &[("local", true), ("global", false)];
const FROM_GEOMS: Keywords<FromGeoms> =
    &[("true", FromGeoms::Always), ("false", FromGeoms::Never), ("auto", FromGeoms::Auto)];

impl Compiler {
    /// Reads one `<compiler>`; later ones overwrite earlier ones.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        e.keyword("angle", ANGLE, &mut self.degrees)?;
        e.keyword("autolimits", BOOL, &mut self.autolimits)?;
        e.keyword("balanceinertia", BOOL, &mut self.balance_inertia)?;
        e.keyword("fitaabb", BOOL, &mut self.fit_aabb)?;
        e.keyword("strippath", BOOL, &mut self.strip_path)?;
        e.keyword("conflict", CONFLICT, &mut self.own_options)?;
        if let Some(dir) = e.text("meshdir").or(e.text("assetdir")) {
            self.mesh_dir = dir.to_string();
        }
        if let Some(dir) = e.text("texturedir").or(e.text("assetdir")) {
            self.texture_dir = dir.to_string();
        }
        e.keyword("fusestatic", BOOL, &mut self.fuse_static)?;
        e.keyword("discardvisual", BOOL, &mut self.discard_visual)?;
        e.keyword("alignfree", BOOL, &mut self.align_free)?;
        e.keyword("inertiafromgeom", FROM_GEOMS, &mut self.inertia_from_geoms)?;
        for lengths in e.children_named("lengthrange") {
            lengths.keyword("uselimit", BOOL, &mut self.length_from_limit)?;
            lengths.keyword("useexisting", BOOL, &mut self.length_given)?;
        }
        e.scalar("settotalmass", &mut self.total_mass)?;
        e.scalar("boundmass", &mut self.bound_mass)?;
        e.scalar("boundinertia", &mut self.bound_inertia)?;
        let mut local = true;
        e.keyword("coordinate", COORDINATE, &mut local)?;
        if let (false, Some(attr)) = (local, e.attr("coordinate")) {
            return Err(Fault::new(
                attr.at,
                "global coordinates are no longer part of MJCF; convert the file by loading \
                 and saving it with MuJoCo 2.3.3 or older",
            ));
        }
        let mut groups = self.inertia_groups.map(f64::from);
        if e.array("inertiagrouprange", &mut groups)? {
            if let (true, Some(attr)) =
                (groups.iter().any(|g| g.fract() != 0.0), e.attr("inertiagrouprange"))
            {
                return Err(wrong(attr, "takes whole numbers"));
            }
            self.inertia_groups = groups.map(|g| g as i32);
        }
        if let Some(attr) = e.attr("eulerseq") {
            self.eulerseq = match attr.value.as_bytes() {
                s @ [_, _, _] if s.iter().all(|c| b"xyzXYZ".contains(c)) => [s[0], s[1], s[2]],
                _ => {
                    return Err(Fault::new(
                        attr.value_at(0),
                        "eulerseq needs three letters of x, y, z (moving axes) or X, Y, Z \
                         (fixed axes), for example \"xyz\"",
                    ));
                }
            };
        }
        Ok(())
    }

    /// An angle as the file gives it -> (rad).
    pub(crate) fn radians(&self, angle: f64) -> f64 {
        if self.degrees { angle * (std::f64::consts::PI / 180.0) } else { angle }
    }

    /// Three rotations in the order `eulerseq` says.
    pub(crate) fn euler(&self, angles: Vec3) -> Quat {
        let mut quat = crate::rotation::IDENTITY;
        for (letter, angle) in self.eulerseq.into_iter().zip(angles) {
            let axis = match letter.to_ascii_lowercase() {
                b'x' => [1.0, 0.0, 0.0],
                b'y' => [0.0, 1.0, 0.0],
                _ => [0.0, 0.0, 1.0],
            };
            let turn = about(axis, self.radians(angle));
            quat = if letter.is_ascii_lowercase() {
                crate::rotation::mul(quat, turn)
            } else {
                crate::rotation::mul(turn, quat)
            };
        }
        crate::rotation::normalized(quat).unwrap_or(crate::rotation::IDENTITY)
    }
}
