//! Spans on the command line: `3..50`, `7`, `3..10,12..50`.

use komado_core::Span;
use std::fmt;
use std::str::FromStr;

/// One or more spans.
#[derive(Clone, Debug)]
pub(crate) struct Spans(pub(crate) Vec<Span>);

impl Spans {
    /// Entries in all of them.
    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|span| u64::from(span.to.saturating_sub(span.from)) + 1).sum()
    }
}

impl FromStr for Spans {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no span; write 3..50, 7 or 3..10,12..50");
        let one = |part: &str| {
            let (from, to) = part.split_once("..").unwrap_or((part, part));
            let (from, to) =
                (from.trim().parse().map_err(|_| wrong())?, to.trim().parse().map_err(|_| wrong())?);
            if from == 0 || to < from { Err(wrong()) } else { Ok(Span::new(from, to)) }
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, span) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{span}")?;
        }
        Ok(())
    }
}
