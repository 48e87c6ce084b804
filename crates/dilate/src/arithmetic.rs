//! Real time and dilated time, in nanoseconds.
//!
//! A double is exact for 104 days of nanoseconds. Results that do not fit are the largest that do, so that a
//! wait of "almost for ever" stays one.

/// The least whole number that is not below `value`. `f64::ceil` would be a call into another library.
fn rounded_up(value: f64) -> i64 {
    let whole = value as i64;
    if (whole as f64) < value { whole.saturating_add(1) } else { whole }
}

/// The real duration of a dilated one. Never shorter than asked, and zero stays zero.
pub(crate) fn longer(factor: f64, nanoseconds: i64) -> i64 {
    rounded_up(nanoseconds as f64 * factor)
}

/// The dilated duration of a real one. What remains of a wait that has not ended never becomes zero.
pub(crate) fn shorter(factor: f64, nanoseconds: i64) -> i64 {
    rounded_up(nanoseconds as f64 / factor)
}

/// Bits behind the point of 1 / k, which is at most 4.
const INVERSE_BITS: u32 = 61;

/// 1 / k in units of 2^-61, for [`dilated`].
pub(crate) fn inverse(factor: f64) -> u64 {
    ((1_u64 << INVERSE_BITS) as f64 / factor) as u64
}

/// What a dilated clock tells when the real clock tells `real`. Never decreases.
///
/// The one conversion that programs make millions of times a second: a multiplication of integers instead of
/// a division of doubles, and no conversion between them.
#[inline]
pub(crate) fn dilated(inverse: u64, origin: i64, real: i64) -> i64 {
    let since = real.wrapping_sub(origin);
    let share = ((u128::from(since.unsigned_abs()) * u128::from(inverse)) >> INVERSE_BITS) as i64;
    // Before the origin, rounded down means away from it.
    if since >= 0 { origin.wrapping_add(share) } else { origin.wrapping_sub(share + 1) }
}

/// The first moment of the real clock at which the dilated clock has reached `dilated`.
///
/// The nanosecond on top stands for the rounding of doubles: whoever waited looks at the clock, and would
/// have to wait again. Zero stays zero, because it switches a timer off; a moment before 1970 or before the
/// boot is the first one after.
pub(crate) fn real(factor: f64, origin: i64, dilated: i64) -> i64 {
    if dilated == 0 {
        return 0;
    }
    let since = rounded_up(dilated.saturating_sub(origin) as f64 * factor);
    origin.saturating_add(since).saturating_add(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTORS: [f64; 9] = [0.25, 0.4, 0.5, 1.25, 1.5, 2.666_666_666_666_666_5, 4.0, 8.0, 64.0];
    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_wait_takes_k_times_as_long_and_is_never_cut_short() {
        assert_eq!(longer(4.0, SECOND), 4 * SECOND);
        assert_eq!(longer(1.5, 1), 2);
        for factor in FACTORS {
            assert_eq!(longer(factor, 0), 0);
            assert!(longer(factor, 1) >= 1 && shorter(factor, 1) >= 1);
            assert!(longer(factor, i64::MAX) >= i64::MAX / 4, "a wait for ever");
        }
    }

    #[test]
    fn a_deadline_is_mapped_to_the_moment_at_which_the_dilated_clock_shows_it() {
        for factor in FACTORS {
            for origin in [0, 40_123 * SECOND + 7, 1_790_000_000 * SECOND + 999_999_999] {
                for since in [1, 3, 999, SECOND - 1, 61 * SECOND + 123_456_789, 86_400 * SECOND + 1] {
                    let deadline = origin + since;
                    let until = real(factor, origin, deadline);
                    assert!(dilated(inverse(factor), origin, until) >= deadline, "{factor} {origin} {since}");
                    let early = until - 2 - factor as i64;
                    assert!(dilated(inverse(factor), origin, early) < deadline, "{factor} {origin} {since}");
                }
            }
        }
    }

    #[test]
    fn a_deadline_that_has_passed_long_ago_or_never_comes_stays_one() {
        let origin = 1_790_000_000 * SECOND;
        assert_eq!(real(4.0, origin, 0), 0);
        assert_eq!(real(4.0, origin, SECOND), 1);
        assert_eq!(real(4.0, origin, i64::MAX), i64::MAX);
    }

    #[test]
    fn a_dilated_clock_is_equal_at_the_origin_and_never_goes_back() {
        for factor in FACTORS {
            assert_eq!(dilated(inverse(factor), SECOND, SECOND), SECOND);
            let told: Vec<i64> =
                (-100..100).map(|at| dilated(inverse(factor), SECOND, SECOND + at)).collect();
            assert!(told.is_sorted(), "{factor}: {told:?}");
        }
    }
}
