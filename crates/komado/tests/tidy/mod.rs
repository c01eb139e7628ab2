//! Is the house in order? The rules that a reviewer would otherwise repeat, checked over the whole tree.
//!
//! Standard library only, and text only but for what cargo says of packages: nothing here parses Rust. A scanner blanks out comments, strings and
//! character literals, and what remains is matched by braces and words. That is enough for code that rustfmt
//! has been over, and it keeps this readable in one sitting. It refuses to become a second clippy.

mod pages;
mod scanner;

use scanner::{Function, functions, mask, without_tests};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MAX_FILE_LINES: usize = 700;
const MAX_BODY_LINES: usize = 100;

/// Who may depend on whom. A crate that is not listed here is not part of the design.
const EDGES: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("store", &["core"]),
    ("provider", &["core"]),
    ("engine", &["core", "store", "provider"]),
    ("agent", &["core", "engine", "store", "provider"]),
    // Its tests use the crate itself, with more features.
    ("sdk", &["core", "store", "provider", "engine", "sdk"]),
    ("config", &["core", "store", "provider", "engine", "agent"]),
    ("ops", &["core", "store", "provider", "engine", "agent", "config"]),
    // Its demo is a program that embeds the library.
    ("komado", &["core", "store", "provider", "engine", "agent", "config", "ops", "sdk"]),
    ("testkit", &["core", "store", "provider", "engine", "agent"]),
    ("bench", &["core", "store", "provider", "engine", "agent", "testkit"]),
];

/// Crates that no user gets: those that ship may have the test kit as a dev-dependency, and nothing else of them.
const TOOLS: &[&str] = &["testkit", "bench"];

/// How many packages the library and its engine may be built from, themselves included: without any feature, and with those named.
const PACKAGES: &[(&str, usize)] = &[("", 75), ("client", 140)];

/// Names that several types may have, and why.
const SHARED_NAMES: &[(&str, &str)] = &[
    ("Args", "the arguments of one verb: `append::Args`"),
    ("Encoder", "one for each dialect, inside it, of one shape"),
    ("Error", "what goes wrong in one crate or module: `store::Error`"),
    ("Reply", "the journal's; and the library's, whose names are short: `komado::Reply`"),
    ("Result", "the result of one crate or module: `store::Result`"),
    ("Session", "the table's row; and the library's, with its asynchronous form"),
    ("Traces", "in a build with traces and in one without"),
    ("Writer", "one for each dialect, inside it, of one shape"),
];

const SAFE_CRATES: &[&str] = &["core", "engine", "agent", "ops", "sdk"];

/// What an operation never sees: a command line, a terminal, a printed line, an HTTP request, a protocol.
const OF_INTERFACES: &[&str] = &[
    "env::args",
    "args_os",
    "println!",
    "eprintln!",
    "print!",
    "eprint!",
    "stdin",
    "stdout",
    "stderr",
    "clap::Parser",
    "clap::Command",
    "try_parse",
    "axum",
    "http::",
    "rmcp",
    "indicatif",
];

/// What an interface never calls: the modules of the others. Folder, then what may not be named in it.
const APART: &[(&str, &[&str])] = &[
    (
        "komado/src/server/api",
        &[
            "crate::tidy::verb",
            "crate::tidy::cli",
            "crate::tidy::render",
            "crate::tidy::paper",
            "super::mcp",
            "server::mcp",
        ],
    ),
    (
        "komado/src/server/mcp",
        &[
            "crate::tidy::verb",
            "crate::tidy::cli",
            "crate::tidy::render",
            "crate::tidy::paper",
            "super::api",
            "server::api",
        ],
    ),
    (
        "komado/src/server/gateway",
        &[
            "crate::tidy::verb",
            "crate::tidy::cli",
            "crate::tidy::render",
            "crate::tidy::paper",
            "server::api",
            "server::mcp",
        ],
    ),
    ("komado/src/render", &["crate::tidy::server", "crate::tidy::verb"]),
    ("komado/src/verb", &["server::api", "server::mcp::tool", "server::gateway::exchange"]),
];

/// Words that name a drawer instead of a thing.
const EMPTY_WORDS: &[&str] = &["manager", "service", "helper", "util", "common", "info"];

const PAGES: &[&str] = &[
    "README.md",
    "README.ja.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "docs/README.md",
    "docs/tutorial.md",
    "docs/journal.md",
    "docs/coverage.md",
    "docs/walks.md",
];

// ---- the rules ----

#[test]
fn every_file_opens_with_a_module_doc() {
    let faults = sources()
        .iter()
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| format!("{}:1: the first line is not a `//!` doc", source.name))
        .collect();
    report("every file says why it exists before anything else", faults);
}

#[test]
fn no_file_is_longer_than_seven_hundred_lines() {
    let faults = sources()
        .iter()
        .map(|source| (source, source.text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_FILE_LINES)
        .map(|(source, lines)| format!("{}:{lines}: lines in this file: {lines}", source.name))
        .collect();
    report("a file has at most 700 lines: split it by noun", faults);
}

#[test]
fn no_function_body_is_longer_than_a_hundred_lines() {
    let mut faults = Vec::new();
    for source in sources() {
        for function in functions(&source.code) {
            if function.body_lines > MAX_BODY_LINES {
                let Function { name, line, body_lines } = function;
                faults.push(format!("{}:{line}: lines in the body of `{name}`: {body_lines}", source.name));
            }
        }
    }
    report("a function body has at most 100 lines", faults);
}

#[test]
fn the_library_needs_few_packages() {
    let faults = ["komado-engine", "komado-sdk"]
        .iter()
        .flat_map(|krate| PACKAGES.iter().map(move |(features, most)| (krate, features, most)))
        .map(|(krate, features, most)| (krate, features, most, packages(krate, features)))
        .filter(|(_, _, most, found)| found > *most)
        .map(|(krate, features, most, found)| {
            format!(
                "Cargo.toml:1: `{krate}` with features {features:?}: {found} packages, {most} are the most"
            )
        })
        .collect();
    report(
        "a library that is embedded stays small: a dependency stands behind the feature that needs it",
        faults,
    );
}

#[test]
fn crates_depend_on_each_other_only_as_drawn() {
    let mut faults = Vec::new();
    for (krate, dir) in crates() {
        let manifest = dir.join("Cargo.toml");
        let name = display(&manifest);
        let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == krate) else {
            faults.push(format!("{name}:1: a crate that the drawing does not have: {krate}"));
            continue;
        };
        for Edge { line, target, is_dev } in edges(&read(&manifest)) {
            let for_tests = is_dev && target == "testkit" && krate != "testkit";
            if !for_tests && !allowed.contains(&target.as_str()) {
                faults.push(format!("{name}:{line}: `{krate}` must not depend on: {target}"));
            }
        }
    }
    report("each edge between crates is a promise", faults);
}

#[test]
fn operations_see_no_command_line_and_no_printed_text() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| source.name.contains("crates/ops/src/")) {
        for (number, line) in numbered(&without_tests(&source.code)) {
            for needle in OF_INTERFACES.iter().filter(|needle| line.contains(**needle)) {
                faults.push(format!("{}:{number}: of an interface: {needle}", source.name));
            }
        }
    }
    report("an operation knows no interface", faults);
}

#[test]
fn no_interface_calls_another() {
    let mut faults = Vec::new();
    for (folder, others) in APART {
        let inside = |source: &&Source| source.name.contains(folder) && !source.is_test();
        for source in sources().iter().filter(inside) {
            for (number, line) in numbered(&without_tests(&source.code)) {
                for other in others.iter().filter(|other| line.contains(**other)) {
                    faults.push(format!("{}:{number}: of another interface: {other}", source.name));
                }
            }
        }
    }
    report("an interface calls operations, never another interface", faults);
}

#[test]
fn servers_speak_through_the_log_alone() {
    let mut faults = Vec::new();
    let inside = |source: &&Source| source.name.contains("komado/src/server/") && !source.is_test();
    for source in sources().iter().filter(inside) {
        for (number, line) in numbered(&without_tests(&source.code)) {
            for needle in
                ["println!", "eprintln!", "paper::say"].iter().filter(|needle| line.contains(**needle))
            {
                faults.push(format!("{}:{number}: prints: {needle}", source.name));
            }
        }
    }
    report("what operators should know goes through tracing", faults);
}

#[test]
fn no_tool_is_part_of_what_ships() {
    let is_tool = |name: &str| TOOLS.contains(&name);
    let mut faults = Vec::new();
    for (krate, dir) in crates().into_iter().filter(|(krate, _)| !is_tool(krate)) {
        let manifest = dir.join("Cargo.toml");
        let shipped =
            edges(&read(&manifest)).into_iter().filter(|edge| !edge.is_dev && is_tool(&edge.target));
        faults.extend(shipped.map(|Edge { line, target, .. }| {
            format!("{}:{line}: `{krate}` ships, and must not depend on: {target}", display(&manifest))
        }));
    }
    let ships = |source: &&Source| !source.is_test() && !source.name.split('/').nth(1).is_some_and(is_tool);
    for source in sources().iter().filter(ships) {
        let lines = numbered(&source.code).filter(|(_, line)| line.contains("#[global_allocator]"));
        faults.extend(lines.map(|(number, _)| format!("{}:{number}: an allocator that ships", source.name)));
    }
    report("benchmarks, test doubles and allocators that count stay out of what users get", faults);
}

#[test]
fn pure_crates_forbid_unsafe_code() {
    let faults = crates()
        .into_iter()
        .filter(|(krate, _)| SAFE_CRATES.contains(&krate.as_str()))
        .map(|(_, dir)| dir.join("src/lib.rs"))
        .filter(|lib| lib.exists() && !mask(&read(lib)).contains("#![forbid(unsafe_code)]"))
        .map(|lib| format!("{}:1: `#![forbid(unsafe_code)]` is missing", display(&lib)))
        .collect();
    report("core, engine, agent, ops and sdk need no unsafe code, and say so", faults);
}

#[test]
fn no_module_is_named_after_a_drawer() {
    let mut faults = Vec::new();
    for source in sources() {
        for part in source.name.trim_end_matches(".rs").split('/').skip(1) {
            if let Some(word) = part.split(['_', '-', '.']).find(|word| is_empty_word(word)) {
                faults.push(format!("{}:1: a name that says nothing: {word}", source.name));
            }
        }
    }
    report("a module is named after its noun or its verb", faults);
}

#[test]
fn nothing_is_left_undone_or_skipped() {
    // Put together here, so that this file does not contain what it looks for.
    let needles = [["to", "do!("].concat(), ["unimple", "mented!("].concat(), ["#[ig", "nore"].concat()];
    let mut faults = Vec::new();
    for source in sources() {
        for (number, line) in numbered(&source.text) {
            for needle in needles.iter().filter(|needle| line.contains(needle.as_str())) {
                faults.push(format!("{}:{number}: found: {needle}", source.name));
            }
        }
    }
    report("what is in the tree is finished, and every test runs", faults);
}

#[test]
fn only_tests_unwrap() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for (number, line) in numbered(&without_tests(&source.code)) {
            for needle in [".unwrap()", ".expect("].iter().filter(|needle| line.contains(**needle)) {
                faults.push(format!("{}:{number}: outside a test: {needle}", source.name));
            }
        }
    }
    report("code that ships returns its errors", faults);
}

#[test]
fn no_two_types_share_a_name() {
    let mut known: HashMap<String, Vec<String>> = HashMap::new();
    for source in sources().iter().filter(|source| source.name.contains("/src/") && !source.is_test()) {
        for (number, line) in numbered(&without_tests(&source.code)) {
            if let Some(name) = type_name(line) {
                known.entry(name.to_owned()).or_default().push(format!("{}:{number}", source.name));
            }
        }
    }
    let unused =
        SHARED_NAMES.iter().filter(|(name, _)| known.get(*name).is_none_or(|places| places.len() < 2));
    let mut faults: Vec<String> =
        unused.map(|(name, _)| format!("SHARED_NAMES: no two types are called {name}")).collect();
    known.retain(|name, places| places.len() > 1 && SHARED_NAMES.iter().all(|(shared, _)| shared != name));
    faults.extend(known.iter().map(|(name, places)| format!("{name}: {}", places.join(", "))));
    faults.sort();
    report("a name has one meaning", faults);
}

/// The type that this line defines for others to use, if any.
fn type_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let (kind, rest) = rest.trim_start().split_once(' ')?;
    let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    (["struct", "enum", "trait", "type", "union"].contains(&kind) && !name.is_empty()).then_some(name)
}

#[test]
fn the_pages_a_newcomer_looks_for_exist() {
    let faults = PAGES
        .iter()
        .filter(|page| !root().join(page).is_file())
        .map(|page| format!("{page}:1: this page is missing"))
        .collect();
    report("the documentation is part of the tree", faults);
}

#[test]
fn every_path_that_a_page_names_exists() {
    let mut faults = Vec::new();
    for page in pages::pages() {
        for (number, line) in numbered(&read(&page)) {
            for path in line.split('`').skip(1).step_by(2).flat_map(source_paths) {
                if !root().join("crates").join(&path).exists() {
                    faults.push(format!("{}:{number}: there is no crates/{path}", display(&page)));
                }
            }
        }
    }
    report("a page names only files that are there", faults);
}

/// The files and folders below `crates/` that a word in a page names; `a/src/{b,c}.rs` is two.
fn source_paths(word: &str) -> Vec<String> {
    let word = word.strip_prefix("crates/").unwrap_or(word).trim_end_matches('/');
    let is_path = word.split_once('/').is_some_and(|(name, rest)| {
        let crates = EDGES.iter().any(|(krate, _)| *krate == name);
        crates && (rest.starts_with("src") || rest.starts_with("tests")) && !word.contains([' ', '*', '<'])
    });
    match (is_path, word.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))) {
        (false, _) => Vec::new(),
        (true, None) => vec![word.to_owned()],
        (true, Some((before, (names, after)))) => {
            names.split(',').map(|name| format!("{before}{name}{after}")).collect()
        }
    }
}

#[test]
fn every_test_that_the_coverage_page_names_exists() {
    let known: Vec<String> =
        sources().iter().flat_map(|source| functions(&source.code)).map(|function| function.name).collect();
    let mut faults = Vec::new();
    for (number, line) in numbered(&read(&root().join("docs/coverage.md"))) {
        let names = line.split('`').skip(1).step_by(2).filter(|word| word.matches('_').count() >= 3);
        let missing = names
            .filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
        for name in missing.filter(|name| !known.iter().any(|known| known == name)) {
            faults.push(format!("docs/coverage.md:{number}: there is no test {name}"));
        }
    }
    report("the coverage page names only tests that run", faults);
}

#[test]
fn every_function_on_a_walk_exists_and_the_walks_are_short() {
    let page = read(&root().join("docs/walks.md"));
    let sources = sources();
    let (mut faults, mut walk, mut hops) = (Vec::new(), String::new(), HashMap::new());
    for (number, line) in numbered(&page) {
        if let Some(title) = line.strip_prefix("## ") {
            walk = title.to_owned();
        }
        let words: Vec<&str> = line.split('`').collect();
        for place in words.windows(4).filter(|place| place[1].ends_with(".rs") && place[2] == ": ") {
            let (file, function) = (format!("crates/{}", place[1]), place[3]);
            let source = sources.iter().find(|source| source.name == file);
            let is_there =
                |source: &Source| functions(&source.code).iter().any(|known| known.name == function);
            if !source.is_some_and(is_there) {
                faults.push(format!("docs/walks.md:{number}: there is no {function} in {file}"));
            }
        }
        let is_hop = line.split_once(". ").is_some_and(|(number, _)| number.parse::<usize>().is_ok());
        *hops.entry(walk.clone()).or_insert(0) += usize::from(is_hop);
    }
    for (walk, most) in [("Append", 20), ("Ask", 20), ("A gateway request", 30)] {
        let found = hops.get(walk).copied().unwrap_or(0);
        if found == 0 || found > most {
            faults.push(format!("docs/walks.md:1: hops of {walk:?}: {found}, and {most} are the most"));
        }
    }
    report("a newcomer can follow the walks", faults);
}

#[test]
fn both_readmes_have_the_same_shape() {
    let (english, japanese) = (outline("README.md"), outline("README.ja.md"));
    let mut faults = Vec::new();
    for (what, left, right) in [
        ("`## ` headings", &english.headings, &japanese.headings),
        ("code blocks", &english.blocks, &japanese.blocks),
    ] {
        if left.len() != right.len() {
            // The first line without a partner is where to look.
            let shorter = left.len().min(right.len());
            let (page, line) = match left.get(shorter) {
                Some(line) => ("README.md", line),
                None => ("README.ja.md", &right[shorter]),
            };
            faults.push(format!(
                "{page}:{line}: {what} in README.md and README.ja.md: {} and {}",
                left.len(),
                right.len()
            ));
        }
    }
    for (page, outline) in [("README.md", english), ("README.ja.md", japanese)] {
        if let Some(line) = outline.unclosed {
            faults.push(format!("{page}:{line}: this code block is never closed"));
        }
    }
    report("the two READMEs say the same", faults);
}

// ---- the rules' own tests: a reader that sees nothing would pass everything ----

#[test]
fn the_manifest_reader_sees_every_way_to_write_a_dependency() {
    let text = "[package]\nname = \"komado-engine\"\n[dependencies]\nkomado-core.workspace = true\n\
                own = { package = \"komado-store\" } # not komado-agent\n[dev-dependencies.komado-provider]\n\
                path = \"x\"\n[target.'cfg(unix)'.dependencies]\nkomado = \"1\"\n\
                [features]\nx = [\"komado-agent/y\"]\n";
    let expect = [(4, "core", false), (5, "store", false), (6, "provider", true), (9, "komado", false)];
    let found: Vec<_> = edges(text).into_iter().map(|edge| (edge.line, edge.target, edge.is_dev)).collect();
    assert_eq!(found, expect.map(|(line, name, is_dev)| (line, name.to_string(), is_dev)));
}

#[test]
fn the_type_reader_sees_every_way_to_define_one() {
    let lines = [
        "pub struct A;",
        "    pub(crate) enum B<T> {",
        "pub(super) trait C: Send {",
        "pub(in crate::x) type D = E;",
    ];
    assert_eq!(lines.map(type_name), ["A", "B", "C", "D"].map(Some));
    assert_eq!(["struct A;", "pub fn b() {", "pub use x::C;", "pub(crate) mod d;"].map(type_name), [None; 4]);
}

#[test]
fn the_path_reader_sees_files_folders_and_lists() {
    let found = |word| source_paths(word).join(" ");
    assert_eq!(found("crates/core/src/view.rs"), "core/src/view.rs");
    assert_eq!(found("engine/tests/roo/"), "engine/tests/roo");
    assert_eq!(found("ops/src/task/{put,fetch}.rs"), "ops/src/task/put.rs ops/src/task/fetch.rs");
    assert_eq!(["komado serve", "docs/cli.md", "core::view", "src/main.rs"].map(found), [""; 4]);
}

// ---- the tree ----

/// One Rust file: as it is, and as code alone.
struct Source {
    name: String,
    text: String,
    code: String,
}

impl Source {
    /// Whole files that are only compiled for tests; items under `#[cfg(test)]` are for [`without_tests`].
    fn is_test(&self) -> bool {
        self.name.split('/').any(|part| part == "tests" || part == "tests.rs")
            || self.code.contains("#![cfg(test)]")
    }
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}:1: cannot read: {error}", display(path)))
}

fn display(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// The entries of a directory, in an order that does not depend on the machine.
fn list(dir: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(dir).unwrap_or_else(|error| panic!("{}:1: cannot list: {error}", display(dir)));
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The crates that exist, by the name of their directory.
fn crates() -> Vec<(String, PathBuf)> {
    let dirs = list(&root().join("crates")).into_iter().filter(|dir| dir.join("Cargo.toml").is_file());
    let found: Vec<_> =
        dirs.map(|dir| (dir.file_name().unwrap_or_default().to_string_lossy().into_owned(), dir)).collect();
    assert!(!found.is_empty(), "no crates under: {}", root().display());
    found
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let mut pending = vec![root().join("crates")];
    while let Some(dir) = pending.pop() {
        for path in list(&dir) {
            if path.is_dir() {
                // A build may have its target directory inside a crate.
                if path.file_name().is_some_and(|name| name != "target") {
                    pending.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = read(&path);
                found.push(Source { name: display(&path).replace('\\', "/"), code: mask(&text), text });
            }
        }
    }
    assert!(!found.is_empty(), "no Rust files under: {}", root().display());
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn report(rule: &str, faults: Vec<String>) {
    assert!(faults.is_empty(), "{rule}\n\n  {}\n", faults.join("\n  "));
}

fn is_empty_word(word: &str) -> bool {
    EMPTY_WORDS.iter().any(|empty| word == *empty || word.strip_suffix('s') == Some(empty))
}

// ---- manifests and pages ----

/// One of our own crates that a manifest depends on, and the line that says so.
struct Edge {
    line: usize,
    target: String,
    is_dev: bool,
}

/// What a manifest depends on of ours, in any section.
fn edges(manifest: &str) -> Vec<Edge> {
    let mut found = Vec::new();
    let (mut inside, mut is_dev) = (false, false);
    for (number, line) in numbered(manifest) {
        let line = line.split('#').next().unwrap_or_default();
        if line.trim_start().starts_with('[') {
            inside = line.contains("dependencies");
            is_dev = line.contains("dev-dependencies");
        }
        if inside {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
            let ours = words.filter_map(|word| match word.strip_prefix("komado") {
                Some("") => Some("komado".to_string()),
                Some(rest) => rest.strip_prefix(['-', '_']).map(str::to_string),
                None => None,
            });
            found.extend(ours.map(|target| Edge { line: number, target, is_dev }));
        }
    }
    found
}

/// How many packages `krate` is built from with only these features.
fn packages(krate: &str, features: &str) -> usize {
    let tree = ["tree", "--locked", "--offline", "-e", "normal", "--prefix", "none", "--no-default-features"];
    let mut cargo = Command::new(env!("CARGO"));
    let told = cargo.current_dir(root()).args(tree).args(["-p", krate, "--features", features]).output();
    let told = told.unwrap_or_else(|error| panic!("cargo tree: {error}"));
    assert!(told.status.success(), "cargo tree: {}", String::from_utf8_lossy(&told.stderr));
    let lines = String::from_utf8_lossy(&told.stdout).into_owned();
    lines.lines().map(|line| line.trim_end_matches(" (*)")).collect::<HashSet<_>>().len()
}

/// Where the headings and code blocks of a page begin.
#[derive(Default)]
struct Outline {
    headings: Vec<usize>,
    blocks: Vec<usize>,
    unclosed: Option<usize>,
}

fn outline(page: &str) -> Outline {
    let mut outline = Outline::default();
    for (number, line) in numbered(&read(&root().join(page))) {
        if line.trim_start().starts_with("```") {
            match outline.unclosed.take() {
                Some(opened) => outline.blocks.push(opened),
                None => outline.unclosed = Some(number),
            }
        } else if outline.unclosed.is_none() && line.starts_with("## ") {
            outline.headings.push(number);
        }
    }
    outline
}
