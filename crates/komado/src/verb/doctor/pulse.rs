//! How the store is doing, as it says itself.

use crate::app::App;
use crate::fault::Outcome;
use komado_store::Vitals;
use serde_json::json;
use std::time::{Duration, Instant};

/// Asks the store, and prints what it says. The second answer is timed: the first may have to connect.
pub(super) fn tell(app: &mut App) -> Outcome {
    app.context.engine.store().vitals()?;
    let begun = Instant::now();
    let vitals = app.context.engine.store().vitals()?;
    let took = begun.elapsed();
    if app.paper.json {
        return app.paper.json(&row(&vitals, took));
    }
    for line in lines(&vitals, took) {
        app.paper.line(line)?;
    }
    Ok(())
}

fn row(vitals: &Vitals, took: Duration) -> serde_json::Value {
    json!({ "store": {
        "kind": vitals.kind,
        "place": vitals.place,
        "durability": vitals.durability,
        "may_lose": vitals.may_lose,
        "warnings": vitals.warnings,
        "round_trip_ms": milliseconds(took),
        "sessions": vitals.sessions,
        "keys": vitals.keys,
        "disk_bytes": vitals.disk_bytes,
        "memory_bytes": vitals.memory_bytes,
        "connections": vitals.connections,
        "expired": vitals.expired,
    } })
}

fn lines(vitals: &Vitals, took: Duration) -> Vec<String> {
    let figures = [
        ("sessions", vitals.sessions),
        ("keys or rows", vitals.keys),
        ("bytes on its disk", vitals.disk_bytes),
        ("bytes in its memory", vitals.memory_bytes),
        ("sessions whose time was over", vitals.expired),
    ];
    let careful = if vitals.may_lose { "careful: " } else { "" };
    let mut lines = vec![
        format!("{} at {}: answers in {} ms", vitals.kind, vitals.place, milliseconds(took)),
        format!("{careful}an acknowledged entry {}", vitals.durability),
    ];
    lines.extend(vitals.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.extend(figures.iter().filter_map(|(what, figure)| Some(format!("{what}: {}", (*figure)?))));
    lines
}

fn milliseconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 100_000.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_store_does_not_know_is_left_out() {
        let vitals = Vitals {
            kind: "redis",
            place: "cache:6379".to_owned(),
            durability: "outlives its process".to_owned(),
            may_lose: true,
            sessions: Some(3),
            ..Vitals::default()
        };
        let lines = lines(&vitals, Duration::from_micros(1_234));
        assert_eq!(
            lines,
            [
                "redis at cache:6379: answers in 1.23 ms",
                "careful: an acknowledged entry outlives its process",
                "sessions: 3",
            ]
        );
    }
}
