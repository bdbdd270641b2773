"""The endpoints of other services' shapes, as their own clients use them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import httpx
import pytest


@dataclass
class SubmissionResult:
    """What the code judge's client makes of a result: exactly these fields."""

    sub_id: str
    success: bool
    run_success: bool
    cost: float
    stdout: str | None = None
    stderr: str | None = None
    reason: str = ""


@dataclass
class ServerStatus:
    """What it makes of the status."""

    queue: int
    num_workers: int


def post(address: str, path: str, body: Any) -> Any:
    response = httpx.post(address + path, json=body, timeout=120)
    response.raise_for_status()
    return response.json()


def judged(address: str, **fields: Any) -> SubmissionResult:
    return SubmissionResult(**post(address, "/run", {"type": "python", **fields}))


def test_a_program_that_works(address: str) -> None:
    result = judged(address, solution="print(int(input()) + 1)", input="41", sub_id="mine")
    assert (result.sub_id, result.success, result.run_success, result.stdout) == ("mine", True, True, "42\n")
    assert result.reason == "unspecified" and 0 < result.cost < 30 and result.stderr == ""


@pytest.mark.parametrize("expected, success", [("42", True), (" 42\n", True), ("43", False)])
def test_what_is_expected_is_compared(address: str, expected: str, success: bool) -> None:
    result = judged(address, solution="print(42)", expected_output=expected)
    assert result.run_success and result.success == success


def test_a_program_that_fails(address: str) -> None:
    result = judged(address, solution="print('before')\n1/0")
    assert (result.success, result.run_success, result.stdout) == (False, False, "before\n")
    assert result.stderr is not None and "ZeroDivisionError" in result.stderr and result.reason == "unspecified"


def test_a_program_that_takes_too_long(serving: Any) -> None:
    with serving(sandbox__wall_s=2) as where:
        result = judged(where, solution="print('x', flush=True)\nwhile True: pass")
    assert (result.reason, result.run_success, result.stdout) == ("worker_timeout", False, "x\n")


@pytest.mark.parametrize("kind", ["math", "cpp"])
def test_other_types_are_invalid_input(address: str, kind: str) -> None:
    result = SubmissionResult(**post(address, "/run", {"type": kind, "solution": "1"}))
    assert result.reason == "invalid_input" and not result.success


@pytest.mark.parametrize("path", ["/run/batch", "/run/long-batch"])
def test_a_batch_of_512_is_answered_in_order_though_there_is_room_for_64(address: str, path: str) -> None:
    submissions = [{"type": "python", "solution": f"print({n})", "input": None, "sub_id": str(n)} for n in range(512)]
    found = post(address, path, {"type": "batch", "submissions": submissions, "sub_id": "all"})
    results = [SubmissionResult(**result) for result in found["results"]]
    assert found["sub_id"] == "all"
    assert [(r.sub_id, r.stdout, r.reason) for r in results] == [(str(n), f"{n}\n", "unspecified") for n in range(512)]


def test_no_room_is_the_reason_that_the_client_sends_again(serving: Any) -> None:
    with serving(queue=1, wait_s=0.3) as where:
        submissions = [{"type": "python", "solution": "import time\ntime.sleep(1)"}] * 2
        found = post(where, "/run/long-batch", {"type": "batch", "submissions": submissions})
    assert sorted(result["reason"] for result in found["results"]) == ["queue_timeout", "unspecified"]


def test_judging_leaves_out_what_was_printed(address: str) -> None:
    found = post(address, "/judge", {"type": "python", "solution": "print(1)", "expected_output": "1"})
    assert set(found) == {"sub_id", "success", "run_success", "cost", "reason"} and found["success"] is True
    for path in ("/judge/batch", "/judge/long-batch"):
        many = post(address, path, {"type": "batch", "submissions": [{"type": "python", "solution": "1/0"}] * 3})
        assert [result["success"] for result in many["results"]] == [False] * 3


def test_status_and_ping(address: str) -> None:
    assert ServerStatus(**httpx.get(address + "/status").json()) == ServerStatus(queue=0, num_workers=2)
    assert httpx.get(address + "/ping").json() == "pong"


@pytest.mark.parametrize(
    "body", [{"type": "batch", "submissions": []}, {"submissions": [{"type": "perl", "solution": ""}]}, {}, []]
)
def test_wrong_batches_are_refused(address: str, body: Any) -> None:
    assert httpx.post(address + "/run/long-batch", json=body).status_code == 400


def fusion(address: str, **fields: Any) -> Any:
    return post(address, "/run_code", {"language": "python", **fields})


def test_fusion_runs_a_program(address: str) -> None:
    found = fusion(address, code="print(input())", stdin="hi", compile_timeout=1, fetch_files=[])
    assert (found["status"], found["message"], found["files"]) == ("Success", "", {})
    ran = found["run_result"]
    assert (ran["status"], ran["return_code"], ran["stdout"], ran["stderr"]) == ("Finished", 0, "hi\n", "")
    assert found["compile_result"] is None and ran["execution_time"] > 0


def test_fusion_gives_files_to_the_program(address: str) -> None:
    files = {"data.txt": base64.b64encode(b"seven").decode(), "empty": None}
    code = "import os\nprint(open('data.txt').read(), os.path.getsize('empty'))"
    assert fusion(address, code=code, files=files)["run_result"]["stdout"] == "seven 0\n"
    refused = httpx.post(address + "/run_code", json={"code": "1", "files": {"x": "not base64!"}})
    assert refused.status_code == 400 and "base64" in refused.json()["error"]


@pytest.mark.parametrize(
    "code, timeout, status, code_status, return_code",
    [
        ("1/0", 10, "Failed", "Finished", 1),
        ("exit(3)", 10, "Failed", "Finished", 3),
        ("import os\nos.abort()", 10, "Failed", "Finished", -6),
        ("while True: pass", 0.5, "Failed", "TimeLimitExceeded", None),
    ],
)
def test_fusion_tells_how_a_program_ended(
    address: str, code: str, timeout: float, status: str, code_status: str, return_code: int | None
) -> None:
    found = fusion(address, code=code, run_timeout=timeout)
    ran = found["run_result"]
    assert (found["status"], ran["status"], ran["return_code"]) == (status, code_status, return_code)


def test_fusion_says_what_it_does_not_run(address: str) -> None:
    found = post(address, "/run_code", {"language": "cpp", "code": "int main(){}"})
    assert found["status"] == "SandboxError" and "python only" in found["message"]
