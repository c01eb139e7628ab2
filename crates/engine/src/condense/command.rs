//! A summariser that is a program of the user's: the request on its standard input, the answer on its standard output.
//!
//! This makes any model with a command line usable. There is no shell in between, so nothing in a conversation can
//! become a command. A program that ends with an error, says too much, or takes too long has failed; what it wrote to
//! its standard error says why.

use super::{Summariser, SummaryAnswer, SummaryFailure, SummaryRequest};
use std::io::{Read, Write};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use std::{io, thread};

/// The longest answer that is read; a summary is a thousandth of it.
const LONGEST: u64 = 8 << 20;
/// How often a program with a time limit is looked after.
const TICK: Duration = Duration::from_millis(10);
/// How long what a program wrote may take to arrive after it has ended.
const GRACE: Duration = Duration::from_secs(2);

/// Runs a program for each request. `KOMADO_MAX_TOKENS` in its environment is the longest answer of use.
#[derive(Clone, Debug)]
pub struct SummaryCommand {
    /// The program, found as the system finds programs.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// It is ended when it runs longer.
    pub limit: Option<Duration>,
}

impl SummaryCommand {
    fn start(&self, request: &SummaryRequest) -> io::Result<Child> {
        std::process::Command::new(&self.program)
            .args(&self.arguments)
            .env("KOMADO_MAX_TOKENS", request.max_tokens.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Waits for the program; `None` when it took too long and was ended.
    fn wait(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let Some(limit) = self.limit else { return child.wait().map(Some) };
        let mut waited = Duration::ZERO;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if waited >= limit {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            thread::sleep(TICK);
            waited += TICK;
        }
    }

    fn failed(&self, why: impl std::fmt::Display) -> SummaryFailure {
        SummaryFailure::new(format!("`{}`: {why}", self.program))
    }
}

impl Summariser for SummaryCommand {
    fn name(&self) -> &str {
        &self.program
    }

    fn window(&self) -> Option<u64> {
        None
    }

    fn summarise(&mut self, request: &SummaryRequest) -> Result<SummaryAnswer, SummaryFailure> {
        let mut child = self.start(request).map_err(|e| self.failed(format!("cannot be run: {e}")))?;
        tell(&mut child, request);
        let (out, err) = (hear(child.stdout.take()), hear(child.stderr.take()));
        let status = self.wait(&mut child).map_err(|e| self.failed(e))?;
        let Some(status) = status else {
            let limit = self.limit.unwrap_or_default();
            return Err(
                self.failed(format!("gave no answer within {limit:?}; allow it more, or ask for less"))
            );
        };
        if !status.success() {
            let said = err.recv_timeout(GRACE).ok().and_then(Result::ok).unwrap_or_default();
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it did not say why");
            return Err(self.failed(format!("{status}: {}", last.trim())));
        }
        let Ok(text) = out.recv_timeout(GRACE) else {
            return Err(self.failed("it ended, but something it started still holds its output"));
        };
        let text = text.map_err(|e| self.failed(e))?;
        if text.len() as u64 > LONGEST {
            return Err(self.failed(format!("its answer is longer than {LONGEST} bytes")));
        }
        Ok(SummaryAnswer { text, usage: None, model: None })
    }
}

/// Writes the request beside everything else: a program may answer before it has read all, or never read.
fn tell(child: &mut Child, request: &SummaryRequest) {
    let Some(mut input) = child.stdin.take() else { return };
    let system = request.system.as_deref().map(|system| format!("{system}\n\n")).unwrap_or_default();
    let text = format!("{system}{}\n", request.text);
    thread::spawn(move || {
        // A program that does not want to read any more is not a failure; how it ends is.
        let _ = input.write_all(text.as_bytes());
    });
}

/// Reads to the end beside everything else, up to one byte more than the longest answer.
fn hear(pipe: Option<impl Read + Send + 'static>) -> Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.map_or(Ok(0), |pipe| pipe.take(LONGEST + 1).read_to_end(&mut bytes));
        // The caller does not listen any more when the time was up.
        let _ = sender.send(read.map(|_| String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn request(text: &str) -> SummaryRequest {
        SummaryRequest { system: Some("Be short.".into()), text: text.into(), max_tokens: 77, part: 1 }
    }

    fn command(program: &str, arguments: &[&str]) -> SummaryCommand {
        let arguments = arguments.iter().map(|text| (*text).to_owned()).collect();
        SummaryCommand { program: program.to_owned(), arguments, limit: None }
    }

    fn shell(script: &str) -> SummaryCommand {
        command("sh", &["-c", script])
    }

    #[test]
    fn the_request_goes_in_and_the_answer_comes_out() {
        let answer = command("cat", &[]).summarise(&request("要約して")).unwrap();
        assert_eq!(answer.text, "Be short.\n\n要約して\n");
        let answer =
            shell("echo \"<summary>$KOMADO_MAX_TOKENS</summary>\"").summarise(&request("x")).unwrap();
        assert_eq!(answer.text, "<summary>77</summary>\n");
        // More than a pipe holds, in both directions.
        let large = "長い文章。".repeat(200_000);
        let answer = command("cat", &[]).summarise(&request(&large)).unwrap();
        assert_eq!(answer.text.len(), large.len() + "Be short.\n\n\n".len());
        assert_eq!(shell("head -c 9").summarise(&request(&large)).unwrap().text, "Be short.");
    }

    #[test]
    fn a_program_that_fails_is_quoted_by_its_last_line() {
        let why = shell("echo one >&2; echo 'no key set' >&2; echo >&2; exit 3").summarise(&request("x"));
        let why = why.unwrap_err().why;
        assert!(why.starts_with("`sh`: ") && why.contains('3') && why.ends_with("no key set"), "{why}");
        let why = shell("exit 1").summarise(&request("x")).unwrap_err().why;
        assert!(why.ends_with("did not say why"), "{why}");
        let why = command("no-such-program-anywhere", &[]).summarise(&request("x")).unwrap_err().why;
        assert!(why.contains("cannot be run"), "{why}");
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let mut slow =
            SummaryCommand { limit: Some(Duration::from_millis(30)), ..command("sleep", &["600"]) };
        let why = slow.summarise(&request("x")).unwrap_err().why;
        assert!(why.contains("within 30ms"), "{why}");
        let mut quick = SummaryCommand { limit: Some(Duration::from_secs(600)), ..command("cat", &[]) };
        assert!(quick.summarise(&request("x")).is_ok());
    }

    #[test]
    fn an_answer_without_end_is_refused() {
        let why = command("yes", &[]).summarise(&request("x")).unwrap_err().why;
        assert!(why.contains("yes"), "{why}");
    }
}
