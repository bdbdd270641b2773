"""Loading and saving: what is not a model says so, and what was saved is what is loaded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from rstar2cli.core.errors import DataError, EnvironmentMissing, InputMissing, OutputConflict, UsageError
from rstar2cli.policy.checkpoint import named_weights, replacing_directory, save_model
from rstar2cli.policy.devices import pick_device, pick_dtype, prepare_for_training
from rstar2cli.policy.digest import checkpoint_digest, model_digest, weights_digest
from rstar2cli.policy.load import load_policy, load_tokenizer, resolve_model
from rstar2cli.policy.tiny import byte_tokenizer, init_tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny"
    init_tiny(path, seed=1)
    return path


@pytest.fixture
def copy(tiny, tmp_path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "copy"))


def test_a_saved_model_is_the_same_model(tiny, tmp_path):
    policy = load_policy(tiny, device="cpu", dtype="float32")
    digest = save_model(policy.model, policy.tokenizer, tmp_path / "out")
    assert digest == policy.digest == checkpoint_digest(tmp_path / "out") == model_digest(policy.model, torch.bfloat16)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == "bfloat16"
    again = load_policy(tmp_path / "out", device="cpu", dtype="float32").model
    for (name, a), (_, b) in zip(policy.model.named_parameters(), again.named_parameters(), strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_is_stored_only_if_it_is_its_own(tmp_path, tied):
    init_tiny(tmp_path / "m", tied=tied)
    policy = load_policy(tmp_path / "m", device="cpu", dtype="bfloat16")
    assert ("lm_head.weight" in dict(named_weights(policy.model))) is not tied
    explicit = dict(named_weights(policy.model, explicit_head=True))
    assert torch.equal(explicit["lm_head.weight"], policy.model.get_output_embeddings().weight)
    assert weights_digest(named_weights(policy.model)) == policy.digest == model_digest(policy.model)


def test_digest_sees_name_type_shape_and_bytes():
    one = torch.tensor([1.0, 2.0])
    base = weights_digest([("a", one), ("b", one)])
    assert base == weights_digest([("b", one), ("a", one)])
    others = [[("a", one), ("c", one)], [("a", one), ("b", one.double())], [("a", one), ("b", one[None])]]
    others.append([("a", one), ("b", torch.tensor([1.0, 2.5]))])
    assert len({base, *(weights_digest(other) for other in others)}) == 5


def test_the_same_seed_makes_the_same_model(tiny, tmp_path):
    assert init_tiny(tmp_path / "same", seed=1) == checkpoint_digest(tiny) != init_tiny(tmp_path / "other", seed=2)


def test_making_a_model_leaves_the_random_state(tmp_path):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    init_tiny(tmp_path / "m")
    assert torch.equal(torch.rand(1), expected)


def test_byte_tokenizer_gives_back_any_text():
    tokenizer = byte_tokenizer()
    text = "<|im_start|>user\né 漢 \x00\t  x<|im_end|>\n"
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text
    assert max(ids) < len(tokenizer) == 259
    assert [tokenizer.convert_ids_to_tokens(i) for i in (256, 257, 258)] == [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
    ]


def test_missing_directory_says_what_to_do(tmp_path):
    with pytest.raises(InputMissing, match="no such model directory") as caught:
        resolve_model(str(tmp_path / "nowhere"))
    assert "rstar2 model" in str(caught.value.hint)


def test_a_path_below_an_existing_directory_is_never_sought_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(InputMissing, match="runs/gone: no such model directory"):
        resolve_model("runs/gone")


def test_a_hub_id_without_the_hub(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises((EnvironmentMissing, InputMissing), match="nobody-here/no-model-of-this-name"):
        resolve_model("nobody-here/no-model-of-this-name")


def test_a_file_is_not_a_model(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(InputMissing, match="a model is a directory"):
        resolve_model(str(tmp_path / "m.gguf"))


def test_a_run_stands_for_its_model(copy, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"kind": "run/1", "model": "model"}))
    with pytest.raises(InputMissing, match="no model yet"):
        resolve_model(str(run))
    copy.rename(run / "model")
    assert resolve_model(str(run)) == run / "model"
    assert load_policy(run, device="cpu").path == run / "model"


def test_without_a_tokenizer(copy):
    (copy / "tokenizer.json").unlink()
    with pytest.raises(InputMissing, match="no tokenizer"):
        load_tokenizer(copy)


def test_a_damaged_tokenizer(copy):
    (copy / "tokenizer.json").write_text("{")
    with pytest.raises(DataError, match="tokenizer can't be read"):
        load_tokenizer(copy)


def test_without_weights(copy):
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(InputMissing, match=r"no weights.*pytorch_model\.bin"):
        load_policy(copy)


def test_without_a_configuration(copy):
    (copy / "config.json").unlink()
    with pytest.raises(InputMissing, match=r"no config\.json"):
        load_policy(copy)


def test_truncated_weights(copy):
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(DataError, match="copy"):
        load_policy(copy)


def test_missing_tensors_are_not_filled_with_noise(copy):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copy / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(DataError, match=r"1 missing \(model\.layers\.1\.mlp\.up_proj\.weight"):
        load_policy(copy)


def test_tensors_of_another_shape(copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "intermediate_size": 64}))
    with pytest.raises(DataError, match="copy"):
        load_policy(copy)


def test_a_failed_save_leaves_the_old_model(tiny, copy):
    with pytest.raises(RuntimeError), replacing_directory(copy) as directory:
        (directory / "half").write_text("")
        raise RuntimeError
    assert checkpoint_digest(copy) == checkpoint_digest(tiny)
    assert [p.name for p in copy.parent.iterdir()] == ["copy"]


def test_saving_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputConflict, match="can't write"), replacing_directory(tmp_path / "file" / "model"):
        pass


def test_devices_and_types():
    assert pick_device("cpu") == torch.device("cpu")
    with pytest.raises(UsageError, match="not a torch device"):
        pick_device("toaster")
    if not torch.cuda.is_available():
        with pytest.raises(EnvironmentMissing, match="0 accelerators"):
            pick_device("cuda:0")
    assert pick_dtype("float32") == torch.float32


def test_training_attention_is_taken_where_it_is_exact(tiny):
    model = load_policy(tiny, device="cpu").model
    assert prepare_for_training(model) == "rstar2_bmm" == model.config._attn_implementation
    model.config.sliding_window, model.config.use_sliding_window = 16, True
    assert prepare_for_training(model) == "sdpa"
