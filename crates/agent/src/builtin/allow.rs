//! Which programs a shell line may start. This is manners, not the wall: a program that is allowed can start others, and
//! what keeps all of them inside is the sandbox. But a model that reaches for what is not wanted here is told at once.

use super::syntax::{self, ShellWord};

/// The commands that may run unless the settings say otherwise. `./` stands for programs in the working folder.
pub const ALLOW: &[&str] = &[
    "./", "ar", "as", "awk", "base64", "basename", "bash", "black", "bun", "bundle", "bzip2", "c++", "cargo",
    "cat", "cc", "chmod", "clang", "clang++", "cmake", "cmp", "comm", "composer", "cp", "ctest", "cut",
    "date", "deno", "df", "diff", "dirname", "dotnet", "du", "egrep", "env", "eslint", "expr", "fd", "fgrep",
    "file", "find", "flake8", "fmt", "fold", "g++", "gcc", "gem", "git", "go", "gofmt", "gradle", "grep",
    "gunzip", "gzip", "head", "hexdump", "id", "install", "java", "javac", "jest", "jq", "kill", "ld",
    "less", "ln", "ls", "make", "md5sum", "meson", "mkdir", "mktemp", "more", "mv", "mvn", "mypy", "nice",
    "ninja", "nl", "node", "nohup", "npm", "nproc", "npx", "objdump", "od", "paste", "patch", "perl", "php",
    "pip", "pip3", "pnpm", "prettier", "ps", "pytest", "python", "python3", "rake", "readlink", "realpath",
    "rg", "rm", "rmdir", "rspec", "ruby", "ruff", "rustc", "rustfmt", "rustup", "sed", "seq", "sh",
    "sha1sum", "sleep", "sort", "split", "sqlite3", "stat", "strings", "swift", "tac", "tail", "tar", "tee",
    "timeout", "touch", "tox", "tr", "tree", "tsc", "uname", "uniq", "unzip", "uv", "vitest", "wc", "which",
    "whoami", "xargs", "xxd", "xz", "yarn", "yes", "yq", "zip", "zstd",
];

/// What the shell itself does, without starting a program.
const BUILTINS: &[&str] = &[
    ":", "[", "[[", "]]", "bg", "break", "cd", "continue", "declare", "dirs", "echo", "exit", "export",
    "false", "fg", "getopts", "jobs", "local", "popd", "printf", "pushd", "pwd", "read", "readonly",
    "return", "set", "shift", "test", "times", "true", "type", "ulimit", "umask", "unset", "wait",
];

/// What makes any line look like another one, or asks for more rights.
const REFUSED: &[&str] = &[
    ".", "alias", "builtin", "coproc", "doas", "enable", "eval", "exec", "function", "hash", "select",
    "shopt", "source", "su", "sudo", "trap", "typeset",
];

/// Programs whose own words end in a command: options that take a word, and how many words come before the command.
const PREFIXES: &[(&str, &str, usize)] = &[
    ("command", "", 0),
    ("env", "uC", 0),
    ("nice", "n", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("stdbuf", "ioe", 0),
    ("timeout", "ks", 1),
    ("xargs", "nIPLdaEs", 0),
];

const SHELLS: &[&str] = &["sh", "bash", "dash"];
const DEEPEST: usize = 8;

/// Says why a line may not run.
pub(super) fn check(line: &str, allow: &[String]) -> Result<(), String> {
    if allow.iter().any(|name| name == "*") {
        return Ok(());
    }
    List { allow, depth: 0 }.line(line)
}

#[derive(Clone, Copy)]
struct List<'a> {
    allow: &'a [String],
    depth: usize,
}

impl List<'_> {
    fn line(self, line: &str) -> Result<(), String> {
        if self.depth > DEEPEST {
            return Err("too many commands in one another; write them into a script".to_owned());
        }
        syntax::commands(line)?.iter().try_for_each(|words| self.command(words))
    }

    /// One simple command: assignments, then what it starts.
    fn command(self, words: &[ShellWord]) -> Result<(), String> {
        let start = words.iter().position(|word| !word.assigns).unwrap_or(words.len());
        let Some((first, rest)) = words[start..].split_first() else { return Ok(()) };
        if first.expands {
            return Err(format!(
                "which command this starts is only known when it runs: {:?}; write its name itself (tools.allow)",
                brief(&first.written)
            ));
        }
        let name = first.text.as_str();
        match name {
            "for" if !first.quoted => loop_head(rest),
            _ if REFUSED.contains(&name) => Err(refused(name)),
            _ if BUILTINS.contains(&name) => Ok(()),
            "command" => self.prefixed(name, rest),
            _ if !self.lists(name) => Err(refused(name)),
            "find" => self.find(rest),
            _ if SHELLS.contains(&name) => self.shell(rest),
            _ if PREFIXES.iter().any(|(prefix, ..)| *prefix == name) => self.prefixed(name, rest),
            _ => Ok(()),
        }
    }

    /// True when the list has this name, or, for a path, when it has that very path or programs in the folder.
    fn lists(self, name: &str) -> bool {
        let has = |wanted: &str| self.allow.iter().any(|allowed| allowed == wanted);
        let is_inside =
            name.contains('/') && !name.starts_with('/') && !name.split('/').any(|part| part == "..");
        !name.is_empty() && (has(name) || (is_inside && has("./")))
    }

    /// `timeout 5 make`: the command behind.
    fn prefixed(self, name: &str, words: &[ShellWord]) -> Result<(), String> {
        let (_, valued, before) =
            PREFIXES.iter().find(|(prefix, ..)| *prefix == name).unwrap_or(&("", "", 0));
        let (mut words, mut before) = (words, *before);
        while let Some((word, rest)) = words.split_first() {
            if word.expands {
                break;
            }
            let option = word.text.strip_prefix('-').filter(|option| !option.is_empty());
            words = match option {
                Some("v" | "V") if name == "command" => return Ok(()),
                Some(option)
                    if name == "env" && (option.starts_with('S') || option.starts_with("-split")) =>
                {
                    return Err(refused("env -S"));
                }
                Some("-") => return self.behind(rest, before),
                Some(option) if option.chars().count() == 1 && valued.contains(option) => {
                    rest.get(1..).unwrap_or(&[])
                }
                Some(_) => rest,
                None if name == "env" && word.text.contains('=') => rest,
                None if before > 0 => {
                    before -= 1;
                    rest
                }
                None => break,
            };
        }
        self.command(words)
    }

    fn behind(self, words: &[ShellWord], before: usize) -> Result<(), String> {
        self.command(words.get(before..).unwrap_or(&[]))
    }

    /// `find … -exec make {} +`: the commands behind.
    fn find(self, words: &[ShellWord]) -> Result<(), String> {
        let starts = |word: &ShellWord| ["-exec", "-execdir", "-ok", "-okdir"].contains(&word.text.as_str());
        let behind = words.iter().enumerate().filter(|(_, word)| starts(word));
        behind.into_iter().try_for_each(|(at, _)| self.command(&words[at + 1..]))
    }

    /// `sh -c 'make'`: the line inside. A script is a file, and free.
    fn shell(self, words: &[ShellWord]) -> Result<(), String> {
        let (mut words, mut is_line) = (words.iter(), false);
        while let Some(word) = words.next() {
            let option = word.text.strip_prefix(['-', '+']).filter(|_| !word.expands);
            match option {
                Some(option) if option.starts_with('-') => {}
                Some(option) => {
                    is_line |= option.contains('c');
                    if option.contains(['o', 'O']) {
                        words.next();
                    }
                }
                None if is_line && word.expands => {
                    return Err(format!(
                        "the line after -c is only known when it runs: {:?}; write it itself (tools.allow)",
                        brief(&word.written)
                    ));
                }
                None if is_line => return List { depth: self.depth + 1, ..self }.line(&word.text),
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

/// `for NAME in …`: no command; `for NAME do` would begin one.
fn loop_head(rest: &[ShellWord]) -> Result<(), String> {
    match rest.get(1) {
        Some(word) if word.text != "in" || word.quoted => Err("for: write it as `for x in …; do`".to_owned()),
        _ => Ok(()),
    }
}

fn refused(name: &str) -> String {
    format!(
        "{:?} is not among the commands that may run here (tools.allow); use another one, or another tool",
        brief(name)
    )
}

fn brief(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::{ALLOW, BUILTINS, PREFIXES, REFUSED, check};
    use proptest::prelude::*;

    fn allowed() -> Vec<String> {
        ALLOW.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn usual_lines_may_run() {
        for line in [
            "cargo test -q 2>&1 | tail -n 20",
            "cd src && git status; echo done",
            "for f in *.rs; do wc -l \"$f\"; done",
            "if [ -f a ]; then cat a; else echo none; fi",
            "find . -name '*.py' -exec grep -n todo {} +",
            "find . -print0 | xargs -0 -n 1 wc -l",
            "RUST_LOG=debug timeout 60 cargo run",
            "env A=1 python3 -c 'print(1)'",
            "bash -euo pipefail -c 'ls | sort'",
            "./gradlew build && target/debug/app",
            "command -v node",
            "echo 日本語 > メモ.txt",
            "cat > a.txt <<'EOF'\ncurl | sh\nEOF",
            "echo $((1+2)) $(git rev-parse HEAD)",
        ] {
            assert_eq!(check(line, &allowed()), Ok(()), "{line}");
        }
    }

    #[test]
    fn a_command_that_is_not_listed_is_named_wherever_it_stands() {
        for line in [
            "curl x",
            "ls; curl x",
            "ls | curl x",
            "ls && (curl x)",
            "echo $(curl x)",
            "echo \"`curl x`\"",
            "A=1 curl x",
            "if true; then curl x; fi",
            "for x in 1; do curl x; done",
            "for x do curl; done",
            "timeout 5 curl x",
            "timeout -k 1 5 curl x",
            "env -u A B=1 curl x",
            "xargs -n 1 curl",
            "find . -exec curl {} \\;",
            "bash -c 'curl x'",
            "sh -ec \"curl x\"",
            "bash -c 'bash -c \"curl x\"'",
            "/usr/bin/curl x",
            "../curl",
            "c\\url x",
            "'curl' x",
            "cat <(curl x)",
            "cat <<EOF\n$(curl x)\nEOF",
            "ls\ncurl x",
            "ls & curl x",
            "command curl x",
            "nohup -- curl x",
            "\"if\" x",
            "{ curl x; }",
            "! curl x",
            "echo ${x:-$(curl x)}",
            "> f curl x",
            "2>f curl x",
        ] {
            let why = check(line, &allowed()).expect_err(line);
            assert!(why.contains("tools.allow") || why.contains("for x in"), "{line}: {why}");
        }
    }

    #[test]
    fn what_hides_a_command_is_refused() {
        for line in [
            "eval ls",
            "exec ls",
            ". ./x",
            "source x",
            "$CMD x",
            "`echo ls`",
            "sudo ls",
            "l${x}s",
            "{ls,x}",
            "l*",
            "ls() { curl; }",
            "alias ls=curl",
            "trap 'curl x' EXIT",
            "env -S 'curl x'",
            "bash -c \"$X\"",
            "case x in x) ls;; esac",
        ] {
            assert!(check(line, &allowed()).is_err(), "{line}");
        }
    }

    #[test]
    fn what_is_refused_is_named_as_it_stands_in_the_line() {
        for (line, named) in [
            ("X=id; $X", "$X"),
            ("ls | timeout 5 ${窓} x", "${窓}"),
            ("echo a; `echo ls` x", "`echo ls`"),
            ("l*", "l*"),
            ("bash -c $X", "$X"),
            ("case x in x) id;; esac", "case; write `if [ … ]"),
            ("if true; then case x in (x) id;; esac; fi", "case; write `if [ … ]"),
            ("'case' x", "\"case\""),
        ] {
            let why = check(line, &allowed()).expect_err(line);
            assert!(why.contains(named), "{line}: {why}");
        }
        assert_eq!(check("echo case; grep case a", &allowed()), Ok(()));
    }

    #[test]
    fn a_star_allows_everything() {
        assert_eq!(check("eval $X; curl y", &["*".to_owned()]), Ok(()));
    }

    #[test]
    fn the_lists_are_in_order_and_name_nothing_twice() {
        for list in [ALLOW, BUILTINS, REFUSED] {
            assert!(list.is_sorted_by(|one, other| one < other), "{list:?}");
        }
        assert!(PREFIXES.iter().map(|(name, ..)| name).is_sorted());
        assert!(!ALLOW.iter().any(|name| REFUSED.contains(name)));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(line in "\\PC*") {
            let _ = check(&line, &allowed());
        }

        #[test]
        fn no_line_of_shell_signs_makes_it_panic(line in "[a-c$(){}`'\"\\\\<>|&;#= \n\t*]{0,60}") {
            let _ = check(&line, &allowed());
        }

        #[test]
        fn a_line_that_begins_with_an_unlisted_word_is_never_safe(
            blank in "[ \t\n]{0,3}", name in "[a-z]{1,12}", rest in "( \\PC*)?",
        ) {
            let known = [ALLOW, BUILTINS, REFUSED].concat().contains(&name.as_str())
                || PREFIXES.iter().any(|(prefix, ..)| *prefix == name)
                || super::syntax::commands(&format!("{name} x")).is_ok_and(|found| found[0][0].text != name)
                || name == "for";
            prop_assume!(!known);
            let line = [blank, name, rest].concat();
            prop_assert!(check(&line, &allowed()).is_err());
        }
    }
}
