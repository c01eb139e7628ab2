//! `learned.json`: what was learned about models, in one file that people can read; replaced whole, by a rename.

use super::{FileStore, make_folder, private};
use crate::error::Tried;
use crate::lesson::Lessons;
use crate::{Error, Result};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

type Book = BTreeMap<String, Box<RawValue>>;

impl FileStore {
    fn learned(&self) -> PathBuf {
        self.base().path().join("learned.json")
    }

    /// A file that cannot be read teaches nothing: everything in it can be learned again.
    fn read_book(&self) -> Result<Book> {
        let path = self.learned();
        let text = std::fs::read_to_string(&path).tried_if_there("read", &path)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    fn lock_book(&self) -> Result<File> {
        make_folder(self.base().path())?;
        let path = self.learned().with_extension("lock");
        let file = private().open(&path).tried("open", &path)?;
        file.lock().tried("lock", &path)?;
        Ok(file)
    }

    fn write_book(&self, book: &Book) -> Result<()> {
        let (folder, path) = (self.base().path(), self.learned());
        let mut file = tempfile::NamedTempFile::new_in(folder).tried("make a file in", folder)?;
        let name = |about: &String| serde_json::Value::from(about.as_str());
        let lines = book.iter().map(|(about, lesson)| format!("  {}: {}", name(about), lesson.get()));
        let lines: Vec<String> = lines.collect();
        let end = if lines.is_empty() { "" } else { "\n" };
        write!(file, "{{\n{}{end}}}\n", lines.join(",\n")).tried("write", &path)?;
        file.persist(&path).map_err(|e| e.error).tried("write", &path)?;
        Ok(())
    }
}

impl Lessons for FileStore {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        Ok(self.read_book()?.get(about).map(|lesson| lesson.get().to_owned()))
    }

    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool> {
        let _lock = self.lock_book()?;
        let mut book = self.read_book()?;
        if book.get(about).map(|lesson| lesson.get()) != old {
            return Ok(false);
        }
        let new = RawValue::from_string(new.to_owned());
        let new = new.map_err(|e| Error::damaged(format!("what was learned about {about}"), e))?;
        book.insert(about.to_owned(), new);
        self.write_book(&book).map(|()| true)
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        Ok(self.read_book()?.into_iter().map(|(about, lesson)| (about, lesson.get().to_owned())).collect())
    }

    fn forget(&self, about: &str) -> Result<bool> {
        let _lock = self.lock_book()?;
        let mut book = self.read_book()?;
        match book.remove(about) {
            Some(_) => self.write_book(&book).map(|()| true),
            None => Ok(false),
        }
    }
}
