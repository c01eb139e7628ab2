//! A report for a browser: one file that needs nothing else, with charts, and the tables they were drawn from.
//!
//! There is no script in it, nothing is loaded, and the page forbids itself to. What users typed is escaped wherever it
//! stands.

use super::Look;
use super::chart::chart;
use super::section::{Section, sections};
use super::text::{about, read, unreadable};
use komado_engine::report::Report;
use std::io::{self, Write};

/// What the page may do: look as it looks.
pub(crate) const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--dim:#777}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem}
p.dim{color:var(--dim)}svg{width:100%;height:auto}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.85rem}
caption{text-align:left;color:var(--dim);padding:.3rem 0}
th,td{border-bottom:1px solid var(--line);padding:.25rem .5rem;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
@media (prefers-color-scheme:dark){:root{--dim:#999}}
@media print{body{max-width:none}}";

/// Text that stands where a browser reads markup.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // What a text cannot have in it, and what turns its direction round.
            c if c.is_control() && c != '\n' && c != '\t' => safe.push(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c => safe.push(c),
        }
    }
    safe
}

/// Writes the page.
pub(super) fn write(told: &Report, look: Look, out: &mut dyn Write) -> io::Result<()> {
    let (lang, title) = (look.lang, format!("Komado · {}", look.lang.say("report")));
    write!(
        out,
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{}</p>\n",
        lang.tag(),
        escaped(&about(told, look)),
    )?;
    writeln!(out, "<p class=\"dim\">{}</p>", escaped(&read(told, look)))?;
    if let Some(line) = unreadable(told, look) {
        writeln!(out, "<p>{}</p>", escaped(&line))?;
    }
    for section in sections(told, look) {
        part(&section, look, out)?;
    }
    out.write_all(b"</main>\n</body>\n</html>\n")
}

fn part(section: &Section, look: Look, out: &mut dyn Write) -> io::Result<()> {
    let title = escaped(look.lang.say(section.name));
    writeln!(out, "<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{title}</h2>", section.name)?;
    if section.rows.is_empty() {
        return writeln!(out, "<p class=\"dim\">{}</p>\n</section>", escaped(look.lang.say("nothing")));
    }
    if let Some(chart) = chart(section, look) {
        out.write_all(chart.as_bytes())?;
    }
    table(section, &title, look, out)?;
    if let Some(note) = &section.note {
        writeln!(out, "<p class=\"dim\">{}</p>", escaped(note))?;
    }
    writeln!(out, "</section>")
}

fn table(section: &Section, title: &str, look: Look, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"{title}\">")?;
    writeln!(out, "<table>\n<caption>{title}</caption>\n<thead><tr>")?;
    let class = |at: usize| if section.rows[0][at].is_number() { " class=\"n\"" } else { "" };
    for (at, name) in section.columns.iter().enumerate() {
        writeln!(out, "<th scope=\"col\"{}>{}</th>", class(at), escaped(look.lang.say(name)))?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for row in &section.rows {
        write!(out, "<tr>")?;
        for (at, cell) in row.iter().enumerate() {
            let text = escaped(&cell.shown());
            match at {
                0 => write!(out, "<th scope=\"row\">{text}</th>")?,
                _ => write!(out, "<td{}>{text}</td>", class(at))?,
            }
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_that_a_user_typed_is_markup() {
        let text = super::escaped("<script>alert('x')</script> & \"y\"\u{1b}[2J\u{202e}窓");
        assert_eq!(text, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;y&quot; [2J窓");
    }
}
