//! Where the repository stands: the branch, and the commits that were made.
//!
//! Read from what git prints, and from the command where git is quiet. It refuses to follow a command that failed.

use crate::Seq;
use crate::digest::fact::{Fact, FactKind};
use crate::digest::scan::one_line;

/// Commits that are kept.
const COMMITS: usize = 32;
/// Lines of an output that are looked at.
const LINES: usize = 60;

#[derive(Clone, Debug, Default)]
pub(in crate::digest) struct GitState {
    branch: Option<Fact>,
    /// Oldest first.
    commits: Vec<Fact>,
}

impl GitState {
    /// A command that ran without failing, and what it printed.
    pub(super) fn ran(&mut self, seq: Seq, command: &str, output: &str) {
        if !command.contains("git ") {
            return;
        }
        let words: Vec<&str> = command.split_whitespace().collect();
        for triple in words.windows(3) {
            if let ["checkout", "-b" | "-B", name] | ["switch", "-c" | "-C" | "--create", name] = triple {
                self.on(seq, name);
            }
        }
        for line in output.lines().take(LINES) {
            let quoted = ["Switched to a new branch '", "Switched to branch '", "Already on '"];
            let name = quoted.iter().find_map(|start| line.strip_prefix(start)?.strip_suffix('\''));
            if let Some(name) = name.or_else(|| line.strip_prefix("On branch ")) {
                self.on(seq, name);
            } else if let Some((branch, hash, title)) = commit(line) {
                if branch != "detached" {
                    self.on(seq, branch);
                }
                self.recall(told(seq, &format!("commit {hash} {}", one_line(title, 100))));
            }
        }
    }

    fn on(&mut self, seq: Seq, branch: &str) {
        let name = branch.trim_matches(['\'', '"', ';']);
        if !name.is_empty() && name.len() <= 120 && !name.contains(char::is_whitespace) {
            self.recall(told(seq, &format!("branch {name}")));
        }
    }

    /// What was found, or what an earlier digest told.
    pub(in crate::digest) fn recall(&mut self, fact: Fact) {
        if fact.text.starts_with("branch ") {
            if self.branch.as_ref().is_none_or(|known| known.at <= fact.at) {
                self.branch = Some(fact);
            }
        } else if self.commits.iter().all(|known| known.text != fact.text) {
            self.commits.push(fact);
            self.commits.sort_by_key(|fact| fact.at);
            let over = self.commits.len().saturating_sub(COMMITS);
            self.commits.drain(..over);
        }
    }

    /// The branch, and the commits, newest first.
    pub(in crate::digest) fn told(&self) -> Vec<Fact> {
        self.branch.iter().chain(self.commits.iter().rev()).cloned().collect()
    }
}

fn told(seq: Seq, text: &str) -> Fact {
    Fact::new(FactKind::Command { exit: None }, text, seq)
}

/// `[main 1a2b3c4] Fix it`, `[main (root-commit) 1a2b3c4] Begin`
fn commit(line: &str) -> Option<(&str, &str, &str)> {
    let (inside, title) = line.strip_prefix('[')?.split_once("] ")?;
    let (branch, rest) = inside.split_once(' ')?;
    let hash = rest.rsplit(' ').next()?;
    let is_hash = (7..=40).contains(&hash.len()) && hash.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash.then_some((branch, hash, title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_and_the_commits_are_those_that_git_told_last() {
        let mut git = GitState::default();
        git.ran(3, "git checkout -b fix/lexer", "");
        git.ran(5, "git commit -am x", "[fix/lexer 1a2b3c4] Count lines\n 1 file changed");
        git.ran(7, "ls", "On branch nowhere");
        git.ran(9, "git switch main", "Switched to branch 'main'");
        let texts: Vec<String> = git.told().into_iter().map(|fact| fact.text).collect();
        assert_eq!(texts, ["branch main", "commit 1a2b3c4 Count lines"]);
    }
}
