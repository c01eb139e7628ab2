//! Why an output could not be read, in words a model can act on.

use komado_core::Seq;

/// What reading gives back.
pub type Result<T> = std::result::Result<T, Error>;

/// Why not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The thread could not say.
    #[error(transparent)]
    Engine(#[from] crate::Error),
    /// Not a reference.
    #[error(
        "{given:?} names no output: a ref_id is the id that a shortened output ends with, or @ and the number of an entry, such as @12 or root@12"
    )]
    BadReference {
        /// What was given.
        given: String,
    },
    /// Nothing of that name.
    #[error(
        "there is no output {id:?} in this session; copy the ref_id from the end of the shortened output, or name its entry, such as @12 or root@12"
    )]
    NoOutput {
        /// What was given.
        id: String,
    },
    /// An entry without words.
    #[error("@{seq} is a {kind}: only messages can be read")]
    NoWords {
        /// The entry.
        seq: Seq,
        /// What it is.
        kind: String,
    },
    /// Lines count from 1.
    #[error("{what} is 0, but lines count from 1")]
    LineZero {
        /// The argument.
        what: &'static str,
    },
    /// A window of nothing.
    #[error("{what} is 0: that would show nothing; give 1 or more, or leave it out")]
    ShowsNothing {
        /// The argument.
        what: &'static str,
    },
    /// A line after the last.
    #[error("there is no line {line}: the output has {lines} lines")]
    NoLine {
        /// What was asked for.
        line: u64,
        /// How many there are.
        lines: u64,
    },
    /// A character after the last.
    #[error(
        "line {line} has {chars} characters: after {offset} of them nothing is left; give a smaller char_offset"
    )]
    NoChars {
        /// The line.
        line: u64,
        /// Its characters.
        chars: u64,
        /// What was asked for.
        offset: u64,
    },
    /// A search for nothing.
    #[error("the pattern is empty; say what to look for")]
    NoPattern,
    /// More than can be looked for in good time.
    #[error("the pattern has {bytes} bytes, and {most} is the most; a part of it will do")]
    LongPattern {
        /// Its bytes.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// Not a regular expression.
    #[error(
        "not a regular expression: {0}\nput it right, or leave out regex to search for the text as it is"
    )]
    BadPattern(#[from] regex::Error),
    /// No such tool.
    #[error(
        "there is no tool {name:?} here; there are tool_output_cache, tool_output_cache_grep and tool_output_cache_line"
    )]
    NoTool {
        /// What was called.
        name: String,
    },
    /// Arguments that are none.
    #[error("{tool}: {why}")]
    BadArguments {
        /// The tool.
        tool: &'static str,
        /// What is wrong with them.
        why: String,
    },
    /// The bytes could not be read.
    #[error("cannot read the output: {0}")]
    Io(#[from] std::io::Error),
}
