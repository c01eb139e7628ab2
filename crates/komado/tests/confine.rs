//! `komado confine` as the shell tool starts it: real work gets done inside, and the sessions around are not seen.
use komado_agent::builtin::{Builtin, BuiltinConfig};
use komado_agent::sandbox::Confinement;
use komado_agent::tools::ToolProvider;
use komado_provider::Cancel;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Tools in the folder of a task among sessions.
fn tools(base: &Path) -> Builtin {
    let folder = base.join("work/s2");
    std::fs::create_dir_all(&folder).unwrap();
    let launcher = vec![env!("CARGO_BIN_EXE_komado").into(), "confine".into()];
    Builtin::new(BuiltinConfig {
        folder,
        enabled: vec!["shell".into()],
        allow: vec!["*".into()],
        timeout: Duration::from_secs(300),
        most_output: 1 << 20,
        confinement: Confinement { launcher, hide: vec![base.into()], ..Confinement::default() },
    })
    .unwrap()
}

fn shell(tools: &mut Builtin, line: &str) -> (String, bool) {
    let arguments = serde_json::json!({ "command": line }).to_string();
    let answer = tools.call("shell", &arguments, &Cancel::default());
    let mut text = String::new();
    answer.body.reader().read_to_string(&mut text).unwrap();
    (text, answer.is_error)
}

#[test]
fn a_command_cannot_read_the_messages_of_another_session() {
    let base = tempfile::tempdir().unwrap();
    for half in ["running", "completed"] {
        std::fs::create_dir_all(base.path().join(half).join("s1")).unwrap();
        std::fs::write(base.path().join(half).join("s1/messages.jsonl"), "SECRET").unwrap();
    }
    std::fs::write(base.path().join("keys.json"), "SECRET").unwrap();
    let mut tools = tools(base.path());
    assert_eq!(shell(&mut tools, "echo 窓 > a && cat a"), ("窓\n[exit code 0]\n".to_owned(), false));
    for line in [
        "cat ../../running/s1/messages.jsonl",
        "cat ../../completed/s1/messages.jsonl",
        "cat ../../keys.json",
        "ln ../../keys.json a2 && cat a2",
        "ls ../..",
    ] {
        let (text, is_error) = shell(&mut tools, line);
        assert!(is_error && !text.contains("SECRET"), "{line}: {text}");
    }
}

#[test]
fn a_command_ends_as_it_did_and_leaves_no_daemon() {
    let base = tempfile::tempdir().unwrap();
    let mut tools = tools(base.path());
    assert_eq!(shell(&mut tools, "kill -SEGV $$"), ("[ended by signal 11]\n".to_owned(), true));
    let (text, is_error) = shell(&mut tools, "setsid sleep 3333 & echo $!; exit 7");
    let (pid, ended) = text.split_once('\n').unwrap();
    assert_eq!((ended, is_error), ("[exit code 7]\n", true));
    assert!(!Path::new("/proc").join(pid).exists(), "{pid} still runs");
}

/// Whatever of these is installed must work inside.
#[test]
fn developers_work_gets_done_inside() {
    let base = tempfile::tempdir().unwrap();
    let mut tools = tools(base.path());
    for (program, line) in [
        (
            "git",
            "git init -q g && cd g && echo a > a && git add a && git commit -q -m 窓 && git log --format=%s",
        ),
        ("cargo", "cargo new -q --vcs none c && cd c && cargo build -q --offline && ./target/debug/c"),
        (
            "python3",
            "python3 -c 'import tempfile, ssl, subprocess; tempfile.mkdtemp(); print(subprocess.check_output([\"echo\", \"1\"]))'",
        ),
        (
            "node",
            "node -e 'require(\"fs\").writeFileSync(require(\"os\").tmpdir() + \"/x\", \"1\"); console.log(1)'",
        ),
        ("make", "printf 'all:\\n\\techo made > out\\n' > Makefile && make -s && cat out"),
        ("cc", "printf 'int main(void) { return 0; }' > m.c && cc m.c -o m && ./m"),
    ] {
        let (text, is_error) =
            shell(&mut tools, &format!("if command -v {program} > /dev/null; then {line}; fi"));
        assert!(!is_error, "{line}: {text}");
    }
}
