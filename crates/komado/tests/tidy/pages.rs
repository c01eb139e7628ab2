//! Is what the pages say of the code still there? Links, the list of pages, paths and names.

use super::{crates, display, list, numbered, read, report, root, sources};
use std::path::PathBuf;

/// The pages that people read: those at the root, and those in `docs`.
pub(super) fn pages() -> Vec<PathBuf> {
    let folders = [root(), root().join("docs")];
    let all = folders.iter().flat_map(|folder| list(folder));
    all.filter(|page| page.extension().is_some_and(|it| it == "md")).collect()
}

#[test]
fn every_link_of_a_page_leads_to_a_file() {
    let mut faults = Vec::new();
    for page in pages() {
        for (number, line) in numbered(&read(&page)) {
            for link in links(line) {
                let target = page.with_file_name(link.split('#').next().unwrap_or_default());
                if !target.exists() {
                    faults.push(format!("{}:{number}: the link leads nowhere: {link}", display(&page)));
                }
            }
        }
    }
    report("a link in a page leads to a file of this repository, or to the web", faults);
}

#[test]
fn the_index_lists_every_page() {
    let index = read(&root().join("docs/README.md"));
    let listed: Vec<&str> = index.lines().flat_map(links).collect();
    let mut faults = Vec::new();
    for page in list(&root().join("docs")) {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != "README.md" {
            match listed.iter().filter(|link| **link == name).count() {
                1 => {}
                found => faults.push(format!("docs/README.md:1: links to {name}: {found}")),
            }
        }
    }
    report("the index has each page once", faults);
}

/// Where the links of a line lead, but for those to the web and to the page itself.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let after = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    after.filter(|link| !link.contains("://") && !link.starts_with('#'))
}

#[test]
fn every_name_with_a_place_is_there() {
    let sources = sources();
    let mut faults = Vec::new();
    for page in pages() {
        for (number, line) in numbered(&read(&page)) {
            for (name, path) in names_in(line) {
                let file = format!("crates/{path}");
                let source = sources.iter().find(|source| source.name == file);
                if !source.is_some_and(|source| defines(&source.code, name)) {
                    faults.push(format!("{}:{number}: there is no {name} in {path}", display(&page)));
                }
            }
        }
    }
    report("`name` in `path` names a function or type of that file", faults);
}

#[test]
fn the_page_about_the_architecture_gives_each_name_a_place() {
    let folders: Vec<String> = crates().into_iter().map(|(name, _)| name).collect();
    let (mut faults, mut placed) = (Vec::new(), 0);
    for (number, line) in numbered(&read(&root().join("ARCHITECTURE.md"))) {
        let known: Vec<&str> = names_in(line).into_iter().map(|(name, _)| name).collect();
        placed += known.len();
        for word in line.split('`').skip(1).step_by(2) {
            if word.contains("::") && !known.contains(&word) {
                faults.push(format!("ARCHITECTURE.md:{number}: say where it is, as `{word}` in `path`"));
            }
            let is_path = word.contains('/') && (word.ends_with(".rs") || word.ends_with('/'));
            let begins = folders.iter().any(|folder| word.split('/').next() == Some(folder));
            if is_path && !begins && !["crates/", "tests/it.rs"].contains(&word) {
                faults.push(format!("ARCHITECTURE.md:{number}: write the whole path below crates/: {word}"));
            }
        }
    }
    assert!(placed > 10, "names with a place: {placed}");
    report("a reader finds what the page names", faults);
}

/// The names to which a line gives a place: `name` in `path`, also several: `a`, `b` and `c` in `path`.
fn names_in(line: &str) -> Vec<(&str, &str)> {
    let words: Vec<&str> = line.split('`').collect();
    let mut found = Vec::new();
    for at in (3..words.len()).step_by(2) {
        if !(words[at].ends_with(".rs") && words[at].contains("/src/") && words[at - 1] == " in ") {
            continue;
        }
        let mut name = at - 2;
        found.push((words[name], words[at]));
        while name >= 3 && [" and ", ", ", ", and "].contains(&words[name - 1]) {
            name -= 2;
            found.push((words[name], words[at]));
        }
    }
    found
}

/// Whether code defines this function or type. `Type::name` is a function in a file that defines or implements the type.
fn defines(code: &str, name: &str) -> bool {
    let types = ["struct", "enum", "trait", "type"];
    match name.split_once("::") {
        Some((of, name)) => {
            let mut blocks = code.lines().filter(|line| line.starts_with("impl"));
            defines(code, name)
                && (defines(code, of) || blocks.any(|line| words(line).any(|word| word == of)))
        }
        None => code.lines().any(|line| {
            let mut words = words(line);
            words.any(|word| word == "fn" || types.contains(&word)) && words.next() == Some(name)
        }),
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

// ---- the readers' own tests ----

#[test]
fn the_page_readers_see_links_names_and_definitions() {
    let line = "See [a](b.md#c), [d](https://e.f), [g](#h) and ![i](j/k.svg).";
    assert_eq!(links(line).collect::<Vec<_>>(), ["b.md#c", "j/k.svg"]);
    let line =
        "First `a`, `B::b` and `c` in `core/src/x.rs`; then `d` of `core/src/y.rs`, `e` in `docs/z.md`.";
    let place = "core/src/x.rs";
    assert_eq!(names_in(line), [("c", place), ("B::b", place), ("a", place)]);
    let code = "pub struct Ab<T> {\n}\nimpl<'a> Cd<'a> {\n    pub(crate) fn ef(&self) {}\n}\n";
    for name in ["Ab", "ef", "Cd::ef", "Ab::ef"] {
        assert!(defines(code, name), "{name}");
    }
    for name in ["A", "e", "Cd::e", "C::ef", "b", "Cd"] {
        assert!(!defines(code, name), "{name}");
    }
}
