//! What was learned about models, kept for next time.
//!
//! A lesson is a small JSON text under a name (a base URL and a model). What it says is the engine's business; a store
//! keeps it whole, and lets two who learn at once both be heard.

use crate::Result;
use crate::error::Tried;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// From the old text to the new one; `None` to leave it as it is.
pub type Learning<'a> = dyn FnMut(Option<&str>) -> Option<String> + 'a;

/// What was learned.
pub trait Lessons: Send + Sync {
    /// What is known about `about`.
    fn lesson(&self, about: &str) -> Result<Option<String>>;

    /// Changes what is known about `about`, in one step: nobody else learns between reading and writing.
    fn learn(&self, about: &str, learning: &mut Learning<'_>) -> Result<()>;

    /// Everything that is known, by name.
    fn lessons(&self) -> Result<Vec<(String, String)>>;

    /// Forgets what is known about `about`; false when nothing was.
    fn forget(&self, about: &str) -> Result<bool>;
}

/// Lessons in one JSON file that people can read; replaced whole, by a rename.
pub(crate) struct Slate {
    path: PathBuf,
}

type Book = BTreeMap<String, Box<serde_json::value::RawValue>>;

impl Slate {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// A file that cannot be read teaches nothing: everything in it can be learned again.
    fn read(&self) -> Result<Book> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(serde_json::from_str(&text).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Book::default()),
            Err(error) => Err(error).tried("read", &self.path),
        }
    }

    fn lock(&self) -> Result<File> {
        let path = self.path.with_extension("lock");
        let mut options = OpenOptions::new();
        let file =
            options.write(true).create(true).truncate(false).mode(0o600).open(&path).tried("open", &path)?;
        file.lock().tried("lock", &path)?;
        Ok(file)
    }

    fn write(&self, book: &Book) -> Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).tried("make a file in", folder)?;
        let mut text = String::from("{\n");
        for (i, (about, lesson)) in book.iter().enumerate() {
            let comma = if i + 1 < book.len() { "," } else { "" };
            text.push_str(&format!(
                "  {}: {}{comma}\n",
                serde_json::Value::from(about.as_str()),
                lesson.get()
            ));
        }
        text.push_str("}\n");
        file.write_all(text.as_bytes()).tried("write", &self.path)?;
        file.persist(&self.path).map_err(|e| e.error).tried("write", &self.path)?;
        Ok(())
    }
}

impl Lessons for Slate {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        Ok(self.read()?.get(about).map(|lesson| lesson.get().to_owned()))
    }

    fn learn(&self, about: &str, learning: &mut Learning<'_>) -> Result<()> {
        let _lock = self.lock()?;
        let mut book = self.read()?;
        let Some(new) = learning(book.get(about).map(|lesson| lesson.get())) else { return Ok(()) };
        let new = serde_json::value::RawValue::from_string(new).map_err(|e| crate::Error::Damaged {
            place: format!("what was learned about {about}"),
            why: e.to_string(),
        })?;
        book.insert(about.to_owned(), new);
        self.write(&book)
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        Ok(self.read()?.into_iter().map(|(about, lesson)| (about, lesson.get().to_owned())).collect())
    }

    fn forget(&self, about: &str) -> Result<bool> {
        let _lock = self.lock()?;
        let mut book = self.read()?;
        match book.remove(about) {
            Some(_) => self.write(&book).map(|()| true),
            None => Ok(false),
        }
    }
}
