//! A line in the making: words that stand as they are, and texts that may be shortened.

use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;

/// What of a token may give way when the line is too long.
#[derive(Clone, Debug)]
pub(super) enum TokenBody<'a> {
    /// Words, drawn in quotes.
    Text(Cow<'a, str>),
    /// JSON, drawn as it is.
    Json(&'a str),
    /// A JSON array, of which a short line only tells the length.
    List(&'a str),
}

/// A word, and behind it what may give way.
#[derive(Clone, Debug)]
pub(super) struct NotationToken<'a> {
    /// Stands as it is.
    pub(super) lead: Cow<'a, str>,
    /// Follows without a space.
    pub(super) body: Option<TokenBody<'a>>,
    /// Ends the token.
    pub(super) tail: String,
    /// Where it is left out.
    pub(super) place: TokenPlace,
}

/// In which of the notation's forms a token stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum TokenPlace {
    /// In all of them.
    #[default]
    Always,
    /// Not in the plain one: digests, ids that only programs compare, and the numbers of requests and edits.
    Detail,
    /// In the plain one alone.
    Plain,
}

/// One line, token by token.
#[derive(Clone, Debug, Default)]
pub(super) struct NotationLine<'a>(pub(super) Vec<NotationToken<'a>>);

impl<'a> NotationLine<'a> {
    fn push(&mut self, lead: impl Into<Cow<'a, str>>, body: Option<TokenBody<'a>>) -> &mut Self {
        let place = TokenPlace::default();
        self.0.push(NotationToken { lead: lead.into(), body, tail: String::new(), place });
        self
    }

    /// A word of the notation itself.
    pub(super) fn word(&mut self, word: impl Into<Cow<'a, str>>) -> &mut Self {
        self.push(word, None)
    }

    /// A name that a user, a model or a tool gave.
    pub(super) fn name(&mut self, name: &'a str) -> &mut Self {
        if is_bare(name) { self.push(name, None) } else { self.text(name) }
    }

    /// Words in quotes.
    pub(super) fn text(&mut self, text: impl Into<Cow<'a, str>>) -> &mut Self {
        self.push("", Some(TokenBody::Text(text.into())))
    }

    /// Raw JSON.
    pub(super) fn json(&mut self, json: &'a str) -> &mut Self {
        self.push("", Some(TokenBody::Json(json)))
    }

    /// A raw JSON array.
    pub(super) fn list(&mut self, json: &'a str) -> &mut Self {
        self.push("", Some(TokenBody::List(json)))
    }

    /// What `write` adds for a value, when there is one.
    pub(super) fn maybe<T>(
        &mut self,
        value: Option<T>,
        write: impl for<'s> FnOnce(&'s mut Self, T) -> &'s mut Self,
    ) -> &mut Self {
        match value {
            Some(value) => write(self, value),
            None => self,
        }
    }

    /// A word, when there is one.
    pub(super) fn maybe_word(&mut self, word: Option<String>) -> &mut Self {
        self.maybe(word, Self::word)
    }

    /// Words in quotes, when there are any.
    pub(super) fn maybe_text(&mut self, text: Option<&'a str>) -> &mut Self {
        self.maybe(text, Self::text)
    }

    /// `key="value"`, whatever the value is.
    pub(super) fn quoted_attr(&mut self, key: &str, value: impl Into<Cow<'a, str>>) -> &mut Self {
        self.push(format!("{key}="), Some(TokenBody::Text(value.into())))
    }

    /// `key=value`, when there is a value.
    pub(super) fn attr(&mut self, key: &str, value: Option<&'a str>) -> &mut Self {
        match value {
            Some(value) if is_bare(value) => self.push(format!("{key}={value}"), None),
            Some(value) => self.quoted_attr(key, value),
            None => self,
        }
    }

    /// What `write` adds, as tokens of that place.
    pub(super) fn placed(
        &mut self,
        place: TokenPlace,
        write: impl for<'s> FnOnce(&'s mut Self) -> &'s mut Self,
    ) -> &mut Self {
        let first = self.0.len();
        write(self);
        self.0[first..].iter_mut().for_each(|token| token.place = place);
        self
    }

    /// The line without what stands at that place.
    pub(super) fn without(mut self, place: TokenPlace) -> Self {
        self.0.retain(|token| token.place != place);
        self
    }

    /// Puts `tail` right behind the last token.
    pub(super) fn tail(&mut self, tail: &str) -> &mut Self {
        if let Some(token) = self.0.last_mut() {
            token.tail.push_str(tail);
        }
        self
    }

    /// `~N`; nothing for 0.
    pub(super) fn tokens(&mut self, tokens: u32) -> &mut Self {
        if tokens > 0 { self.word(format!("~{tokens}")) } else { self }
    }

    /// The line with everything in it.
    pub(super) fn whole(&self) -> String {
        let mut out = String::new();
        for (i, token) in self.0.iter().enumerate() {
            if i > 0 {
                out.push(' ');
            }
            out.push_str(&token.lead);
            match &token.body {
                Some(TokenBody::Text(text)) => quote(text, &mut out),
                Some(TokenBody::Json(json) | TokenBody::List(json)) => {
                    json.chars().for_each(|c| tame(c, &mut out))
                }
                None => {}
            }
            out.push_str(&token.tail);
        }
        out
    }
}

/// True for a character of a name that needs no quotes.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '@' | '+' | '-')
}

/// True for a name that needs no quotes.
pub(super) fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_plain)
}

/// True for what a terminal or an editor would act on instead of showing it.
pub(crate) fn is_wild(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes `text` in quotes.
pub(super) fn quote(text: &str, out: &mut String) {
    out.push('"');
    text.chars().for_each(|c| escape(c, out));
    out.push('"');
}

/// Writes one character of a quoted text, as JSON escapes it.
pub(super) fn escape(c: char, out: &mut String) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if is_wild(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        c => out.push(c),
    }
}

/// A text on one line, in which nothing is left that a terminal would act on: as the notation writes it, without quotes.
pub fn tamed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| tame(c, &mut out));
    out
}

/// A text of any number of lines, in which nothing is left that a terminal would act on: each such character is written as the notation
/// writes it. Line ends and tabs stay.
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_line_end = c == '\n' || c == '\r' && rest.peek() == Some(&'\n');
        if is_line_end || c == '\t' || !is_wild(c) {
            out.push(c);
        } else {
            escape(c, &mut out);
        }
    }
    out
}

/// Writes one character of raw JSON. What is wild can only stand inside its strings, but for the tab.
pub(super) fn tame(c: char, out: &mut String) {
    match c {
        c if c.is_ascii_whitespace() => out.push(' '),
        c if is_wild(c) => escape(c, out),
        c => out.push(c),
    }
}

/// A number with commas between thousands.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

// A line that fits a terminal: words stand, texts give way, each by its fair share.
//
// Columns, not characters: most Chinese, Japanese and Korean characters take two. No character is ever split, nor
// is an escape.

/// Stands for what was left out.
const CUT: char = '…';
/// The least a text can be shortened to: `"…"`.
const LEAST: usize = 3;

impl NotationLine<'_> {
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
        // The last resort: when the words alone are too wide, the line ends early.
        clipped(&out, width)
    }

    /// What stands before and behind each body; a list is told by its length.
    fn brief_words(&self) -> Vec<(String, &str)> {
        let word = |token: &super::line::NotationToken<'_>| match &token.body {
            Some(TokenBody::List(json)) => format!("{}{}", token.lead, length(json)),
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

/// At most so many columns of a text, whole characters; a text that was cut ends with `…`.
pub fn clipped(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    if most == 0 {
        return String::new();
    }
    let mut taken = 1;
    let fits = text.chars().take_while(|c| {
        taken += columns_of(*c);
        taken <= most
    });
    fits.chain(['…']).collect()
}

/// The characters of a body as they are drawn, without quotes.
fn drawn<'b>(body: &'b TokenBody<'_>) -> impl Iterator<Item = String> + use<'b> {
    let (text, put): (&str, fn(char, &mut String)) = match body {
        TokenBody::Text(text) => (text, escape),
        TokenBody::Json(json) => (json, tame),
        TokenBody::List(_) => ("", tame),
    };
    text.chars().map(move |c| {
        let mut out = String::new();
        put(c, &mut out);
        out
    })
}

const fn quotes(body: &TokenBody<'_>) -> usize {
    if matches!(body, TokenBody::Text(_)) { 2 } else { 0 }
}

/// Columns of a body, counted no further than needed to know that it is wider than `enough`.
fn measure(body: Option<&TokenBody<'_>>, enough: usize) -> usize {
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

fn draw(body: &TokenBody<'_>, share: usize, out: &mut String) {
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
