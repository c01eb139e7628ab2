//! Times as every file of ours writes them.

/// A time in UTC with microseconds: all of one length, so that they sort as text.
pub fn stamp(time: jiff::Timestamp) -> String {
    format!("{time:.6}")
}

/// The time so many days ago.
pub fn days_ago(days: u32) -> String {
    let ago = jiff::SignedDuration::from_hours(24 * i64::from(days));
    stamp(jiff::Timestamp::now().checked_sub(ago).unwrap_or(jiff::Timestamp::MIN))
}

/// Seconds between two stamps, when both are times.
pub fn seconds_between(from: &str, to: &str) -> Option<f64> {
    let (from, to) = (from.parse::<jiff::Timestamp>().ok()?, to.parse::<jiff::Timestamp>().ok()?);
    Some(to.duration_since(from).as_secs_f64())
}
