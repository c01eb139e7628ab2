//! Tasks of files and pipes.

use komado_agent::source::read;
use komado_agent::task::Task;
use std::path::Path;

fn titles(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.title.as_str()).collect()
}

fn error(name: &str, text: &str) -> String {
    read(name, text).unwrap_err().to_string()
}

#[test]
fn lines_of_json_are_tasks_with_what_they_say() {
    let text = r#"{"title":"蓋を直す","text":"漏れる","user":"花子","folder":"/src/tool","playbook":"fix.json","key":"lid-1"}

{"title":"second"}
"#;
    for name in ["tasks.jsonl", "-"] {
        let tasks = read(name, text).unwrap();
        assert_eq!(titles(&tasks), ["蓋を直す", "second"]);
        let first = &tasks[0];
        assert_eq!((first.text.as_str(), first.user.as_deref()), ("漏れる", Some("花子")));
        assert_eq!(first.folder.as_deref(), Some(Path::new("/src/tool")));
        assert_eq!(first.playbook.as_deref(), Some(Path::new("fix.json")));
        assert_eq!((first.name.as_str(), first.key.task_id.as_str()), ("local:lid-1", "lid-1"));
        assert_eq!((first.key.task_source.as_str(), first.key.task_type.as_str()), ("local", "task"));
    }
}

#[test]
fn an_array_and_an_object_over_many_lines_are_read_too() {
    assert_eq!(
        titles(&read("a.json", "[{\"title\":\"one\"},\n{\"title\":\"two\"}]").unwrap()),
        ["one", "two"]
    );
    assert_eq!(titles(&read("a.json", "{\n  \"title\": \"one\"\n}\n").unwrap()), ["one"]);
    assert_eq!(titles(&read("-", " [ {\"title\":\"one\"} ]").unwrap()), ["one"]);
}

#[test]
fn a_text_is_a_title_and_the_rest() {
    for (text, title, rest) in [
        ("Fix the lid\n\nIt leaks.\r\nBadly.\n", "Fix the lid", "It leaks.\nBadly."),
        ("\u{feff}\n## 蓋を直す\n漏れる", "蓋を直す", "漏れる"),
        ("#12 is broken", "#12 is broken", ""),
        ("[a link](x) first", "[a link](x) first", ""),
        ("one line", "one line", ""),
    ] {
        let tasks = read("-", text).unwrap();
        assert_eq!((titles(&tasks), tasks[0].text.as_str()), (vec![title], rest));
    }
}

#[test]
fn texts_are_separated_by_lines_and_code_keeps_its_own() {
    let text = "---\nfirst\nwords\n---\n\n---\n# second\n```yaml\n---\na: 1\n```\n---\nthird\n---\n";
    let tasks = read("tasks.md", text).unwrap();
    assert_eq!(titles(&tasks), ["first", "second", "third"]);
    assert_eq!(tasks[1].text, "```yaml\n---\na: 1\n```");
}

#[test]
fn the_same_task_has_the_same_name_wherever_it_stands() {
    let name = |file: &str, text: &str| read(file, text).unwrap().pop().unwrap().name;
    assert_eq!(name("a.txt", "Fix\nit"), name("b.jsonl", r#"{"title":"Fix","text":"it"}"#));
    let others = [r#"{"title":"Fix","text":"it","user":"ann"}"#, r#"{"title":"Fixi","text":"t"}"#];
    for other in others {
        assert_ne!(name("a.txt", "Fix\nit"), name("-", other));
    }
}

#[test]
fn a_title_that_is_too_long_stands_in_the_text() {
    let long = "窓".repeat(500);
    let task = read("-", &format!("{long}\nrest")).unwrap().pop().unwrap();
    assert_eq!(task.title.chars().count(), 200);
    assert_eq!(task.text, format!("{long}\n\nrest"));
}

#[test]
fn what_is_no_task_is_named_with_its_place() {
    for (name, text, expect) in [
        ("a.jsonl", "{\"title\":\"one\"}\n\n{\"titel\":\"two\"}\n", "a.jsonl:3: unknown field `titel`"),
        ("a.jsonl", "{\"title\":\"one\"}\n{\"title\":\n", "a.jsonl:3: EOF"),
        ("a.jsonl", "{\"title\":\"one\"}\nnonsense\n", "a.jsonl:2: expected"),
        ("a.jsonl", "\n{\"user\":\"ann\"}", "a.jsonl:2: there is neither a \"title\" nor a \"text\""),
        ("a.jsonl", "{\"title\":\"one\\ntwo\"}", "a.jsonl:1: a title is one line"),
        ("a.json", "[{\"title\":\"a\"},{\"text\":\" \"}]", "a.json: task 2: there is neither"),
        ("a.jsonl", "{\"title\":7}", "a.jsonl:1: \"title\" is 7: write a text, in quotes"),
        ("a.json", "[{\"title\":\"a\"},{\"text\":null}]", "a.json: task 2: \"text\" is null"),
        ("a.jsonl", "{\"title\":\"a\",\"key\":\"a b\"}", "a.jsonl:1: not a key: \"a b\""),
        (
            "a.jsonl",
            "{\"title\":\"a\",\"key\":\"k\"}\n{\"title\":\"b\",\"key\":\"k\"}",
            "a.jsonl:2: the key \"k\" is taken already, at a.jsonl:1",
        ),
        ("a.txt", " \n---\n\n", "a.txt: there is no task in it"),
        ("-", "", "-: there is no task in it"),
    ] {
        let why = error(name, text);
        assert!(why.starts_with(expect), "{why}");
    }
}
