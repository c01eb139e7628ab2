//! A report for a browser: one file that needs nothing else, with charts, and the tables they were drawn from.
//!
//! There is no script in it, nothing is loaded, and the page forbids itself to. What users typed is escaped wherever it
//! stands. A chart says in words what it shows; its colours are of the middle, so that they stand on white and on black.

use super::ReportView;
use super::section::{ChartKind, ReportCell, ReportSection, sections};
use super::text::{about, compared, read, unreadable};
use komado_engine::report::Report;
pub(crate) use komado_engine::transcript::html::{POLICY, escaped};
use std::io::{self, Write};

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

/// Writes the page.
pub(super) fn write(told: &Report, look: ReportView, out: &mut dyn Write) -> io::Result<()> {
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

fn part(section: &ReportSection, look: ReportView, out: &mut dyn Write) -> io::Result<()> {
    let title = escaped(look.lang.say(section.name));
    writeln!(out, "<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{title}</h2>", section.name)?;
    if section.rows.is_empty() {
        return writeln!(out, "<p class=\"dim\">{}</p>\n</section>", escaped(look.lang.say("nothing")));
    }
    chart(section, look, out)?;
    table(section, &title, look, out)?;
    if let Some(note) = &section.note {
        writeln!(out, "<p class=\"dim\">{}</p>", escaped(note))?;
    }
    writeln!(out, "</section>")
}

fn table(section: &ReportSection, title: &str, look: ReportView, out: &mut dyn Write) -> io::Result<()> {
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

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const BAR: &str = "#4878a8";
const INK: &str = "#808080";
/// Bars under each other, at most; the table has all.
const MOST: usize = 20;
/// Characters of a name beside a bar.
const NAME: usize = 22;

/// Draws a table, where there is something to draw.
fn chart(section: &ReportSection, look: ReportView, out: &mut dyn Write) -> io::Result<()> {
    let Some((at, drawn)) = section.drawn else { return Ok(()) };
    let rows: Vec<(String, &ReportCell)> = compared(section)
        .map(|row| (row[0].shown(), &row[at]))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    let most = rows.iter().map(|(_, cell)| cell.length()).fold(0.0, f64::max);
    if most <= 0.0 {
        return Ok(());
    }
    let title = format!("{}: {}", look.lang.say(section.name), look.lang.say(section.columns[at]));
    match drawn {
        ChartKind::Time => upright(&title, &rows, most, out)?,
        ChartKind::Rank => lying(&title, &rows[..rows.len().min(MOST)], most, out)?,
    }
    out.write_all(b"</svg>\n")
}

fn open(title: &str, height: f64, out: &mut dyn Write) -> io::Result<()> {
    let title = escaped(title);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\"><title>{title}</title>"
    )
}

/// One bar for each, with what it is and how much where it is pointed at.
fn bar(out: &mut dyn Write, place: [f64; 4], name: &str, cell: &ReportCell) -> io::Result<()> {
    let [x, y, width, height] = place;
    writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{BAR}\"><title>{}: {}</title></rect>",
        escaped(name),
        cell.shown(),
    )
}

fn label(out: &mut dyn Write, x: f64, y: f64, anchor: &str, text: &str) -> io::Result<()> {
    let text = escaped(text);
    writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{INK}\">{text}</text>")
}

fn upright(title: &str, rows: &[(String, &ReportCell)], most: f64, out: &mut dyn Write) -> io::Result<()> {
    open(title, HEIGHT, out)?;
    let (left, top, bottom) = (56.0, 14.0, HEIGHT - 24.0);
    let step = (WIDTH - left - 4.0) / rows.len() as f64;
    let largest = rows.iter().max_by(|a, b| a.1.length().total_cmp(&b.1.length()));
    if let Some((_, cell)) = largest {
        label(out, left - 6.0, top + 8.0, "end", &cell.shown())?;
    }
    label(out, left - 6.0, bottom, "end", "0")?;
    writeln!(out, "<path d=\"M{left} {bottom}H{WIDTH}\" stroke=\"{INK}\" fill=\"none\"/>")?;
    for (n, (name, cell)) in rows.iter().enumerate() {
        let height = cell.length() / most * (bottom - top);
        let x = left + n as f64 * step + step * 0.1;
        bar(out, [x, bottom - height, step * 0.8, height], name, cell)?;
    }
    // As many names as have room below.
    let every = (rows.len() as f64 * 84.0 / (WIDTH - left)).ceil().max(1.0) as usize;
    for (n, (name, _)) in rows.iter().enumerate().step_by(every) {
        label(out, left + (n as f64 + 0.5) * step, HEIGHT - 8.0, "middle", name)?;
    }
    Ok(())
}

fn lying(title: &str, rows: &[(String, &ReportCell)], most: f64, out: &mut dyn Write) -> io::Result<()> {
    let (left, right, step) = (230.0, 70.0, 24.0);
    open(title, rows.len() as f64 * step + 8.0, out)?;
    for (n, (name, cell)) in rows.iter().enumerate() {
        let y = n as f64 * step + 4.0;
        let length = cell.length() / most * (WIDTH - left - right);
        let mut short: String = name.chars().take(NAME).collect();
        if short.len() < name.len() {
            short.push('…');
        }
        label(out, left - 8.0, y + 15.0, "end", &short)?;
        bar(out, [left, y + 2.0, length, step - 6.0], name, cell)?;
        label(out, left + length + 6.0, y + 15.0, "start", &cell.shown())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {

    #[test]
    fn nothing_that_a_user_typed_is_markup() {
        let text = super::escaped("<script>alert('x')</script> & \"y\"\u{1b}[2J\u{202e}窓");
        assert_eq!(text, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;y&quot; [2J窓");
    }
}
