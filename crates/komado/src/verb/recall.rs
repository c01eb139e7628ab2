//! `komado recall`: find again what was said, whether or not the model still sees it.

use crate::app::App;
use crate::clock::stamp;
use crate::fault::{Fault, Outcome};
use crate::paper::{Ink, Paper, say};
use crate::progress;
use clap::Args as ClapArgs;
use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use komado_core::notation::width as width_of;
use komado_core::{Address, Role};
use komado_engine::recall::{Ask, Found, How, Scope};
use serde_json::json;
use std::ops::Range;

#[derive(ClapArgs, Debug)]
#[command(
    override_usage = "komado recall [OPTIONS] ADDRESS QUERY...\n       komado recall [OPTIONS] (--user NAME | --all) QUERY..."
)]
pub(crate) struct Args {
    /// The session, SESSION/THREAD or SESSION@SEQ, and what to look for; with --user or --all only that
    #[arg(required = true, num_args = 1.., value_names = ["ADDRESS", "QUERY"])]
    pub(crate) words: Vec<String>,
    /// At most so many results
    #[arg(short = 'k', long = "limit", value_name = "N", default_value_t = 10)]
    pub(crate) k: usize,
    /// Look for the text as it stands, the last entry first
    #[arg(long, conflicts_with = "regex")]
    pub(crate) exact: bool,
    /// Look for a regular expression, the last entry first
    #[arg(long)]
    pub(crate) regex: bool,
    /// Only what this speaker said: system, developer, user, assistant or tool
    #[arg(long)]
    pub(crate) role: Option<String>,
    /// Only calls and results of this tool
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Only calls and results about this file or folder
    #[arg(long)]
    pub(crate) file: Option<String>,
    /// Only what was said then or later: 2024-01-15, 2024-01-15T10:30:00Z, or 3h, 2d, 1w ago
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only what was said then or earlier
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// As many results as fit into so many tokens
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<u64>,
    /// Also show so many entries before and after each result
    #[arg(long, alias = "neighbors", value_name = "N", default_value_t = 0)]
    pub(crate) neighbours: u32,
    /// Search all sessions of this user
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(crate) user: Option<String>,
    /// Search every session
    #[arg(long)]
    pub(crate) all: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let (scope, query) = scope(app, &args)?;
    let ask = ask(args, query)?;
    catch_up(app, &scope)?;
    let found = app.context.engine.recall(&scope, &ask)?;
    if app.paper.json {
        return found.iter().try_for_each(|one| app.paper.json(&line(one)));
    }
    if found.is_empty() {
        say(match ask.how {
            How::Ranked => "nothing was found; try other words, or fewer filters",
            How::Exact | How::Regex => {
                "nothing was found as it stands; without --exact or --regex words are enough"
            }
        });
        return Ok(());
    }
    let wide = matches!(scope, Scope::User(_) | Scope::All);
    for one in &found {
        print(&mut app.paper, one, wide)?;
    }
    if let Some(best) = found.first() {
        say(format!("read one in full: komado log {} -n 1 --full", address(best)));
    }
    Ok(())
}

fn scope(app: &App, args: &Args) -> Outcome<(Scope, String)> {
    if let Some(user) = &args.user {
        return Ok((Scope::User(user.clone()), args.words.join(" ")));
    }
    if args.all {
        return Ok((Scope::All, args.words.join(" ")));
    }
    let (first, rest) =
        args.words.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    if rest.is_empty() {
        return Err(Fault::usage("say where to look and what for: komado recall SESSION QUERY"));
    }
    let address: Address = first.parse()?;
    let found = app.find(&address)?;
    let scope = match (&address.thread, found.seq) {
        (None, None) => Scope::Session(found.session),
        (_, upto) => Scope::Thread { session: found.session, thread: found.thread, upto },
    };
    Ok((scope, rest.join(" ")))
}

fn ask(args: Args, query: String) -> Outcome<Ask> {
    let mut ask = Ask::new(query);
    ask.how = match (args.exact, args.regex) {
        (true, _) => How::Exact,
        (_, true) => How::Regex,
        _ => How::Ranked,
    };
    (ask.k, ask.budget, ask.neighbours) = (args.k, args.budget, args.neighbours);
    if let Some(name) = &args.role {
        let known = Role::ALL.map(Role::name).join(", ");
        let role = Role::named(name);
        ask.filter.role =
            Some(role.ok_or_else(|| Fault::usage(format!("unknown role: {name:?}; known are {known}")))?);
    }
    (ask.filter.tool, ask.filter.file) = (args.tool, args.file);
    let day = SignedDuration::from_hours(24) - SignedDuration::from_micros(1);
    ask.filter.since = args.since.map(|text| time("--since", &text, SignedDuration::ZERO)).transpose()?;
    ask.filter.until = args.until.map(|text| time("--until", &text, day)).transpose()?;
    Ok(ask)
}

/// A time as entries write it; of a whole day the moment `into` it.
fn time(option: &str, text: &str, into: SignedDuration) -> Outcome<String> {
    let wrong = || {
        let forms = "2024-01-15, 2024-01-15T10:30:00Z, or 3h, 2d, 1w ago";
        Fault::usage(format!("{option} {text:?} is no time; write {forms}"))
    };
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(stamp(time));
    }
    if let Ok(date) = text.parse::<Date>() {
        let day = date.to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp();
        return Ok(stamp(day.checked_add(into).map_err(|_| wrong())?));
    }
    let unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 24 * 3600,
        Some('w') => 7 * 24 * 3600,
        _ => return Err(wrong()),
    };
    let count: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let seconds = count.checked_mul(unit).filter(|seconds| *seconds >= 0).ok_or_else(wrong)?;
    let ago = Timestamp::now().checked_sub(SignedDuration::from_secs(seconds)).map_err(|_| wrong())?;
    Ok(stamp(ago))
}

/// Brings the index up to date, and shows how far that has come.
fn catch_up(app: &App, scope: &Scope) -> Outcome {
    let mut bar: Option<indicatif::ProgressBar> = None;
    let done = app.context.engine.index(scope, &mut |done, total| {
        // A bar for what is over at once would only flicker.
        if total > 2000 && done % 100 == 0 {
            let bar = bar.get_or_insert_with(|| progress::bar("indexing", total));
            bar.set_length(total);
            bar.set_position(done);
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(done?)
}

/// The result's address, ready to be used.
fn address(found: &Found) -> String {
    let thread = if found.thread.is_root() { String::new() } else { format!("/{}", found.thread) };
    format!("{}{thread}@{}", found.session, found.seq)
}

fn line(found: &Found) -> serde_json::Value {
    let around = found
        .around
        .iter()
        .map(|beside| json!({ "seq": beside.seq, "role": beside.role.name(), "snippet": beside.snippet }));
    let matches: Vec<&str> =
        found.snippet.marks.iter().filter_map(|mark| found.snippet.text.get(mark.clone())).collect();
    json!({
        "session": found.session.as_str(),
        "thread": found.thread.as_str(),
        "seq": found.seq,
        "address": address(found),
        "score": (f64::from(found.score) * 1e4).round() / 1e4,
        "role": found.role.name(),
        "tools": found.tools,
        "timestamp": found.timestamp,
        "snippet": found.snippet.text,
        "matches": matches,
        "in_output": found.in_output,
        "hidden": found.hidden,
        "around": around.collect::<Vec<_>>(),
    })
}

fn print(paper: &mut Paper, found: &Found, wide: bool) -> Outcome {
    let full = address(found);
    let place = if wide { full.as_str() } else { &full[found.session.as_str().len()..] };
    let mut about = vec![found.role.name().to_owned()];
    about.extend(found.tools.iter().filter(|tool| !tool.is_empty()).cloned());
    about.push(found.timestamp.chars().take(16).collect::<String>().replace('T', " "));
    about.extend(found.in_output.then(|| "in the whole output".to_owned()));
    about.extend(found.hidden.then(|| "not in the view".to_owned()));
    let heading = format!("{} {}", paper.ink(Ink::Bold, place), paper.ink(Ink::Dim, &about.join(" · ")));
    paper.line(heading)?;
    for (text, marks) in wrap(&found.snippet.text, &found.snippet.marks, paper.width.saturating_sub(4)) {
        let text = highlighted(paper, &text, &marks);
        paper.line(format!("    {text}"))?;
    }
    for beside in &found.around {
        let text = format!("    @{} {}: {}", beside.seq, beside.role.name(), beside.snippet);
        let text = wrap(&text, &[], paper.width.saturating_sub(1)).into_iter().next().unwrap_or_default().0;
        paper.line(paper.ink(Ink::Dim, &text))?;
    }
    Ok(())
}

/// A piece of a text and the marks in it.
type Piece = (String, Vec<Range<usize>>);

/// The text in lines of at most `width` columns, each with its own marks.
fn wrap(text: &str, marks: &[Range<usize>], width: usize) -> Vec<Piece> {
    let mut lines = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = line_end(text, start, width.max(2));
        let inside = marks.iter().filter(|mark| mark.start < end && mark.end > start);
        let own = inside.map(|mark| mark.start.max(start) - start..mark.end.min(end) - start);
        lines.push((text[start..end].to_owned(), own.collect()));
        start = end + text[end..].len() - text[end..].trim_start().len();
    }
    lines
}

/// Where a line that begins at `start` ends: at a space, or where the columns do.
fn line_end(text: &str, start: usize, width: usize) -> usize {
    let (mut columns, mut space) = (0, None);
    for (i, c) in text[start..].char_indices() {
        columns += width_of(c.encode_utf8(&mut [0; 4]));
        if columns > width {
            return space.unwrap_or(start + i.max(c.len_utf8()));
        }
        if c == ' ' && i > 0 {
            space = Some(start + i);
        }
    }
    text.len()
}

fn highlighted(paper: &Paper, text: &str, marks: &[Range<usize>]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for mark in marks {
        out.push_str(&text[at..mark.start]);
        out.push_str(&paper.ink(Ink::Yellow, &text[mark.clone()]));
        at = mark.end;
    }
    out + &text[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_at_spaces_and_marks_go_with_their_words() {
        let lines = wrap("one two 小窓を開ける three", &[4..7, 8..14], 8);
        let texts: Vec<&str> = lines.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["one two", "小窓を開", "ける", "three"]);
        assert_eq!((lines[0].1.first(), lines[1].1.first()), (Some(&(4..7)), Some(&(0..6))));
        assert!(lines[2].1.is_empty() && lines[3].1.is_empty());
        assert!(wrap("", &[], 10).is_empty());
        assert_eq!(wrap("窓窓", &[], 1).len(), 2);
    }

    #[test]
    fn times_are_days_moments_or_spans() {
        let day = SignedDuration::from_hours(1);
        assert_eq!(
            time("--since", "2024-01-15", SignedDuration::ZERO).unwrap(),
            "2024-01-15T00:00:00.000000Z"
        );
        assert_eq!(time("--until", "2024-01-15", day).unwrap(), "2024-01-15T01:00:00.000000Z");
        assert_eq!(time("--since", "2024-01-15T12:00:00+09:00", day).unwrap(), "2024-01-15T03:00:00.000000Z");
        assert!(time("--since", "2h", day).unwrap() < time("--since", "1m", day).unwrap());
        for wrong in ["", "yesterday", "3x", "-1d", "99999999999999999d", "窓", "日"] {
            assert!(time("--since", wrong, day).is_err(), "{wrong}");
        }
    }
}
