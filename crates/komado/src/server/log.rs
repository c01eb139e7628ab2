//! The log: what happens, on standard error, a line each.
//!
//! Bodies, headers and queries are never written: they may hold secrets.

use super::traces::Traces;
use komado_ops::{OpFault, OpResult};
use std::io::{self, Write};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt, registry};

/// The form of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The variable that sets how much is written.
const VARIABLE: &str = "KOMADO_LOG";

/// Standard error, which may be a file on a disk that is full: a line that is lost is not a reason for a panic.
struct LossyStderr;

impl Write for LossyStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Begins to write; `level` as on the command line, else as the environment says, else what matters. Spans go to `traces`
/// whatever the level.
pub(crate) fn begin(level: Option<&str>, lines: LogFormat, traces: Option<&Traces>) -> OpResult {
    let given = level.map(str::to_owned).or_else(|| std::env::var(VARIABLE).ok());
    let text = given.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "info".to_owned());
    let filter = filter(&text).map_err(|why| {
        OpFault::usage(format!(
            "--log or {VARIABLE}: {text:?} is not a level ({why}); write error, warn, info, debug or trace"
        ))
    })?;
    let base = fmt::layer().with_writer(|| LossyStderr).with_target(false);
    let written = match lines {
        LogFormat::Text => base.boxed(),
        LogFormat::Json => base.json().flatten_event(true).boxed(),
    };
    let ours = filter_fn(|about| about.is_span() && about.target().starts_with("komado"));
    let spans = traces.map(|traces| traces.layer().with_filter(ours));
    let begun = registry().with(written.with_filter(filter)).with(spans).try_init();
    begun.map_err(|why| OpFault::usage(format!("the log cannot be set up: {why}")))
}

/// What is written: a level, or levels by part as `komado=debug`. A word alone is a level: taken for the name of a part, as
/// it would be, it would silence everything else.
fn filter(text: &str) -> Result<EnvFilter, String> {
    let alone = text.split(',').map(str::trim).filter(|word| !word.is_empty() && !word.contains('='));
    for word in alone {
        word.parse::<LevelFilter>().map_err(|_| format!("there is no {word:?}"))?;
    }
    let filter = EnvFilter::try_new(text).map_err(|why| why.to_string())?;
    // The MCP library writes the arguments of calls, which are what was said.
    match text.contains("rmcp") {
        true => Ok(filter),
        false => Ok(filter.add_directive("rmcp=warn".parse().map_err(|why| format!("{why}"))?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        for good in ["info", "DEBUG", "off", "warn,komado=trace", "komado=debug"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["loud", "info,loud", "=,=", "komado=loud"] {
            assert!(filter(bad).is_err(), "{bad}");
        }
        assert!(filter("trace").unwrap().to_string().contains("rmcp=warn"));
    }
}
