//! What may have been meant by a name that is not known: the nearest known one.
//!
//! People misspell, and people remember a name without its section. Both are distances here: to the whole name, and to
//! its last part.

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
