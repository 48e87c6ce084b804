-- The ratio of each cell to the first, by pairs of trials that ran next to each other, as the report has it.
-- `records.jsonl` is of format 3; `spindle report RECORDS --format records` converts earlier ones.
WITH lines AS (
    SELECT *, row_number() OVER () AS line_number
    FROM read_ndjson('records.jsonl', columns = {
        line: 'VARCHAR', cell: 'VARCHAR', trial: 'INTEGER', block: 'INTEGER',
        cells: 'STRUCT(name VARCHAR)[]', warnings: 'STRUCT(kind VARCHAR)[]',
        measurement: 'STRUCT(metric STRUCT(value DOUBLE), verification STRUCT(passed BOOLEAN)[])'
    })
),
good AS ( -- measured, and the database was found consistent
    SELECT
        cell, trial, block, measurement.metric.value AS value,
        list_has_any(list_transform(warnings, lambda each: each.kind), ['other-programs', 'stolen', 'host-late', 'other-run'])
            AS is_disturbed
    FROM lines
    WHERE line = 'trial' AND measurement IS NOT NULL
        AND len(list_filter(measurement.verification, lambda each: NOT each.passed)) = 0
    WINDOW attempts AS (PARTITION BY cell, trial)
    -- A trial that was repeated stands in the file again, further down. The last one counts, unless all were disturbed.
    QUALIFY line_number = CASE WHEN bool_and(is_disturbed) OVER attempts THEN min(line_number) OVER attempts
        ELSE max(line_number) OVER attempts END
)
SELECT candidate.cell, count(*) AS pairs, exp(avg(ln(candidate.value / baseline.value))) AS ratio
FROM good AS candidate
JOIN good AS baseline USING (block)
WHERE baseline.cell = (SELECT cells[1].name FROM lines WHERE line = 'header')
    AND candidate.cell <> baseline.cell
GROUP BY candidate.cell
ORDER BY candidate.cell;
