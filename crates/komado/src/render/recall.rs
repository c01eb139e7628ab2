//! What was found: each result with where it stands and its words, broken to the width of the terminal.

use super::each;
use crate::fault::Outcome;
use crate::paper::{Ink, Paper};
use komado_core::notation::width as width_of;
use komado_ops::Page;
use komado_ops::recall::Recalled;
use std::ops::Range;

/// Prints results; over several sessions each says in which.
pub(crate) fn print(paper: &mut Paper, found: &Page<Recalled>, names_session: bool) -> Outcome {
    match paper.json {
        true => each(paper, &found.items),
        false => found.items.iter().try_for_each(|one| tell(paper, one, names_session)),
    }
}

fn tell(paper: &mut Paper, found: &Recalled, names_session: bool) -> Outcome {
    let full = &found.address;
    let place = if names_session { full.as_str() } else { &full[found.session.len()..] };
    let mut about = vec![found.role.to_owned()];
    about.extend(found.tools.iter().filter(|tool| !tool.is_empty()).cloned());
    about.push(found.timestamp.chars().take(16).collect::<String>().replace('T', " "));
    about.extend(found.in_output.then(|| "in the whole output".to_owned()));
    about.extend(found.hidden.then(|| "not in the view".to_owned()));
    let heading = format!("{} {}", paper.ink(Ink::Bold, place), paper.ink(Ink::Dim, &about.join(" · ")));
    paper.line(heading)?;
    for (text, marks) in wrap(&found.snippet, &found.marks, paper.width.saturating_sub(4)) {
        let text = highlighted(paper, &text, &marks);
        paper.line(format!("    {text}"))?;
    }
    for beside in &found.around {
        let text = format!("    @{} {}: {}", beside.seq, beside.role, beside.snippet);
        let text = wrap(&text, &[], paper.width.saturating_sub(1)).into_iter().next().unwrap_or_default().0;
        paper.line(paper.ink(Ink::Dim, &text))?;
    }
    Ok(())
}

/// A piece of a text and the marks in it.
pub(crate) type Piece = (String, Vec<Range<usize>>);

/// The text in lines of at most `width` columns, each with its own marks.
pub(crate) fn wrap(text: &str, marks: &[Range<usize>], width: usize) -> Vec<Piece> {
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

fn highlighted(paper: &Paper, text: &str, marks: &[Range<usize>]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for mark in marks {
        out.push_str(&text[at..mark.start]);
        out.push_str(&paper.ink(Ink::Yellow, &text[mark.clone()]));
        at = mark.end;
    }
    out + &text[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

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
