-- The index of words as fields. It is derived: what the tables before held is made again when it is asked for.
DROP TABLE shelf_threads, shelf_entries, shelf_passages, shelf_posts;
DROP TABLE shelves;
CREATE TABLE shelves (
    session BIGINT PRIMARY KEY,
    written BIGINT NOT NULL DEFAULT 0,
    clearings BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE shelf_fields (
    session BIGINT NOT NULL,
    field BYTEA NOT NULL,
    value BYTEA NOT NULL,
    PRIMARY KEY (session, field)
);
