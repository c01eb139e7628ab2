//! Names of tools as models know them: `{server}_{tool}`, in the letters that every provider takes, each name once.

use std::collections::HashSet;

/// The longest name a provider takes.
const LONGEST: usize = 64;

/// Names that were given.
#[derive(Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// A name for a tool. One that had to be cut, or that another tool has, ends in a digest of what it stands for.
    pub(super) fn give(&mut self, server: &str, tool: &str) -> String {
        let plain: String = format!("{server}_{tool}").chars().map(safe).collect();
        let name = if plain.len() > LONGEST || self.0.contains(&plain) {
            let digest = blake3::hash(format!("{server}\0{tool}").as_bytes()).to_hex();
            let kept = plain.len().min(LONGEST - 9);
            format!("{}_{}", &plain[..kept], &digest[..8])
        } else {
            plain
        };
        self.0.insert(name.clone());
        name
    }
}

fn safe(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_server_and_the_tool_in_letters_that_every_provider_takes() {
        let mut names = Names::default();
        assert_eq!(names.give("github", "get_file_contents"), "github_get_file_contents");
        assert_eq!(names.give("my.files", "read/all-now"), "my_files_read_all-now");
        assert_eq!(names.give("s", "検索"), "s___");
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_and_still_tells_two_tools_apart() {
        let mut names = Names::default();
        let (one, two) = (names.give("s", &"a".repeat(80)), names.give("s", &"a".repeat(81)));
        assert_ne!(one, two);
        assert_eq!((one.len(), two.len()), (LONGEST, LONGEST));
        assert_eq!(names.give("s", &"b".repeat(LONGEST - 2)).len(), LONGEST);
    }

    #[test]
    fn the_second_tool_of_a_name_gets_a_digest_and_the_first_one_keeps_it() {
        let mut names = Names::default();
        assert_eq!(names.give("a", "b_c"), "a_b_c");
        let second = names.give("a_b", "c");
        assert!(second.starts_with("a_b_c_") && second.len() == "a_b_c_".len() + 8, "{second}");
        assert_eq!(Names(["a_b_c".to_owned()].into()).give("a_b", "c"), second, "the same one every time");
        assert_ne!(names.give("s", "検索"), names.give("s", "検査"));
    }
}
