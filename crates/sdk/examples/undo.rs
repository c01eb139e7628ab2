//! Looks at an old session, finds what an edit left out, and takes the edit back.
//!
//! `cargo run -p komado-sdk --example undo -- FOLDER SESSION` looks at one of yours; without arguments one is made first.

use komado_sdk::{Entry, Komado, Result};

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
        println!(
            "said at @{}, {}: {}",
            found.seq,
            if found.hidden { "hidden" } else { "shown" },
            found.snippet.text
        );
    }
    let mut edit = None;
    for record in chat.entries().rev() {
        let record = record?;
        if let Entry::Edit(_) = record.entry {
            edit = Some(record.seq);
            break;
        }
    }
    if let Some(edit) = edit {
        chat.revert(edit)?;
        println!("after the edit at @{edit} was taken back it sees:");
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
