-- The index of words: derived, filled from the journals, lost without harm.
CREATE TABLE shelves (
    session BIGINT PRIMARY KEY,
    clearings BIGINT NOT NULL DEFAULT 0,
    docs BIGINT NOT NULL DEFAULT 0,
    words BIGINT NOT NULL DEFAULT 0,
    entries BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE shelf_threads (
    session BIGINT NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    part BIGINT NOT NULL,
    PRIMARY KEY (session, thread)
);
CREATE TABLE shelf_entries (
    session BIGINT NOT NULL,
    id BIGINT NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    role SMALLINT NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    tools TEXT NOT NULL,
    files TEXT NOT NULL,
    PRIMARY KEY (session, id),
    UNIQUE (session, thread, seq)
);
CREATE TABLE shelf_passages (
    session BIGINT NOT NULL,
    doc BIGINT NOT NULL,
    at BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    words BIGINT NOT NULL,
    in_output BOOLEAN NOT NULL,
    PRIMARY KEY (session, doc)
);
-- Places of a term, some hundreds to a row: an entry and a passage of it in each number.
CREATE TABLE shelf_posts (
    session BIGINT NOT NULL,
    term TEXT COLLATE "C" NOT NULL,
    first BIGINT NOT NULL,
    docs BIGINT[] NOT NULL,
    times SMALLINT[] NOT NULL,
    PRIMARY KEY (session, term, first)
);

CREATE SEQUENCE job_tokens;
CREATE TABLE jobs (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session TEXT COLLATE "C" NOT NULL UNIQUE,
    key TEXT COLLATE "C" NOT NULL UNIQUE,
    user_id TEXT,
    body TEXT NOT NULL,
    at TEXT NOT NULL,
    hidden_until TIMESTAMPTZ,
    holder TEXT,
    token BIGINT,
    tries BIGINT NOT NULL DEFAULT 0,
    why TEXT,
    is_dead BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX jobs_waiting ON jobs (number) WHERE NOT is_dead;
