//! Whose commits those of a task are: the user's own, as their git has them. Of everything else in their `.gitconfig`,
//! such as helpers that know passwords, nothing reaches the private home of commands. What a repository says goes first.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the user has none: without a name git commits nothing.
const NOBODY: (&str, &str) = ("komado", "komado@localhost");

/// Writes a `.gitconfig` with name and address into a home.
pub(super) fn write(home: &Path) -> io::Result<()> {
    let (name, email) = match (asked("user.name"), asked("user.email")) {
        (Some(name), Some(email)) => (name, email),
        _ => (NOBODY.0.to_owned(), NOBODY.1.to_owned()),
    };
    let text = format!("[user]\n\tname = {}\n\temail = {}\n", quoted(&name), quoted(&email));
    std::fs::write(home.join(".gitconfig"), text)
}

/// What the user's own git says; `None` where there is no git, or where it does not know.
fn asked(key: &str) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["config", "--global", "--get", key]).stdin(Stdio::null()).stderr(Stdio::null());
    // The folder we happen to be in may be a repository, and its settings are not the user's.
    git.current_dir("/").env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env("GIT_CONFIG_NOSYSTEM", "1");
    let said = git.output().ok().filter(|said| said.status.success())?;
    let value = String::from_utf8(said.stdout).ok()?.trim().to_owned();
    (!value.is_empty()).then_some(value)
}

/// As git reads it back: in quotes, on one line.
fn quoted(value: &str) -> String {
    let one_line: String = value.chars().filter(|letter| !letter.is_control()).collect();
    format!("\"{}\"", one_line.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_name_stays_one_value_whatever_is_in_it() {
        assert_eq!(quoted("窓 # ; \"a\\b\"\n[core]"), r#""窓 # ; \"a\\b\"[core]""#);
    }
}
