//! Where a person's lines come from: a terminal with history and completion, or a pipe.
//!
//! A message may have several lines: `\` at the end of a line goes on in the next, and everything between two `"""` is
//! one message.

use super::complete;
use crate::cli_output::say;
use komado_ops::{OpFault, OpResult};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::fs::OpenOptions;
use std::io::{self, BufRead, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The file of what was typed before.
const HISTORY: &str = "chat_history";
/// The most lines it keeps.
const MOST: usize = 2_000;
/// The prompt of a message that goes on.
const MORE: &str = "… ";
/// What a message of several lines stands between.
const FENCE: &str = "\"\"\"";

/// What a person said.
pub(crate) enum TypedLine {
    /// A message or a command.
    Line(String),
    /// An empty line, or one that was given up.
    Nothing,
    /// There will be no more.
    End,
}

/// Where lines come from.
pub(crate) enum ChatInput {
    /// A terminal.
    Terminal {
        /// Reads lines.
        editor: Box<Editor<CommandCompleter, FileHistory>>,
        /// The file of what was typed before.
        history: Option<PathBuf>,
    },
    /// Anything else.
    Pipe,
}

impl ChatInput {
    /// Standard input; what is typed is kept in the folder `base`, where there is one.
    pub(crate) fn new(base: Option<PathBuf>) -> Self {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Self::Pipe;
        }
        let made = Config::builder()
            .max_history_size(MOST)
            .and_then(|config| config.history_ignore_dups(true))
            .map(|config| config.completion_type(CompletionType::List).build())
            .and_then(Editor::with_config);
        let mut editor: Editor<CommandCompleter, FileHistory> = match made {
            Ok(editor) => editor,
            Err(error) => {
                say(format!("komado: lines cannot be edited here: {error}"));
                return Self::Pipe;
            }
        };
        editor.set_helper(Some(CommandCompleter));
        let history = base.map(|base| base.join(HISTORY)).filter(|path| {
            let mut options = OpenOptions::new();
            options.append(true).create(true).mode(0o600).open(path).is_ok()
        });
        if let Some(path) = &history {
            // An unreadable history is none; what is typed now is still kept.
            let _ = editor.load_history(path);
        }
        Self::Terminal { editor: Box::new(editor), history }
    }

    /// True when a person sits there.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal { .. })
    }

    /// The next message, of one line or several.
    pub(crate) fn next(&mut self, raw: &str, styled: &str) -> OpResult<TypedLine> {
        let first = match self.read(raw, styled)? {
            TypedLine::Line(line) => line,
            other => return Ok(other),
        };
        let Some(text) = self.whole(first)? else { return Ok(TypedLine::Nothing) };
        if text.trim().is_empty() {
            return Ok(TypedLine::Nothing);
        }
        if let Self::Terminal { editor, .. } = self {
            let _ = editor.add_history_entry(&text);
        }
        Ok(TypedLine::Line(text))
    }

    /// Reads on until a message is whole; `None` when it was given up.
    fn whole(&mut self, first: String) -> OpResult<Option<String>> {
        let mut text = first;
        let fenced = text.trim_start().starts_with(FENCE);
        loop {
            let goes_on = if fenced { !is_closed(&text) } else { text.ends_with('\\') };
            if !goes_on {
                break;
            }
            match self.read(MORE, MORE)? {
                TypedLine::Line(line) => {
                    if !fenced {
                        text.pop();
                    }
                    text.push('\n');
                    text.push_str(&line);
                }
                TypedLine::Nothing => return Ok(None),
                // A message that was begun is said also without its end.
                TypedLine::End => break,
            }
        }
        Ok(Some(if fenced { unfenced(&text) } else { text }))
    }

    fn read(&mut self, raw: &str, styled: &str) -> OpResult<TypedLine> {
        match self {
            Self::Terminal { editor, .. } => match editor.readline(&(raw, styled)) {
                Ok(line) => Ok(TypedLine::Line(line)),
                Err(ReadlineError::Interrupted) => Ok(TypedLine::Nothing),
                Err(ReadlineError::Eof) => Ok(TypedLine::End),
                Err(error) => Err(OpFault::input(format!("cannot read the terminal: {error}"))),
            },
            Self::Pipe => {
                let mut bytes = Vec::new();
                if io::stdin().lock().read_until(b'\n', &mut bytes)? == 0 {
                    return Ok(TypedLine::End);
                }
                let text = String::from_utf8(bytes).map_err(|error| {
                    let at = error.utf8_error().valid_up_to();
                    OpFault::input(format!("a line of standard input is not UTF-8: byte {} is wrong", at + 1))
                })?;
                Ok(TypedLine::Line(text.trim_end_matches('\n').trim_end_matches('\r').to_owned()))
            }
        }
    }

    /// Keeps what was typed.
    pub(crate) fn keep(&mut self) {
        if let Self::Terminal { editor, history: Some(path) } = self
            && let Err(error) = editor.save_history(path)
        {
            say(format!("komado: what was typed is not kept in {}: {error}", path.display()));
        }
    }
}

/// True when a text that begins with a fence also ends with one.
fn is_closed(text: &str) -> bool {
    let text = text.trim();
    text.len() >= 2 * FENCE.len() && text.ends_with(FENCE)
}

fn unfenced(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix(FENCE).unwrap_or(text);
    let text = text.strip_suffix(FENCE).unwrap_or(text);
    text.strip_prefix('\n').unwrap_or(text).trim_end_matches('\n').to_owned()
}

/// Completes the names of commands.
pub(crate) struct CommandCompleter;

impl Helper for CommandCompleter {}
impl Highlighter for CommandCompleter {}
impl Validator for CommandCompleter {}

impl Hinter for CommandCompleter {
    type Hint = String;
}

impl Completer for CommandCompleter {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..pos).unwrap_or_default();
        Ok((0, complete(typed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_taken_off_and_what_it_holds_stays() {
        for (text, said) in [
            ("\"\"\"a\"\"\"", "a"),
            ("\"\"\"\na\n\n  b\n\"\"\"", "a\n\n  b"),
            ("\"\"\"行\n二", "行\n二"),
            ("\"\"\"", ""),
        ] {
            assert_eq!(unfenced(text), said);
        }
        assert!(!is_closed("\"\"\"") && !is_closed("\"\"\"\"") && is_closed("\"\"\"a\n\"\"\" "));
    }
}
