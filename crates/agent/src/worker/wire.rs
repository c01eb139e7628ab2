//! A taken job as one line of JSON, from a worker to the process that works on it.

use komado_store::Taken;
use std::io;

/// The line, with its end.
pub fn write_taken(taken: &Taken) -> io::Result<String> {
    Ok(serde_json::to_string(taken)? + "\n")
}

/// Reads it back.
pub fn read_taken(line: &str) -> io::Result<Taken> {
    Ok(serde_json::from_str(line)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::SessionId;
    use komado_store::Job;

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
