-- Tokens by kind, and those that edits saved. What was counted before has only its total, which is then larger than the sum of
-- the kinds.
ALTER TABLE sessions
    ADD COLUMN input_tokens BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN cached_tokens BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN cache_write_tokens BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN output_tokens BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN saved_tokens BIGINT NOT NULL DEFAULT 0;
