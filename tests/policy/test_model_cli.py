"""``rstar2 model`` as a user runs it."""

from __future__ import annotations

import json

import pytest

from rstar2cli.cli.app import run
from rstar2cli.policy.tiny import init_tiny


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


@pytest.mark.parametrize("command", [["init"], ["export", "{}/tiny"], ["import", "{}/tiny"]])
@pytest.mark.parametrize(
    ("name", "text"),
    [("thesis.txt", "mine"), ("part-00000.parquet", ""), ("manifest.json", "{}"), ("run.json", "{}"), ("d/x", "")],
)
def test_only_a_models_own_files_are_replaced(tmp_path, capsys, command, name, text):
    init_tiny(tmp_path / "tiny")
    init_tiny(tmp_path / "out")
    (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "out" / name).write_text(text)
    filled = [argument.replace("{}", str(tmp_path)) for argument in command]
    assert run(["model", *filled, "-o", str(tmp_path / "out"), "--overwrite"]) == 5
    err = last(capsys)[1]
    assert f"holds {name.partition('/')[0]}, which is no file of a model, so it is not replaced" in err
    assert (tmp_path / "out" / name).exists() and (tmp_path / "out" / "model.safetensors").exists()


def test_a_shard_directory_is_no_model(tmp_path, capsys):
    shards = str(tmp_path / "shards")
    assert run(["curate", "synth:", "--limit", "2", "-o", shards, "-q"]) == 0
    assert run(["model", "init", "-o", shards, "--overwrite"]) == 5
    assert "not a model directory, so it is not replaced" in last(capsys)[1]
    for command in (["model", "info", shards], ["rollout", shards, "-m", shards, "-o", str(tmp_path / "out")]):
        assert run(command) == 4
        err = last(capsys)[1]
        assert f"error: {shards}: a shard directory, not a model" in err and "-m" in err


@pytest.mark.parametrize("command", ["rollout", "eval"])
def test_cut_off_weights_are_bad_data(tmp_path, capsys, command):
    init_tiny(tmp_path / "m")
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    (tmp_path / "p.jsonl").write_text('{"kind":"problem/1","id":"p","source":"t","prompt":"1","answer":"1"}\n')
    assert run([command, str(tmp_path / "p.jsonl"), "-m", str(tmp_path / "m"), "-o", str(tmp_path / "o")]) == 3
    assert f"error: {weights}: damaged or cut-off weights" in last(capsys)[1]
    assert not (tmp_path / "o").exists()
