//! What is said at a tracker, and the mark by which it is found again.
//!
//! The mark is the first line and cannot be seen: a comment that begins with one is ours, and is written once however often
//! somebody tries. What a model says may hold anything, and where it is said is somebody else's house: it is cut to what fits,
//! and a line that GitLab would carry out is made words again.

use super::Kind;
use crate::percent;

/// How every mark begins.
const BEGINNING: &str = "<!-- komado:";

/// The first line of a comment that has this mark.
pub(super) fn line(mark: &str) -> String {
    format!("{BEGINNING}{} -->", percent::encode(mark))
}

/// True for a comment that we wrote.
pub(super) fn is_ours(text: &str) -> bool {
    text.starts_with(BEGINNING)
}

/// True for the comment that has the mark whose line this is.
pub(super) fn has(text: &str, line: &str) -> bool {
    text.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(['\n', '\r']))
}

/// The whole comment.
pub(super) fn comment(kind: Kind, mark: &str, text: &str) -> String {
    let text = match kind {
        Kind::GitHub => text.to_owned(),
        Kind::GitLab => text.lines().map(harmless).collect::<Vec<_>>().join("\n"),
    };
    cut(&format!("{}\n{text}", line(mark)), most(kind))
}

/// The longest comment, in UTF-16 units: nobody counts more than those.
const fn most(kind: Kind) -> usize {
    match kind {
        Kind::GitHub => 65_536,
        Kind::GitLab => 1_000_000,
    }
}

/// GitLab carries out a line such as `/close` with the rights of whoever writes it.
fn harmless(line: &str) -> String {
    let start = line.trim_start();
    let word = start.strip_prefix('/').map(|rest| rest.split(char::is_whitespace).next().unwrap_or_default());
    let is_command = word.is_some_and(|word| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    });
    match is_command {
        true => format!("{}\\{start}", &line[..line.len() - start.len()]),
        false => line.to_owned(),
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.encode_utf16().count() <= most {
        return text.to_owned();
    }
    let note = "\n\n… (cut: a comment cannot be longer)";
    let mut room = most - note.encode_utf16().count();
    let fits = |c: &char| {
        let size = c.len_utf16();
        let fits = size <= room;
        room = if fits { room - size } else { 0 };
        fits
    };
    let kept: String = text.chars().take_while(fits).collect();
    kept + note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_in_its_own_comment_and_in_no_other() {
        let comment = comment(Kind::GitHub, "s1/result", "done");
        assert!(is_ours(&comment) && has(&comment, &line("s1/result")));
        assert!(!has(&comment, &line("s1/resul")) && !has(&comment, &line("s1")));
        assert!(!is_ours(&format!("> {comment}")), "a quote of ours is not ours");
        assert!(!is_ours(&format!("see\n{comment}")));
    }

    #[test]
    fn a_mark_cannot_end_the_comment_that_hides_it() {
        let line = line("a --> <b>窓");
        assert_eq!(line.matches("-->").count(), 1);
        assert!(line.ends_with(" -->"));
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters_and_says_so() {
        for (kind, most) in [(Kind::GitHub, 65_536), (Kind::GitLab, 1_000_000)] {
            for word in ["窓", "🪟", "a"] {
                let said = comment(kind, "m", &word.repeat(most));
                let length = said.encode_utf16().count();
                assert!(length <= most && length > most - 4, "{length}");
                assert!(said.ends_with("cannot be longer)"));
            }
        }
    }

    #[test]
    fn a_line_that_gitlab_would_carry_out_is_made_words() {
        let said = comment(Kind::GitLab, "m", "see\n/close\n  /assign @me\n/usr/bin/env\n/ a\n/label ~x");
        let lines: Vec<&str> = said.lines().skip(1).collect();
        assert_eq!(lines, ["see", "\\/close", "  \\/assign @me", "/usr/bin/env", "/ a", "\\/label ~x"]);
        assert!(comment(Kind::GitHub, "m", "/close").ends_with("\n/close"));
    }
}
