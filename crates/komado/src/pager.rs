//! What a long text is read with at a terminal: $KOMADO_PAGER, $PAGER, or `less -FRX`.
//!
//! A pager that cannot be started is no failure: the text then goes to the terminal itself.

use crate::signals;
use std::process::{Child, ChildStdin, Command, Stdio};
use tokio::signal::unix::SignalKind;

/// Whether a verb's text goes through a pager.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct PagerOption {
    /// Print to the terminal itself, not through a pager
    #[arg(long)]
    pub(crate) no_pager: bool,
}

/// A pager that is running. It is waited for when this is dropped, so its input must be closed before.
pub(crate) struct Pager(Child);

impl Pager {
    /// Starts the pager of the environment; `None` where there is none.
    pub(crate) fn start() -> Option<(Self, ChildStdin)> {
        let words = command(|name| std::env::var(name).ok())?;
        let (program, args) = words.split_first()?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped());
        // A `less` that is named without options shows colours as such, and ends by itself after a short text.
        for (name, usual) in [("LESS", "FRX"), ("LV", "-c")] {
            if std::env::var_os(name).is_none() {
                command.env(name, usual);
            }
        }
        let mut child = command.spawn().ok()?;
        let stdin = child.stdin.take()?;
        // Ctrl-C is the pager's while it runs.
        let _ = signals::each(&[SignalKind::interrupt()], || {});
        Some((Self(child), stdin))
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        // How the reader left it does not matter.
        let _ = self.0.wait();
    }
}

/// The words of the pager's command line; `None` where the text is wanted without one.
fn command(env: impl Fn(&str) -> Option<String>) -> Option<Vec<String>> {
    let named = ["KOMADO_PAGER", "PAGER"].iter().find_map(|name| env(name));
    let words = shlex::split(named.as_deref().unwrap_or("less -FRX"))?;
    let is_none = words.first().is_none_or(|program| program == "cat");
    (!is_none).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pager_is_the_one_that_is_named_first_and_cat_is_none() {
        let words = |named: &[(&str, &str)]| {
            let find = |name: &str| {
                named.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            command(find).map(|words| words.join("|"))
        };
        assert_eq!(words(&[]).as_deref(), Some("less|-FRX"));
        assert_eq!(words(&[("PAGER", "more")]).as_deref(), Some("more"));
        assert_eq!(
            words(&[("PAGER", "more"), ("KOMADO_PAGER", "most '-a b' c")]).as_deref(),
            Some("most|-a b|c")
        );
        for none in ["", "  ", "cat", "unended 'quote"] {
            assert_eq!(words(&[("PAGER", "more"), ("KOMADO_PAGER", none)]), None, "{none}");
        }
    }
}
