//! A string around a sphere or cylinder: `sim/kernels/wrap.cuh` in double precision.

use crate::Vec3;

unsafe extern "C" {
    fn ostler_wrap(
        from: *const f64,
        to: *const f64,
        side: *const f64,
        radius: f64,
        cylinder: i32,
        out: *mut f64,
    ) -> i32;
}

/// Where a string touches, and its whole length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wrapped {
    pub touch: [Vec3; 2],
    pub length: f64,
}

/// The way from `from` to `to` around a sphere at the origin, or a cylinder along z;
/// `None` where the straight one does not meet it. `side`: see
/// [`PathPart::Geom`](crate::PathPart::Geom). Lengths in (m).
pub(crate) fn wrap(
    from: Vec3,
    to: Vec3,
    side: Option<Vec3>,
    radius: f64,
    cylinder: bool,
) -> Option<Wrapped> {
    let mut out = [0.0; 7];
    // SAFETY: points of three numbers, `side` or null, and room for seven numbers.
    let wraps = unsafe {
        ostler_wrap(
            from.as_ptr(),
            to.as_ptr(),
            side.as_ref().map_or(std::ptr::null(), |s| s.as_ptr()),
            radius,
            i32::from(cylinder),
            out.as_mut_ptr(),
        )
    };
    (wraps != 0).then_some(Wrapped {
        touch: [[out[0], out[1], out[2]], [out[3], out[4], out[5]]],
        length: out[6],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_over_a_drum_is_two_tangents_and_an_arc() {
        let w = wrap([-2.0, 0.0, 0.0], [2.0, 0.0, 0.0], Some([0.0, 3.0, 0.0]), 1.0, true).unwrap();
        let third = std::f64::consts::FRAC_PI_3;
        let tangents = 2.0 * 3f64.sqrt();
        assert!((w.length - third - tangents).abs() < 1e-14, "{w:?}");
        assert!((w.touch[0][0] + 0.5).abs() < 1e-14 && w.touch[0][1] > 0.8, "{w:?}");
        // Beside it the string is straight.
        assert_eq!(wrap([-2.0, 1.5, 0.0], [2.0, 1.5, 0.0], None, 1.0, true), None);
    }

    /// Neither the other way around nor a turn more, however little a string is bent.
    #[test]
    fn a_string_that_just_touches_is_as_long_as_a_straight_one() {
        for i in 0..6000 {
            let bend = 10f64.powf(-16.0 + f64::from(i % 140) / 10.0);
            let (s, c) = (0.37 * f64::from(i)).sin_cos();
            let (l, k) = (0.02 + 0.001 * f64::from(i % 300), 0.5 - 0.001 * f64::from(i % 470));
            let from = [c + l * s, s - l * c, 0.0];
            let (e, d) = bend.sin_cos();
            let to = [c - k * (d * s + e * c), s + k * (d * c - e * s), 0.0];
            for (cylinder, side) in
                [(false, None), (true, None), (true, Some([2.0 * c, 2.0 * s, 0.0]))]
            {
                let length = wrap(from, to, side, 1.0, cylinder).map_or(l + k, |w| w.length);
                assert!((length - l - k).abs() < 0.01 * bend * bend + 1e-14, "{bend}: {length}");
            }
        }
    }
}
