"""``rstar2 model`` as a user runs it."""

from __future__ import annotations

import json

import pytest

from rstar2cli.cli.app import run


def last(capsys) -> tuple[str, str]:
    out, err = capsys.readouterr()
    return out.strip(), err


def test_init_info_export(tmp_path, capsys):
    tiny, copy = str(tmp_path / "tiny"), str(tmp_path / "copy")
    assert run(["model", "init", "-o", tiny, "--seed", "2"]) == 0
    assert last(capsys)[0] == tiny
    assert run(["model", "info", tiny]) == 0
    found = json.loads(last(capsys)[0])
    assert (found["vocabulary"], found["layers"], found["chatml"]) == (259, 2, True)
    assert run(["model", "export", tiny, "-o", copy, "--dtype", "float32", "--json"]) == 0
    assert json.loads(last(capsys)[0])["out"] == copy
    assert run(["model", "info", copy, "-f", "table"]) == 0
    assert "F32" in last(capsys)[0]
    assert run(["model", "import", copy, "-o", str(tmp_path / "back"), "--json"]) == 0
    assert json.loads(last(capsys)[0])["digest"] == found["digest"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["info", "{}/gone"], 4, "no such model directory"),
        (["import", "{}/gone.gguf", "-o", "{}/out"], 4, "no such file"),
        (["import", "demo:gpt5", "-o", "{}/out"], 2, "known: demo:smollm2"),
        (["init", "-o", "{}/m", "--heads", "6", "--kv-heads", "4"], 2, "possible: [1, 2, 3, 6]"),
        (["init", "-o", "{}/m", "--head-dim", "7"], 2, "possible: 6, 8"),
        (["export", "{}", "-o", "{}/out"], 4, "no config.json"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path, capsys, arguments, code, message):
    filled = [argument.replace("{}", str(tmp_path)) for argument in arguments]
    assert run(["model", *filled]) == code
    assert message in last(capsys)[1]


def test_an_existing_model_is_kept_unless_asked(tmp_path, capsys):
    tiny = str(tmp_path / "tiny")
    assert run(["model", "init", "-o", tiny]) == 0
    assert run(["model", "init", "-o", tiny]) == 5
    assert "--overwrite" in last(capsys)[1]
    assert run(["model", "init", "-o", tiny, "--overwrite", "--seed", "9"]) == 0
