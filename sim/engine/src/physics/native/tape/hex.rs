//! Numbers as C++ writes them without loss.

/// A hexadecimal floating literal with exactly this value; an expression where
/// there is no literal (infinity, not a number).
pub(crate) fn literal(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_nan() {
        return "(1e300 * 1e300) * 0.0".to_owned();
    }
    if value.is_infinite() {
        return format!("{sign}(1e300 * 1e300)");
    }
    let small = value.abs();
    if small == small.trunc() && small < 1e6 {
        return format!("{sign}{small:.1}");
    }
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let (lead, exponent) = match (bits >> 52) & 0x7ff {
        0 => (0, -1022),
        biased => (1, biased as i64 - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{sign}0x{lead}{point}{digits}p{exponent}")
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn literals_are_what_c_plus_plus_reads() {
        for (value, text) in [
            (0.0, "0.0"),
            (12.0, "12.0"),
            (-1.5, "-0x1.8p0"),
            (0.1, "0x1.999999999999ap-4"),
            (1048576.0, "0x1p20"),
            (f64::MAX, "0x1.fffffffffffffp1023"),
            (f64::from_bits(1), "0x0.0000000000001p-1022"),
            (f64::NEG_INFINITY, "-(1e300 * 1e300)"),
        ] {
            assert_eq!(literal(value), text);
        }
    }
}
