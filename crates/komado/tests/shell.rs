//! What a shell and a reader of manuals get: completions as a shell asks for them, man pages, help, numbers as people write them.
use crate::run;

use run::{Place, TALK};
use std::process::Command;

/// What a shell is offered when Tab is pressed behind `line`.
fn offered(place: &Place, shell: &str, line: &[&str]) -> Vec<String> {
    let said = run::feed(asking(place, shell, line), b"");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{line:?}");
    // Each shell gets its own form: a value, and behind it what the value is.
    let ends: &[char] = if shell == "zsh" { &[':'] } else { &['\t'] };
    let rows = said.out.split(['\n', '\u{b}']).filter(|row| !row.is_empty());
    rows.map(|row| row.split(ends).next().unwrap().replace('\\', "")).collect()
}

fn asking(place: &Place, shell: &str, line: &[&str]) -> Command {
    let mut command = place.command(&["--", "komado"]);
    command.args(line).env("KOMADO_COMPLETE", shell);
    command.env("_CLAP_COMPLETE_INDEX", line.len().to_string()).env("_CLAP_IFS", "\n");
    command
}

#[test]
fn a_shell_is_offered_the_verbs_sessions_threads_models_and_settings_there_are() {
    let place = Place::new();
    for id in ["abc-1", "abc-2", "xyz"] {
        place.ok(&["new", "--id", id, "--meter", "bytes4"]);
    }
    place.append("xyz", TALK);
    place.ok(&["fork", "xyz@1", "other"]);
    for shell in ["bash", "zsh", "fish"] {
        let offers = |line: &[&str]| offered(&place, shell, line);
        assert!(offers(&["sess"]).iter().any(|verb| verb == "sessions"), "{shell}");
        assert_eq!(offers(&["show", "a"]), ["abc-2", "abc-1"], "{shell}: the newest first");
        assert_eq!(offers(&["edit", "pin", "x"]), ["xyz"], "{shell}");
        assert_eq!(offers(&["log", "xyz/o"]), ["xyz/other"], "{shell}");
        assert!(offers(&["ask", "--model", "GPT-5"]).iter().any(|model| model == "gpt-5"), "{shell}");
        assert!(offers(&["models", "claude-"]).len() > 3, "{shell}");
        assert_eq!(offers(&["chat", "--provider", "scr"]), ["scripted"], "{shell}");
        assert_eq!(
            offers(&["admin", "config", "context_storage.cl"]),
            ["context_storage.cleanup_days"],
            "{shell}"
        );
        let set = offers(&["show", "--set", "context_storage.cl"]);
        assert_eq!(set, ["context_storage.cleanup_days="], "{shell}");
        assert!(offers(&["show", "zzz"]).is_empty() && offers(&["log", "zzz/o"]).is_empty(), "{shell}");
    }
    let elsewhere = Place::new();
    let base = place.base();
    let line = ["show", "--base-dir", base.to_str().unwrap(), "xy"];
    assert_eq!(offered(&elsewhere, "bash", &line), ["xyz"], "a folder that the line names is looked into");
}

#[test]
fn completing_makes_nothing_asks_nothing_and_uses_nothing_that_needs_consent() {
    let place = Place::new();
    assert!(offered(&place, "bash", &["show", ""]).iter().all(|offer| offer.starts_with('-')));
    assert!(std::fs::read_dir(place.path()).unwrap().next().is_none(), "nothing was made");
    assert!(std::fs::read_dir(place.home()).unwrap().next().is_none(), "nothing was made");
    // A folder that came with the working folder, with settings that need consent.
    let (other, line) = (Place::new(), ["show", "x"]);
    other.ok(&["new", "--id", "xyz", "--meter", "bytes4"]);
    let copied = Command::new("cp").arg("-r").arg(other.base()).arg(place.contexts()).status().unwrap();
    assert!(copied.success());
    std::fs::write(place.path().join("komado.yaml"), "llm:\n  provider: evil\n").unwrap();
    assert!(offered(&place, "bash", &line).is_empty());
    place.ok(&["admin", "trust"]);
    assert_eq!(offered(&place, "bash", &line), ["xyz"]);
    // A server is not asked: it may be away.
    std::fs::write(place.path().join("komado.yaml"), "store:\n  url: redis://127.0.0.1:1\n").unwrap();
    place.ok(&["admin", "trust", "komado.yaml"]);
    assert!(offered(&place, "bash", &line).is_empty());
}

#[test]
fn the_line_for_a_shell_s_file_registers_the_completion() {
    let place = Place::new();
    let line = place.run(&["admin", "completions", "bash"]);
    assert_eq!((line.code, line.out.as_str()), (0, "source <(KOMADO_COMPLETE=bash komado)\n"));
    assert!(line.err.contains("~/.bashrc"), "{}", line.err);
    let mut bash = place.program("bash");
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_komado")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let script = format!("{}complete -p komado", line.out);
    bash.env("PATH", path).args(["--norc", "-c", &script]);
    let said = run::feed(bash, b"");
    assert!(said.out.contains("-F _clap_complete_komado komado"), "{}{}", said.out, said.err);
    let said = run::feed(asking(&place, "tcsh", &["show"]), b"");
    assert!(said.code != 0 && said.err.contains("tcsh"), "{}", said.err);
}

#[test]
fn man_pages_are_whole() {
    let place = Place::new();
    let said = place.run(&["admin", "man", "--out", "pages"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let mut names: Vec<String> = std::fs::read_dir(place.path().join("pages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() > 80, "{names:?}");
    for name in ["komado.1", "komado-show.1", "komado-edit-pin.1", "komado-admin-key-add.1"] {
        assert!(names.iter().any(|found| found == name), "{name}");
    }
    assert!(!names.iter().any(|name| name.contains("help") || name.contains("confine")), "{names:?}");
    for name in &names {
        let page = std::fs::read_to_string(place.path().join("pages").join(name)).unwrap();
        let title =
            page.lines().find(|line| line.starts_with(".TH ")).unwrap_or_else(|| panic!("{name}: {page}"));
        assert!(title.contains(name.trim_end_matches(".1")) && title.contains("komado 0."), "{title}");
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH \"GLOBAL OPTIONS\""] {
            assert!(page.contains(section), "{name}: {section}: {page}");
        }
        // A line that begins with a dot or a quote is a request to roff: one that is none would be dropped in silence.
        let known = [
            ".TH", ".SH", ".PP", ".TP", ".RS", ".RE", ".br", ".IP", ".nr", ".ie", ".el", ".if", ".de", ".ds",
        ];
        for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
            assert!(known.iter().any(|known| line.starts_with(known)), "{name}: {line}");
        }
        if let Ok(rendered) = Command::new("groff")
            .args(["-Kutf8", "-man", "-ww", "-z"])
            .arg(place.path().join("pages").join(name))
            .output()
        {
            assert!(rendered.stderr.is_empty(), "{name}: {}", String::from_utf8_lossy(&rendered.stderr));
        }
    }
    let first = place.ok(&["admin", "man"]);
    assert_eq!(first, std::fs::read_to_string(place.path().join("pages/komado.1")).unwrap());
    assert!(!place.base().exists(), "a manual makes no store");
    let json = place.json(&["admin", "man", "--out", "pages"]);
    assert_eq!(json["pages"].as_array().unwrap().len(), names.len());
}

#[test]
fn a_verb_of_a_group_is_named_with_its_group() {
    let place = Place::new();
    for (line, meant) in [(&["pin", "x@1"][..], "`komado edit pin`"), (&["doctor"], "`komado admin doctor`")]
    {
        let said = place.run(line);
        assert!(said.code == 2 && said.err.contains(meant), "{line:?}: {}", said.err);
        let said = place.run(&[line, &["--json"]].concat());
        assert!(
            said.code == 2 && said.err.contains(meant) && said.err.contains("\"kind\":\"usage\""),
            "{}",
            said.err
        );
    }
}

#[test]
fn tokens_and_times_are_written_as_people_write_them() {
    let place = Place::new();
    for (text, meant) in
        [("12k", 12_000), ("128K", 128_000), ("1m", 1_000_000), ("1_000", 1_000), ("12,000", 12_000)]
    {
        let made = place.json(&["new", "--meter", "bytes4", "--window", text]);
        assert_eq!(made["window"], meant, "{text}");
        let s = made["session"].as_str().unwrap();
        assert_eq!(place.json(&["context", s, "--window", text])["window"], meant, "{text}");
    }
    for wrong in ["12q", "1,2", "1.5", "0", ""] {
        let said = place.run(&["new", &format!("--window={wrong}")]);
        assert_eq!(said.code, 2, "{wrong}: {}", said.err);
        assert!(said.err.contains("--window"), "{wrong}: {}", said.err);
    }
    let said = place.run(&["new", "--window", "12q"]);
    for word in ["'12q'", "--window <TOKENS>", "8000", "128k"] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    let cleanup = |days: &str| place.run(&["admin", "cleanup", "--dry-run", "--json", "--days", days]);
    for (days, told) in [("30", "30 days"), ("30d", "30 days"), ("2w", "14 days"), ("24h", "1 day ")] {
        let said = cleanup(days);
        assert!(said.code == 0 && said.err.contains(told), "{days}: {}", said.err);
    }
    let said = cleanup("25h");
    assert!(said.code == 2 && said.err.contains("'25h'") && said.err.contains("48h"), "{}", said.err);
    let said = place.run(&["task", "fetch", "--watch", "often"]);
    assert!(said.code == 2 && said.err.contains("'often'") && said.err.contains("90s"), "{}", said.err);
    let setting = |pair: &str, key: &str| {
        let rows = place.json_lines(&["admin", "config", key, "--set", pair]);
        rows[0]["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(setting("budget.reserve=4k", "budget.reserve"), "4000");
    assert_eq!(setting("context_storage.cleanup_days=2w", "context_storage.cleanup_days"), "14");
    assert_eq!(setting("retry.delay_seconds=1m", "retry.delay_seconds"), "60");
    assert_eq!(setting("agent.max_minutes=8h", "agent.max_minutes"), "480");
    let said = place.run(&["admin", "config", "--set", "retry.delay_seconds=often"]);
    assert!(said.code == 2 && said.err.contains("often") && said.err.contains("90s"), "{}", said.err);
}
