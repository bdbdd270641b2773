"""Conversations end to end: the real sandbox answers every call, and the dialogue can render what comes out."""

import json

import pytest

from rstar2cli.core import drain
from rstar2cli.core.errors import Stopped
from rstar2cli.curation.config import CurateConfig, FaultsConfig
from rstar2cli.curation.faults import FAULTS
from rstar2cli.curation.run import curate
from rstar2cli.curation.synth.registry import FAMILIES
from rstar2cli.dialogue.calls import parse_calls
from rstar2cli.records import Conversation
from rstar2cli.records.codec import encode_line
from rstar2cli.sandbox.config import SandboxConfig


def converse(*inputs, limit=None, seed=0, **values):
    rejects = []
    config = CurateConfig(emit="conversations", sandbox=SandboxConfig(wall_s=20, cpu_s=20), **values)
    made = list(curate(list(inputs) or ["synth:"], config, seed=seed, limit=limit, on_reject=rejects.append))
    assert all(isinstance(conversation, Conversation) for conversation in made)
    return made, rejects


@pytest.fixture(scope="module")
def clean():
    made, rejects = converse(limit=len(FAMILIES), faults=FaultsConfig(share=0.0))
    assert not rejects
    return made


@pytest.fixture(scope="module")
def faulty():
    made, rejects = converse(limit=44, faults=FaultsConfig(share=1.0))
    assert not rejects
    return made


def test_every_family_gives_reason_call_real_output_and_one_answer(clean):
    assert {c.extra["family"] for c in clean} == set(FAMILIES)
    for conversation in clean:
        user, call, tool, final = conversation.messages
        assert [m.role for m in conversation.messages] == ["user", "assistant", "tool", "assistant"]
        assert call.content.endswith("</reason>")
        arguments = json.loads(call.tool_calls[0].arguments)
        assert set(arguments) == {"code", "input"}
        assert tool.content == f"Tool call success\nstdout: {conversation.extra['answer']}"
        assert tool.tool_call_id == call.tool_calls[0].id
        assert final.content.endswith(f"<answer>\\boxed{{{conversation.extra['answer']}}}</answer>")
        assert "<answer>" not in call.content + user.content
        assert conversation.extra["problem"] == conversation.extra["problem_id"] == conversation.id


def test_faults_fail_for_real_and_are_mended(faulty):
    assert all("fault" in c.extra for c in faulty)
    kinds = {c.extra["fault"] for c in faulty}
    assert len(kinds) >= 6
    for conversation in faulty:
        _, broken, response, mended, success, _ = conversation.messages
        if conversation.extra["fault"] == "not_printed":
            assert response.content == "Tool call success"
        else:
            assert response.content.startswith(("Tool call failure", "Failed to decode", "Error when executing"))
        assert success.content == f"Tool call success\nstdout: {conversation.extra['answer']}"
        assert broken.tool_calls[0].arguments != mended.tool_calls[0].arguments
        assert [broken.train, mended.train] == [None, None]
        fault = next(fault for fault in FAULTS if fault.name == conversation.extra["fault"])
        assert mended.content.removesuffix("</reason>") in fault.mends


def test_the_failing_turn_can_be_kept_out_of_the_loss():
    made, _ = converse(limit=4, faults=FaultsConfig(share=1.0, train=False))
    for conversation in made:
        assert [m.train for m in conversation.messages if m.role == "assistant"] == [False, None, None]


def test_the_share_of_faults_is_as_set():
    made, _ = converse(limit=120, faults=FaultsConfig(share=0.3))
    assert 0.15 < sum("fault" in c.extra for c in made) / len(made) < 0.45


def test_the_same_seed_gives_the_same_conversations_and_a_limit_a_prefix(clean):
    again, _ = converse(limit=10, faults=FaultsConfig(share=0.0))
    assert again == clean[:10]
    other, _ = converse(limit=10, seed=1, faults=FaultsConfig(share=0.0))
    assert other != again


def test_texts_are_short(clean):
    words = sum(len(m.content) for c in clean for m in c.messages if m.role == "assistant")
    assert words / len(clean) < 250


def test_problems_read_back_from_a_file_become_the_same_conversations(clean, tmp_path):
    config = CurateConfig()
    path = tmp_path / "problems.jsonl"
    problems = list(curate(["synth:"], config, seed=0, limit=6, on_reject=pytest.fail))
    path.write_bytes(b"".join(map(encode_line, problems)))
    made, rejects = converse(str(path), faults=FaultsConfig(share=0.0))
    assert not rejects
    assert made == clean[:6]


def test_problems_without_a_family_or_with_another_answer_are_rejected(tmp_path):
    problem = next(curate(["synth:gcd_lcm"], CurateConfig(), seed=0, limit=1, on_reject=pytest.fail))
    rows = [
        {"question": "q", "answer": "1"},
        json.loads(encode_line(problem)) | {"answer": "5"},
        json.loads(encode_line(problem)) | {"id": "b", "extra": {"family": "gcd_lcm", "params": {"a": 4}}},
    ]
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made, rejects = converse(str(path), duplicates="keep")
    assert made == []
    assert [(r.file, r.line) for r in rejects] == [(str(path), 1), (problem.source, 0), (problem.source, 0)]
    named = ["problem raw/1: ", f"problem {problem.id}: ", "problem b: "]
    assert all(r.reason.startswith(name) for r, name in zip(rejects, named, strict=True))
    reasons = [r.reason.removeprefix(name) for r, name in zip(rejects, named, strict=True)]
    assert [reason.split(":")[0].split(" of")[0] for reason in reasons] == [
        "not",
        "the answer",
        "extra.params are none",
    ]


def test_a_stop_is_heeded_between_conversations(clean):
    config = CurateConfig(emit="conversations", faults=FaultsConfig(share=0.0))
    made = []
    try:
        with pytest.raises(Stopped):
            for conversation in curate(["synth:"], config, seed=0, limit=22, on_reject=pytest.fail):
                made.append(conversation)
                if len(made) == 3:
                    drain.request("SIGTERM")
    finally:
        drain.reset()
    assert made == clean[:3]
    done = {conversation.id for conversation in made}
    rest = curate(["synth:"], config, seed=0, limit=22, on_reject=pytest.fail, done=done)
    assert made + list(rest) == clean


def test_calls_parse_as_a_model_s_would(clean):
    from rstar2cli.dialogue.calls import format_call

    for conversation in clean:
        call = conversation.messages[1].tool_calls[0]
        (parsed,) = parse_calls(format_call(call.name, call.arguments))
        assert parsed.error is None
