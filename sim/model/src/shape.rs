//! Shapes of geoms: `kernels/collide/shapes.h` in Rust.

use super::Vec3;

include!(concat!(env!("OUT_DIR"), "/shapes.rs"));

/// How the search for contacts sees a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surface {
    Half,
    Grid,
    Core,
    Curved,
    Corners,
}

/// A line of the list.
struct Row {
    surface: Surface,
    lanes: bool,
    most: usize,
}

macro_rules! flag {
    (yes) => {
        true
    };
    (no) => {
        false
    };
}

macro_rules! kinds {
    ($(($name:ident $kind:ident $surface:ident $lanes:ident $(size)? $(index($data:ty))? $most:literal $says:literal))*) => {
        /// Shape of a geom; `size` in [`Geom::size`](super::Geom::size) is MuJoCo's.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum GeomKind {
            $(#[doc = $says] $kind $(($data))?,)*
        }

        /// The shapes' words in MJCF, in the kernels' order; the numbers of assets are 0.
        pub const WORDS: &[(&str, GeomKind)] =
            &[$((stringify!($name), GeomKind::$kind $((<$data>::MIN))?)),*];

        const ROWS: &[Row] = &[$(Row {
            surface: Surface::$surface,
            lanes: flag!($lanes),
            most: $most,
        }),*];

        impl GeomKind {
            /// The shape's number in kernels: MuJoCo's.
            pub const fn code(self) -> usize {
                enum Code { $($kind),* }
                let code = match self {
                    $(Self::$kind { .. } => Code::$kind,)*
                };
                code as usize
            }
        }
    };
}
shapes!(kinds);

macro_rules! own {
    ($(($first:ident $($rest:tt)*))*) => {
        /// Pairs of shapes with a function of their own, and how many contacts it finds at
        /// most.
        const OWN: &[([&str; 2], usize)] = &[$(own!(row $first $($rest)*)),*];
    };
    (row $first:ident $camel:ident $second:ident $hits:literal $says:literal) => {
        ([stringify!($first), stringify!($second)], $hits)
    };
}
pairs_of_shapes!(own);

impl GeomKind {
    fn row(self) -> &'static Row {
        &ROWS[self.code()]
    }

    /// Its word in MJCF.
    pub fn word(self) -> &'static str {
        WORDS[self.code()].0
    }

    /// Whether it is all below a plane, or a terrain: these do not meet each other.
    pub fn is_ground(self) -> bool {
        matches!(self.row().surface, Surface::Half | Surface::Grid)
    }

    /// Semi-axes (m) of the ellipsoid that stands for a shape of `size` in a medium.
    pub fn semi_axes(self, size: Vec3) -> Vec3 {
        let [a, b, _] = size;
        match self {
            Self::Sphere => [a; 3],
            Self::Capsule => [a, a, a + b],
            Self::Cylinder => [a, a, b],
            Self::Plane
            | Self::Hfield(_)
            | Self::Terrain
            | Self::Ellipsoid
            | Self::Box
            | Self::Mesh(_) => size,
        }
    }
}

/// Two shapes, the one with the lower number first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShapePair([GeomKind; 2]);

impl ShapePair {
    /// Of two shapes in any order.
    pub fn new([a, b]: [GeomKind; 2]) -> Self {
        match a.code() > b.code() {
            true => Self([b, a]),
            false => Self([a, b]),
        }
    }

    /// Its number in kernels: `pair_kind` of `kernels/collide/solid.cuh`.
    pub fn code(self) -> i32 {
        let [first, second] = self.0.map(GeomKind::code);
        (first * ROWS.len() + second) as i32
    }

    /// Whether there are contacts between the two at all.
    pub fn collides(self) -> bool {
        !self.0[1].is_ground()
    }

    /// The function of its own's contacts at most.
    fn own(self) -> Option<usize> {
        let names = self.0.map(GeomKind::word);
        let own = OWN.iter().find(|(pair, _)| *pair == names)?;
        Some(own.1)
    }

    /// Contacts at most; `max_hits` of `kernels/collide/solid.cuh`.
    pub fn hits(self) -> usize {
        let [a, b] = self.0.map(GeomKind::row);
        match (self.collides(), self.own(), a.surface) {
            (false, ..) => 0,
            (_, Some(hits), _) => hits,
            (.., Surface::Grid) => a.most,
            _ => a.most.min(b.most),
        }
    }

    /// Whether its contacts are found by the iterative convex collision, which the flags
    /// `multiccd` and `nativeccd` change.
    pub fn iterative(self) -> bool {
        self.own().is_none() && self.0[0].row().surface != Surface::Half
    }
}

/// Whether pairs of this number are tested on all lanes at once.
pub fn on_all_lanes(pair: i32) -> bool {
    let count = ROWS.len() as i32;
    let lanes = |code: i32| ROWS.get(code as usize).is_some_and(|row| row.lanes);
    lanes(pair / count) && lanes(pair % count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs() -> impl Iterator<Item = ShapePair> {
        let others = |(i, a): (usize, &'static (&str, GeomKind))| {
            WORDS[i..].iter().map(move |b| ShapePair::new([b.1, a.1]))
        };
        WORDS.iter().enumerate().flat_map(others)
    }

    /// MuJoCo's collision functions, from its plane to its mesh.
    #[test]
    fn pairs_have_mujocos_contacts() {
        let of = |a: &str| {
            let kind = |word: &str| WORDS.iter().find(|w| w.0 == word).map(|w| w.1);
            let others = ["sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"];
            others.map(|b| {
                let pair = ShapePair::new([kind(a).unwrap(), kind(b).unwrap()]);
                (pair.hits(), pair.iterative())
            })
        };
        let (own, searched) = (|n| (n, false), |n| (n, true));
        assert_eq!(of("plane"), [1, 2, 1, 4, 4, 4].map(own));
        assert_eq!(of("hfield"), [50; 6].map(searched));
        assert_eq!(of("terrain"), [50; 6].map(searched));
        let [a, b, c] = [own(1), searched(1), searched(2)];
        assert_eq!(of("sphere"), [a, a, b, a, a, b]);
        assert_eq!(of("capsule"), [a, own(2), b, c, own(2), c]);
        assert_eq!(of("ellipsoid"), [b; 6]);
        assert_eq!(of("cylinder")[3..], [4; 3].map(searched));
        assert_eq!(of("box")[4..], [own(8), searched(4)]);
        assert_eq!(of("mesh")[5], searched(4));
    }

    #[test]
    fn ground_meets_no_ground() {
        let meets = pairs().filter(|pair| pair.collides()).count();
        assert_eq!(pairs().count() - meets, 6);
    }
}
