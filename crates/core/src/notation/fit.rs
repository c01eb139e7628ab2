//! A line that fits a terminal: words stand, texts give way, each by its fair share.
//!
//! Columns, not characters: most Chinese, Japanese and Korean characters take two. No character is ever split, nor
//! is an escape.

use super::line::{Body, Line, escape, tame};
use unicode_width::UnicodeWidthChar;

/// Stands for what was left out.
const CUT: char = '…';
/// The least a text can be shortened to: `"…"`.
const LEAST: usize = 3;

impl Line<'_> {
    /// The line in at most `width` columns.
    pub(super) fn fit(&self, width: usize) -> String {
        let words = self.brief_words();
        let fixed = words.iter().map(|(lead, tail)| columns(lead) + columns(tail)).sum::<usize>();
        let fixed = fixed + self.0.len().saturating_sub(1);
        let bodies: Vec<usize> = self.0.iter().map(|token| measure(token.body.as_ref(), width)).collect();
        let share = fair_share(&bodies, width.saturating_sub(fixed));
        let mut out = String::new();
        for (i, (token, (lead, tail))) in self.0.iter().zip(&words).enumerate() {
            if i > 0 {
                out.push(' ');
            }
            out.push_str(lead);
            if let Some(body) = &token.body {
                draw(body, share, &mut out);
            }
            out.push_str(tail);
        }
        clip(&out, width)
    }

    /// What stands before and behind each body; a list is told by its length.
    fn brief_words(&self) -> Vec<(String, &str)> {
        let word = |token: &super::line::Token<'_>| match &token.body {
            Some(Body::List(json)) => format!("{}{}", token.lead, length(json)),
            _ => token.lead.to_string(),
        };
        self.0.iter().map(|token| (word(token), token.tail.as_str())).collect()
    }
}

fn length(json: &str) -> usize {
    serde_json::from_str::<Vec<serde::de::IgnoredAny>>(json).map_or(1, |list| list.len())
}

/// Columns of one character. An emoji selector can make the character before it wide, so it counts.
fn columns_of(c: char) -> usize {
    if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) }
}

/// Columns a text takes in a terminal.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The characters of a body as they are drawn, without quotes.
fn drawn<'b>(body: &'b Body<'_>) -> impl Iterator<Item = String> + use<'b> {
    let (text, put): (&str, fn(char, &mut String)) = match body {
        Body::Text(text) => (text, escape),
        Body::Json(json) => (json, tame),
        Body::List(_) => ("", tame),
    };
    text.chars().map(move |c| {
        let mut out = String::new();
        put(c, &mut out);
        out
    })
}

const fn quotes(body: &Body<'_>) -> usize {
    if matches!(body, Body::Text(_)) { 2 } else { 0 }
}

/// Columns of a body, counted no further than needed to know that it is wider than `enough`.
fn measure(body: Option<&Body<'_>>, enough: usize) -> usize {
    let Some(body) = body else { return 0 };
    let mut sum = quotes(body);
    for piece in drawn(body) {
        sum += columns(&piece);
        if sum > enough {
            break;
        }
    }
    sum
}

/// The widest that no body may pass so that all of them take at most `room`; short ones leave theirs to the rest.
fn fair_share(bodies: &[usize], room: usize) -> usize {
    let mut widths: Vec<usize> = bodies.iter().copied().filter(|width| *width > 0).collect();
    widths.sort_unstable();
    let mut room = room;
    for (i, &width) in widths.iter().enumerate() {
        let share = room / (widths.len() - i);
        if width > share {
            return share.max(LEAST);
        }
        room -= width;
    }
    usize::MAX
}

fn draw(body: &Body<'_>, share: usize, out: &mut String) {
    let cut = measure(Some(body), share) > share;
    let room = if cut { share.saturating_sub(quotes(body) + 1) } else { usize::MAX };
    let quote = if quotes(body) > 0 { "\"" } else { "" };
    out.push_str(quote);
    let mut sum = 0;
    for piece in drawn(body) {
        sum += columns(&piece);
        if sum > room {
            break;
        }
        out.push_str(&piece);
    }
    if cut {
        out.push(CUT);
    }
    out.push_str(quote);
}

/// The last resort: when the words alone are too wide, the line ends early.
fn clip(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut sum = 0;
    for c in line.chars() {
        sum += columns_of(c);
        if sum + 1 > width {
            break;
        }
        out.push(c);
    }
    if width > 0 {
        out.push(CUT);
    }
    out
}
