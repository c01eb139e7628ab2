//! A taken job as one line of JSON, from a worker to the process that works on it.

use komado_core::SessionId;
use komado_store::{Job, Taken};
use serde::{Deserialize, Serialize};
use std::io;

#[derive(Serialize, Deserialize)]
struct Line {
    session: String,
    key: String,
    user: Option<String>,
    body: String,
    at: String,
    token: u64,
    tries: u32,
    why: Option<String>,
}

/// The line, with its end.
pub fn write_taken(taken: &Taken) -> io::Result<String> {
    let Taken { job, token, tries, why } = taken.clone();
    let Job { session, key, user, body, at } = job;
    let line = Line { session: session.to_string(), key, user, body, at, token, tries, why };
    Ok(serde_json::to_string(&line)? + "\n")
}

/// Reads it back.
pub fn read_taken(line: &str) -> io::Result<Taken> {
    let Line { session, key, user, body, at, token, tries, why } = serde_json::from_str(line)?;
    let session = SessionId::new(session).map_err(io::Error::other)?;
    Ok(Taken { job: Job { session, key, user, body, at }, token, tries, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_reads_back() {
        let job = Job {
            session: SessionId::new("s1").unwrap(),
            key: "local:窓".into(),
            user: None,
            body: "{\"title\":\"a\\nb\"}".into(),
            at: "2027-01-01T00:00:00Z".into(),
        };
        let taken = Taken { job, token: u64::MAX, tries: 2, why: Some("its process\nended".into()) };
        let line = write_taken(&taken).unwrap();
        assert_eq!(line.lines().count(), 1);
        assert_eq!(read_taken(&line).unwrap(), taken);
        assert!(read_taken("{}").is_err());
    }
}
