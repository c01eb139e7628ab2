//! Standard output: lines for people, or JSON for programs; never a mix.
//!
//! What is printed was often said by a model, a tool or a repository. So nothing of it reaches a terminal that the terminal would act
//! on (colours, titles, links, the place of the cursor): every line for people is shown with such characters written out, wherever
//! it goes, and JSON is on a terminal. Only [`CliOutput::raw`] gives bytes as they are.

use crate::pager::{Pager, PagerOption};
use crate::prose::wrapped;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
pub(crate) use komado_core::amount::count;
pub(crate) use komado_core::notation::{clipped as clip, grouped as number};
use komado_core::notation::{shown, tamed, width as width_of};
use komado_ops::{FaultKind, OpFault, OpResult, OperationProgress};
use serde::Serialize;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// What is under the pen: standard output, but for tests.
type CliWriter = Box<dyn Write + Send + Sync>;

/// Where a verb prints its data. Talk goes to standard error.
pub(crate) struct CliOutput {
    out: BufWriter<CliWriter>,
    /// True when the reader is a program.
    pub(crate) json: bool,
    /// Columns of the terminal.
    pub(crate) width: usize,
    /// A session's id, and the shortest beginning by which it is found: what advice calls it.
    pub(crate) short: Option<(String, String)>,
    colour: bool,
    terminal: bool,
    /// Behind the writer, so that its input is closed before it is waited for.
    pager: PagerUse,
}

/// Whether a pager stands between us and the terminal.
enum PagerUse {
    /// None.
    Off,
    /// One, from the first line on.
    Wanted,
    /// This one.
    Running { _waited_for: Pager },
}

/// Colours with a meaning.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    /// Names and headings.
    Bold,
    /// Less important.
    Dim,
    /// Fine.
    Green,
    /// Look here.
    Yellow,
    /// Trouble.
    Red,
    /// The machine's words.
    Cyan,
}

impl CliOutput {
    pub(crate) fn new(json: bool) -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let colour = terminal && colours_are_wanted();
        Self {
            width: width(&stdout),
            out: BufWriter::new(Box::new(stdout)),
            json,
            short: None,
            colour,
            terminal,
            pager: PagerUse::Off,
        }
    }

    /// Sends what is printed from now on through the reader's pager, where the reader is at a terminal and wants one.
    pub(crate) fn page(&mut self, option: PagerOption) {
        let is_wanted = self.terminal && !self.json && !option.no_pager;
        if is_wanted && matches!(self.pager, PagerUse::Off) {
            self.pager = PagerUse::Wanted;
        }
    }

    /// Starts the pager that is wanted: not before there is something to read.
    fn open_pager(&mut self) -> OpResult {
        if !matches!(self.pager, PagerUse::Wanted) {
            return Ok(());
        }
        self.flush()?;
        self.pager = PagerUse::Off;
        if let Some((pager, input)) = Pager::start() {
            self.out = BufWriter::new(Box::new(input));
            self.pager = PagerUse::Running { _waited_for: pager };
        }
        Ok(())
    }

    /// Gives everything to the reader, and waits until the pager was left.
    pub(crate) fn finish(&mut self) -> OpResult {
        let given = self.flush();
        if matches!(self.pager, PagerUse::Running { .. }) {
            self.out = BufWriter::new(Box::new(io::stdout()));
        }
        self.pager = PagerUse::Off;
        given
    }

    /// Prints a line.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> OpResult {
        self.open_pager()?;
        writeln!(self.out, "{}", self.printed(text.as_ref()))?;
        // On a terminal what is said beside the data must not overtake it.
        if self.terminal && matches!(self.pager, PagerUse::Off) { self.flush() } else { Ok(()) }
    }

    /// Columns of the terminal that is printed to; `None` where there is none.
    pub(crate) fn terminal_room(&self) -> Option<usize> {
        self.terminal.then_some(self.width)
    }

    /// Prints a line that ends where the terminal does.
    pub(crate) fn fit(&mut self, text: &str) -> OpResult {
        match self.terminal {
            true => self.line(clip(text, self.width)),
            false => self.line(text),
        }
    }

    /// Prints prose: at a terminal in lines that end at a space, none wider than it but what is to be copied.
    pub(crate) fn prose(&mut self, text: &str) -> OpResult {
        self.prose_below(text, 0)
    }

    /// Prints a name and what it means: at a terminal the lines of that stand under each other.
    pub(crate) fn field(&mut self, name: &str, value: &str) -> OpResult {
        self.prose_below(&format!("{name}{value}"), width_of(name))
    }

    /// Prints prose in a colour: each line begins and ends with its own codes, as pagers want it.
    pub(crate) fn inked_prose(&mut self, ink: Style, text: &str) -> OpResult {
        let lines = if self.terminal { wrapped(text, self.width, 0, columns) } else { vec![text.to_owned()] };
        lines.iter().try_for_each(|line| self.line(self.ink(ink, line)))
    }

    /// Prose whose lines go on below `hang` columns of the first.
    fn prose_below(&mut self, text: &str, hang: usize) -> OpResult {
        match self.terminal {
            true => wrapped(text, self.width, hang, columns).iter().try_for_each(|line| self.line(line)),
            false => self.line(text),
        }
    }

    /// Prints a line that ends with a name. On a terminal that it does not fit, the name stands in a line of its own: one that is cut
    /// names nothing.
    pub(crate) fn named(&mut self, before: &str, name: &str) -> OpResult {
        if self.terminal && width_of(before) + 2 + width_of(name) > self.width {
            self.line(before.trim_end())?;
            return self.field("    ", name);
        }
        self.line(format!("{before}  {name}"))
    }

    /// Prints one JSON value on a line.
    pub(crate) fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> OpResult {
        let mut out = self.safe();
        serde_json::to_writer(&mut out, value)?;
        Ok(out.write_all(b"\n")?)
    }

    /// For lines of JSON, CSV or HTML: as they are, but on a terminal without anything that it would act on.
    pub(crate) fn safe(&mut self) -> TerminalSafe<'_> {
        TerminalSafe { is_on: self.terminal, out: &mut self.out, held: Vec::new() }
    }

    /// Says something to the person, beside the data and after it: advice behind a change stands behind the change also where both
    /// go to one file.
    pub(crate) fn say(&mut self, text: impl AsRef<str>) {
        // A reader that went away is noticed at the end.
        let _ = self.out.flush();
        let text = text.as_ref();
        match &self.short {
            Some((id, short)) => say(shortened(text, id, short)),
            None => say(text),
        }
    }

    /// Gives what was printed to the reader now.
    pub(crate) fn flush(&mut self) -> OpResult {
        Ok(self.out.flush()?)
    }

    /// Bytes as they are.
    pub(crate) fn raw(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// `text` in a colour, where there are colours; to be printed with [`CliOutput::line`] or told with [`say`].
    pub(crate) fn ink(&self, ink: Style, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match ink {
            Style::Bold => 1,
            Style::Dim => 2,
            Style::Red => 31,
            Style::Green => 32,
            Style::Yellow => 33,
            Style::Cyan => 36,
        };
        format!("{}{code}m{text}{}0m", *MARK, *MARK)
    }

    /// The same, to be printed elsewhere.
    pub(crate) fn painted(&self, ink: Style, text: &str) -> String {
        self.printed(&self.ink(ink, text))
    }

    /// A text as it is printed here.
    fn printed(&self, text: &str) -> String {
        printed(text, self.colour)
    }
}

/// A text in which a session's id is shorter where it is a word of a command; in a path it stays whole.
fn shortened(text: &str, id: &str, short: &str) -> String {
    text.replace(&format!(" {id}"), &format!(" {short}"))
}

/// False where the user wants no colours.
fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none()
}

/// A text as it is printed: of the codes in it only ours are codes, and without colours they are left out.
fn printed(text: &str, colour: bool) -> String {
    let mut parts = text.split(MARK.as_str());
    let mut out = shown(parts.next().unwrap_or_default());
    for part in parts {
        let (code, rest) = part.split_once('m').unwrap_or(("0", part));
        if colour {
            out.push_str(&format!("\u{1b}[{code}m"));
        }
        out.push_str(&shown(rest));
    }
    out
}

/// What our colours begin with until they are printed. It is another one in each process, so no text can hold it.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let half = || RandomState::new().build_hasher().finish();
    format!("\u{1b}[{:020}{:020};", half(), half())
});

/// A writer whose lines reach a terminal without anything that it would act on.
pub(crate) struct TerminalSafe<'a> {
    out: &'a mut BufWriter<CliWriter>,
    /// Of a line that has not ended.
    held: Vec<u8>,
    is_on: bool,
}

impl TerminalSafe<'_> {
    fn let_go(&mut self) -> io::Result<()> {
        let text = shown(&String::from_utf8_lossy(&std::mem::take(&mut self.held)));
        self.out.write_all(text.as_bytes())
    }
}

impl Write for TerminalSafe<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_on {
            return self.out.write(bytes);
        }
        self.held.extend_from_slice(bytes);
        if bytes.contains(&b'\n') {
            self.let_go()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.let_go()?;
        self.out.flush()
    }
}

impl Drop for TerminalSafe<'_> {
    fn drop(&mut self) {
        // Whether it could be printed shows when the output is flushed.
        let _ = self.let_go();
    }
}

/// Says something to the person, beside the data.
pub(crate) fn say(text: impl AsRef<str>) {
    say_whole(&beside(text.as_ref()));
}

/// The same in a line as it is, however long: for programs.
fn say_whole(text: &str) {
    // Nothing can be done when even this cannot be said.
    let _ = writeln!(io::stderr(), "{}", said(text, io::stderr().is_terminal()));
}

/// A text in lines that fit the terminal that standard error is.
fn beside(text: &str) -> String {
    let stderr = io::stderr();
    match stderr.is_terminal() {
        true => wrapped(text, width(&stderr), 0, columns).join("\n"),
        false => text.to_owned(),
    }
}

/// Columns that a text takes once it is printed.
fn columns(text: &str) -> usize {
    width_of(&printed(text, false))
}

/// A text as it is said: what was inked for standard output keeps its colours only where standard error is a `terminal`.
fn said(text: &str, terminal: bool) -> String {
    printed(text, terminal && colours_are_wanted())
}

/// Columns of a terminal: what it says, `COLUMNS`, or enough for a log file.
fn width(terminal: &impl AsFd) -> usize {
    let asked = rustix::termios::tcgetwinsize(terminal).map(|size| usize::from(size.ws_col)).ok();
    let told = || std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    asked.filter(|n| *n > 0).or_else(told).unwrap_or(100).clamp(20, 500)
}

/// Writes a file beside its name first: a name means the whole of it.
pub(crate) fn keep<T>(path: &Path, write: impl FnOnce(&mut dyn Write) -> OpResult<T>) -> OpResult<T> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)
        .map_err(|error| OpFault::input(format!("cannot write in {}: {error}", folder.display())))?;
    let mut out = BufWriter::new(file.as_file_mut());
    let written = write(&mut out)?;
    out.flush()?;
    drop(out);
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(written)
}

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> OpResult<String> {
    std::fs::read_to_string(path)
        .map_err(|e| OpFault::new(FaultKind::NotFound, format!("cannot read {}: {e}", path.display())))
}

/// A path as JSON can hold it: what is not UTF-8 in it is replaced. A path itself would be no JSON then.
pub(crate) fn text_of(path: &Path) -> String {
    path.display().to_string()
}

/// Columns that line up, also where a character takes two of them: rows of cells; the first row is the heading. A cell is one line, and a terminal shows it as it is.
pub(crate) fn table(rows: &[Vec<String>], right: &[usize]) -> Vec<String> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| tamed(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|c| rows.iter().filter_map(|row| row.get(c)).map(|cell| width_of(cell)).max().unwrap_or(0))
        .collect();
    rows.iter().map(|row| table_line(row, &widths, right)).collect()
}

fn table_line(row: &[String], widths: &[usize], right: &[usize]) -> String {
    let mut text = String::new();
    for (c, cell) in row.iter().enumerate() {
        let gap = " ".repeat(widths[c].saturating_sub(width_of(cell)));
        if c > 0 {
            text.push_str("  ");
        }
        if right.contains(&c) {
            text.push_str(&gap);
            text.push_str(cell);
        } else {
            text.push_str(cell);
            text.push_str(&gap);
        }
    }
    text.trim_end().to_owned()
}

/// A bar for less than so many entries would only flicker.
const FEWEST: u64 = 2000;

/// How far the operation that runs has come, where standard error is a terminal.
#[derive(Clone, Default)]
pub(crate) struct ProgressShown {
    bar: Arc<Mutex<Option<ProgressBar>>>,
    searched: Arc<AtomicU64>,
}

impl ProgressShown {
    /// Shows how far an operation has come.
    pub(crate) fn show(&self, at: OperationProgress) {
        let (what, done, total) = match at {
            OperationProgress::Indexing { total, .. } if total <= FEWEST => return,
            OperationProgress::Indexing { done, total } => ("indexing", done, Some(total)),
            OperationProgress::Searching { done, total } => {
                self.searched.store(total, Ordering::Relaxed);
                ("searching sessions", done, Some(total))
            }
            OperationProgress::Appending { entries } => ("entries", entries, None),
            OperationProgress::Reading { sessions, .. } => ("sessions", sessions, None),
            OperationProgress::Checking { done, total } => ("checking", done, total),
            OperationProgress::Migrating { done, total } => ("sessions", done, total),
            OperationProgress::Importing { lines } => ("lines", lines, None),
            OperationProgress::Replaying { done, total } => ("replaying", done, Some(total)),
        };
        let mut held = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = held.get_or_insert_with(|| match total {
            Some(total) => bar(what, total),
            None => spinner(what),
        });
        total.into_iter().for_each(|total| shown.set_length(total));
        shown.set_position(done);
    }

    /// How many sessions were searched, where a search over sessions ran.
    pub(crate) fn searched(&self) -> u64 {
        self.searched.load(Ordering::Relaxed)
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(shown) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            shown.finish_and_clear();
        }
    }
}

/// A bar on standard error; nothing at all where that is not a terminal.
pub(crate) fn bar(what: &'static str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(8));
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}% {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what);
    bar
}

/// The same for something whose end is not known.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
    let style = ProgressStyle::with_template("{spinner} {msg} {human_pos} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Prints a failure and gives the exit code. A reader that went away is not a failure.
pub(crate) fn report(fault: &OpFault, json: bool) -> ExitCode {
    if fault.is_gone() {
        return ExitCode::SUCCESS;
    }
    if json {
        let error =
            serde_json::json!({ "error": { "kind": fault.exit().name(), "message": fault.message() } });
        say_whole(&error.to_string());
    } else {
        say(format!("komado: {}", fault.message()));
    }
    ExitCode::from(fault.exit() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    const WILD: &str = "窓\u{1b}[31m\u{1b}]0;mine\u{7}\r\u{9b}2J";

    /// What was printed.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Page {
        fn paper(&self) -> CliOutput {
            let out = BufWriter::new(Box::new(self.clone()) as CliWriter);
            CliOutput {
                out,
                json: true,
                width: 100,
                short: None,
                colour: false,
                terminal: false,
                pager: PagerUse::Off,
            }
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn of_all_codes_in_a_line_only_our_own_colours_are_codes() {
        let paper = CliOutput { colour: true, ..CliOutput::new(false) };
        let line = format!("{WILD} {}", paper.ink(Style::Red, WILD));
        let escaped = r"窓\u001b[31m\u001b]0;mine\u0007\r\u009b2J";
        assert_eq!(paper.printed(&line), format!("{escaped} \u{1b}[31m{escaped}\u{1b}[0m"));
        let plain = CliOutput { colour: false, ..CliOutput::new(false) };
        assert_eq!(plain.painted(Style::Red, WILD), escaped);
    }

    #[test]
    fn advice_has_the_short_id_and_paths_the_whole() {
        let told = |text| shortened(text, "dace527d-060c", "dace");
        assert_eq!(told("undo: komado revert dace527d-060c@3"), "undo: komado revert dace@3");
        assert_eq!(told("folder: /a/running/dace527d-060c"), "folder: /a/running/dace527d-060c");
    }

    #[test]
    fn what_is_said_beside_the_data_has_the_colours_of_the_data_or_none() {
        let paper = CliOutput { colour: true, ..CliOutput::new(false) };
        let line = format!("▕{}▏ {WILD}", paper.ink(Style::Yellow, "▒▒"));
        let escaped = r"窓\u001b[31m\u001b]0;mine\u0007\r\u009b2J";
        assert_eq!(said(&line, false), format!("▕▒▒▏ {escaped}"));
        assert_eq!(printed(&line, true), format!("▕\u{1b}[33m▒▒\u{1b}[0m▏ {escaped}"));
    }

    #[test]
    fn json_on_a_terminal_says_the_same_without_codes() {
        let page = Page::default();
        let mut paper = CliOutput { terminal: true, ..page.paper() };
        let wild = "\u{1b}[2J\u{9b}2J\u{7f}\u{202e}窓";
        paper.json(&wild).unwrap();
        paper.flush().unwrap();
        assert_eq!(page.text(), "\"\\u001b[2J\\u009b2J\\u007f\\u202e窓\"\n");
        assert_eq!(serde_json::from_str::<String>(&page.text()).unwrap(), wild);
        let page = Page::default();
        let mut paper = page.paper();
        paper.json(&"\u{9b}窓").unwrap();
        paper.flush().unwrap();
        assert_eq!(page.text(), "\"\u{9b}窓\"\n", "for programs it is as it is");
    }

    #[test]
    fn a_name_is_never_cut() {
        for (terminal, expect) in
            [(true, "  128k\n    deepinfra/a-long-name\n"), (false, "  128k  deepinfra/a-long-name\n")]
        {
            let page = Page::default();
            let mut paper = CliOutput { terminal, width: 20, ..page.paper() };
            paper.named("  128k", "deepinfra/a-long-name").unwrap();
            paper.flush().unwrap();
            assert_eq!(page.text(), expect);
        }
    }

    #[test]
    fn a_cut_never_takes_more_columns_than_there_are() {
        assert_eq!(clip("小窓の話", 8), "小窓の話");
        assert_eq!(clip("小窓の話", 7), "小窓の…");
        assert_eq!(clip("小窓の話", 6), "小窓…");
        assert_eq!(clip("abc", 2), "a…");
        assert_eq!((clip("abc", 1), clip("abc", 0)), ("…".into(), String::new()));
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_234_567), "1,234,567");
    }

    #[test]
    fn a_cell_is_one_line_and_gives_no_orders_to_a_terminal() {
        let rows = [vec!["label".into()], vec!["a\nFAKE ROW\u{1b}[2J".into()]];
        assert_eq!(table(&rows, &[]), ["label", "a FAKE ROW\\u001b[2J"]);
    }

    #[test]
    fn japanese_takes_two_columns_a_character() {
        let rows =
            [vec!["user".into(), "n".into()], vec!["小窓".into(), "12".into()], vec!["a".into(), "3".into()]];
        assert_eq!(table(&rows, &[1]), ["user   n", "小窓  12", "a      3"]);
    }
}
