"""Verdicts and speed of the answer check, side by side with math-verify.

    python benchmarks/answers.py [FILE...] [--quick] [--json answers.json]

FILE: JSONL rows with ``gold``, ``pred``, ``expected`` (true or false) and ``kind`` (answer or
response; default answer); without one, the rows of ``tests/grading/pairs.jsonl``. Both checkers see
the same rows in the same order in this process, one after the other: accuracy, false positives and
negatives, median, 99th percentile and worst time of a row, rows over one second. Then, for ours
alone: integer answers a minute on one thread, and whether the verdicts are the same from 16 threads,
from asyncio, and while one row hangs. math-verify is compared with where it is installed
(``pip install math-verify``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rstar2cli.answers.extract import LENIENT
from rstar2cli.grading.grade import Grader
from rstar2cli.grading.workers import Workers

OWN = Path(__file__).parent.parent / "tests" / "grading" / "pairs.jsonl"
HANGING = (r"\int_0^\infty \sin(x^x) e^{\sin(x^9)} dx", "x+x")
Row = dict[str, Any]
Check = Callable[[Row], bool]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="labelled rows (default: our own)")
    parser.add_argument("--quick", action="store_true", help="the first 100 rows of each file, 10 000 integers")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    options = parser.parse_args()
    results: dict[str, Any] = {"benchmark": "answers", "quick": options.quick, "files": {}}
    with Workers() as workers:
        workers.ready()
        strict, lenient = Grader(workers=workers), Grader(workers=workers, extraction=LENIENT)
        checkers: dict[str, Check] = {"rstar2": _ours(strict, lenient)}
        theirs = _math_verify()
        if theirs is None:
            print("math-verify is not installed: ours alone", file=sys.stderr)
        else:
            checkers["math-verify"] = theirs
        for name in options.files or [str(OWN)]:
            rows = _rows(name)[: 100 if options.quick else None]
            for checker, check in checkers.items():
                figures = _measure(rows, check)
                results["files"].setdefault(name, {})[checker] = figures
                print(f"{Path(name).name:<22} {checker:<12} {_line(figures)}", flush=True)
        results["integers_per_minute"] = _integers(strict, 10_000 if options.quick else 100_000)
        print(f"integer answers on one thread: {results['integers_per_minute']:,} a minute")
        rows = _rows(options.files[0] if options.files else str(OWN))[:100]
        results["same_verdicts"] = _concurrent(rows, strict, lenient)
        for how, same in results["same_verdicts"].items():
            print(f"verdicts {how}: {'the same' if same else 'DIFFERENT'}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 0 if all(results["same_verdicts"].values()) else 1


def _rows(name: str) -> list[Row]:
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines() if line.strip()]


def _ours(strict: Grader, lenient: Grader) -> Check:
    def check(row: Row) -> bool:
        if row.get("kind") == "response":
            return lenient.grade(row["pred"], row["gold"], None).verdict == "correct"
        return strict.compare(row["pred"], row["gold"]).verdict == "correct"

    return check


def _math_verify() -> Check | None:
    """math-verify as its own README uses it: gold and answer parsed, both extraction targets, 5 s limits."""
    try:
        from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
    except ImportError:
        return None
    import logging

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    targets = [LatexExtractionConfig(), ExprExtractionConfig()]

    def check(row: Row) -> bool:
        pred = row["pred"] if row.get("kind") == "response" else f"\\boxed{{{row['pred']}}}"
        return bool(verify(parse(f"\\boxed{{{row['gold']}}}", targets), parse(pred, targets)))

    return check


def _measure(rows: Sequence[Row], check: Check) -> dict[str, Any]:
    seconds, false_positives, false_negatives = [], 0, 0
    for row in rows:
        begun = time.perf_counter()
        correct = check(row)
        seconds.append(time.perf_counter() - begun)
        false_positives += correct and not row["expected"]
        false_negatives += row["expected"] and not correct
    in_order = sorted(seconds)
    return {
        "rows": len(rows),
        "accuracy": 1 - (false_positives + false_negatives) / len(rows),
        "false_positives": false_positives,
        "false_negatives": false_negatives,
        "median_ms": statistics.median(seconds) * 1e3,
        "p99_ms": in_order[int(0.99 * (len(rows) - 1))] * 1e3,
        "worst_ms": in_order[-1] * 1e3,
        "over_1_s": sum(s > 1 for s in seconds),
    }


def _line(figures: dict[str, Any]) -> str:
    return (
        f"{figures['rows']:>5} rows  accuracy {figures['accuracy']:.4f}  "
        f"false +{figures['false_positives']} -{figures['false_negatives']}  "
        f"median {figures['median_ms']:.3f} ms  p99 {figures['p99_ms']:.1f}  worst {figures['worst_ms']:.0f}  "
        f"over 1 s: {figures['over_1_s']}"
    )


def _integers(grader: Grader, count: int) -> int:
    draw = random.Random(0)
    golds = [str(draw.randrange(10**6)) for _ in range(count)]
    texts = [f"<answer>\\boxed{{{gold if at % 2 else int(gold) + 1}}}</answer>" for at, gold in enumerate(golds)]
    begun = time.perf_counter()
    for text, gold in zip(texts, golds, strict=True):
        grader.grade(text, gold, "integer")
    return round(count / (time.perf_counter() - begun) * 60)


def _concurrent(rows: Sequence[Row], strict: Grader, lenient: Grader) -> dict[str, bool]:
    check = _ours(strict, lenient)
    wanted = [check(row) for row in rows]
    with ThreadPoolExecutor(16) as threads:
        threaded = list(threads.map(check, rows))

    async def gathered() -> list[bool]:
        futures = [
            lenient.submit(row["pred"], row["gold"], None)
            if row.get("kind") == "response"
            else strict.submit_answer(row["pred"], row["gold"], None)
            for row in rows
        ]
        grades = await asyncio.gather(*map(asyncio.wrap_future, futures))
        return [grade.verdict == "correct" for grade in grades]

    stop = threading.Event()

    def hang() -> None:
        while not stop.is_set():
            strict.compare(*HANGING)

    hanging = threading.Thread(target=hang)
    hanging.start()
    try:
        while_hanging = list(map(check, rows))
    finally:
        stop.set()
        hanging.join()
    return {
        "from 16 threads": threaded == wanted,
        "from asyncio": asyncio.run(gathered()) == wanted,
        "while one row hangs": while_hanging == wanted,
    }


if __name__ == "__main__":
    raise SystemExit(main())
