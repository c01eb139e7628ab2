//! How large is the window?
//!
//! Four may know: the table of models, the server itself when asked, what a refusal taught, and the user. Each is
//! trusted over those before it. Nothing is guessed: when no source knows, the window is unknown, and that is an error where a
//! session opens.

use super::AppliedLesson;
use std::fmt;

/// Who said how large a window is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowSource {
    /// The user.
    Given,
    /// The provider, when a request was too large.
    Learned,
    /// The server, when asked.
    Probed,
    /// The table of models.
    Listed,
}

komado_core::names! {
    /// The word for it.
    WindowSource { Given = "given", Learned = "learned", Probed = "probed", Listed = "listed" }
}

impl fmt::Display for WindowSource {
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
pub struct ModelWindow {
    /// Tokens of request and answer together.
    pub tokens: u64,
    /// Who said so.
    pub told: WindowSource,
}

impl ModelWindow {
    /// The window by all that is known; `None` when it is not known.
    pub fn known(
        given: Option<u64>,
        lesson: &AppliedLesson,
        probed: Option<u64>,
        listed: Option<u64>,
    ) -> Option<Self> {
        let told = |told| move |tokens| Self { tokens, told };
        // A server that now says something else than when the lesson was learned was started anew.
        let learned = lesson.window();
        let is_old = probed.is_some() && ![lesson.learned.probed, learned].contains(&probed);
        let learned = learned.filter(|_| !is_old);
        given
            .map(told(WindowSource::Given))
            .or(learned.map(told(WindowSource::Learned)))
            .or(probed.map(told(WindowSource::Probed)))
            .or(listed.map(told(WindowSource::Listed)))
            .filter(|window| window.tokens > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lesson::LearnedModel;

    #[test]
    fn who_knows_better_is_trusted_over_who_knows_less() {
        let listed = Some(128_000);
        let lesson = LearnedModel { window: Some(4_096), probed: Some(8_192), ..LearnedModel::default() };
        let lesson = AppliedLesson::for_all(lesson);
        let known = |given, lesson: &AppliedLesson, probed, listed| {
            ModelWindow::known(given, lesson, probed, listed).map(|window| (window.tokens, window.told))
        };
        let none = AppliedLesson::default();
        assert_eq!(known(None, &none, None, None), None);
        assert_eq!(known(None, &none, None, listed), Some((128_000, WindowSource::Listed)));
        assert_eq!(known(None, &none, Some(8_192), listed), Some((8_192, WindowSource::Probed)));
        assert_eq!(known(None, &lesson, Some(8_192), listed), Some((4_096, WindowSource::Learned)));
        assert_eq!(known(Some(2_048), &lesson, Some(8_192), listed), Some((2_048, WindowSource::Given)));
    }

    #[test]
    fn a_lesson_from_before_the_server_was_started_anew_is_forgotten() {
        let lesson = LearnedModel { window: Some(2_000), probed: Some(2_048), ..LearnedModel::default() };
        let lesson = AppliedLesson::for_all(lesson);
        let known = |probed| ModelWindow::known(None, &lesson, probed, None).unwrap();
        assert_eq!(known(Some(2_048)).told, WindowSource::Learned);
        assert_eq!(known(None).told, WindowSource::Learned);
        assert_eq!(known(Some(8_192)), ModelWindow { tokens: 8_192, told: WindowSource::Probed });
    }
}
