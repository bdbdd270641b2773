"""``rstar2 verify`` as a process: order, bad rows, streams, exit codes, self-test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-m", "rstar2cli", "verify"]


def verify(*arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *arguments], input=data, capture_output=True, timeout=120)


def rows(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_rows_come_back_in_order_with_their_values_as_they_were() -> None:
    data = (
        b'{"id": 1, "gold": "4", "pred": "4", "score": 1.10}\n'
        b'{"id": 2, "gold": "\\\\sqrt{2}", "pred": "\\\\frac{2}{\\\\sqrt{2}}", "big": 12345678901234567890123}\n'
        b'{"id": 3, "gold": 27.0, "pred": 27}\n'
        b'{"id": 4, "gold": "4", "pred": "5 or 4", "verdict": "old"}\n'
    )
    done = verify("-", data=data)
    assert done.returncode == 0, done.stderr.decode()
    assert [(row["id"], row["verdict"], row["reason"]) for row in rows(done)] == [
        (1, "correct", None),
        (2, "correct", None),
        (3, "correct", None),
        (4, "wrong", "hedged"),
    ]
    text = done.stdout.decode()
    assert '"score":1.10' in text and '"big":12345678901234567890123' in text and '"old"' not in text
    assert "4 rows: 3 correct, 1 wrong, 0 undecided (hedged 1)" in done.stderr.decode()


def test_bad_rows_are_answered_in_their_place_and_the_stream_goes_on() -> None:
    data = (
        lines({"gold": "1", "pred": "1"})
        + b"not json\n"
        + b'{"gold": "1", "pred": "\xff"}\n'
        + lines(
            {"gold": ["1", "2"], "pred": "1"},
            {"gold": "1"},
            {"gold": "1", "pred": None},
            {"gold": None, "pred": "1"},
            {"gold": "", "pred": ""},
            {"gold": "1", "pred": "{" * 1_000_000},
            [1],
            {"gold": "1", "pred": True},
            {"gold": "1", "pred": "1"},
        )
    )
    done = verify("-", data=data)
    found = rows(done)
    assert [(row["verdict"], row["reason"]) for row in found] == [
        ("correct", None),
        ("undecided", "bad_row"),
        ("undecided", "bad_row"),
        ("undecided", "bad_row"),
        ("undecided", "bad_row"),
        ("wrong", "no_answer"),
        ("undecided", "gold_unparseable"),
        ("undecided", "gold_unparseable"),
        ("wrong", "over_cap"),
        ("undecided", "bad_row"),
        ("undecided", "bad_row"),
        ("correct", None),
    ]
    assert found[3]["error"] == "line 4: 'gold' is a list, not text or a number" and found[3]["gold"] == ["1", "2"]
    assert found[4]["error"] == "line 5: no field 'pred'; the row has gold"
    assert done.returncode == 3
    message = done.stderr.decode()
    assert "6 of 12 rows can't be judged" in message and "-:2: not JSON" in message
    assert verify("-", "--max-rejects", "0.5", data=data).returncode == 0


def test_responses_by_option_or_by_the_rows_own_kind() -> None:
    text = r"I lean to \boxed{5} at first, but finally \boxed{7}"
    data = lines(
        {"gold": "7", "pred": text, "kind": "response"}, {"gold": "7", "pred": text}, {"gold": "7", "pred": "7"}
    )
    assert [row["verdict"] for row in rows(verify("-", data=data))] == ["correct", "wrong", "correct"]
    judged = rows(verify("-", "--kind", "response", data=data))
    assert [row["verdict"] for row in judged] == ["correct"] * 3 and judged[0]["extracted"] == "7"
    strict = rows(verify("-", "--kind", "response", "--set", "fallbacks=number", data=data))
    assert [row["extracted"] for row in strict] == ["7", "7", "7"]


def test_other_columns_kinds_and_customs() -> None:
    data = lines({"target": "5", "out": {"not": "text"}, "text": r"x = 5\text{ cm}"})
    options = ("--gold-field", "target", "--pred-field", "text")
    assert rows(verify("-", *options, data=data))[0]["verdict"] == "correct"
    assert rows(verify("-", *options, "--set", "policy.units=required", data=data))[0]["verdict"] == "wrong"
    kind = rows(verify("-", *options, "--answer-kind", "choice", data=data))[0]
    assert (kind["verdict"], kind["reason"]) == ("undecided", "gold_unparseable")


def test_labels_are_compared_and_disagreement_is_exit_1(tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    file.write_bytes(
        lines(
            {"gold": "1", "pred": "1", "ok": True},
            {"gold": "1", "pred": "1", "ok": False},
            {"gold": "1", "pred": "2", "ok": True},
        )
    )
    done = verify(str(file), "--expected-field", "ok")
    assert done.returncode == 1
    assert (
        "labels: 1 of 3 agree (0.3333); false positives 1 (lines 2); false negatives 1 (lines 3)"
        in done.stderr.decode()
    )


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        ((), 2, "one FILE"),
        (("a", "b"), 2, "one FILE"),
        (("/nowhere/x.jsonl",), 4, "/nowhere/x.jsonl"),
        (("-", "--set", "policy.unit=required"), 2, "policy.units"),
        (("-", "--set", "policy.units=never"), 2, "policy.units"),
    ],
)
def test_usage(arguments: tuple[str, ...], code: int, words: str) -> None:
    done = verify(*arguments)
    assert done.returncode == code and words in done.stderr.decode() and not done.stdout


def test_a_verdict_comes_before_the_next_row_is_written() -> None:
    process = subprocess.Popen([*COMMAND, "-", "-q"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    for pred in ("1", r"\sqrt{1}+0x", "2"):
        process.stdin.write(lines({"gold": "1", "pred": pred}))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["pred"] == pred
    process.stdin.close()
    assert process.wait(30) == 0


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    process = subprocess.Popen([*COMMAND, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(lines({"gold": "1", "pred": "1"}))
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    with pytest.raises(BrokenPipeError):
        for _ in range(1000):
            process.stdin.write(lines({"gold": "1", "pred": "1"}) * 100)
            process.stdin.flush()
            time.sleep(0.01)
    process.wait(30)
    assert b"Traceback" not in process.stderr.read()


def test_compressed_and_parquet(tmp_path: Path) -> None:
    import gzip

    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(lines({"gold": "1", "pred": "1"})))
    assert rows(verify(str(packed)))[0]["verdict"] == "correct"


def test_the_self_test_lists_faulty_golds_and_pairs(tmp_path: Path) -> None:
    file = tmp_path / "golds.jsonl"
    file.write_bytes(
        lines(
            {"question": "a", "answer": "5"},
            {"question": "b", "answer": "x = 5"},
            {"question": "c", "answer": r"\frac{1}{2"},
            {"question": "d", "answer": r"\bigcup_{k} (k, k+1)"},
            {"question": "e", "answer": r"\sqrt{2}"},
            {"question": "f", "answer": ""},
            {"kind": "problem/1", "id": "g", "source": "s", "prompt": "g", "answer": "4.5", "answer_kind": "integer"},
        )
    )
    done = verify("--self-test", str(file), "--pairs", "500")
    assert done.returncode == 1, done.stderr.decode()
    found = [(row["id"].rsplit("/", 1)[-1], row["fault"]) for row in rows(done)]
    assert [pair for pair in found if pair[1] != "accepted_pair"] == [
        ("golds.jsonl:6", "the answer is empty"),
        ("3", "extraction"),
        ("4", "unparseable"),
        ("g", "answer_kind"),
    ]
    assert {pair[0] for pair in found if pair[1] == "accepted_pair"} == {"1", "2"}
    assert verify("--self-test", str(file), "--pairs", "500").stdout == done.stdout


CASES = Path(__file__).parents[3] / "shared" / "cases" / "verify"


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
@pytest.mark.parametrize("name", ["public", "gsm8k_answers", "stress"])
def test_the_public_cases(name: str) -> None:
    done = verify(str(CASES / f"{name}.jsonl"))
    judged = rows(done)
    assert not [row for row in judged if row["verdict"] == "correct" and not row["expected"]]
    assert not [row for row in judged if row["verdict"] != "correct" and row["expected"]]
    assert os.path.exists("/tmp/verify-research/PWNED") is False


def test_odd_files(tmp_path: Path) -> None:
    marked = tmp_path / "marked.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + lines({"gold": "1", "pred": "1"}).replace(b"\n", b"\r\n") * 2)
    assert [row["verdict"] for row in rows(verify(str(marked)))] == ["correct", "correct"]
    long = lines({"gold": "1", "pred": "x" * (17 << 20)}, {"gold": "1", "pred": "1"}) + b'{"a":' + b"[" * 100_000
    found = rows(verify("-", data=long))
    assert found[0]["error"] == "line 1: a line of more than 16 MiB" and found[1]["verdict"] == "correct"
    assert "nested too deep" in found[2]["error"]
    refused = verify(str(tmp_path))
    assert refused.returncode == 2 and b"not a directory" in refused.stderr


def test_ctrl_c_ends_it_in_one_line() -> None:
    process = subprocess.Popen([*COMMAND, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(lines({"gold": "1", "pred": r"\sqrt{2}"}))
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.stderr.read() == b"error: interrupted\n"


def test_a_kind_that_is_none_is_said(tmp_path: Path) -> None:
    data = lines(
        {"gold": "1", "pred": "1", "kind": "answers"},
        {"gold": "1", "pred": "1", "answer_kind": "number"},
        {"gold": "1", "pred": "1", "kind": "trajectory/1"},
    )
    found = rows(verify("-", data=data))
    assert [row["verdict"] for row in found] == ["undecided", "undecided", "correct"]
    assert "neither answer nor response" in found[0]["error"] and "--answer-kind" in found[1]["error"]


def test_rows_that_were_judged_before_keep_nothing_of_it() -> None:
    first = verify("-", data=lines({"gold": "1", "pred": "so 1", "kind": "response"}, {"gold": "2"}))
    again = rows(verify("-", "--kind", "answer", data=first.stdout.replace(b'{"gold":"2"', b'{"gold":"2","pred":"2"')))
    assert "extracted" not in again[0] and again[1]["verdict"] == "correct" and "error" not in again[1]
    own = rows(verify("-", data=lines({"gold": "1", "pred": "1", "error": "mine", "extracted": "mine"})))
    assert own[0]["error"] == "mine" and own[0]["extracted"] == "mine"


def test_blank_lines_and_half_surrogates_are_named() -> None:
    found = rows(verify("-", data=b'   \n{"gold": "1", "pred": "\\ud800"}\n'))
    assert found[0]["error"] == "line 1: a blank line" and "surrogate" in found[1]["error"]


@pytest.mark.parametrize(
    "options, message",
    [
        (["--pairs", "5", "--seed", "1"], b"--pairs, --seed: only with --self-test"),
        (["-f", "csv"], b"--format: only with --self-test"),
        (["--self-test", "--kind", "answer"], b"--kind: only without --self-test"),
        (["--set", "policy.decimal_digits=0"], b"decimal_digits must be 1 or more"),
        (["--set", "fallbacks=[boxed]"], b"not a list"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options: list[str], message: bytes) -> None:
    done = verify("-", *options)
    assert done.returncode == 2 and message in done.stderr


def test_a_list_can_be_set_as_keys_prints_it() -> None:
    data = lines({"gold": "1", "pred": "it is 1", "kind": "response"})
    assert rows(verify("-", "--set", 'fallbacks=["boxed"]', data=data))[0]["reason"] == "no_answer"
    assert rows(verify("-", "--set", 'fallbacks=["boxed", "number"]', data=data))[0]["verdict"] == "correct"


def test_golds_need_no_question() -> None:
    done = verify("--self-test", "-", "--gold-field", "truth", data=lines({"truth": "1"}, {"truth": "x +"}))
    assert [(row["fault"], row["gold"]) for row in rows(done)] == [("unparseable", "x +")]


def test_a_closed_output_is_said() -> None:
    done = subprocess.run(
        ["sh", "-c", f"{' '.join(COMMAND)} - >&-"], input=lines({"gold": "1", "pred": "1"}), capture_output=True
    )
    assert done.returncode == 6 and b"standard output is closed" in done.stderr
