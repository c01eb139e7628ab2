//! The tools: the operations that are offered over MCP, each by its name and with the schema of its type.

use super::effect::hints;
use crate::fault::{Exit, Fault, Outcome};
use komado_ops::{Context, Missing, Reader, Row};
use rmcp::model::{JsonObject, Tool};
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// What a tool gives back: words, and the same for programs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Answer {
    /// For people and models.
    pub(super) text: String,
    /// For programs: always an object.
    pub(super) value: Value,
}

/// The operations that are offered as tools.
fn operations() -> impl Iterator<Item = &'static Row> {
    komado_ops::ALL.iter().filter(|row| row.interfaces.mcp.is_ok())
}

/// Every tool.
pub(super) fn all() -> Vec<Tool> {
    operations().map(described).collect()
}

/// The tool of a name.
pub(super) fn find(name: &str) -> Option<&'static Row> {
    operations().find(|row| row.name == name)
}

/// An operation as a tool: its schema is that of its type.
fn described(row: &Row) -> Tool {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = (row.request)(&mut settings.into_generator()).to_value();
    let Some(fields) = schema.as_object_mut() else { return Tool::default() };
    fields.remove("title");
    fields.remove("description");
    fields.insert("additionalProperties".to_owned(), Value::Bool(false));
    let schema = fields.clone();
    Tool::new(row.name, row.about(), schema)
        .with_title(row.title)
        .with_annotations(hints(row.effect, row.title))
}

/// Calls a tool.
pub(super) fn call(row: &Row, given: JsonObject, context: &Context) -> Outcome<Answer> {
    let answer =
        row.call(given.into(), context, Reader::Model, |_| Ok(None)).map_err(|fault| told(row, fault))?;
    let value: Value = serde_json::from_str(&answer.json)?;
    Ok(Answer { text: answer.text.unwrap_or(answer.json), value })
}

/// A failure in the words of this interface.
fn told(row: &Row, fault: Fault) -> Fault {
    match (fault.what_is_missing(), fault.exit()) {
        (Some(Missing::Session(_)), _) => fault.and("`sessions` lists them".to_owned()),
        (_, Exit::Malformed) => {
            Fault::input(format!("the arguments of {} cannot be taken: {}", row.name, fault.message()))
        }
        _ => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{prompt, resource};
    use super::*;
    use crate::app::{App, Options};
    use komado_ops::task::AddTask;
    use komado_ops::{Caller, Naming};
    use serde_json::json;
    use std::collections::{BTreeSet, HashSet};

    #[test]
    fn every_schema_is_strict_and_every_argument_is_explained() {
        let mut names = HashSet::new();
        for tool in all() {
            assert!(names.insert(tool.name.clone()), "{} is there twice", tool.name);
            assert!(find(&tool.name).is_some());
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
            let about = tool.description.as_deref().unwrap_or_default();
            assert!((20..400).contains(&about.len()), "{}: {about}", tool.name);
            for (field, schema) in tool.input_schema["properties"].as_object().unwrap() {
                let about = schema["description"].as_str().unwrap_or_default();
                assert!(!about.is_empty(), "{}.{field} is not explained", tool.name);
            }
        }
    }

    #[test]
    fn what_changes_nothing_says_so_and_nothing_else_does() {
        let hints = |tool: &Tool| tool.annotations.clone().unwrap();
        let tools = all();
        let reads = tools.iter().filter(|tool| hints(tool).read_only_hint == Some(true));
        let reads: BTreeSet<&str> = reads.map(|tool| tool.name.as_ref()).collect();
        let outputs = ["tool_output_cache", "tool_output_cache_grep", "tool_output_cache_line"];
        let others = ["recall", "context", "log", "show", "sessions", "threads", "task", "tasks"];
        assert_eq!(reads, outputs.into_iter().chain(others).collect());
        assert!(tools.iter().all(|tool| hints(tool).open_world_hint == Some(false)));
    }

    #[test]
    fn a_session_of_one_guest_is_not_there_for_another_whatever_the_tool() {
        let dir = tempfile::tempdir().unwrap();
        let app = app(dir.path());
        let of = |caller: Caller| app.context.of(caller, Naming::Prefix { default: None });
        let user =
            |user: &str| Caller { key: Some(user.into()), user: Some(user.into()), ..Caller::default() };
        let (ann, bob) = (of(user("ann")), of(user("bob")));
        let run = |context: &Context, name: &str, given: Value| {
            call(find(name).unwrap(), given.as_object().unwrap().clone(), context)
        };
        assert!(run(&ann, "new", json!({ "user": "bob", "window": 4000 })).is_err());
        let made = run(&ann, "new", json!({ "window": 4000 })).unwrap();
        let hers = made.value["session"].as_str().unwrap().to_owned();
        run(&ann, "append", json!({ "session": hers, "text": "the secret is 合言葉" })).unwrap();
        for tool in all() {
            let mut given = plausible(&tool);
            if given.contains_key("session") {
                given.insert("session".into(), json!(hers));
            }
            let said = call(find(&tool.name).unwrap(), given, &bob);
            let text = match &said {
                Ok(answer) => format!("{} {}", answer.text, answer.value),
                Err(fault) => fault.message().to_owned(),
            };
            assert!(!text.contains("合言葉"), "{}: {text}", tool.name);
            match tool.name.as_ref() {
                "task" => assert!(said.is_err() && text.contains("there is no task"), "{text}"),
                "new" | "sessions" | "tasks" => assert!(!text.contains(&hers), "{}: {text}", tool.name),
                _ => assert!(said.is_err() && text.contains("there is no session"), "{}: {text}", tool.name),
            }
        }
        let wide = run(&bob, "recall", json!({ "query": "secret" })).unwrap();
        assert_eq!(wide.value["items"], json!([]));
        assert_eq!(run(&ann, "recall", json!({ "query": "secret" })).unwrap().value["items"][0]["seq"], 1);
        // A session that the key lists is searched, too, with a user of one's own or without.
        for user in [Some("bob".to_owned()), None] {
            let sessions = vec!["gone".into(), hers.clone()];
            let listed = of(Caller { user, sessions, ..bob.caller.clone() });
            let wide = run(&listed, "recall", json!({ "query": "secret" })).unwrap();
            assert_eq!(wide.value["items"].as_array().unwrap().len(), 1);
            assert_eq!(wide.value["items"][0]["session"], hers);
        }
        for uri in ["", "/journal", "/thread/root"] {
            assert!(resource::read(&bob, &format!("komado://session/{hers}{uri}")).is_err(), "{uri}");
            assert!(resource::read(&ann, &format!("komado://session/{hers}{uri}")).is_ok(), "{uri}");
        }
        let (listed, _) = resource::list(&bob, None).unwrap();
        assert!(!listed.iter().any(|one| one.uri.contains(&hers)));
        let given = json!({ "session": hers }).as_object().unwrap().clone();
        assert!(prompt::say(&bob, "resume", &given).is_err());
        assert!(prompt::say(&ann, "resume", &given).unwrap().contains("合言葉"));
    }

    #[test]
    fn tasks_are_read_by_those_who_see_their_sessions_and_no_tool_changes_one() {
        let dir = tempfile::tempdir().unwrap();
        let app = app(dir.path());
        let of = |user: &str| {
            let caller = Caller { key: Some(user.into()), user: Some(user.into()), ..Caller::default() };
            app.context.of(caller, Naming::Prefix { default: None })
        };
        let add =
            AddTask {
                text: "the secret is 合言葉".into(), user: Some("ann".into()), ..AddTask::default()
            };
        let hers = app.context.run(add).unwrap().session;
        let run = |context: &Context, name: &str, given: Value| {
            call(find(name).unwrap(), given.as_object().unwrap().clone(), context)
        };
        let listed = run(&of("ann"), "tasks", json!({})).unwrap();
        assert!(listed.text.starts_with(&format!("{hers} queued")), "{}", listed.text);
        let shown = run(&of("ann"), "task", json!({ "task": hers[..8] })).unwrap().value;
        assert_eq!((&shown["state"], &shown["text"]), (&json!("queued"), &json!("the secret is 合言葉")));
        assert_eq!(shown.get("folder"), None, "where things lie is told to no key");
        assert_eq!(run(&of("bob"), "tasks", json!({ "all": true })).unwrap().text, "no tasks");
        let why = run(&of("bob"), "task", json!({ "task": hers })).unwrap_err();
        assert!(why.message().contains("there is no task"), "{}", why.message());
        assert!(["task_add", "task_stop", "task_retry"].iter().all(|name| find(name).is_none()));
    }

    fn app(base: &std::path::Path) -> App {
        let options = Options { json: false, base_dir: Some(base.to_owned()), config: None, set: Vec::new() };
        App::new(&options).unwrap()
    }

    /// Arguments that a schema takes: what is required, and a session where there can be one.
    fn plausible(tool: &Tool) -> JsonObject {
        let empty = Vec::new();
        let required = tool.input_schema.get("required").and_then(Value::as_array).unwrap_or(&empty);
        let mut given: JsonObject = required
            .iter()
            .map(|name| {
                let name = name.as_str().unwrap();
                let kind = &tool.input_schema["properties"][name]["type"];
                (name.to_owned(), if kind == "integer" { json!(1) } else { json!("root") })
            })
            .collect();
        if tool.input_schema["properties"].get("session").is_some() {
            given.insert("session".into(), Value::Null);
        }
        given
    }
}
