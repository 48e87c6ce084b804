"""Holds each line of records against the schema, and names the value that fits least.

    python3 validate.py [--closed] records.schema.json RECORDS.jsonl...

With `--closed`, fields that it does not know are refused too. Without it they are allowed, because a
later version may add some to the same format.
"""

import json
import sys

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match


def closed(schema):
    """The schema without room for further fields wherever a value is described or a definition is referred to."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(part) for key, part in schema.items()}
    is_object = "$ref" in schema or ("properties" in schema and "additionalProperties" not in schema)
    return inner | {"unevaluatedProperties": False} if is_object else inner


*options, path = sys.argv[1 : 3 if "--closed" in sys.argv else 2]
files = sys.argv[len(options) + 2 :]
with open(path) as schema:
    schema = json.load(schema)
if options:
    # A definition itself stays open: the place that refers to it may have further properties.
    definitions = {
        name: {key: closed(part) for key, part in definition.items()}
        for name, definition in schema["$defs"].items()
    }
    schema = closed({key: part for key, part in schema.items() if key != "$defs"}) | {"$defs": definitions}
validators = {
    kind["properties"]["line"]["const"]: Draft202012Validator(kind | {"$defs": schema["$defs"]}) for kind in schema["oneOf"]
}
found = 0
for name in files:
    with open(name) as lines:
        for number, line in enumerate(map(json.loads, lines), 1):
            if line.get("line") not in validators:
                print(f"{name}:{number}: line: neither of {list(validators)}")
                found += 1
                continue
            error = best_match(validators[line["line"]].iter_errors(line))
            if error is not None:
                place = "/".join(map(str, error.absolute_path))
                print(f"{name}:{number}: {place}: {error.message[:300]}")
                found += 1
sys.exit(found > 0)
