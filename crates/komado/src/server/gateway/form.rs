//! A form with a sound file: which fields does it have?
//!
//! Servers read forms in different ways, and what one takes for the text of a field is another field to the next. So only a form
//! that can be read in one way passes: every line that begins as a boundary is one, every header is known, every name is in the list.
//! Only the headers of the parts are held.

use super::refusal::Refusal;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Fields by which nothing is named that a provider keeps.
const FIELDS: [&str; 23] = [
    "file",
    "model",
    "language",
    "prompt",
    "response_format",
    "temperature",
    "timestamp_granularities",
    "timestamp_granularities[]",
    "stream",
    "include",
    "include[]",
    "diarize",
    "chunking_strategy",
    "chunking_strategy[type]",
    "chunking_strategy[prefix_padding_ms]",
    "chunking_strategy[silence_duration_ms]",
    "chunking_strategy[threshold]",
    "known_speaker_names[]",
    "known_speaker_references[]",
    "context_bias",
    "hotwords",
    "vad_filter",
    "seed",
];

/// The most bytes of the headers of one part.
const MOST_HEAD: usize = 4 << 10;

/// Bytes that are looked at in one step.
const PIECE: usize = 64 << 10;

fn unclear(why: &str) -> Refusal {
    Refusal::new(400, format!("the form cannot be read in one way only: {why}; send it as curl -F does"))
}

/// The boundary that a content type of a form names.
pub(super) fn boundary(content_type: &str) -> Result<String, Refusal> {
    let parameter = content_type.split_once(';').map(|(_, rest)| rest.trim()).unwrap_or_default();
    let (name, value) = parameter.split_once('=').unwrap_or_default();
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.eq_ignore_ascii_case("boundary") && (1..=70).contains(&value.len()) && value.bytes().all(is_plain)
    {
        return Ok(value.to_owned());
    }
    Err(unclear(&format!(
        "Content-Type {content_type:?} has more or less than one boundary of letters, digits, `-`, `_` and `.`"
    )))
}

/// Every field of a form must be one of those that name nothing kept.
pub(super) fn check((body, len): (&File, u64), boundary: &str) -> Result<(), Refusal> {
    let mark = format!("--{boundary}");
    // Where the text of the part begins that was begun last; `None` after the last boundary.
    let mut text = Some(0);
    let mut is_first = true;
    let (mut from, size) = (0, mark.len() as u64);
    while from + size <= len {
        let piece = read(body, (from, len), PIECE)?;
        let Some(at) = piece.windows(mark.len()).position(|window| window == mark.as_bytes()) else {
            from += piece.len() as u64 - size + 1;
            continue;
        };
        let at = from + at as u64;
        let begin = text.ok_or_else(|| unclear("it goes on after its last boundary"))?;
        let is_line =
            if is_first { at == 0 } else { at >= begin + 2 && read(body, (at - 2, len), 2)? == b"\r\n" };
        if !is_line {
            return Err(unclear("a boundary does not stand at the beginning of a line"));
        }
        let head = read(body, (at + size, len), MOST_HEAD)?;
        text = if let Some(rest) = head.strip_prefix(b"\r\n") {
            Some(at + size + 2 + part(rest)?)
        } else if [&b"--"[..], b"--\r\n"].contains(&head.as_slice()) && !is_first {
            None
        } else {
            return Err(unclear("a boundary is followed by something else than the end of its line"));
        };
        is_first = false;
        from = at + size;
    }
    text.map_or(Ok(()), |_| Err(unclear("its last boundary is missing")))
}

fn read(body: &File, (from, len): (u64, u64), most: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = vec![0; usize::try_from(len - from).unwrap_or(most).min(most)];
    body.read_exact_at(&mut bytes, from).map_err(|error| Refusal::new(500, error.to_string()))?;
    Ok(bytes)
}

/// Checks the headers that a part begins with, and gives their length.
fn part(bytes: &[u8]) -> Result<u64, Refusal> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or_else(|| unclear("the headers of a part are too long, or do not end"))?;
    let head =
        std::str::from_utf8(&bytes[..end]).map_err(|_| unclear("the headers of a part are no UTF-8"))?;
    let mut name = None;
    for line in head.split("\r\n") {
        let (header, value) = line.split_once(':').unwrap_or_default();
        match header.to_ascii_lowercase().as_str() {
            _ if line.chars().any(char::is_control) => {
                return Err(unclear("a header has control characters"));
            }
            "content-disposition" if name.is_none() => name = Some(disposition(value)?),
            "content-type" if !value.to_ascii_lowercase().contains("multipart") => {}
            "content-length" => {}
            _ => return Err(unclear(&format!("a part has the header {line:?}"))),
        }
    }
    let name = name.ok_or_else(|| unclear("a part has no Content-Disposition"))?;
    if FIELDS.contains(&name) {
        return Ok(end as u64 + 4);
    }
    Err(Refusal::new(
        403,
        format!(
            "form field {name:?}: a key that sees only its own sessions may send only fields that name nothing kept with the \
             provider: {}",
            FIELDS.join(", ")
        ),
    ))
}

/// The name in `form-data; name="file"; filename="a.wav"`. A file has a name of its own, or it is a text that may be an id.
fn disposition(value: &str) -> Result<&str, Refusal> {
    let wrong = || unclear(&format!("Content-Disposition:{value}"));
    let mut pieces = value.split(';').map(str::trim);
    let is_form = pieces.next().is_some_and(|kind| kind.eq_ignore_ascii_case("form-data"));
    let (mut name, mut file, mut file_too) = (None, None, None);
    for piece in pieces {
        let (key, value) = piece.split_once('=').ok_or_else(wrong)?;
        let place = match key {
            "name" => &mut name,
            "filename" => &mut file,
            "filename*" => &mut file_too,
            _ => return Err(wrong()),
        };
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        if value.contains(['"', '\\']) || place.replace(value).is_some() {
            return Err(wrong());
        }
    }
    let name = name.filter(|name| is_form && (*name != "file" || file.is_some()));
    name.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn checked(text: &str) -> Result<(), Refusal> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        check((&file, text.len() as u64), "b-1")
    }

    /// A form with a file and one more part, which begins with these headers.
    fn form(head: &str) -> String {
        format!(
            "--b-1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"窓.wav\"\r\nContent-Type: audio/wav\r\n\r\n\
             {}\r\n--b-1\r\n{head}\r\n\r\nx\r\n--b-1--\r\n",
            "RIFF\r\n--b-".repeat(20_000)
        )
    }

    #[test]
    fn a_form_passes_as_clients_write_it() {
        for head in [
            "Content-Disposition: form-data; name=\"model\"",
            "content-disposition: form-data; name=\"timestamp_granularities[]\"",
            "Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=language",
            "Content-Disposition: form-data; name=file; filename=a.mp3; filename*=utf-8''a.mp3",
        ] {
            assert!(checked(&form(head)).is_ok(), "{head}");
        }
        for (text, named) in [
            ("multipart/form-data; boundary=b-1", "b-1"),
            ("Multipart/Form-Data;Boundary=\"----WebKitFormBoundaryx_1\"", "----WebKitFormBoundaryx_1"),
        ] {
            assert_eq!(boundary(text).unwrap(), named);
        }
    }

    #[test]
    fn a_field_that_names_a_kept_file_is_found_however_it_is_written() {
        for head in [
            "Content-Disposition: form-data; name=\"file_id\"",
            "Content-Disposition: form-data; name=file_id",
            "Content-Disposition: form-data; name=\"FILE_ID\"",
            "Content-Disposition: form-data; name*=utf-8''file_id",
            "Content-Disposition: form-data; name=\"model\"; name*=utf-8''file_id",
            "Content-Disposition: form-data; name=\"model\"; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"; Name=\"file_id\"",
            "Content-Disposition: form-data; name=\"file\\_id\"",
            "Content-Disposition: form-data; name=\"file%5fid\"",
            "Content-Disposition: form-data; name=\"file\"; filename=\"a; name=file_id\"",
            "Content-Disposition: form-data; filename=\"a\\\"; name=\"model\"",
            "Content-Disposition: form-data;\r\n name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\r\n\t; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\r\nContent-Disposition: form-data; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\nContent-Disposition: form-data; name=\"file_id\"",
            "Content-Disposition : form-data; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\r\nContent-Type: multipart/mixed; boundary=c",
            "Content-Disposition: form-data; name=\"model\"\r\nContent-Transfer-Encoding: base64",
            "Content-Disposition: form-data; name=\"file\"",
            "Content-Disposition: attachment; name=\"model\"",
            "Content-Type: text/plain",
            "Content-Disposition: form-data; name=\"model\"\r\n\r\nx\n--b-1\nContent-Disposition: form-data; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\r\n\r\nx\r\n--b-1 \r\nContent-Disposition: form-data; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\r\n\r\n--b-1\r\nContent-Disposition: form-data; name=\"model\"",
            "Content-Disposition: form-data; name=\"model\"\r\n\r\nx\r\n--b-1--\r\n--b-1\r\nContent-Disposition: form-data; name=\"model\"",
        ] {
            assert!(checked(&form(head)).is_err(), "{head}");
        }
        let whole = form("Content-Disposition: form-data; name=\"model\"");
        for text in
            ["", "--b-1--\r\n", &whole[..whole.len() - 4], &format!("x\r\n{whole}"), &format!("{whole}x")]
        {
            assert!(checked(text).is_err(), "{} bytes", text.len());
        }
        for text in [
            "multipart/form-data",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=a; boundary=b",
            "multipart/form-data; charset=utf-7; boundary=b",
            "multipart/form-data; boundary*=utf-8''b",
            "multipart/form-data; boundary=\"a\\b\"",
            "multipart/form-data; boundary=\"a",
        ] {
            assert!(boundary(text).is_err(), "{text}");
        }
    }
}
