-- Sessions, and what each was made with. The columns up to error_message are those of the table of tasks; `meta` says
-- the same whole, as JSON. Times are the RFC 3339 texts they came as, which sort by their bytes.
CREATE TABLE sessions (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid TEXT COLLATE "C" NOT NULL UNIQUE,
    task_source TEXT NOT NULL,
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    task_type TEXT NOT NULL,
    task_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    started_at TEXT COLLATE "C",
    completed_at TEXT COLLATE "C",
    process_id BIGINT NOT NULL,
    hostname TEXT NOT NULL,
    llm_provider TEXT,
    model TEXT,
    context_length BIGINT,
    llm_call_count BIGINT NOT NULL DEFAULT 0,
    tool_call_count BIGINT NOT NULL DEFAULT 0,
    total_tokens BIGINT NOT NULL DEFAULT 0,
    compression_count BIGINT NOT NULL DEFAULT 0,
    error_message TEXT,
    user_id TEXT,
    updated_at TEXT COLLATE "C" NOT NULL,
    queued BOOLEAN NOT NULL,
    meta TEXT NOT NULL
);
CREATE INDEX sessions_made ON sessions (created_at, uuid);
CREATE INDEX sessions_of_user ON sessions (user_id, created_at, uuid);
CREATE INDEX sessions_in_state ON sessions (status, created_at, uuid);

-- Who may append. The token grows with each holder: an append names the one it was given. Which
-- store took it last, and by which of its claims: one whose answer was lost is made again under a later claim.
CREATE TABLE leases (
    session BIGINT PRIMARY KEY,
    token BIGINT NOT NULL DEFAULT 0,
    holder TEXT,
    expires TIMESTAMPTZ,
    ended BOOLEAN NOT NULL DEFAULT FALSE,
    claimant BIGINT NOT NULL DEFAULT 0,
    claim BIGINT NOT NULL DEFAULT 0
);

-- `last` is the number of the last entry; an append compares it and moves it on.
CREATE TABLE threads (
    session BIGINT NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    header BYTEA NOT NULL,
    base_thread TEXT COLLATE "C",
    base_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (session, thread)
);

-- A line byte for byte, its head, and what they are looked up by.
CREATE TABLE entries (
    session BIGINT NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    kind SMALLINT NOT NULL,
    size BIGINT NOT NULL,
    head BYTEA NOT NULL,
    line BYTEA NOT NULL,
    PRIMARY KEY (session, thread, seq)
);

CREATE TABLE branches (
    session BIGINT NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    parent TEXT COLLATE "C",
    depth BIGINT NOT NULL,
    window_ratio DOUBLE PRECISION NOT NULL,
    status TEXT NOT NULL,
    label TEXT,
    chronicle_summary TEXT,
    held_by TEXT,
    told BOOLEAN NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    completed_at TEXT,
    PRIMARY KEY (session, thread)
);
CREATE INDEX branches_under ON branches (session, parent);
CREATE INDEX branches_unsettled ON branches (session)
    WHERE parent IS NOT NULL AND (NOT told OR (held_by IS NOT NULL AND status IN ('active', 'paused')));

CREATE TABLE mail (
    number BIGINT GENERATED ALWAYS AS IDENTITY,
    session BIGINT NOT NULL,
    to_thread TEXT COLLATE "C" NOT NULL,
    from_thread TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (session, to_thread, from_thread, seq)
);

CREATE TABLE places (
    number BIGINT GENERATED ALWAYS AS IDENTITY,
    name TEXT COLLATE "C" NOT NULL,
    session BIGINT NOT NULL,
    thread TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (session, name, thread, seq)
);
CREATE INDEX places_newest ON places (name, number);

CREATE TABLE lessons (
    about TEXT COLLATE "C" PRIMARY KEY,
    lesson TEXT NOT NULL
);

CREATE TABLE blobs (
    session BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    byte_size BIGINT NOT NULL,
    line_count BIGINT NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE TABLE blob_chunks (
    session BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (session, id, number)
);
