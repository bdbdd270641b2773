"""Conversations → token sequences to learn from; what can't be learned from is refused with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rstar2cli.core.errors import DataError
from rstar2cli.dialogue.dialogue import Dialogue
from rstar2cli.policy.packing import TrainSequence
from rstar2cli.records import Conversation

OnReject = Callable[[Conversation, str], None]
"""Called with a conversation that is left out and why."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One conversation as tokens."""

    id: str
    """Id of the conversation."""
    sequence: TrainSequence
    """Tokens, and which of them the model learns: what the assistant wrote, its stop tokens included."""


def make_examples(
    conversations: Iterable[Conversation], dialogue: Dialogue, max_length: int, on_reject: OnReject
) -> list[Example]:
    """Render every conversation; those over ``max_length`` tokens or with nothing to learn go to ``on_reject``."""
    examples = []
    for conversation in conversations:
        try:
            rendered = dialogue.render(conversation)
        except DataError as error:
            on_reject(conversation, error.message)
            continue
        if len(rendered.ids) > max_length:
            on_reject(conversation, f"{len(rendered.ids)} tokens, more than max_length {max_length}")
        elif not any(rendered.mask):
            on_reject(conversation, "nothing to learn: no assistant message with train on")
        else:
            sequence = TrainSequence(ids=rendered.ids, mask=rendered.mask)
            examples.append(Example(id=conversation.id, sequence=sequence))
    return examples
