//! A transcript for a browser: one file that needs nothing else, and that can be printed.
//!
//! There is no script in it, nothing is loaded, and the page forbids itself to. Everything said is escaped. What the model does not
//! see is folded away under what stands for it; a printed page shows all of it.

use super::markdown::{entries, minute};
use super::{TranscriptItem, TranscriptPart, TranscriptRole};
use komado_core::Seq;
use komado_core::notation::grouped;
use std::io::{self, Write};

/// What the page may do: look as it looks.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--dim:#777;--band:#d9a40022}
body{font:15px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem}
article{border-top:1px solid var(--line);padding:.6rem 0}
article header{color:var(--dim);font-size:.85rem}article header b{color:CanvasText}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0;font:13px/1.45 ui-monospace,monospace}
pre.words{font:inherit}pre.thought{font-style:italic;color:var(--dim)}
.tool,.call{border-left:3px solid var(--line);padding-left:.7rem}
.summary,.marker{background:var(--band);padding:.6rem}.hidden,.left{opacity:.65}.error{border-left-color:#c33}
p.note{color:var(--dim);margin:.3rem 0}
@media (prefers-color-scheme:dark){:root{--dim:#999}}
@media print{body{max-width:none}article{break-inside:avoid-page}details::details-content{content-visibility:visible}}";

/// Text that stands where a browser reads markup.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // What a text cannot have in it, and what turns its direction round.
            c if c.is_control() && c != '\n' && c != '\t' => safe.push(' '),
            '\u{fffe}' | '\u{ffff}' => safe.push(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c => safe.push(c),
        }
    }
    safe
}

/// A page in the making.
#[derive(Default)]
pub struct HtmlTranscript {
    /// True while entries that the model does not see are folded away.
    is_folded: bool,
    /// Threads begun: entries of each are numbered from 1.
    threads: usize,
}

impl HtmlTranscript {
    /// Begins the page.
    pub fn begin(&mut self, title: &str, about: &str, out: &mut dyn Write) -> io::Result<()> {
        let (title, about) = (escaped(title), escaped(about));
        write!(
            out,
            "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{about}</p>\n",
        )
    }

    /// Begins a thread of several.
    pub fn thread(&mut self, name: &str, out: &mut dyn Write) -> io::Result<()> {
        self.unfold(out)?;
        self.threads += 1;
        writeln!(out, "<h2>Thread {}</h2>", escaped(name))
    }

    /// Writes one item.
    pub fn item(&mut self, item: &TranscriptItem, out: &mut dyn Write) -> io::Result<()> {
        let is_unseen = item.hidden_by.is_some() || item.left_behind;
        if !is_unseen {
            self.unfold(out)?;
        } else if !self.is_folded {
            self.is_folded = true;
            writeln!(out, "<details><summary>What the model does not see, from @{} on</summary>", item.seq)?;
        }
        let mut classes = vec![item.role.name()];
        classes.extend(item.hidden_by.map(|_| "hidden"));
        classes.extend(item.left_behind.then_some("left"));
        classes.extend(item.result.as_ref().filter(|result| result.is_error).map(|_| "error"));
        writeln!(out, "<article class=\"{}\" id=\"{}\">", classes.join(" "), self.name_of(item.seq))?;
        self.header(item, out)?;
        if let Some(edit) = &item.edit
            && let Some(shows) = &edit.shows
        {
            let (seq, kind) = (edit.seq, escaped(&edit.kind));
            writeln!(out, "<p class=\"note\">The model sees this in its place (@{seq}, {kind}):</p>")?;
            writeln!(out, "<pre class=\"marker\">{}</pre>", escaped(shows))?;
        }
        item.parts.iter().try_for_each(|one| part(item.role, one, out))?;
        writeln!(out, "</article>")
    }

    /// Ends the page.
    pub fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.unfold(out)?;
        out.write_all(b"</main>\n</body>\n</html>\n")
    }

    fn unfold(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match std::mem::take(&mut self.is_folded) {
            true => writeln!(out, "</details>"),
            false => Ok(()),
        }
    }

    /// The name of an entry in the page, for links to it.
    fn name_of(&self, seq: Seq) -> String {
        format!("t{}-{seq}", self.threads.max(1))
    }

    fn header(&self, item: &TranscriptItem, out: &mut dyn Write) -> io::Result<()> {
        let name = item.name.as_deref().map(|name| format!(" {}", escaped(name))).unwrap_or_default();
        let mut words =
            vec![escaped(&minute(&item.timestamp)), format!("{} tokens", grouped(item.tokens.into()))];
        if let Some(edit) = item.edit.as_ref().filter(|edit| edit.shows.is_none()) {
            let (before, after) = (grouped(edit.before), grouped(edit.after));
            words.push(format!("in place of {}, {before} → {after} tokens", entries(&edit.covers)));
        }
        words.extend(item.pinned.then(|| "pinned".to_owned()));
        words.extend(
            item.hidden_by.map(|by| format!("hidden by <a href=\"#{}\">@{by}</a>", self.name_of(by))),
        );
        words.extend(item.left_behind.then(|| "left behind by a rewind".to_owned()));
        let (role, seq) = (item.role.name(), item.seq);
        writeln!(out, "<header><b>{role}{name}</b> @{seq} · {}</header>", words.join(" · "))
    }
}

fn part(role: TranscriptRole, part: &TranscriptPart, out: &mut dyn Write) -> io::Result<()> {
    match part {
        TranscriptPart::Text { text } => {
            let class = if role == TranscriptRole::Tool { "output" } else { "words" };
            writeln!(out, "<pre class=\"{class}\">{}</pre>", escaped(text))
        }
        TranscriptPart::Thought { text } => writeln!(out, "<pre class=\"thought\">{}</pre>", escaped(text)),
        TranscriptPart::Call { tool, arguments, .. } => {
            writeln!(out, "<pre class=\"call\">→ {} {}</pre>", escaped(tool), escaped(arguments))
        }
        TranscriptPart::Image { about } => {
            writeln!(out, "<p class=\"note\">[picture: {}]</p>", escaped(about))
        }
        TranscriptPart::Tools { count } => writeln!(out, "<p class=\"note\">Tools offered: {count}</p>"),
        TranscriptPart::Other { dialect } => {
            writeln!(out, "<p class=\"note\">[something only {} understands]</p>", escaped(dialect))
        }
    }
}
