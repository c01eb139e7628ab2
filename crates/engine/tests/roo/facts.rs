//! What is known of the original, in our words: an id, what happens, what is seen then.
//!
//! A story is told in short. `u1` and `a2` are messages of user and assistant, `a4+t` calls tool `t` and `t` is its
//! result. `A[a2..u3]` is a summary called A in place of that span, `T(a2..u3)` a marker. `<u5` goes back to the moment
//! before `u5`, as a person does who edits that message. What is seen is told in the same words.

/// Something happens, something is seen.
pub(crate) struct Past {
    pub(crate) id: &'static str,
    pub(crate) story: &'static str,
    pub(crate) seen: &'static str,
}

/// What is shown while summaries and markers stand, and after somebody has gone back.
pub(crate) const HISTORY: [Past; 8] = [
    Past { id: "EH-03", story: "u1 a2 u3 u4 a5 A[a2..u3]", seen: "u1 A u4 a5" },
    // The second summary stands for the first one, too.
    Past { id: "EH-09", story: "u1 a2 u3 a4 u5 A[a2..u3] a6 u7 a8 B[a2..u5]", seen: "u1 B a6 u7 a8" },
    // The original keeps the edited entry on its screen; there is no screen here.
    Past { id: "RW-02", story: "u1 a2 u3 <u3", seen: "u1 a2" },
    // The summary came after the sixth message; going back to the last leaves it.
    Past { id: "RW-05", story: "u1 a2 u3 a4 u5 a6 A[a2..a4] u7 u8 <u8", seen: "u1 A u5 a6 u7" },
    // Going back to before it was made undoes it.
    Past { id: "RW-06", story: "u1 a2 u3 a4 u5 a6 A[a2..a4] u7 u8 <u5", seen: "u1 a2 u3 a4" },
    Past { id: "RW-09", story: "u1 a2 u3 a4 u5 a6 T(a2..u3) u7 <u5", seen: "u1 a2 u3 a4" },
    // The reply came in a little later than the click; by entry there is nothing to guess.
    Past { id: "RW-11", story: "u1 a2 a3 <a3", seen: "u1 a2" },
    // A summary that nobody linked to the screen: the original cannot undo it, we can.
    Past { id: "RW-14", story: "u1 a2 u3 a4 u5 a6 A[a2..a4] u7 u8 <u5", seen: "u1 a2 u3 a4" },
];

/// The window is full and there is no summary: half of what comes after the first leaves, an even number. The marker
/// stands for it, and is called `S` as every text that no story has.
pub(crate) const TRUNCATED: Past =
    Past { id: "TR-06", story: "u1 a2 u3 a4 u5 a6 u7 a8 u9 a10 u11", seen: "u1 S a6 u7 a8 u9 a10 u11" };

/// What a summariser says when it is asked.
pub(crate) enum Answer {
    Words,
    Nothing,
    TooMuch,
}

/// What comes of asking for a summary by hand.
pub(crate) struct Asked {
    pub(crate) id: &'static str,
    pub(crate) story: &'static str,
    pub(crate) answer: Answer,
    /// What is seen then; `S` is the new summary.
    pub(crate) seen: &'static str,
    /// What the summariser is told, and what it is not; nothing when nobody is asked.
    pub(crate) told: &'static str,
    pub(crate) untold: &'static str,
}

pub(crate) const ASKED: [Asked; 8] = [
    // Three are kept, and the first.
    Asked {
        id: "CO-01",
        story: "u1 a2 u3 a4 u5 a6 u7",
        answer: Answer::Words,
        seen: "u1 S u5 a6 u7",
        told: "a2 u3 a4",
        untold: "u1 u5 a6 u7",
    },
    // One and three: there is nothing between them.
    Asked {
        id: "CO-02",
        story: "u1 a2 u3 a4",
        answer: Answer::Words,
        seen: "u1 a2 u3 a4",
        told: "",
        untold: "",
    },
    Asked {
        id: "CO-04",
        story: "u1 a2 u3 a4 u5 a6 u7",
        answer: Answer::TooMuch,
        seen: "u1 a2 u3 a4 u5 a6 u7",
        told: "a2 u3 a4",
        untold: "",
    },
    Asked {
        id: "CO-05",
        story: "u1 a2 u3 a4 u5 a6 u7",
        answer: Answer::Nothing,
        seen: "u1 a2 u3 a4 u5 a6 u7",
        told: "a2 u3 a4",
        untold: "",
    },
    // The original copies the call into the summary, so that the result that is kept has one. Here the result is a
    // message of its own and leaves with its call.
    Asked {
        id: "CO-07",
        story: "u1 a2 u3 a4+t t u5 a6 u7",
        answer: Answer::Words,
        seen: "u1 S u5 a6 u7",
        told: "a2 u3 a4 t",
        untold: "u5",
    },
    // And where the result is among the three that are kept, its call is kept with it.
    Asked {
        id: "CO-07, result among those kept",
        story: "u1 a2 u3 a4+t t a6 u7",
        answer: Answer::Words,
        seen: "u1 S a4 t a6 u7",
        told: "a2 u3",
        untold: "a4 t",
    },
    // The summary before is told, not what it stood for. The first request is not repeated: it is still there.
    Asked {
        id: "CO-08",
        story: "u1 a2 u3 u4 A[a2..u3] a5 u6 a7 u8",
        answer: Answer::Words,
        seen: "u1 S u6 a7 u8",
        told: "A u4 a5",
        untold: "u1 a2 u3 u6",
    },
    // Of two summaries only the last is told, and what came since.
    Asked {
        id: "SL-01",
        story: "u1 a2 u3 A[a2..u3] u4 a5 B[a2..a5] u6 a7 u8 a9 u10",
        answer: Answer::Words,
        seen: "u1 S u8 a9 u10",
        told: "B u6 a7",
        untold: "u1 A a2 u3 u4 a5",
    },
];

/// A window, what fills it, and what is then decided. In all of them the window is 100,000 and the reserve 30,000.
pub(crate) struct Decision {
    pub(crate) id: &'static str,
    /// Tokens of the view, the last message apart.
    pub(crate) tokens: (u64, u64),
    pub(crate) auto: bool,
    /// Percent for everyone, and for the profile in use.
    pub(crate) percent: (f64, Option<f64>),
    /// The percentage that holds, and whether something is done.
    pub(crate) holds: f64,
    pub(crate) acts: bool,
}

const fn decision(
    id: &'static str,
    tokens: (u64, u64),
    percent: (f64, Option<f64>),
    holds: f64,
    acts: bool,
) -> Decision {
    Decision { id, tokens, auto: true, percent, holds, acts }
}

pub(crate) const DECISIONS: [Decision; 6] = [
    decision("DE-01", (60_000, 0), (50.0, None), 50.0, true),
    // Without summaries the percentage is not a reason, and 60,000 are just what fits.
    Decision { auto: false, ..decision("DE-03", (60_000, 0), (50.0, None), 50.0, false) },
    // The last message counts.
    decision("DE-05", (49_000, 2_000), (50.0, None), 50.0, true),
    decision("DE-06", (55_000, 0), (80.0, Some(50.0)), 50.0, true),
    decision("DE-07", (55_000, 0), (80.0, Some(-1.0)), 80.0, false),
    decision("DE-08", (55_000, 0), (80.0, Some(4.0)), 80.0, false),
];

/// Five messages in the same window, at a hundred percent.
pub(crate) struct Managed {
    pub(crate) id: &'static str,
    pub(crate) tokens: u64,
    pub(crate) auto: bool,
    /// Messages that leave, behind a marker.
    pub(crate) gone: usize,
    /// What was paid for nothing.
    pub(crate) paid: bool,
}

pub(crate) const MANAGED: [Managed; 3] = [
    Managed { id: "MA-01", tokens: 59_999, auto: true, gone: 0, paid: false },
    Managed { id: "MA-02", tokens: 70_001, auto: false, gone: 2, paid: false },
    // The summary is asked for, comes back empty, is paid for; then the marker.
    Managed { id: "MA-03", tokens: 70_001, auto: true, gone: 2, paid: true },
];

/// What a message weighs in the padded count.
pub(crate) enum Piece {
    Words(&'static str),
    /// A picture whose base64 is so long.
    Picture(usize),
    PictureElsewhere,
    Call(&'static str, &'static str),
    Thought(&'static str),
    /// Something that only its provider knows.
    Other(&'static str),
}

pub(crate) struct Weighed {
    pub(crate) id: &'static str,
    pub(crate) pieces: &'static [Piece],
    /// Before the padding, and with it.
    pub(crate) tokens: (u64, u64),
}

pub(crate) const WEIGHED: [Weighed; 5] = [
    Weighed { id: "TE-01", pieces: &[Piece::Words("Hello world")], tokens: (2, 3) },
    // Names of special tokens are plain text.
    Weighed { id: "TE-02", pieces: &[Piece::Words("a<|endoftext|>b")], tokens: (9, 14) },
    // The root of its length, or 300 when there is none; padded once.
    Weighed { id: "TE-03", pieces: &[Piece::Picture(1_000), Piece::PictureElsewhere], tokens: (332, 498) },
    Weighed {
        id: "TE-04",
        pieces: &[Piece::Call("read_file", r#"{"path":"/src/main.ts"}"#)],
        tokens: (15, 23),
    },
    // What is not known weighs nothing.
    Weighed {
        id: "TE-06",
        pieces: &[
            Piece::Thought("a hidden thought"),
            Piece::Other(r#"{"type":"thinking","thinking":"more","signature":"x"}"#),
            Piece::Words(""),
        ],
        tokens: (0, 0),
    },
];
