-- What users and assistants said in the first thread of each session, for SQL that reads a table of conversations. It is
-- read from the lines, so what was taken out of a line is not in it. No line may spoil the view for the others: an escape
-- that no text here can hold (a zero byte, half of a surrogate pair) is shown as a replacement character; a time that is
-- none, or of a day that its month does not have, as NULL; and the JSON stays text, since no number is too large for that.
CREATE VIEW conversations AS
SELECT
    (s.number << 32) | e.seq AS id,
    s.user_id,
    s.uuid AS session_id,
    CASE e.kind WHEN 2 THEN 'user' ELSE 'assistant' END AS message_type,
    CASE json_typeof(e.json -> 'content')
        WHEN 'string' THEN e.json ->> 'content'
        WHEN 'array' THEN COALESCE((
            SELECT string_agg(part.value ->> 'text', E'\n' ORDER BY part.ordinality)
            FROM json_array_elements(e.json -> 'content') WITH ORDINALITY AS part
            WHERE part.value ->> 'type' IN ('text', 'marked_text')), '')
        ELSE ''
    END AS content,
    -- One CASE in another: the day is looked at only where there is one.
    CASE WHEN e.json ->> 'timestamp' ~ ('^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])'
            || 'T([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]{1,30})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$')
        THEN CASE WHEN substr(e.json ->> 'timestamp', 9, 2)::INT <= extract(DAY FROM
                (substr(e.json ->> 'timestamp', 1, 7) || '-01')::DATE + INTERVAL '1 month' - INTERVAL '1 day')
            THEN (e.json ->> 'timestamp')::TIMESTAMPTZ AT TIME ZONE 'UTC' END
    END AS "timestamp",
    json_build_object(
        'seq', e.seq,
        'thread', e.thread,
        'tokens', e.json -> 'tokens',
        'model', COALESCE(e.json -> 'reply' ->> 'model', s.model),
        'usage', e.json -> 'reply' -> 'usage',
        'tool_calls', e.json -> 'tool_calls') AS metadata
FROM (
    -- No raw control character is in a line: one stands for an escaped backslash and one for the escapes of a whole pair,
    -- while what is left of such escapes is replaced.
    SELECT session, thread, seq, kind,
        CASE WHEN position('\u' IN text) = 0 THEN text ELSE
            replace(replace(regexp_replace(regexp_replace(replace(text, '\\', E'\x01'),
                '\\(u[dD][89abAB][0-9a-fA-F]{2})\\(u[dD][c-fC-F][0-9a-fA-F]{2})', E'\x02\\1\x02\\2', 'g'),
                '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\ufffd', 'g'),
                E'\x02', '\'), E'\x01', '\\')
        END::JSON AS json
    FROM (
        SELECT session, thread, seq, kind, convert_from(line, 'UTF8') AS text
        FROM entries
        WHERE thread = 'root' AND kind IN (2, 3)
    ) AS lines
) AS e
JOIN sessions s ON s.number = e.session;
