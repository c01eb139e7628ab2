//! The calls that read an output, ready to be made: the text a model copies.
//!
//! Their names and arguments are a contract with whoever offers the tools; only the text is made here.

use std::fmt::{Display, Formatter, Result};

/// The tool that reads lines.
pub const READ: &str = "tool_output_cache";
/// The tool that searches.
pub const GREP: &str = "tool_output_cache_grep";
/// The tool that reads characters of one line.
pub const LINE: &str = "tool_output_cache_line";

/// Lines that are read when nothing else is said.
pub const LINES: u64 = 200;
/// Characters that are read when nothing else is said.
pub const CHARS: u64 = 2000;

/// One call: a tool, and its arguments as JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The tool.
    pub tool: &'static str,
    /// A JSON object.
    pub arguments: String,
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}({})", self.tool, self.arguments)
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Reads `limit` lines from line `offset` on, counted from 1.
pub fn read_call(reference: &str, offset: u64, limit: u64) -> Call {
    let reference = quoted(reference);
    Call { tool: READ, arguments: format!(r#"{{"ref_id":{reference},"offset":{offset},"limit":{limit}}}"#) }
}

/// Reads `limit` characters of line `line`, after the first `offset` of them.
pub fn line_call(reference: &str, line: u64, offset: u64, limit: u64) -> Call {
    let reference = quoted(reference);
    let arguments = format!(
        r#"{{"ref_id":{reference},"line_number":{line},"char_offset":{offset},"char_limit":{limit}}}"#
    );
    Call { tool: LINE, arguments }
}

/// Searches; `more` are further arguments, each with its value as JSON.
pub fn grep_call(reference: &str, pattern: &str, more: &[(&str, String)]) -> Call {
    let mut arguments = format!(r#"{{"ref_id":{},"pattern":{}"#, quoted(reference), quoted(pattern));
    for (name, value) in more {
        arguments.push_str(&format!(",{}:{value}", quoted(name)));
    }
    arguments.push('}');
    Call { tool: GREP, arguments }
}
