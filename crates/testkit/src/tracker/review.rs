//! A review of a pull request at GitHub, with what it says in the code.

/// A review.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Review {
    /// Its number, given when its author begins to write it.
    pub id: u64,
    /// Whose.
    pub author: String,
    /// `APPROVED`, `CHANGES_REQUESTED` or `COMMENTED`.
    pub verdict: String,
    /// What it says as a whole; there may be nothing.
    pub text: String,
    /// What it says in the code.
    pub remarks: Vec<Remark>,
    /// When it was sent, on the stand-in's clock; no other user sees it before.
    pub sent: Option<i64>,
}

impl Review {
    /// With this verdict, and nothing else.
    pub fn new(verdict: &str) -> Self {
        Self { verdict: verdict.to_owned(), ..Self::default() }
    }

    /// Saying this as a whole.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        Self { text: text.to_owned(), ..self }
    }

    /// With one more comment in the code.
    #[must_use]
    pub fn on(mut self, path: &str, line: u64, text: &str) -> Self {
        let (path, text) = (path.to_owned(), text.to_owned());
        self.remarks.push(Remark { id: 0, path, line, text, at: 0 });
        self
    }
}

/// A comment in the code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// Its number, among all of those.
    pub id: u64,
    /// The file.
    pub path: String,
    /// The line.
    pub line: u64,
    /// The words.
    pub text: String,
    /// When it was written, on the stand-in's clock.
    pub at: i64,
}
