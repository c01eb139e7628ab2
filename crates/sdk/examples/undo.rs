//! Looks at an old session, finds what an edit left out, and takes the edit back.
//!
//! `cargo run -p komado-sdk --example undo -- FOLDER SESSION` looks at one of yours; without arguments one is made first.

use komado_sdk::{Komado, Result};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (folder, name) = match (arguments.next(), arguments.next()) {
        (Some(folder), Some(name)) => (folder.into(), name),
        _ => (std::env::temp_dir().join("komado-undo"), "release".to_owned()),
    };
    let komado = Komado::open(folder)?;
    if name == "release" {
        make(&komado)?;
    }
    let mut chat = komado.session(&name).open()?;
    println!("the model sees:");
    for message in chat.messages() {
        println!("  {}", message?);
    }
    for found in chat.recall("checksum")? {
        let place = if found.hidden { "hidden" } else { "shown" };
        println!("said at @{}, {place}: {}", found.seq, found.snippet.text);
    }
    let last = chat.edits().last().transpose()?;
    if let Some((seq, edit)) = last {
        chat.revert(seq)?;
        println!("after the {} at @{seq} was taken back it sees:", edit.kind.name());
        for message in chat.messages() {
            println!("  {}", message?);
        }
    }
    Ok(())
}

/// A session with an edit in it.
fn make(komado: &Komado) -> Result<()> {
    let mut chat = komado.session("release").window(8_000).open()?;
    let first = chat.user("What is left to do before the release?")?;
    let last = chat.assistant(
        "The notes, the checksum of the archive (it changed today), and the tag, in this order.",
    )?;
    chat.condense(first..=last, "Three things are left.")?;
    Ok(())
}
