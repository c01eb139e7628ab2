//! An agent with one tool: the model calls it, the program answers, until the model says something.
//!
//! `cargo run -p komado-sdk --example agent --features scripted` asks the scripted model, which needs no key;
//! `… --example agent -- openai/gpt-4o` asks a model whose key is in the environment.

use komado_sdk::{Komado, Model, Result};

const TOOLS: &str = r#"[{"type": "function", "function": {
    "name": "count_lines",
    "description": "Counts the lines of a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
}}]"#;

fn main() -> Result<()> {
    let model = match std::env::args().nth(1) {
        Some(name) => Model::from_env(&name)?,
        None => Model::scripted().calls("count_lines", r#"{"path": "Cargo.toml"}"#).says("I counted them."),
    };
    let komado = Komado::in_memory();
    let mut chat = komado.new_session().window(8_000).tools(TOOLS).open()?;
    chat.user("How many lines has Cargo.toml?")?;
    let reply = loop {
        let reply = chat.ask(&model, |_| {})?;
        if reply.calls.is_empty() {
            break reply;
        }
        for call in &reply.calls {
            println!("{} {}", call.name, call.arguments);
            match count_lines(&call.arguments) {
                Ok(lines) => chat.tool_result(&call.id, &format!("{lines} lines"))?,
                Err(why) => chat.tool_error(&call.id, &why.to_string())?,
            };
        }
    };
    println!("{}", reply.text);
    Ok(())
}

/// Counts the lines of the file that the arguments name.
fn count_lines(arguments: &str) -> std::io::Result<usize> {
    let arguments: serde_json::Value = serde_json::from_str(arguments)?;
    let path = arguments["path"].as_str().unwrap_or_default();
    Ok(std::fs::read_to_string(path)?.lines().count())
}
