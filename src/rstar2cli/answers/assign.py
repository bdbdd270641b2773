"""Values with names: ``x = 1, y = 2`` and ``(x, y) = (1, 2)`` say the same."""

from __future__ import annotations

from rstar2cli.answers.values import Group, Named, Value


def assigned(value: Value) -> dict[str, Value] | None:
    """Each name with its value; null for what names fewer than two different things."""
    if isinstance(value, Named) and value.name.startswith("(") and isinstance(value.value, Group):
        names, values = value.name[1:-1].split(","), value.value.items
        if len(names) == len(values) == len(set(names)) and value.value.opening in ("(", ""):
            return dict(zip(names, values, strict=True))
        return None
    if not isinstance(value, Group) or value.opening not in ("", "("):
        return None
    named = [item for item in value.items if isinstance(item, Named)]
    names = [item.name for item in named]
    if len(named) < max(2, len(value.items)) or len(set(names)) < len(names):
        return None
    return {item.name: item.value for item in named}


def solutions(items: tuple[Value, ...]) -> tuple[Value, ...]:
    """``x=1, y=2, x=3, y=4`` as (1, 2), (3, 4): names that come round again begin another solution."""
    named = [item for item in items if isinstance(item, Named)]
    names = list(dict.fromkeys(item.name for item in named))
    size = len(names)
    if len(named) < len(items) or size < 2 or len(items) == size or len(items) % size:
        return items
    rounds = [{item.name: item for item in named[at : at + size]} for at in range(0, len(named), size)]
    if any(set(one) != set(names) for one in rounds):
        return items
    return tuple(
        Group(", ".join(one[name].source for name in names), "(", ")", tuple(one[name].value for name in names))
        for one in rounds
    )
