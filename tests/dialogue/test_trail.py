from __future__ import annotations

import pytest

from rstar2cli.dialogue.trail import TokenTrail


def test_tokens_mask_and_logprobs_stay_in_step() -> None:
    trail = TokenTrail([1, 2])
    trail.add_turn([3, 4], [-0.5, -1.0])
    trail.add_context([5])
    trail.add_turn([6], [-2.0])
    assert trail.ids == [1, 2, 3, 4, 5, 6] and len(trail) == 6
    assert trail.mask == [True, True, False, True]
    assert trail.logprobs == [-0.5, -1.0, None, -2.0]
    assert (trail.n_turns, trail.n_model_tokens) == (2, 3)


def test_a_missing_logprob_is_refused() -> None:
    with pytest.raises(ValueError, match="2 tokens with 1"):
        TokenTrail([]).add_turn([1, 2], [0.0])
