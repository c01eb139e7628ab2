//! Lists of a tracker: page after page, element by element.
//!
//! An element is handed on as soon as it is read. A page that breaks off is asked for again, and goes on behind the elements
//! that were handed on. Pages count: whoever changes the list while it is read may make it skip something, which is found
//! the next time.

use super::Error;
use super::body::{Bounded, Room};
use super::wire::{Ask, Wire};
use serde::de::{DeserializeOwned, Deserializer, Error as _, SeqAccess, Visitor};
use std::fmt;
use std::io::BufReader;
use std::marker::PhantomData;

/// How many pages a list may have: a tracker whose list leads on forever is none.
const MOST_PAGES: usize = 2_000;

/// Whether there is more to read.
enum Next {
    /// The page of this query.
    Query(String),
    /// No, or nobody wants it.
    End,
}

impl Wire {
    /// Hands on every element of the list at `path`, until `each` says no. False when there is no such list.
    pub(super) fn list<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        query: &str,
        each: &mut dyn FnMut(T) -> bool,
    ) -> Result<bool, Error> {
        let mut query = query.to_owned();
        for _ in 0..MOST_PAGES {
            let ask = Ask::get(what, format!("{path}?{query}"));
            match self.page(&ask, &query, each)? {
                None => return Ok(false),
                Some(Next::End) => return Ok(true),
                Some(Next::Query(next)) if next == query => break,
                Some(Next::Query(next)) => query = next,
            }
        }
        Err(self.refused(what, "its pages lead on without an end"))
    }

    fn page<T: DeserializeOwned>(
        &self,
        ask: &Ask<'_>,
        query: &str,
        each: &mut dyn FnMut(T) -> bool,
    ) -> Result<Option<Next>, Error> {
        let mut handed = 0;
        self.ask(ask, &mut |answer| {
            let next = next(&answer.headers, query);
            let body = Bounded::new(answer);
            let mut is_enough = false;
            let elements = Elements {
                room: body.room(),
                handed: &mut handed,
                is_enough: &mut is_enough,
                each: &mut *each,
                of: PhantomData,
            };
            let read = serde_json::Deserializer::from_reader(BufReader::new(body)).deserialize_seq(elements);
            match read {
                _ if is_enough => Ok(Next::End),
                Ok(()) => Ok(next),
                Err(error) => Err(self.unread(ask, &error)),
            }
        })
    }
}

/// Reads an array, and holds one element.
struct Elements<'a, T> {
    room: Room,
    /// How many were handed on, in this try and in those before.
    handed: &'a mut usize,
    is_enough: &'a mut bool,
    each: &'a mut dyn FnMut(T) -> bool,
    of: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Elements<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut at = 0;
        while let Some(element) = seq.next_element()? {
            self.room.renew();
            at += 1;
            if at <= *self.handed {
                continue;
            }
            *self.handed = at;
            if !(self.each)(element) {
                *self.is_enough = true;
                return Err(A::Error::custom("nobody reads on"));
            }
        }
        Ok(())
    }
}

/// What comes after a page. GitLab says its number, GitHub gives a link; of that only the query is taken, so that no
/// answer leads away from the host that was asked.
fn next(headers: &[(String, String)], query: &str) -> Next {
    let find = |name: &str| headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.trim());
    let next = match find("x-next-page") {
        Some("") => None,
        Some(page) => Some(at_page(query, page)),
        None => find("link").and_then(linked).map(str::to_owned),
    };
    next.map_or(Next::End, Next::Query)
}

fn at_page(query: &str, page: &str) -> String {
    let kept = query.split('&').filter(|pair| !pair.starts_with("page="));
    kept.chain([format!("page={page}").as_str()]).collect::<Vec<_>>().join("&")
}

/// The query of the link that is called `next`.
fn linked(link: &str) -> Option<&str> {
    let (_, query) = link.split('<').find_map(|one| {
        let (url, rest) = one.split_once('>')?;
        let is_next = rest.split([';', ',']).any(|word| matches!(word.trim(), "rel=\"next\"" | "rel=next"));
        is_next.then(|| url.split_once('?'))?
    })?;
    query.split('#').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_link_to_the_next_page_only_the_query_is_taken() {
        for (link, expect) in [
            (
                "<https://a.example/x?page=2>; rel=\"next\", <https://a.example/x?page=9>; rel=\"last\"",
                Some("page=2"),
            ),
            (
                "<https://a.example/x?page=1>; rel=\"prev\", <https://evil.example/y?page=3&a=1>; rel=next",
                Some("page=3&a=1"),
            ),
            ("<https://a.example/x?page=1>; rel=\"prev\"", None),
            ("<https://a.example/next>; rel=\"next\"", None),
            ("rel=\"next\"", None),
            ("", None),
        ] {
            assert_eq!(linked(link), expect, "{link}");
        }
        assert_eq!(at_page("labels=a&page=3&sort=asc", "4"), "labels=a&sort=asc&page=4");
    }
}
