//! The tables, and how they came to be: numbered files, each applied once.
//!
//! One row holds the version. The process that finds it behind locks that row and applies what is missing in the same transaction,
//! so of many processes that start at once one does the work and the others wait for it, on any server that locks rows.

use super::server::{PostgresFault, PostgresLink, PostgresResult, refused_by, values};
use crate::Result;
use tokio_postgres::error::SqlState;

/// Every change of the tables, in order; never one that is out is changed.
const STEPS: [&str; 5] = [
    include_str!("schema/0001_journals.sql"),
    include_str!("schema/0002_words_and_jobs.sql"),
    include_str!("schema/0003_conversations.sql"),
    include_str!("schema/0004_tokens_by_kind.sql"),
    include_str!("schema/0005_fields_of_words.sql"),
];

const LOOK: &str = "SELECT version FROM komado_schema";

/// Brings the tables up to date; one small query where they are.
pub(super) async fn prepare(link: &PostgresLink, schema: &str) -> Result<()> {
    let found = async {
        let mut db = link.db().await?;
        let rows = db.ask(LOOK, &values![]).await?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0)))
    };
    let version = match found.await {
        Ok(version) => version,
        Err(fault) if is_missing(&fault) => 0,
        Err(fault) => return Err(link.told(fault)),
    };
    check(&link.place, schema, version)?;
    if version == STEPS.len() as i64 {
        return Ok(());
    }
    begin(link, schema).await.map_err(|fault| link.told(fault))?;
    let reached = raise(link).await.map_err(|fault| link.told(fault))?;
    check(&link.place, schema, reached)
}

fn check(place: &str, schema: &str, version: i64) -> Result<()> {
    if version <= STEPS.len() as i64 {
        return Ok(());
    }
    let known = STEPS.len();
    let why =
        format!("schema {schema} has version {version}, this komado knows up to {known}; use a newer komado");
    Err(refused_by(place, why))
}

fn is_missing(fault: &PostgresFault) -> bool {
    fault
        .code()
        .is_some_and(|code| *code == SqlState::UNDEFINED_TABLE || *code == SqlState::INVALID_SCHEMA_NAME)
}

/// True when another made the same thing at the same moment: it is there.
fn is_there(fault: &PostgresFault) -> bool {
    fault.code().is_some_and(|code| {
        *code == SqlState::UNIQUE_VIOLATION
            || *code == SqlState::DUPLICATE_TABLE
            || *code == SqlState::DUPLICATE_SCHEMA
            || *code == SqlState::DUPLICATE_OBJECT
    })
}

/// Makes the schema and the row that holds the version.
async fn begin(link: &PostgresLink, schema: &str) -> PostgresResult<()> {
    let mut db = link.db().await?;
    // Who owns a schema need not be allowed to make one, and IF NOT EXISTS asks for that first.
    let look = "SELECT 1 FROM pg_namespace WHERE nspname = $1::TEXT";
    let is_made = !db.ask(look, &values![schema.to_owned()]).await?.is_empty();
    let steps = [
        if is_made { String::new() } else { format!("CREATE SCHEMA IF NOT EXISTS {schema}") },
        "CREATE TABLE IF NOT EXISTS komado_schema (one BOOLEAN PRIMARY KEY, version BIGINT NOT NULL)"
            .to_owned(),
        "INSERT INTO komado_schema VALUES (TRUE, 0) ON CONFLICT DO NOTHING".to_owned(),
    ];
    for step in steps {
        match db.run(&step).await {
            Err(fault) if is_there(&fault) => {}
            done => done?,
        }
    }
    Ok(())
}

/// Applies what is missing; gives the version reached.
async fn raise(link: &PostgresLink) -> PostgresResult<i64> {
    let mut db = link.db().await?;
    db.begin().await?;
    let rows = db.ask("SELECT version FROM komado_schema FOR UPDATE", &values![]).await?;
    let version = rows.first().map_or(0, |row| row.get::<_, i64>(0));
    let done = usize::try_from(version).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        db.run(step).await?;
    }
    let reached = version.max(STEPS.len() as i64);
    db.ask("UPDATE komado_schema SET version = $1", &values![reached]).await?;
    db.end("COMMIT").await?;
    Ok(reached)
}
