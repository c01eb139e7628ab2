//! A chat loop: reads a line, asks, prints the answer as it comes. The conversation is kept in a folder and goes on when the
//! program is started again.
//!
//! `cargo run -p komado-sdk --example chat --features scripted` asks the scripted model, which needs no key;
//! `… --example chat -- openai/gpt-4o` asks a model whose key is in the environment.

use komado_sdk::{Komado, Model, Result};
use std::io::{BufRead, Write};

fn main() -> Result<()> {
    let model = match std::env::args().nth(1) {
        Some(name) => Model::from_env(&name)?,
        None => Model::scripted(),
    };
    let komado = Komado::open(std::env::temp_dir().join("komado-chat"))?;
    let mut chat = komado.session("chat").window(8_000).system("Answer in one sentence.").open()?;
    println!("{} entries so far; an empty line ends", chat.last());
    for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
        if line.trim().is_empty() {
            break;
        }
        chat.user(&line)?;
        chat.ask(&model, |text| {
            print!("{text}");
            // A terminal that is gone does not end the conversation.
            let _ = std::io::stdout().flush();
        })?;
        println!("\n[{} of 8,000 tokens]", chat.tokens());
    }
    Ok(())
}
