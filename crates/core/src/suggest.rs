//! What may have been meant by a name that is not known: the nearest known one.
//!
//! People misspell, and people remember a name without its section. Both are distances here: to the whole name, and to
//! its last part.

use std::collections::BTreeSet;
use strsim::damerau_levenshtein;

/// The nearest of some names, if it is near enough.
pub fn nearest_name<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest(name, known.map(|known| (known, known)))
}

/// The nearest of some names, each with its last part, if one is near enough.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    // Several names share a last part; then the whole name decides.
    let rank = |full, leaf| Some((distance(name, full, leaf)?, damerau_levenshtein(name, full)));
    let ranked = known.filter_map(|(full, leaf)| Some((rank(full, leaf)?, full)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, full)| full)
}

/// The nearest of some names, the nearest first, at most `most`. A known name is near by its beginning of as many words, too: for
/// `claud-sonnet` that is `claude-sonnet-4`.
pub fn nearest_names<'a>(name: &str, known: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let words = name.split(is_break).count();
    let rank = |known: &str| {
        let beginning = known.match_indices(is_break).nth(words - 1).map_or(known, |(end, _)| &known[..end]);
        let near = edits(name, beginning).into_iter().chain(edits(name, known)).min()?;
        Some((near, damerau_levenshtein(name, known)))
    };
    let ranked: BTreeSet<_> = known.filter_map(|known| Some((rank(known)?, known))).collect();
    ranked.into_iter().map(|(_, known)| known).take(most).collect()
}

/// Asks for one of the near names, before what else can be done: `did you mean "a" or "b"? if not, `. Nothing where none is near.
pub fn did_you_mean(near: &[String]) -> String {
    let quoted: Vec<String> = near.iter().map(|name| format!("{name:?}")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [only] => format!("did you mean {only}? if not, "),
        [first @ .., last] => format!("did you mean {} or {last}? if not, ", first.join(", ")),
    }
}

/// True for what parts the words of a name.
fn is_break(c: char) -> bool {
    matches!(c, '-' | '_' | '.' | ':' | '/' | ' ')
}

/// How far a name is from a known one; `None` if too far. Equal distances prefer the whole name to its last part.
fn distance(name: &str, full: &str, leaf: &str) -> Option<usize> {
    let whole = edits(name, full).map(|edits| 2 * edits);
    let part = edits(name, leaf).map(|edits| 2 * edits + 1);
    let end = name.strip_suffix(leaf).is_some_and(|rest| rest.ends_with(['.', '_'])).then_some(3);
    [whole, part, end].into_iter().flatten().min()
}

fn edits(name: &str, known: &str) -> Option<usize> {
    let length = name.chars().count().min(known.chars().count());
    let edits = damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    (edits <= (length / 3).max(1)).then_some(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_names_may_be_near_by_their_whole_or_by_their_beginning() {
        let known =
            ["claude-opus-4-5", "claude-sonnet-4", "claude-sonnet-4-5", "gpt-4o", "gpt-4o-mini", "gpt-4o"];
        let near = |name| nearest_names(name, known.into_iter(), 2);
        assert_eq!(near("claud-sonnet"), ["claude-sonnet-4", "claude-sonnet-4-5"]);
        assert_eq!(near("gpt4o"), ["gpt-4o"]);
        assert_eq!(near("gtp-4o"), ["gpt-4o", "gpt-4o-mini"]);
        assert!(near("tiny-one").is_empty() && near("").is_empty());
    }

    #[test]
    fn near_names_are_asked_for_and_none_is_not() {
        let asked =
            |near: &[&str]| did_you_mean(&near.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(asked(&[]), "");
        assert_eq!(asked(&["a"]), "did you mean \"a\"? if not, ");
        assert_eq!(asked(&["a", "b", "c"]), "did you mean \"a\", \"b\" or \"c\"? if not, ");
    }
}
