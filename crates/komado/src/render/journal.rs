//! One thread as people see it: what was appended, changed, answered, found again, and read of a long output.

use super::window::{gauge, gauge_cells};
use super::{Render, RenderList, address, columns, each};
use crate::cli_output::{CliOutput, Style, count, number};
use komado_core::notation::width as width_of;
use komado_ops::ask::AskResult;
use komado_ops::change::quoted;
use komado_ops::journal::{Appended, RedactionReport};
use komado_ops::output::{LongOutput, OutputExcerpt, ReadingCall};
use komado_ops::recall::Recalled;
use komado_ops::{ChangedView, OpResult, ResultPage};
use serde_json::Value;
use std::ops::Range;

impl Render for Appended {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        self.seqs.iter().try_for_each(|seq| paper.line(seq.to_string()))?;
        paper.flush()?;
        let role = self.role.map(|role| format!(" {}", role.name())).unwrap_or_default();
        let about = format!("@{}{role}: {} tokens  ", self.seq, number(self.tokens));
        let cells =
            gauge_cells(paper.width.saturating_sub(width_of(&about)), self.context_tokens, self.window);
        let gauge = gauge(paper, &(&self.weight).into(), self.window, cells.min(24));
        paper.say(format!("{about}{gauge}"));
        paper.say(format!("undo: {}", self.undo));
        Ok(())
    }
}

impl Render for RedactionReport {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let (lines, outputs) = (count(self.entries, "line"), count(self.blobs, "output"));
        if self.entries + self.blobs == 0 {
            return paper.line("the text stands nowhere in the session: nothing was changed");
        }
        paper.line(format!("changed {lines} of the journal and {outputs}"))?;
        paper.say("undo: none; the entries say when and why");
        Ok(())
    }
}

impl Render for ChangedView {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(format!("@{} {}", self.seq, self.what))?;
        paper.say(format!("window: {} → {} tokens", number(self.tokens_before), number(self.tokens_after)));
        if let Some(undo) = &self.undo {
            paper.say(format!("undo: {undo}"));
        }
        Ok(())
    }
}

/// An answer was printed as it came; what is left to say is which calls wait, and how they are answered.
impl Render for AskResult {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        for call in &self.calls {
            paper.say(format!("⋯ the model waits for {}({}), {}", call.name, call.arguments, call.id));
        }
        if let Some(first) = self.calls.first() {
            let name = address(&self.session, &self.thread);
            paper.say(format!(
                "answer with: komado append {name} --role tool --call {} \"…\"; then: komado ask --again {name}",
                first.id
            ));
        }
        Ok(())
    }
}

impl RenderList for LongOutput {
    fn list(page: &ResultPage<Self>, paper: &mut CliOutput) -> OpResult {
        if page.items.is_empty() {
            paper.say("no output is too long to be shown; @SEQ reads any entry");
            return Ok(());
        }
        let heading = ["ref", "bytes", "lines", "entry", "tool"];
        let figure = |n: Option<u64>| n.map_or("?".to_owned(), number);
        let rows = page.items.iter().map(|one| {
            let tool = one.tool.clone().unwrap_or_else(|| "?".to_owned());
            let (bytes, lines) = (figure(one.byte_size), figure(one.line_count));
            [one.ref_id.clone(), bytes, lines, format!("@{}", one.seq), tool]
        });
        columns(paper, heading, &[1, 2], rows)
    }
}

impl Render for OutputExcerpt {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(typed_on(self))
    }
}

/// What was read; its note names the command that a person types instead of the call by which a model reads on.
fn typed_on(read: &OutputExcerpt) -> String {
    let text = &read.text;
    let called = read.next.as_ref().and_then(|next| Some((next, text.rfind(&format!("{}(", next.tool))?)));
    match called.and_then(|(next, from)| Some((next, from, from + text[from..].rfind(')')? + 1))) {
        Some((next, from, to)) => format!("{}`{}`{}", &text[..from], command(read, next), &text[to..]),
        None => text.clone(),
    }
}

/// The command that reads on.
fn command(read: &OutputExcerpt, next: &ReadingCall) -> String {
    let address = address(&read.session, &read.thread);
    let mut words = vec![format!("komado session output {address} {}", read.ref_id)];
    for (key, value) in next.arguments.as_object().into_iter().flatten() {
        let flag = match key.as_str() {
            "ref_id" => continue,
            "pattern" => "--grep".to_owned(),
            "line_number" => "--line".to_owned(),
            key => format!("--{}", key.replace('_', "-")),
        };
        match value {
            Value::Bool(true) => words.push(flag),
            Value::Bool(false) | Value::Null => {}
            Value::String(text) => words.push(format!("{flag} {}", quoted(text))),
            value => words.push(format!("{flag} {value}")),
        }
    }
    words.join(" ")
}

/// Prints results, each under an address that `log` takes.
pub(crate) fn print(paper: &mut CliOutput, found: &ResultPage<Recalled>) -> OpResult {
    match paper.json {
        true => each(paper, &found.items),
        false => found.items.iter().try_for_each(|one| tell(paper, one)),
    }
}

fn tell(paper: &mut CliOutput, found: &Recalled) -> OpResult {
    let place = &found.address;
    let mut about = vec![found.role.to_owned()];
    about.extend(found.tools.iter().filter(|tool| !tool.is_empty()).cloned());
    about.push(found.timestamp.chars().take(16).collect::<String>().replace('T', " "));
    about.extend(found.in_output.then(|| "in the whole output".to_owned()));
    about.extend(found.is_beside().then(|| "beside a match".to_owned()));
    about.extend(found.hidden.then(|| "not in the view".to_owned()));
    let heading = format!("{} {}", paper.ink(Style::Bold, place), paper.ink(Style::Dim, &about.join(" · ")));
    paper.line(heading)?;
    for (text, marks) in wrap(&found.snippet, &found.marks, paper.width.saturating_sub(4)) {
        let text = highlighted(paper, &text, &marks);
        paper.line(format!("    {text}"))?;
    }
    for beside in &found.around {
        let text = format!("    @{} {}: {}", beside.seq, beside.role, beside.snippet);
        let text = wrap(&text, &[], paper.width.saturating_sub(1)).into_iter().next().unwrap_or_default().0;
        paper.line(paper.ink(Style::Dim, &text))?;
    }
    Ok(())
}

/// A piece of a text and the marks in it.
pub(crate) type MarkedLine = (String, Vec<Range<usize>>);

/// The text in lines of at most `width` columns, each with its own marks.
pub(crate) fn wrap(text: &str, marks: &[Range<usize>], width: usize) -> Vec<MarkedLine> {
    let mut lines = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = line_end(text, start, width.max(2));
        let inside = marks.iter().filter(|mark| mark.start < end && mark.end > start);
        let own = inside.map(|mark| mark.start.max(start) - start..mark.end.min(end) - start);
        lines.push((text[start..end].to_owned(), own.collect()));
        start = end + text[end..].len() - text[end..].trim_start().len();
    }
    lines
}

/// Where a line that begins at `start` ends: at a space, or where the columns do.
fn line_end(text: &str, start: usize, width: usize) -> usize {
    let (mut columns, mut space) = (0, None);
    for (i, c) in text[start..].char_indices() {
        columns += width_of(c.encode_utf8(&mut [0; 4]));
        if columns > width {
            return space.unwrap_or(start + i.max(c.len_utf8()));
        }
        if c == ' ' && i > 0 {
            space = Some(start + i);
        }
    }
    text.len()
}

fn highlighted(paper: &CliOutput, text: &str, marks: &[Range<usize>]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for mark in marks {
        out.push_str(&text[at..mark.start]);
        out.push_str(&paper.ink(Style::Yellow, &text[mark.clone()]));
        at = mark.end;
    }
    out + &text[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_read_on_with_a_command_whatever_was_looked_for() {
        let arguments =
            serde_json::json!({ "ref_id": "e3", "pattern": "f(it's)", "regex": true, "offset": 9 });
        let tool = "tool_output_cache_grep";
        let text = format!("line\n[more: {tool}({arguments})]");
        let (session, thread, ref_id) = ("s".to_owned(), "root".to_owned(), "e3".to_owned());
        let next = Some(ReadingCall { tool, arguments });
        let read = OutputExcerpt { session, thread, ref_id, text, next };
        let typed = "line\n[more: `komado session output s e3 --offset 9 --grep 'f(it'\\''s)' --regex`]";
        assert_eq!(typed_on(&read), typed);
    }

    #[test]
    fn a_text_is_broken_at_spaces_and_marks_go_with_their_words() {
        let lines = wrap("one two 小窓を開ける three", &[4..7, 8..14], 8);
        let texts: Vec<&str> = lines.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["one two", "小窓を開", "ける", "three"]);
        assert_eq!((lines[0].1.first(), lines[1].1.first()), (Some(&(4..7)), Some(&(0..6))));
        assert!(lines[2].1.is_empty() && lines[3].1.is_empty());
        assert!(wrap("", &[], 10).is_empty());
        assert_eq!(wrap("窓窓", &[], 1).len(), 2);
    }
}
