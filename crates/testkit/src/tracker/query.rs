//! What stands after the question mark, and the page that it asks for.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but what an address holds as it is.
const PIECE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The most elements of a page; a client that asks for more gets so many.
const MOST: usize = 100;

/// A piece of an address, as it was before it was encoded.
pub(super) fn decoded(piece: &str) -> String {
    percent_decode_str(piece).decode_utf8_lossy().into_owned()
}

fn encoded(words: &str) -> String {
    utf8_percent_encode(words, PIECE).to_string()
}

/// A query, taken apart.
pub(super) struct TrackerQuery(Vec<(String, String)>);

impl TrackerQuery {
    pub(super) fn parse(text: &str) -> Self {
        let pair = |piece: &str| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
        };
        Self(text.split('&').filter(|piece| !piece.is_empty()).map(pair).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok().filter(|number| *number > 0)
    }

    /// The labels that are asked for, all of which must be there.
    pub(super) fn labels(&self) -> Vec<&str> {
        self.get("labels").unwrap_or_default().split(',').map(str::trim).filter(|l| !l.is_empty()).collect()
    }

    /// With another page.
    fn at(&self, page: usize) -> String {
        let mut pairs: Vec<String> = self
            .0
            .iter()
            .filter(|(name, _)| name != "page")
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        pairs.push(format!("page={page}"));
        pairs.join("&")
    }
}

/// One page of a list.
pub(super) struct TrackerPage<T> {
    pub(super) elements: Vec<T>,
    pub(super) number: usize,
    pub(super) size: usize,
    pub(super) total: usize,
    next: Option<String>,
    last: String,
}

impl<T> TrackerPage<T> {
    /// The page of `all` that `query` asks for.
    pub(super) fn of(all: Vec<T>, query: &TrackerQuery, usual: usize) -> Self {
        let size = query.number("per_page").unwrap_or(usual).min(MOST);
        let number = query.number("page").unwrap_or(1);
        let total = all.len();
        let pages = total.div_ceil(size).max(1);
        let next = (number < pages).then(|| query.at(number + 1));
        let elements = all.into_iter().skip((number - 1) * size).take(size).collect();
        Self { elements, number, size, total, next, last: query.at(pages) }
    }

    /// How many pages there are.
    pub(super) fn pages(&self) -> usize {
        self.total.div_ceil(self.size).max(1)
    }

    /// The `Link` header; none on the last page.
    pub(super) fn link(&self, address: &str) -> Option<String> {
        let next = self.next.as_ref()?;
        Some(format!("<{address}?{next}>; rel=\"next\", <{address}?{}>; rel=\"last\"", self.last))
    }
}
