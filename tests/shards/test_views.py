"""Views: typed from the records, read-only, shut off from everything else."""

from __future__ import annotations

import io
import sys
import threading
import time
from pathlib import Path

import pytest
from records_samples import samples, trajectory
from shard_helpers import problems, write

from rstar2cli.core import drain
from rstar2cli.core.errors import DataError, InputMissing, Stopped, UsageError
from rstar2cli.records import Trajectory
from rstar2cli.records.codec import encode_line
from rstar2cli.shards.views import connect


@pytest.fixture
def data(tmp_path):
    return str(write(tmp_path / "d", problems(10), rows_per_part=4))


@pytest.mark.parametrize("form", ["dir", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("record", samples(), ids=lambda record: type(record).record_name)
def test_every_kind_has_its_types_in_every_form(tmp_path, form, record):
    path = write(tmp_path / form, [record, record], type(record))
    with connect({"this": [str(path)]}) as database:
        types = {name: kind for name, kind, *_ in database.execute("DESCRIBE this").fetchall()}
        assert tuple(types) == type(record).__struct_fields__
        assert types["extra"] == "JSON"
        row = database.execute("SELECT * FROM this LIMIT 1").rows()[0]
    assert row["extra"] == record.extra
    if isinstance(record, Trajectory):
        assert types["prompt_ids"] == "INTEGER[]"
        assert row["turns"][0]["calls"][1]["name"] is None
        assert row["seed"] == record.seed


def test_columns_first_seen_late_are_not_dropped(tmp_path):
    """DuckDB's own detection would decide on the columns from the first rows."""
    late = problems(3)
    late[2].attempts = 7
    path = write(tmp_path / "a.jsonl", late)
    with connect({"this": [str(path)]}) as database:
        assert database.execute("SELECT attempts FROM this WHERE id = 'p2'").fetchone() == (7,)


def test_several_views_join(tmp_path, data):
    runs = write(tmp_path / "t.jsonl", [trajectory(number) for number in range(4)], Trajectory)
    with connect({"p": [data], "t": [str(runs)]}) as database:
        query = "SELECT avg(t.reward) AS r, 0.5 * count(*) AS n FROM t JOIN p ON p.id = t.problem_id"
        assert database.execute(query).rows() == [{"r": 0.5, "n": 2.0}]


def test_stdin_is_a_view(monkeypatch):
    rows = b"".join(map(encode_line, problems(3)))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows)))
    with connect({"this": ["-"]}) as database:
        assert database.execute("SELECT count(*) FROM this").fetchone() == (3,)


def test_names_with_glob_signs_and_quotes(tmp_path):
    path = write(tmp_path / "a'[1]*.parquet", problems(2))
    with connect({"this": [str(path)]}) as database:
        assert database.execute("SELECT count(*) FROM this").fetchone() == (2,)


@pytest.mark.parametrize(
    "query",
    [
        "COPY this TO '{other}'",
        "EXPLAIN ANALYZE COPY this TO '{part}'",
        "EXPLAIN (ANALYZE) COPY this TO '{part}'",
        "COPY this TO '{part}'",
        "ATTACH '{other}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '1GB'",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO this SELECT * FROM this",
        "DROP VIEW this",
        "PRAGMA database_list",
        "SELECT 1; SELECT 2",
        "SELECT * FROM '{other}'",
        "SELECT * FROM read_text('{other}')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM 'https://localhost/x.parquet'",
        "SELECT nope FROM this",
        "SELEC",
        "",
    ],
)
def test_nothing_but_queries_on_the_views(tmp_path, data, query):
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    part = Path(data) / "part-00000.parquet"
    before = part.read_bytes()
    with connect({"this": [data]}) as database:
        with pytest.raises(UsageError):
            database.execute(query.format(other=other, part=part)).fetchall()
        assert database.execute("EXPLAIN SELECT * FROM this").fetchall()
        assert database.execute("EXPLAIN ANALYZE SELECT * FROM this").fetchall()
        assert database.execute("SELECT count(*) FROM this").fetchone() == (10,)
    assert part.read_bytes() == before
    assert other.read_text() == "a\n1\n"


def test_python_variables_are_no_tables(data):
    other = [1, 2]
    assert other
    with connect({"this": [data]}) as database, pytest.raises(UsageError):
        database.execute("SELECT * FROM other")


def test_limits_are_set(data):
    with connect({"this": [data]}, threads=1) as database:
        settings = dict(
            database.execute(
                "SELECT name, value FROM duckdb_settings() WHERE name IN "
                "('threads', 'memory_limit', 'temp_directory', 'max_temp_directory_size', 'enable_external_access')"
            ).fetchall()
        )
    assert settings["threads"] == "1"
    assert settings["enable_external_access"] == "false"
    assert "rstar2-" in settings["temp_directory"]
    assert "90%" not in settings["max_temp_directory_size"]


def test_values_that_do_not_fit_are_bad_data(data):
    with connect({"this": [data]}) as database, pytest.raises(DataError, match="Could not convert"):
        database.execute("SELECT CAST(prompt AS INT) FROM this")


def test_bad_rows_are_reported_or_raised(tmp_path):
    rows = b"".join(map(encode_line, problems(3))).replace(b'"solved":1', b'"solved":"x"')
    (tmp_path / "a.jsonl").write_bytes(rows)
    with pytest.raises(DataError, match=r"a\.jsonl:2"):
        connect({"this": [str(tmp_path / "a.jsonl")]})
    rejects = []
    with connect({"this": [str(tmp_path / "a.jsonl")]}, on_reject=rejects.append) as database:
        assert database.execute("SELECT count(*) FROM this").fetchone() == (2,)
    assert len(rejects) == 1


def test_names_and_inputs_are_checked(tmp_path, data):
    with pytest.raises(UsageError, match="no name for a view"):
        connect({"1x": [data]})
    with pytest.raises(InputMissing):
        connect({"this": [str(tmp_path / "none")]})


SLOW = "SELECT count(*) FROM range(200000) a, range(200000) b WHERE a.range + b.range = 7"


def test_a_requested_stop_interrupts_a_query(data):
    timer = threading.Timer(0.3, drain.request, ["SIGINT"])
    timer.start()
    try:
        with connect({"this": [data]}) as database, pytest.raises(Stopped):
            database.execute(SLOW)
    finally:
        timer.join()
        drain.reset()


def test_ctrl_c_interrupts_a_query(data):
    import signal

    with connect({"this": [data]}) as database:
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            database.execute(SLOW)
        assert time.monotonic() - begun < 60
        assert database.execute("SELECT count(*) FROM this").fetchone() == (10,)


def test_a_result_comes_in_batches(data):
    with connect({"this": [data]}) as database:
        database.execute("SELECT id, id FROM this ORDER BY 1")
        batches = list(database.row_batches(4))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert batches[0][0] == {"id": "p0", "id_2": "p0"}
