-- The ratio of each cell to the first, by pairs of trials that ran next to each other, as the report has it.
-- `records.jsonl` is of format 3; `spindle report RECORDS --format records` converts earlier ones.
WITH lines AS (
    SELECT *, row_number() OVER () AS line_number
    FROM read_ndjson('records.jsonl', columns = {
        line: 'VARCHAR', cell: 'VARCHAR', trial: 'INTEGER', block: 'INTEGER',
        cells: 'STRUCT(name VARCHAR)[]',
        measurement: 'STRUCT(metric STRUCT(value DOUBLE), verification STRUCT(passed BOOLEAN)[])'
    })
),
good AS ( -- measured, and the database was found consistent
    SELECT cell, trial, block, measurement.metric.value AS value
    FROM lines
    WHERE line = 'trial' AND measurement IS NOT NULL
        AND len(list_filter(measurement.verification, lambda each: NOT each.passed)) = 0
    -- A trial that was repeated stands in the file again, further down.
    QUALIFY line_number = max(line_number) OVER (PARTITION BY cell, trial)
)
SELECT candidate.cell, count(*) AS pairs, exp(avg(ln(candidate.value / baseline.value))) AS ratio
FROM good AS candidate
JOIN good AS baseline USING (block)
WHERE baseline.cell = (SELECT cells[1].name FROM lines WHERE line = 'header')
    AND candidate.cell <> baseline.cell
GROUP BY candidate.cell
ORDER BY candidate.cell;
