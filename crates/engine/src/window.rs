//! How large is the window?
//!
//! Four may know: the table of models, the server itself when asked, what a refusal taught, and the user. Each is
//! trusted over those before it. Nobody guesses: when none knows, the window is unknown, and that is an error where a
//! session opens.

use crate::lesson::Lesson;
use komado_core::budget::RESERVE;
use std::fmt;

/// Who said how large a window is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// The user.
    Given,
    /// The provider, when a request was too large.
    Learned,
    /// The server, when asked.
    Probed,
    /// The table of models.
    Listed,
}

impl Told {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Learned => "learned",
            Self::Probed => "probed",
            Self::Listed => "listed",
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given => "as you said",
            Self::Learned => "learned from a refusal",
            Self::Probed => "as its server says",
            Self::Listed => "from the table of models",
        })
    }
}

/// A window, in the provider's tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Tokens of request and answer together.
    pub tokens: u64,
    /// Who said so.
    pub told: Told,
}

/// A model's limits in the table of models. Input is not context: some take less than their window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Tokens of request and answer together.
    pub context: u64,
    /// Most tokens of a request, where that is less.
    pub input: Option<u64>,
}

impl Window {
    /// The window by all that is known; `None` when nobody knows.
    pub fn known(
        given: Option<u64>,
        lesson: &Lesson,
        probed: Option<u64>,
        listed: Option<Listed>,
    ) -> Option<Self> {
        let told = |told| move |tokens| Self { tokens, told };
        // A server that now says something else than when the lesson was learned was started anew.
        let is_old = probed.is_some() && ![lesson.probed, lesson.window].contains(&probed);
        let learned = lesson.window.filter(|_| !is_old);
        given
            .map(told(Told::Given))
            .or(learned.map(told(Told::Learned)))
            .or(probed.map(told(Told::Probed)))
            .or(listed.map(|listed| listed.window()).map(told(Told::Listed)))
            .filter(|window| window.tokens > 0)
    }
}

impl Listed {
    /// The window in which a request of the largest size leaves room for a usual answer.
    fn window(self) -> u64 {
        self.input.map_or(self.context, |input| self.context.min(input.saturating_add(RESERVE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_knows_better_is_trusted_over_who_knows_less() {
        let listed = Some(Listed { context: 128_000, input: None });
        let lesson = Lesson { window: Some(4_096), probed: Some(8_192), ..Lesson::default() };
        let known = |given, lesson: &Lesson, probed, listed| {
            Window::known(given, lesson, probed, listed).map(|window| (window.tokens, window.told))
        };
        let none = Lesson::default();
        assert_eq!(known(None, &none, None, None), None);
        assert_eq!(known(None, &none, None, listed), Some((128_000, Told::Listed)));
        assert_eq!(known(None, &none, Some(8_192), listed), Some((8_192, Told::Probed)));
        assert_eq!(known(None, &lesson, Some(8_192), listed), Some((4_096, Told::Learned)));
        assert_eq!(known(Some(2_048), &lesson, Some(8_192), listed), Some((2_048, Told::Given)));
    }

    #[test]
    fn a_lesson_from_before_the_server_was_started_anew_is_forgotten() {
        let lesson = Lesson { window: Some(2_000), probed: Some(2_048), ..Lesson::default() };
        let known = |probed| Window::known(None, &lesson, probed, None).unwrap();
        assert_eq!(known(Some(2_048)).told, Told::Learned);
        assert_eq!(known(None).told, Told::Learned);
        assert_eq!(known(Some(8_192)), Window { tokens: 8_192, told: Told::Probed });
    }

    #[test]
    fn input_is_not_context() {
        let listed = Listed { context: 400_000, input: Some(272_000) };
        let window = Window::known(None, &Lesson::default(), None, Some(listed)).unwrap();
        assert_eq!(window.tokens, 272_000 + RESERVE);
    }
}
