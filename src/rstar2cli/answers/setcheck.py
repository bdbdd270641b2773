"""Whether inequalities, intervals, equations and what set signs build of them say the same."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rstar2cli.answers.formulas import as_latex, turned, variables
from rstar2cli.answers.groups import distinct, in_any_order
from rstar2cli.answers.realset import real_set, same_set
from rstar2cli.answers.values import Empty, Group, Number, Relation, SetBuilt, Value

if TYPE_CHECKING:
    from rstar2cli.answers.checker import Checker


def same_as_sets(check: Checker, gold: Value, answer: Value) -> bool:
    """Inequalities, intervals and what is built of them; equations that are no plain assignment."""
    if isinstance(gold, Empty) or isinstance(answer, Empty):
        if isinstance(gold, Empty) and isinstance(answer, Empty):
            return True
        other = answer if isinstance(gold, Empty) else gold
        if not isinstance(other, SetBuilt):
            return False
    kinds_differ = isinstance(gold, Relation) != isinstance(answer, Relation)
    if kinds_differ and not check.policy.interval_as_inequality:
        return False
    gold, answer = _united(gold, answer), _united(answer, gold)
    first, second = real_set(gold), real_set(answer)
    if first is not None and second is not None:
        if first[1] and second[1] and first[1].replace(" ", "") != second[1].replace(" ", ""):
            return isinstance(gold, Relation) and isinstance(answer, Relation) and same_sides(check, gold, answer)
        with contextlib.suppress(_NoOrder):  # ends with variables: compared part by part
            return same_set(first[0], second[0], lambda values: rank(check, values))
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return same_sides(check, gold, answer) or check.algebra.same_relation(gold, answer)
    if isinstance(gold, SetBuilt) and isinstance(answer, SetBuilt) and gold.operation == answer.operation:
        return check.same(gold.left, answer.left) and check.same(gold.right, answer.right)
    group_like = [isinstance(value, SetBuilt) for value in (gold, answer)]
    if any(group_like):
        flat = [_flatten_finite(check, value) for value in (gold, answer)]
        if flat[0] is not None and flat[1] is not None:
            return in_any_order(check, distinct(flat[0]), distinct(flat[1]))
    relation, other = (gold, answer) if isinstance(gold, Relation) else (answer, gold)
    if isinstance(relation, Relation) and isinstance(other, Group):
        return _solved(check, relation, other, relation is gold)
    return False


def _united(value: Value, other: Value) -> Value:
    """A bare list of intervals as their union, where the other side is one."""
    intervals = isinstance(value, Group) and value.opening == "" and len(value.items) > 1
    if not intervals or not isinstance(other, SetBuilt) or real_set(other) is None:
        return value
    assert isinstance(value, Group)
    if any(not isinstance(item, Group) or not _rising(item) for item in value.items):
        return value
    union = value.items[0]
    for item in value.items[1:]:
        union = SetBuilt(value.source, "cup", union, item)
    return union


def _rising(pair: Group) -> bool:
    """Whether a pair can be an interval: (2, 1) is a point."""
    if real_set(pair) is None:
        return False
    low, high = pair.items
    return not (isinstance(low, Number) and isinstance(high, Number) and low.value >= high.value)


def _solved(check: Checker, relation: Relation, other: Group, relation_is_gold: bool) -> bool:
    """A relation that is not solved yet (2x > 4) against an interval: the interval as a relation."""
    letters = {c for side in relation.sides for c in variables(side)}
    if len(letters) != 1 or real_set(other) is None:
        return False
    other_relation = _interval_as_relation(other, letters.pop())
    if other_relation is None:
        return False
    pair = (relation, other_relation) if relation_is_gold else (other_relation, relation)
    return check.algebra.same_relation(*pair)


def same_sides(check: Checker, gold: Relation, answer: Relation) -> bool:
    """Whether the relations are the same side by side, read in either direction."""
    for backwards in (False, True):
        sides = answer.sides[::-1] if backwards else answer.sides
        signs = tuple(turned(s) for s in answer.signs[::-1]) if backwards else answer.signs
        if signs == gold.signs and all(
            a.replace(" ", "") == b.replace(" ", "") for a, b in zip(gold.sides, sides, strict=True)
        ):
            return True
    return False


def rank(check: Checker, values: list[Value]) -> list[int]:
    """Places of constants in increasing order, from 0 without gaps."""
    if all(isinstance(value, Number) for value in values):
        numbers = [value.value for value in values if isinstance(value, Number)]
        order = {value: at for at, value in enumerate(sorted(set(numbers)))}
        return [order[value] for value in numbers]
    if any(variables(value.source) for value in values):
        raise _NoOrder
    return check.algebra.rank([as_latex(value) for value in values])


class _NoOrder(Exception):
    """End points with variables have no order."""


def _flatten_finite(checker: Checker, value: Value) -> tuple[Value, ...] | None:
    """Members of a finite set that is built by unions, intersections and differences."""
    if isinstance(value, Empty):
        return ()
    if isinstance(value, Group) and value.opening == "{":
        return value.items
    if not isinstance(value, SetBuilt):
        return None
    left, right = _flatten_finite(checker, value.left), _flatten_finite(checker, value.right)
    if left is None or right is None:
        return None
    if value.operation == "cup":
        return left + right
    common = value.operation == "cap"
    return tuple(item for item in left if any(checker.same(item, other) for other in right) == common)


def _interval_as_relation(group: Group, name: str) -> Relation | None:
    if group.opening not in ("(", "[") or len(group.items) != 2:
        return None
    low, high = (item.source.replace(" ", "") for item in group.items)
    signs = ("<=" if group.opening == "[" else "<", "<=" if group.closing == "]" else "<")
    if low == "-\\infty":
        return Relation(group.source, (name, high), (signs[1],))
    if high.lstrip("+") == "\\infty":
        return Relation(group.source, (low, name), (signs[0],))
    return Relation(group.source, (low, name, high), signs)
