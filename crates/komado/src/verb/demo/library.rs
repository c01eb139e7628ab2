//! The files that the played agent reads: this project's own, carried in the program.

/// A file of the project.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) path: &'static str,
    pub(super) text: &'static str,
}

macro_rules! library {
    ($($path:literal),+ $(,)?) => {
        &[$(Text { path: $path, text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $path)) }),+]
    };
}

/// All of them.
pub(super) const FILES: &[Text] = library![
    "crates/core/src/view.rs",
    "crates/core/src/view/fold.rs",
    "crates/core/src/view/layout.rs",
    "crates/core/src/admit.rs",
    "crates/core/src/head.rs",
    "crates/core/src/message.rs",
    "crates/core/src/session.rs",
    "crates/core/src/thread.rs",
    "crates/core/src/address.rs",
    "crates/core/src/raw.rs",
    "crates/store/src/files/index.rs",
    "crates/store/src/files/journal.rs",
    "crates/engine/src/thread.rs",
];

/// The file at `path`.
pub(super) fn find(path: &str) -> Option<&'static Text> {
    FILES.iter().find(|text| text.path == path)
}

impl Text {
    /// Number of lines.
    pub(super) fn len(&self) -> usize {
        self.text.lines().count()
    }

    /// Lines `from..=to`, counted from 1, each with its number.
    pub(super) fn slice(&self, from: usize, to: usize) -> String {
        let lines =
            self.text.lines().enumerate().skip(from.max(1) - 1).take((to + 1).saturating_sub(from.max(1)));
        lines.map(|(i, line)| format!("{:>4} {line}\n", i + 1)).collect()
    }

    /// Line `n`, counted from 1.
    pub(super) fn line(&self, n: usize) -> &'static str {
        self.text.lines().nth(n.saturating_sub(1)).unwrap_or_default()
    }

    /// The names of its functions, with their lines.
    pub(super) fn functions(&self) -> Vec<(usize, &'static str)> {
        let name = |line: &'static str| {
            let (_, rest) = line.split_once("fn ")?;
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            let name = rest.get(..end).filter(|name| name.len() > 3)?;
            (!line.trim_start().starts_with("//")).then_some(name)
        };
        self.text.lines().enumerate().filter_map(|(i, line)| Some((i + 1, name(line)?))).collect()
    }
}

/// Lines of all files that hold `word`, as a search prints them.
pub(super) fn search(word: &str, most: usize) -> String {
    let mut found = String::new();
    let mut count = 0;
    for text in FILES {
        for (i, line) in text.text.lines().enumerate().filter(|(_, line)| line.contains(word)) {
            if count < most {
                found.push_str(&format!("{}:{}: {}\n", text.path, i + 1, line.trim()));
            }
            count += 1;
        }
    }
    if count > most {
        found.push_str(&format!("({} more)\n", count - most));
    }
    found
}

/// The names of all tests, as the test runner prints them.
pub(super) fn tests() -> Vec<String> {
    let mut names = Vec::new();
    for text in FILES {
        let module = text
            .path
            .trim_start_matches("crates/")
            .trim_end_matches(".rs")
            .replace("/src/", "::")
            .replace('/', "::");
        let (_, tests) = text.text.split_once("#[cfg(test)]").unwrap_or_default();
        for line in tests.lines().filter(|line| line.trim_start().starts_with("fn ") && line.contains("() {"))
        {
            let name = line.trim_start().trim_start_matches("fn ").split('(').next().unwrap_or_default();
            names.push(format!("{module}::tests::{name}"));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_cut_searched_and_taken_apart() {
        let view = find("crates/core/src/view.rs").unwrap();
        assert!(view.slice(1, 2).starts_with("   1 //! "));
        assert_eq!(view.slice(1, 2).lines().count(), 2);
        assert_eq!(view.slice(view.len(), view.len() + 50).lines().count(), 1);
        assert!(view.functions().iter().any(|(_, name)| *name == "fold"));
        assert_eq!(search("no such word anywhere", 5).lines().count(), 0);
        assert_eq!(search("fn ", 5).lines().count(), 6);
        assert!(tests().len() > 5, "{:?}", tests());
    }
}
