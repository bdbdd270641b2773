"""Faults: each breaks the programs of the families in the way it promises, for real."""

import json
import random
import subprocess
import sys

import pytest

from rstar2cli.curation.faults import FAULTS, Fault, arguments_text
from rstar2cli.curation.synth.registry import FAMILIES
from rstar2cli.dialogue.calls import format_call, parse_calls
from rstar2cli.dialogue.tools import PYTHON_TOOL, CallProblem, check_call

PROGRAMS = [
    family.fill(program, family.draw(random.Random(1))) for family in FAMILIES.values() for program in family.programs
]
BY_NAME = {fault.name: fault for fault in FAULTS}
EXPECTED_ERROR = {
    "misspelled_name": ("NameError", "AttributeError", "ImportError"),
    "missing_import": ("NameError",),
    "unclosed_parenthesis": ("SyntaxError",),
    "missing_colon": ("SyntaxError",),
    "number_as_text": ("TypeError",),
}


def broken(fault: Fault, seed: int) -> list[str]:
    texts = [fault.arguments(code, random.Random(seed)) for code in PROGRAMS]
    return [text for text in texts if text is not None]


@pytest.mark.parametrize("fault", FAULTS, ids=list(BY_NAME))
def test_each_fault_applies_to_several_programs_and_changes_them(fault):
    texts = broken(fault, 0)
    assert len(texts) >= 4
    assert not {arguments_text(code) for code in PROGRAMS} & set(texts)
    assert len(fault.mends) >= 2


@pytest.mark.parametrize("name", sorted(EXPECTED_ERROR))
def test_broken_code_raises_the_promised_error(name):
    for text in broken(BY_NAME[name], 3)[:6]:
        done = run(json.loads(text)["code"])
        last = done.stderr.strip().rsplit("\n", 1)[-1]
        if done.returncode == 0:
            # a quoted number may still work; the author of conversations then takes another fault
            assert name == "number_as_text"
        else:
            assert last.startswith(EXPECTED_ERROR[name]), last


def test_unprinted_results_run_and_print_nothing():
    for text in broken(BY_NAME["not_printed"], 0)[:4]:
        done = run(json.loads(text)["code"])
        assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", ["bare_newline", "unclosed_text"])
def test_malformed_calls_do_not_parse(name):
    for text in broken(BY_NAME[name], 0):
        (call,) = parse_calls(format_call(PYTHON_TOOL, text))
        assert call.error


def test_a_call_without_input_is_refused():
    for text in broken(BY_NAME["missing_input"], 0):
        (call,) = parse_calls(format_call(PYTHON_TOOL, text))
        with pytest.raises(CallProblem, match="input"):
            check_call(call.name, call.arguments)


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
