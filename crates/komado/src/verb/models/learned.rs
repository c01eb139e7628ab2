//! `komado models learned` and `forget`: what answers and refusals taught, and a way to take it back.
//!
//! A provider's word is believed; when it was wrong, or its server was started anew, nothing but a larger answer would
//! prove it, and nothing larger is sent any more.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{number, say};
use crate::table::table;
use komado_engine::lesson::Lesson;
use serde_json::json;

pub(super) fn list(app: &mut App) -> Outcome {
    let lessons: Vec<(String, Lesson)> = all(app)?;
    if app.paper.json {
        return lessons.iter().try_for_each(|(about, lesson)| {
            let mut row = json!(lesson);
            row["about"] = json!(about);
            app.paper.json(&row)
        });
    }
    if lessons.is_empty() {
        say("nothing was learned yet");
        return Ok(());
    }
    let mut rows =
        vec![["window", "most answered", "factor", "answers", "about"].map(str::to_owned).to_vec()];
    rows.extend(lessons.iter().map(|(about, lesson)| {
        let window = lesson.window.map_or_else(|| "-".to_owned(), number);
        let factor = lesson.factor.map_or_else(|| "-".to_owned(), |factor| format!("{factor:.2}"));
        vec![window, number(lesson.most), factor, number(lesson.samples), about.clone()]
    }));
    table(&rows, &[0, 1, 2, 3]).into_iter().try_for_each(|line| app.paper.fit(&line))
}

pub(super) fn forget(app: &mut App, name: &str) -> Outcome {
    let mut forgotten = 0;
    for (about, _) in all(app)? {
        // An address holds no space; a model's name may.
        let model = about.split_once(' ').map_or(about.as_str(), |(_, model)| model);
        if (about == name || model == name) && app.context.engine.store().forget(&about)? {
            forgotten += 1;
            match app.paper.json {
                true => app.paper.json(&json!({ "forgotten": about }))?,
                false => app.paper.line(format!("forgot what was learned about {about}"))?,
            }
        }
    }
    if forgotten > 0 {
        return Ok(());
    }
    let hint = "`komado models learned` lists what was";
    Err(Fault::new(Exit::NotFound, format!("nothing was learned about {name:?}; {hint}")))
}

/// What cannot be read teaches nothing, and can be forgotten all the same.
fn all(app: &App) -> Outcome<Vec<(String, Lesson)>> {
    let lessons = app.context.engine.store().lessons()?.into_iter();
    Ok(lessons.map(|(about, text)| (about, serde_json::from_str(&text).unwrap_or_default())).collect())
}
