//! Do the commands of the pages work, and do they print what the page says? Each `console` block of a page is run: a line
//! that begins with `$ ` is a command, lines that begin with `> ` go on with it, the others are its output.
//!
//! In a page, `…` stands for any text within a line, and a line of `…` alone for any lines. Times are not compared. Blocks
//! that are not to be run are marked `sh` or `text`. `KOMADO_BLESS=1` writes what was printed into the pages.
use crate::run;

use regex::Regex;
use run::Place;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The port that the pages name.
const PORT: &str = "4141";

/// A command of a page, and the lines of its output.
struct Step {
    command: String,
    /// Indices of the output's lines in the page, the end not included.
    output: std::ops::Range<usize>,
}

/// A folder with the files of the repository that pages read, and the server that a page started there.
struct Reader {
    place: Place,
    server: Option<(Child, String)>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some((server, _)) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Reader {
    fn new() -> Self {
        let place = Place::new();
        for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
            fs::copy(root().join(file), place.path().join(file)).unwrap();
        }
        Self { place, server: None }
    }

    fn shell(&self, script: &str) -> Command {
        let komado = Path::new(env!("CARGO_BIN_EXE_komado")).parent().unwrap();
        let path = std::env::join_paths(
            std::iter::once(komado.to_owned())
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let mut command = self.place.program("bash");
        command
            .env("PATH", path.unwrap())
            .env("TZ", "UTC")
            .env("COLUMNS", "80")
            .args(["-o", "pipefail", "-c", script]);
        command
    }

    /// Runs a command. Gives what it printed, standard output first, with the names of folders and ports that pages use.
    fn run(&mut self, command: &str) -> Vec<String> {
        let told = if command.starts_with("komado serve") {
            self.serve(command)
        } else {
            let here = self.server.as_ref().map_or(command.to_owned(), |(_, port)| {
                command.replace(&format!(":{PORT}"), &format!(":{port}"))
            });
            let said = run::feed(self.shell(&here), b"");
            assert_eq!(said.code, 0, "{command}\n{}{}", said.out, said.err);
            said.out + &said.err
        };
        let [here, home] = [self.place.path(), self.place.home()].map(|path| path.display().to_string());
        let port = self.server.as_ref().map_or(PORT, |(_, port)| port.as_str());
        let told = told.replace(&here, "~/komado").replace(&home, "~").replace(&format!(":{port}"), ":4141");
        told.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Starts a server at a port that is free. It ends with the page.
    fn serve(&mut self, command: &str) -> String {
        let script = format!("exec {command} --listen 127.0.0.1:0");
        let mut child = self.shell(&script).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut told = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        while !told.ends_with("stops it.\n") {
            assert!(out.read_line(&mut told).unwrap() > 0, "{command} ended: {told}");
        }
        let (_, port) = told.lines().next().unwrap().rsplit_once(':').unwrap();
        self.server = Some((child, port.to_owned()));
        told
    }
}

/// Runs a page; gives the page as it should be, and what differs.
fn follow(page: &str) -> (String, Vec<String>) {
    let lines: Vec<&str> = page.lines().collect();
    let (mut reader, mut faults, mut written, mut copied) = (Reader::new(), Vec::new(), Vec::new(), 0);
    for step in steps(&lines) {
        let (told, expected) = (reader.run(&step.command), &lines[step.output.clone()]);
        if !matches(expected, &told) {
            faults.push(format!("$ {}\n{}", step.command, told.join("\n")));
            written.extend(lines[copied..step.output.start].iter().map(|line| (*line).to_owned()));
            // A line with `…` that still holds stays as it is.
            let kept = |told: String| {
                let mut lines = expected.iter().filter(|line| **line != "…" && line.contains('…'));
                lines.find(|line| line_matches(line, &told)).map_or(told, |line| (*line).to_owned())
            };
            written.extend(told.into_iter().map(kept));
            copied = step.output.end;
        }
    }
    written.extend(lines[copied..].iter().map(|line| (*line).to_owned()));
    (written.join("\n") + "\n", faults)
}

fn steps(lines: &[&str]) -> Vec<Step> {
    let (mut steps, mut inside) = (Vec::<Step>::new(), false);
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("```") {
            inside = *line == "```console";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            steps.push(Step { command: command.to_owned(), output: at + 1..at + 1 });
        } else if inside {
            let step = steps.last_mut().expect("a block begins with a command");
            match line.strip_prefix("> ") {
                Some(more) if step.output.is_empty() => {
                    step.command = format!("{}\n{more}", step.command);
                    step.output = at + 1..at + 1;
                }
                _ => step.output.end = at + 1,
            }
        }
    }
    steps
}

/// Whether the output is what the page says.
fn matches(expected: &[&str], told: &[String]) -> bool {
    match (expected, told) {
        ([], []) => true,
        (["…", rest @ ..], _) => (0..=told.len()).any(|at| matches(rest, &told[at..])),
        ([line, rest @ ..], [first, more @ ..]) => line_matches(line, first) && matches(rest, more),
        _ => false,
    }
}

fn line_matches(expected: &str, told: &str) -> bool {
    let mask = |text: &str| {
        let day = r"\d{4}-\d\d-\d\d|(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day \d{1,2} [A-Z][a-z]+ \d{4}";
        let day = Regex::new(day).unwrap().replace_all(text, "DAY").into_owned();
        Regex::new(r"\d\d:\d\d(:\d\d)?").unwrap().replace_all(&day, "TIME").into_owned()
    };
    let (expected, told) = (mask(expected), mask(told));
    let pattern: Vec<String> = expected.split('…').map(regex::escape).collect();
    Regex::new(&format!("^{}$", pattern.join(".*"))).unwrap().is_match(&told)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands of a page print what the page says.
fn check(page: &str) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (written, faults) = follow(&text);
    if std::env::var_os("KOMADO_BLESS").is_some() {
        fs::write(&path, written).unwrap();
    } else {
        assert!(faults.is_empty(), "{page}: KOMADO_BLESS=1 writes this into it:\n\n{}", faults.join("\n\n"));
    }
}

#[test]
fn the_commands_of_the_readme_print_what_it_says() {
    check("README.md");
}

#[test]
fn the_commands_of_the_japanese_readme_print_what_it_says() {
    check("README.ja.md");
}

#[test]
fn the_commands_of_the_tutorial_print_what_it_says() {
    check("docs/tutorial.md");
}

#[test]
fn the_commands_of_the_page_about_threads_print_what_it_says() {
    check("docs/threads.md");
}

/// The figures follow from the sources that the demo reads, so only the words are compared.
#[test]
fn the_readmes_show_what_the_demo_says() {
    let figures = Regex::new(r"\d[\d,]*").unwrap();
    let told = Reader::new().run("komado dev demo --fast").join("\n");
    let told = figures.replace_all(&told, "N");
    for page in ["README.md", "README.ja.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let (_, shown) = text.split_once("```text\n").unwrap();
        let (shown, _) = shown.split_once("```").unwrap();
        assert!(shown.lines().count() <= 10, "{page}: {shown}");
        for line in shown.lines() {
            let line = figures.replace_all(line, "N");
            assert!(told.lines().any(|told| told == line), "{page}: the demo does not say {line:?}:\n{told}");
        }
    }
}

#[test]
fn the_page_reader_sees_commands_outputs_and_differences() {
    let page = "```console\n$ printf 'a\\nb 12:30\\n'\na\nb 11:22\n$ echo 'x\n> y'\nx\nz\n```\n\n```sh\n$ exit 1\n```\n";
    let lines: Vec<&str> = page.lines().collect();
    let found: Vec<_> = steps(&lines).into_iter().map(|step| (step.command, step.output)).collect();
    assert_eq!(found, [("printf 'a\\nb 12:30\\n'".to_owned(), 2..4), ("echo 'x\ny'".to_owned(), 6..8)]);
    let (written, faults) = follow(page);
    assert_eq!((written, faults.len()), (page.replace("\nz\n", "\ny\n"), 1));
    let told = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&["a", "…", "c …"], &told("a\nb\nb\nc 1\n")));
    assert!(!matches(&["a", "…", "c"], &told("a\nb\n")));
    assert!(!matches(&["a"], &[]));
}
