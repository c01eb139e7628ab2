//! A transcript at a terminal: each message under a heading with who, when and how much; tool calls as a line, results clipped,
//! edits as a row that says what stands for what and how to undo it.

use super::journal::wrap;
use super::sessions::rounded;
use crate::cli_output::{CliOutput, Style, clip, count};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use komado_core::notation::tamed;
use komado_engine::transcript::markdown::entries;
use komado_engine::transcript::{TranscriptItem, TranscriptPart, TranscriptRole};
use komado_ops::OpResult;
use serde_json::{Map, Value};

/// Lines of a text that are shown, by what it is; `None` for all of them.
const OUTPUT: usize = 10;
const SETUP: usize = 12;
const THOUGHT: usize = 4;

/// The times of a list, in the reader's own zone: the day is said when it changes.
pub(crate) struct LocalTimes {
    zone: TimeZone,
    day: Option<Date>,
}

impl Default for LocalTimes {
    fn default() -> Self {
        Self { zone: TimeZone::system(), day: None }
    }
}

impl LocalTimes {
    /// The time of a stamp as `format` has it, and the day before it where that is another one.
    pub(crate) fn tell(&mut self, stamp: &str, format: &str) -> (Option<String>, String) {
        let Ok(time) = stamp.parse::<Timestamp>() else { return (None, "-".to_owned()) };
        let time = time.to_zoned(self.zone.clone());
        let is_new = self.day.replace(time.date()) != Some(time.date());
        let day = is_new.then(|| time.strftime("%A %-d %B %Y").to_string());
        (day, time.strftime(format).to_string())
    }
}

/// Prints the items of a transcript.
pub(crate) struct TranscriptPrinter<'a> {
    pub(crate) paper: &'a mut CliOutput,
    /// The session, with the thread where it is not the root.
    pub(crate) name: String,
    /// True to shorten nothing.
    pub(crate) full: bool,
    pub(crate) times: LocalTimes,
}

impl TranscriptPrinter<'_> {
    /// Prints one item.
    pub(crate) fn print(&mut self, item: &TranscriptItem) -> OpResult {
        let (day, time) = self.times.tell(&item.timestamp, "%H:%M");
        if let Some(day) = day {
            let day = self.paper.ink(Style::Dim, &format!("── {day} ──"));
            self.paper.line(day)?;
        }
        self.paper.line("")?;
        match (&item.edit, item.role) {
            (Some(edit), TranscriptRole::Summary | TranscriptRole::Marker) => {
                let (before, after) = (rounded(edit.before), rounded(edit.after));
                let row = format!(
                    "▚ {} of {}, {before} → {after} tokens · undo: komado revert {}@{}",
                    item.role.name(),
                    entries(&edit.covers),
                    self.name,
                    edit.seq
                );
                self.row(&row)?;
            }
            _ => self.heading(item, &time)?,
        }
        item.parts.iter().try_for_each(|part| self.part(item, part))
    }

    /// A marked row, as long as it is: its command is to be copied.
    fn row(&mut self, row: &str) -> OpResult {
        self.paper.inked_prose(Style::Yellow, row)
    }

    fn heading(&mut self, item: &TranscriptItem, time: &str) -> OpResult {
        let name = item.name.as_deref().map(|name| format!(" {}", tamed(name))).unwrap_or_default();
        let thread = item.thread.as_deref().unwrap_or_default();
        let mut about = vec![format!("{thread}@{}", item.seq), time.to_owned()];
        about.push(format!("{} tokens", rounded(item.tokens.into())));
        about.extend(item.pinned.then(|| "pinned".to_owned()));
        let result = item.result.as_ref();
        about.extend(result.filter(|result| result.interrupted).map(|_| "never answered".to_owned()));
        let style = match item.role {
            TranscriptRole::User => Style::Green,
            TranscriptRole::Assistant => Style::Cyan,
            TranscriptRole::Tool if result.is_some_and(|result| result.is_error) => Style::Red,
            _ => Style::Bold,
        };
        let failed = result.filter(|result| result.is_error && !result.interrupted).map_or("", |_| " error");
        let who = clip(&format!("{}{name}{failed}", item.role.name()), self.paper.width / 2);
        let (who, about) = (self.paper.ink(style, &who), self.paper.ink(Style::Dim, &about.join(" · ")));
        self.paper.prose(&format!("{who}  {about}"))?;
        match &item.edit {
            Some(edit) => self.row(&format!(
                "▚ {} shows {} in place of {} tokens · undo: komado revert {}@{}",
                edit.kind,
                rounded(edit.after),
                rounded(edit.before),
                self.name,
                edit.seq
            )),
            None => Ok(()),
        }
    }

    fn part(&mut self, item: &TranscriptItem, part: &TranscriptPart) -> OpResult {
        let most = match item.role {
            TranscriptRole::Tool => Some(OUTPUT),
            TranscriptRole::System | TranscriptRole::Developer => Some(SETUP),
            TranscriptRole::Summary | TranscriptRole::Marker => Some(SETUP),
            _ => None,
        };
        let room = self.paper.width.saturating_sub(2);
        match part {
            TranscriptPart::Text { text } if item.role == TranscriptRole::Tool => {
                self.text(item, text, "  │ ", most, Style::Dim)
            }
            TranscriptPart::Text { text } => self.text(item, text, "  ", most, None),
            TranscriptPart::Thought { text } => self.text(item, text, "  ~ ", Some(THOUGHT), Style::Dim),
            TranscriptPart::Call { tool, arguments, .. } => {
                let call = format!("→ {} {}", tamed(tool), called_with(arguments));
                let call = if self.full { call } else { clip(&call, room) };
                self.text(item, call.trim_end(), "  ", None, Style::Cyan)
            }
            TranscriptPart::Image { about } => self.note(&format!("[picture: {}]", tamed(about))),
            TranscriptPart::Tools { count: tools } => {
                self.note(&format!("[{} offered]", count(*tools, "tool")))
            }
            TranscriptPart::Other { dialect } => {
                self.note(&format!("[something that only {} understands]", tamed(dialect)))
            }
        }
    }

    fn note(&mut self, text: &str) -> OpResult {
        let text = self.paper.ink(Style::Dim, &clip(text, self.paper.width.saturating_sub(2)));
        self.paper.line(format!("  {text}"))
    }

    /// A text in lines that fit, each behind `edge`: all of them, or the first ones and how many more there are.
    fn text(
        &mut self,
        item: &TranscriptItem,
        text: &str,
        edge: &str,
        most: Option<usize>,
        style: impl Into<Option<Style>>,
    ) -> OpResult {
        let (style, most) = (style.into(), most.filter(|_| !self.full).unwrap_or(usize::MAX));
        let room = self.paper.width.saturating_sub(edge.chars().count()).max(2);
        let (mut printed, mut lines) = (0, text.lines());
        while let Some(line) = lines.next() {
            // What a terminal would act on is written out, and takes more columns then.
            let line = tamed(&line.replace('\t', "    "));
            let mut pieces = wrap(&line, &[], room).into_iter().map(|(piece, _)| piece);
            let first = pieces.next().unwrap_or_default();
            for piece in std::iter::once(first).chain(pieces) {
                if printed == most {
                    return self.more(item, edge, lines.count() as u64);
                }
                printed += 1;
                let piece = format!("{edge}{piece}");
                let piece = piece.trim_end();
                let piece = style.map_or_else(|| piece.to_owned(), |style| self.paper.ink(style, piece));
                self.paper.line(piece)?;
            }
        }
        Ok(())
    }

    /// Says that there is more, and what shows it.
    fn more(&mut self, item: &TranscriptItem, edge: &str, after: u64) -> OpResult {
        // The line that was not printed, or not to its end, is one of them.
        let lines = count(after + 1, "more line");
        let how = match (&item.thread, item.role) {
            (None, TranscriptRole::Tool) => format!("komado session output {} @{}", self.name, item.seq),
            _ => format!("komado show {} --full", self.name),
        };
        let text = self.paper.ink(Style::Dim, &format!("{edge}… {lines}: {how}"));
        self.paper.line(text)
    }
}

/// Arguments on one line: `path=main.py limit=3` where they are an object.
fn called_with(arguments: &str) -> String {
    let Ok(fields) = serde_json::from_str::<Map<String, Value>>(arguments) else { return tamed(arguments) };
    let told = |(name, value): (&String, &Value)| match value {
        Value::String(text) if !text.is_empty() && !text.contains([' ', '"', '\n', '\t', '=']) => {
            format!("{name}={text}")
        }
        value => format!("{name}={value}"),
    };
    tamed(&fields.iter().map(told).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_on_one_line_as_a_person_writes_them() {
        assert_eq!(called_with(r#"{"path":"main.py","limit":3}"#), "limit=3 path=main.py");
        assert_eq!(called_with(r#"{"cmd":"ls -l","all":null}"#), r#"all=null cmd="ls -l""#);
        assert_eq!(called_with("free\ntext\u{1b}[2J"), r"free text\u001b[2J");
        assert_eq!(called_with("{}"), "");
    }

    #[test]
    fn a_day_is_said_when_it_changes() {
        let mut times = LocalTimes { zone: TimeZone::UTC, day: None };
        let (day, time) = times.tell("2024-01-15T10:30:00.000000Z", "%H:%M");
        assert_eq!((day.as_deref(), time.as_str()), (Some("Monday 15 January 2024"), "10:30"));
        assert_eq!(times.tell("2024-01-15T23:59:00.000000Z", "%H:%M"), (None, "23:59".into()));
        assert_eq!(
            times.tell("2024-01-16T00:01:00.000000Z", "%H:%M").0.as_deref(),
            Some("Tuesday 16 January 2024")
        );
        assert_eq!(times.tell("at noon", "%H:%M"), (None, "-".into()));
    }
}
