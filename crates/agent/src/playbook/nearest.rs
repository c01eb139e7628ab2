//! What may have been meant: the nearest of some names, or all of them.

use komado_core::suggest::nearest_name;

/// The end of a sentence about an unknown name: the nearest known one, or all.
pub(super) fn among<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest_name(name, known.clone().into_iter()) {
        Some(near) => format!(": did you mean {near:?}?"),
        None => {
            let all: Vec<&str> = known.into_iter().take(MOST).collect();
            if all.is_empty() { String::new() } else { format!(": known are {}", all.join(", ")) }
        }
    }
}

/// Most names that are listed.
const MOST: usize = 12;

#[cfg(test)]
mod tests {
    use super::among;

    #[test]
    fn the_nearest_name_is_suggested_else_all_are_listed() {
        assert_eq!(among("promt", ["prompt", "next"]), ": did you mean \"prompt\"?");
        assert_eq!(among("LML", ["llm", "tool"]), ": did you mean \"llm\"?");
        assert_eq!(among("別", ["prompt", "next"]), ": known are prompt, next");
        assert_eq!(among("x", [] as [&str; 0]), "");
    }
}
