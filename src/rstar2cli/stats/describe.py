"""Every column of a view in one row each, and the figures that a kind of record is looked at for."""

from __future__ import annotations

from typing import Any

from rstar2cli.records import Metric, Problem, Record, Score, Trajectory
from rstar2cli.records.fields import FieldType, field_types
from rstar2cli.shards.views import Database
from rstar2cli.stats.count import filter_clause

JSON_KEYS = 20
"""Keys of a JSON column that get a row of their own: the most frequent ones."""
COLUMNS = ("column", "type", "nulls", "distinct", "mean", "min", "q25", "median", "q75", "max")

FIGURES: dict[type[Record], dict[str, str]] = {
    Trajectory: {
        "groups": "count(DISTINCT run || ':' || step || ':' || slot)",
        "reward_mean": "avg(reward)",
        "correct_share": "avg((verdict = 'correct')::INT)",
        "undecided_share": "avg((verdict = 'undecided')::INT)",
        "lost_share": "avg((finish = 'lost')::INT)",
        "truncated_share": "avg((finish = 'length')::INT)",
        "turn_limit_share": "avg((finish = 'turn_limit')::INT)",
        "no_answer_share": "avg((n_answers = 0)::INT)",
        "tool_calls_per_trajectory": "avg(n_tool_calls)",
        "tool_error_share": "sum(n_tool_errors) / nullif(sum(n_tool_calls), 0)",
        "model_tokens_mean": "avg(len(list_filter(mask, lambda x: x)))",
        "response_tokens_mean": "avg(len(response_ids))",
    },
    Score: {
        "problems": "count(DISTINCT (benchmark, problem_id))",
        "value_mean": "avg(value)",
        "unmeasured_share": "avg((value IS NULL)::INT)",
        "undecided_share": "avg((verdict = 'undecided')::INT)",
    },
    Problem: {
        "sources": "count(DISTINCT source)",
        "solved_share": "sum(solved) / nullif(sum(attempts), 0)",
        "unmeasured_share": "avg((attempts IS NULL)::INT)",
    },
    Metric: {"runs": "count(DISTINCT run)", "last_step": "max(step)"},
}
"""Figures of a kind of record as SQL over its columns; shares are of all rows, tool errors of answered calls."""


def figures(database: Database, view: str, where: str | None = None) -> dict[str, float | int | None]:
    """Number of rows and the :data:`FIGURES` of the view's kind."""
    wanted = {"rows": "count(*)", **FIGURES.get(database.kinds[view], {})}
    columns = ", ".join(f'{sql} AS "{name}"' for name, sql in wanted.items())
    return database.execute(f'SELECT {columns} FROM "{view}" {filter_clause(where, database.kinds[view])}').rows()[0]


def describe(database: Database, view: str, where: str | None = None) -> list[dict[str, Any]]:
    """A row per column with :data:`COLUMNS`, and one per frequent key of a JSON column (``extra.family``).

    Numbers: mean, least, quartiles, greatest. Texts and lists: the same of their lengths
    (characters, items), said by ``type``. Booleans: mean is the share of true. Null where a figure has no meaning.
    """
    source = f'(SELECT * FROM "{view}" {filter_clause(where, database.kinds[view])})'
    rows = []
    for name, field in field_types(database.kinds[view]).items():
        rows.append(_column(database, source, name, f'"{name}"', field))
        if field.kind == "json":
            rows += _json_keys(database, source, name)
    if database.kinds[view] is Metric:
        rows += _metrics(database, source)
    return rows


def _column(database: Database, source: str, label: str, value: str, field: FieldType) -> dict[str, Any]:
    kind = field.kind
    if kind in ("integer", "int32", "number", "float32"):
        return _row(database, source, label, kind, value, value)
    if kind == "boolean":
        return _row(database, source, label, "boolean", value, f"{value}::INT")
    if kind == "list":
        return _row(database, source, label, "list (items)", value, f"len({value})")
    if kind == "text":
        return _row(database, source, label, "text (characters)", value, f"length({value})")
    return _row(database, source, label, "json (keys)", f"{value}::VARCHAR", f"len(json_keys({value}))")


def _row(database: Database, source: str, label: str, kind: str, value: str, number: str) -> dict[str, Any]:
    quartiles = ", ".join(f"quantile_cont(x, {q}) FILTER (NOT isnan(x))" for q in (0.25, 0.5, 0.75))
    found = database.execute(
        f"SELECT count(*) FILTER (v IS NULL), count(DISTINCT v), avg(x), min(x), {quartiles}, max(x) "
        f"FROM (SELECT {value} AS v, ({number})::DOUBLE AS x FROM {source})"
    ).fetchone()
    assert found is not None
    nulls, distinct, mean, least, q25, median, q75, most = found
    return dict(zip(COLUMNS, (label, kind, nulls, distinct, mean, least, q25, median, q75, most), strict=True))


def _json_keys(database: Database, source: str, name: str) -> list[dict[str, Any]]:
    keys = database.execute(
        f'SELECT key, count(*) AS n FROM (SELECT unnest(json_keys("{name}")) AS key FROM {source}) '
        f"GROUP BY key ORDER BY n DESC, key LIMIT {JSON_KEYS}"
    ).fetchall()
    rows = []
    for key, _ in keys:
        if '"' in key or "\\" in key:
            continue  # no path of JSON reaches it
        path = key.replace("'", "''")
        text = f'"{name}"->>\'$."{path}"\''
        rows.append(_row(database, source, f"{name}.{key}", "json value", text, f"TRY_CAST({text} AS DOUBLE)"))
    return rows


def _metrics(database: Database, source: str) -> list[dict[str, Any]]:
    names = database.execute(f"SELECT DISTINCT name FROM {source} ORDER BY name").fetchall()
    rows = []
    for (name,) in names:
        one = f"(SELECT value FROM {source} WHERE name = '{name.replace(chr(39), chr(39) * 2)}')"
        rows.append(_row(database, one, f"value of {name}", "number", "value", "value"))
    return rows
