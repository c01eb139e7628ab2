//! The simple commands in a shell line: enough of the shell's grammar to know which programs it would start.
//!
//! What is not understood for sure is refused, in words: better a line that has to be written more plainly than one that
//! was taken for another. Everything here holds for bash and for a plain POSIX shell alike; where the two read a line
//! differently, it is refused.

/// How deep commands may stand in one another.
const DEEPEST: usize = 24;
/// Words after which a command begins.
const KEYWORDS: &[&str] =
    &["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!", "time"];

/// A word of a command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ShellWord {
    /// Without quotes.
    pub(super) text: String,
    /// As it stands in the line.
    pub(super) written: String,
    /// True when something in it is only known when the line runs: a variable, a command's output, a pattern of names.
    pub(super) expands: bool,
    /// True when a part of it is quoted.
    pub(super) quoted: bool,
    /// True for `NAME=value`.
    pub(super) assigns: bool,
}

/// Every simple command in `line`, also those inside others.
pub(super) fn commands(line: &str) -> Result<Vec<Vec<ShellWord>>, String> {
    let mut parser = Parser { rest: line, found: Vec::new(), heredocs: Vec::new(), depth: 0 };
    parser.list(End::Text)?;
    Ok(parser.found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Text,
    Paren,
}

struct Heredoc {
    end: String,
    literal: bool,
    tabs: bool,
}

struct Parser<'a> {
    rest: &'a str,
    found: Vec<Vec<ShellWord>>,
    /// Those whose text begins after this line.
    heredocs: Vec<Heredoc>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Takes `text` when it comes next.
    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Commands up to the end of the text, or to the `)` that closes them.
    fn list(&mut self, end: End) -> Result<(), String> {
        if self.depth > DEEPEST {
            return Err("too many commands in one another".to_owned());
        }
        let (mut current, mut open) = (Vec::new(), 0usize);
        while let Some(next) = self.peek() {
            if self.take("\\\n") {
                continue;
            }
            match next {
                ' ' | '\t' => drop(self.next()),
                '#' => self.rest = self.rest.find('\n').map_or("", |at| &self.rest[at..]),
                '\n' | ';' | '&' | '|' => {
                    self.next();
                    self.close(&mut current);
                    if next == '\n' {
                        self.bodies()?;
                    }
                }
                '(' if !current.is_empty() => return Err(unclear("a ( after a word")),
                '(' => {
                    self.next();
                    open += 1;
                }
                ')' => {
                    self.next();
                    self.close(&mut current);
                    if open == 0 {
                        return self.closed(end);
                    }
                    open -= 1;
                }
                '<' | '>' => self.redirection()?,
                _ => self.push(&mut current)?,
            }
        }
        self.close(&mut current);
        match end {
            End::Paren => Err(unclear("a ( that is not closed")),
            End::Text if open > 0 => Err(unclear("a ( that is not closed")),
            End::Text if !self.heredocs.is_empty() => Err(unclear("a << without its text")),
            End::Text => Ok(()),
        }
    }

    fn closed(&self, end: End) -> Result<(), String> {
        match end {
            End::Text => Err(unclear("a ) that closes nothing")),
            End::Paren if !self.heredocs.is_empty() => Err(unclear("a << without its text")),
            End::Paren => Ok(()),
        }
    }

    fn close(&mut self, current: &mut Vec<ShellWord>) {
        if !current.is_empty() {
            self.found.push(std::mem::take(current));
        }
    }

    /// One more word of the current command; keywords are none.
    fn push(&mut self, current: &mut Vec<ShellWord>) -> Result<(), String> {
        let before = self.rest;
        let Some(word) = self.word()? else { return Ok(()) };
        let taken = &before[..before.len() - self.rest.len()];
        if !self.heredocs.is_empty() && taken.contains('\n') {
            return Err(unclear("a line break in a word after <<"));
        }
        let plain = !word.quoted && !word.expands;
        if current.is_empty() && plain && word.text == "case" {
            return Err(
                "this line cannot be checked: case; write `if [ … ]; then … elif …; fi` instead, or put it \
                        into a script with edit and run that"
                    .to_owned(),
            );
        }
        let is_keyword = current.is_empty() && plain && KEYWORDS.contains(&word.text.as_str());
        let is_stream = plain
            && word.text.chars().all(|digit| digit.is_ascii_digit())
            && self.rest.starts_with(['<', '>']);
        if !is_keyword && !is_stream {
            current.push(word);
        }
        Ok(())
    }

    /// A word; `None` when nothing but line breaks that do not count stood there.
    fn word(&mut self) -> Result<Option<ShellWord>, String> {
        let (mut word, mut pattern, before) = (ShellWord::default(), false, self.rest);
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => self.escape(&mut word)?,
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '`' => self.backticks(false, &mut word)?,
                '$' => self.dollar(false, &mut word)?,
                '=' if !word.quoted && !word.expands && is_name(&word.text) => {
                    word.assigns = true;
                    self.letter(&mut word);
                }
                other => {
                    pattern |= "*?[~{".contains(other);
                    self.letter(&mut word);
                }
            }
            if word == ShellWord::default() {
                return Ok(None);
            }
        }
        let is_bracket = !word.quoted && ["[", "[[", "{"].contains(&word.text.as_str());
        word.expands |= pattern && !is_bracket;
        let is_empty = word == ShellWord::default();
        word.written = before[..before.len() - self.rest.len()].to_owned();
        Ok((!is_empty).then_some(word))
    }

    fn letter(&mut self, word: &mut ShellWord) {
        word.text.extend(self.next());
    }

    fn escape(&mut self, word: &mut ShellWord) -> Result<(), String> {
        if self.take("\\\n") {
            return Ok(());
        }
        self.next();
        let escaped = self.next().ok_or_else(|| unclear("a \\ at the end"))?;
        word.text.push(escaped);
        word.quoted = true;
        Ok(())
    }

    fn single(&mut self, word: &mut ShellWord) -> Result<(), String> {
        self.next();
        let end = self.rest.find('\'').ok_or_else(|| unclear("a ' that is not closed"))?;
        word.text.push_str(&self.rest[..end]);
        word.quoted = true;
        self.rest = &self.rest[end + 1..];
        Ok(())
    }

    fn double(&mut self, word: &mut ShellWord) -> Result<(), String> {
        self.next();
        word.quoted = true;
        while let Some(next) = self.peek() {
            match next {
                '"' => {
                    self.next();
                    return Ok(());
                }
                '\\' => {
                    self.next();
                    let escaped = self.next();
                    if !escaped.is_some_and(|escaped| "$`\"\\\n".contains(escaped)) {
                        word.text.push('\\');
                    }
                    word.text.extend(escaped.filter(|escaped| *escaped != '\n'));
                }
                '`' => self.backticks(true, word)?,
                '$' => self.dollar(true, word)?,
                _ => self.letter(word),
            }
        }
        Err(unclear("a \" that is not closed"))
    }

    /// `$` and what it brings.
    fn dollar(&mut self, quoted: bool, word: &mut ShellWord) -> Result<(), String> {
        self.next();
        match self.peek() {
            Some('(') if self.take("((") => self.arithmetic()?,
            Some('(') => {
                self.next();
                self.nested(End::Paren)?;
            }
            Some('{') => self.braces()?,
            Some('[') => return Err(unclear("$[")),
            Some(quote @ ('\'' | '"')) if !quoted => return Err(unclear(&format!("${quote}"))),
            Some(name) if name.is_alphanumeric() || "_@*#?$!-".contains(name) => drop(self.next()),
            _ => {
                word.text.push('$');
                return Ok(());
            }
        }
        word.expands = true;
        Ok(())
    }

    /// Commands in a command.
    fn nested(&mut self, end: End) -> Result<(), String> {
        if !self.heredocs.is_empty() {
            return Err(unclear("a command in a word after <<"));
        }
        self.depth += 1;
        self.list(end)?;
        self.depth -= 1;
        Ok(())
    }

    /// The inside of `$((…))`, in which no command stands.
    fn arithmetic(&mut self) -> Result<(), String> {
        let mut open = 0usize;
        loop {
            if open == 0 && self.take("))") {
                return Ok(());
            }
            match self.next() {
                Some('(') => open += 1,
                Some(')') if open > 0 => open -= 1,
                Some('$') if !self.rest.starts_with(['(', '{', '[', '\'', '"']) => {}
                Some(sign) if sign.is_ascii_alphanumeric() || " _+-*/%<>=!&|^~?:,".contains(sign) => {}
                _ => return Err(unclear("this $((…))")),
            }
        }
    }

    /// `${…}`: commands may stand in it, quotes may not.
    fn braces(&mut self) -> Result<(), String> {
        self.next();
        if self.rest.starts_with([' ', '\t', '\n', '|']) {
            return Err(unclear("${ with a command"));
        }
        let mut inside = ShellWord::default();
        while let Some(next) = self.peek() {
            match next {
                '}' if inside.text.ends_with("@P") => return Err(unclear("${…@P}")),
                '}' => {
                    self.next();
                    return Ok(());
                }
                '$' => self.dollar(true, &mut inside)?,
                '`' => self.backticks(true, &mut inside)?,
                '\'' | '"' | '\\' | '{' | '\n' => return Err(unclear("a quote or brace in ${…}")),
                _ => self.letter(&mut inside),
            }
        }
        Err(unclear("a ${ that is not closed"))
    }

    fn backticks(&mut self, quoted: bool, word: &mut ShellWord) -> Result<(), String> {
        self.next();
        let mut inside = String::new();
        loop {
            match self.next() {
                None => return Err(unclear("a ` that is not closed")),
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(escaped) if "`\\$".contains(escaped) || (quoted && escaped == '"') => {
                        inside.push(escaped)
                    }
                    other => inside.extend(std::iter::once('\\').chain(other)),
                },
                Some(other) => inside.push(other),
            }
        }
        word.expands = true;
        self.within(&inside, |parser| parser.nested(End::Text))
    }

    /// Reads another text as a part of this one.
    fn within(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut Parser<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        if !self.heredocs.is_empty() {
            return Err(unclear("a command in a word after <<"));
        }
        let mut inner = Parser { rest: text, found: Vec::new(), heredocs: Vec::new(), depth: self.depth };
        read(&mut inner)?;
        self.found.append(&mut inner.found);
        Ok(())
    }

    /// A redirection and what it goes to; commands may stand there, too.
    fn redirection(&mut self) -> Result<(), String> {
        if self.rest.starts_with("<(") || self.rest.starts_with(">(") {
            self.rest = &self.rest[2..];
            return self.nested(End::Paren);
        }
        let here_string = self.take("<<<");
        if !here_string && self.take("<<") {
            return self.heredoc();
        }
        if !here_string {
            let _ = [">>", ">|", ">&", "<>", "<&", "<", ">"].iter().any(|sign| self.take(sign));
        }
        self.blanks();
        if self.rest.starts_with("<(") || self.rest.starts_with(">(") {
            return Ok(());
        }
        match self.word()? {
            Some(_) => Ok(()),
            None => Err(unclear("a < or > that goes nowhere")),
        }
    }

    fn blanks(&mut self) {
        while self.take(" ") || self.take("\t") || self.take("\\\n") {}
    }

    fn heredoc(&mut self) -> Result<(), String> {
        let tabs = self.take("-");
        self.blanks();
        let word = self.word()?.filter(|word| !word.expands && !word.text.contains('\n'));
        let word = word.ok_or_else(|| unclear("what ends this <<"))?;
        self.heredocs.push(Heredoc { end: word.text, literal: word.quoted, tabs });
        Ok(())
    }

    /// The texts that begin after this line.
    fn bodies(&mut self) -> Result<(), String> {
        for heredoc in std::mem::take(&mut self.heredocs) {
            let (mut body, mut ended) = (String::new(), false);
            while !ended && !self.rest.is_empty() {
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                let bare = if heredoc.tabs { line.trim_start_matches('\t') } else { line };
                ended = bare == heredoc.end;
                if !heredoc.literal && line.ends_with('\\') {
                    return Err(unclear("a \\ at the end of a line after <<"));
                }
                if !ended {
                    body.push_str(line);
                    body.push('\n');
                }
            }
            if !ended {
                return Err(unclear("a << whose text does not end"));
            }
            if !heredoc.literal {
                self.within(&body, |parser| parser.expansions())?;
            }
        }
        Ok(())
    }

    /// Commands in a text that is not a line of commands.
    fn expansions(&mut self) -> Result<(), String> {
        let mut ignored = ShellWord::default();
        while let Some(next) = self.peek() {
            match next {
                '\\' => drop((self.next(), self.next())),
                '$' => self.dollar(true, &mut ignored)?,
                '`' => self.backticks(false, &mut ignored)?,
                _ => drop(self.next()),
            }
        }
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    let text = text.strip_suffix('+').unwrap_or(text);
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && text.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

fn unclear(what: &str) -> String {
    format!("this line cannot be checked: {what}; write it more plainly, or put it into a script")
}

#[cfg(test)]
mod tests {
    use super::commands;

    fn check(line: &str, expected: &[&str]) {
        let found = commands(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        let found: Vec<String> = found
            .iter()
            .map(|words| words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn every_simple_command_of_a_line_is_found() {
        check("ls -l", &["ls -l"]);
        check("a|b;c&&d||e&f\ng", &["a", "b", "c", "d", "e", "f", "g"]);
        check("(a; b) | { c; }", &["a", "b", "c"]);
        check("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]);
        check("for x in 1 2; do a $x; done", &["for x in 1 2", "a "]);
        check("! a > out 2>&1 < in", &["a"]);
        check("a &> f; b >| g", &["a", "b"]);
        check("echo 'a; b' \"c | d\" e\\;f # g; h", &["echo a; b c | d e;f"]);
        check("echo \"$(a \"$(b)\")\" `c \\`d\\``", &["b", "a ", "d", "c ", "echo  "]);
        check("diff <(a) <(b)", &["a", "b", "diff"]);
        check("A=1 B='x y' a; 窓 を", &["A=1 B=x y a", "窓 を"]);
        check("a \\\n b", &["a b"]);
        check("echo $((1 + (2 * 3))) ${x:-$(a)}", &["a", "echo  "]);
        check("cat <<EOF | b\nx $(c) ' y\nEOF\nd", &["cat", "b", "c", "d"]);
        check("cat <<'EOF'\nx $(c)\nEOF\n", &["cat"]);
        check("cat <<-X\n\tx\n\tX\na", &["cat", "a"]);
        check("", &[]);
    }

    #[test]
    fn what_is_not_understood_for_sure_is_refused() {
        for line in [
            "a 'b",
            "a \"b",
            "a `b",
            "a $(b",
            "a ${b",
            "(a",
            "a)",
            "f() { a; }",
            "x=(a b)",
            "a $'\\x41'",
            "a $\"b\"",
            "a ${ b; }",
            "a ${x@P}",
            "a ${x:-'}'}",
            "a $((b) ; (c))",
            "a <<EOF\nb",
            "a <<EOF\nb\\\nEOF\n",
            "a <<EOF 'b\nc'\nEOF\n",
            "a <<EOF $(b\n)\nEOF\n",
            "a \\",
            "a >",
        ] {
            assert!(commands(line).is_err(), "{line}");
        }
        assert!(commands(&"$(".repeat(100_000)).is_err());
        assert!(commands(&"(".repeat(100_000)).is_err());
    }

    #[test]
    fn a_comment_after_a_broken_line_hides_no_command() {
        check("a \\\n# '\nb # '", &["a", "b"]);
        check("\\\n# '\nb # '", &["b"]);
    }
}
