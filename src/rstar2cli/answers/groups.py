"""Whether two groups of values are the same: tuples, lists, sets, matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rstar2cli.answers.assign import solutions
from rstar2cli.answers.formulas import variables
from rstar2cli.answers.values import Formula, Group, Matrix, Named, Value

if TYPE_CHECKING:
    from rstar2cli.answers.checker import Checker


def same_matrix(check: Checker, gold: Value, answer: Value) -> bool:
    """Whether two matrices have equal entries; lists of lists and tuples stand for matrices and vectors."""
    first, second = _rows(gold, answer), _rows(answer, gold)
    if first is None or second is None:
        if any(isinstance(value, Formula) and "matrix" in value.source for value in (gold, answer)):
            return check.algebra.equal(gold.source, answer.source)
        return False
    if len(first) != len(second) or any(len(a) != len(b) for a, b in zip(first, second, strict=True)):
        return False
    return all(check.same(a, b) for x, y in zip(first, second, strict=True) for a, b in zip(x, y, strict=True))


def same_group(check: Checker, gold: Value, answer: Value) -> bool:
    """Whether two groups are the same: in order for tuples, in any order for sets and bare lists."""
    if not (isinstance(gold, Group) and isinstance(answer, Group)):
        return same_one_of_group(check, gold, answer)
    shapes = gold.opening, answer.opening
    first, second = _with_names(gold), _with_names(answer)
    named = [any(isinstance(item, Named) for item in items) for items in (first, second)]
    if named[0] != named[1] and _names_differ(first if named[0] else second):
        if _one_letter(first if named[0] else second):  # x_1 = 1, x_2 = 2: roots, in any order
            return check.policy.names == "optional" and in_any_order(check, _unnamed(first), _unnamed(second))
        # x = -5, p = 3 against -5, 3: the names are dropped, so the order counts
        return check.policy.names == "optional" and in_order(check, _by_name(first), _by_name(second))
    if named[0] and not named[1]:
        first = _unnamed(first)
    elif named[1] and not named[0]:
        second = _unnamed(second)
    own = [{item.name for item in group.items if isinstance(item, Named)} for group in (gold, answer)]
    if len(own[0]) == 1 and len(own[1]) == 1 and own[0] != own[1]:
        return False  # x = 1, x = 2 against y = 1, y = 2
    if shapes[0] == "{" or shapes[1] == "{":
        if not check.policy.set_as_list and shapes[0] != shapes[1]:
            return False
        if any(shape not in ("{", "") for shape in shapes):
            return False
        return in_any_order(check, distinct(first), distinct(second))
    if shapes == ("", ""):
        if check.policy.list_order == "any" and not _has_ellipsis(first):
            return in_any_order(check, _solutions(first), _solutions(second))
        return in_order(check, first, second)
    if "" in shapes:
        if shapes[0] == "[" and len(first) == 2:
            return False  # a closed interval is no list
        if shapes == ("", "[") and len(first) != 2 and check.policy.list_order == "any":
            return in_any_order(check, first, second)
        return check.policy.list_as_tuple and in_order(check, first, second)
    if len(first) == 2 and (gold.opening, gold.closing) != (answer.opening, answer.closing):
        if "<" not in shapes:
            return False  # (1, 2), [1, 2] and (1, 2] are different intervals
        if "[" in shapes:
            return False
    return in_order(check, first, second)


def same_one_of_group(check: Checker, gold: Value, answer: Value) -> bool:
    """A group of one item is that item: the set {5} for 5."""
    group, other = (gold, answer) if isinstance(gold, Group) else (answer, gold)
    assert isinstance(group, Group)
    items = distinct(group.items) if group.opening in ("", "{") else group.items
    fractional = group.opening == "{" and len(items) == 1 and bool(variables(items[0].source))  # {x}: no set
    if len(items) != 1 or group.opening == "(" or fractional:
        if any(isinstance(value, Formula) and _builds(value.source) for value in (gold, answer)):
            return check.algebra.equal(gold.source, answer.source)
        return False
    return check.same(items[0], other) if group is gold else check.same(other, items[0])


def in_order(check: Checker, gold: Sequence[Value], answer: Sequence[Value]) -> bool:
    """Whether the items are the same one by one."""
    return len(gold) == len(answer) and all(check.same(a, b) for a, b in zip(gold, answer, strict=True))


def in_any_order(check: Checker, gold: Sequence[Value], answer: Sequence[Value]) -> bool:
    """Whether the items can be paired so that each pair is the same (a perfect matching)."""
    if len(gold) != len(answer):
        return False
    partner: dict[int, int] = {}
    edges = [[at for at, b in enumerate(answer) if check.same(a, b)] for a in gold]

    def place(i: int, seen: set[int]) -> bool:
        for j in edges[i]:
            if j not in seen:
                seen.add(j)
                if j not in partner or place(partner[j], seen):
                    partner[j] = i
                    return True
        return False

    return all(place(i, set()) for i in range(len(gold)))


def _rows(value: Value, other: Value) -> tuple[tuple[Value, ...], ...] | None:
    """Rows of a matrix, of a list of lists, or of a tuple against a matrix of one row or column."""
    if isinstance(value, Matrix):
        return value.rows
    if not isinstance(value, Group) or not isinstance(other, Matrix):
        return None
    if all(isinstance(item, Group) and item.opening in "[(" and item.opening for item in value.items):
        return tuple(item.items for item in value.items if isinstance(item, Group))
    if value.opening == "{":
        return None
    if len(other.rows) == 1:
        return (value.items,)
    return tuple((item,) for item in value.items)


def _with_names(group: Group) -> tuple[Value, ...]:
    """Items in which a name before the first (``n = 2, 3, 4``) holds for the bare ones after it."""
    items = solutions(group.items)
    if group.opening not in ("", "{") or not items or not isinstance(items[0], Named):
        return tuple(_assignments(item) for item in items)
    if all(not isinstance(item, Named) for item in items[1:]):
        first = items[0]
        return (first.value, *items[1:])
    names = {item.name for item in items if isinstance(item, Named)}
    if len(names) == 1:
        return tuple(item.value if isinstance(item, Named) else item for item in items)
    return items


def _assignments(item: Value) -> Value:
    """``p=5, q=2`` within a list of such: the tuple (5, 2)."""
    if isinstance(item, Group) and item.opening == "" and all(isinstance(part, Named) for part in item.items):
        values = tuple(part.value for part in item.items if isinstance(part, Named))
        return Group(item.source, "(", ")", values)
    return item


def _unnamed(items: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(item.value if isinstance(item, Named) else item for item in items)


def _by_name(items: Sequence[Value]) -> tuple[Value, ...]:
    """Values without their names; those of x, y, z and of other neighbours in the alphabet in its order."""
    names = [item.name for item in items if isinstance(item, Named)]
    letters = "".join(sorted(names))
    if len(names) == len(items) and len(letters) == len(names) and letters in "abcdefghijklmnopqrstuvwxyz":
        items = sorted(items, key=lambda item: item.name if isinstance(item, Named) else "")
    return _unnamed(items)


def _one_letter(items: Sequence[Value]) -> bool:
    names = [item.name for item in items if isinstance(item, Named)]
    return all("_" in name for name in names) and len({name.partition("_")[0] for name in names}) == 1


def _names_differ(items: Sequence[Value]) -> bool:
    return len({item.name for item in items if isinstance(item, Named)}) > 1


def distinct(items: Sequence[Value]) -> tuple[Value, ...]:
    """Items of a set, each once, as far as reading tells."""
    return tuple(item for at, item in enumerate(items) if item not in items[:at])


def _solutions(items: Sequence[Value]) -> Sequence[Value]:
    """A list of tuples says which there are, so one said twice says nothing more; a list of numbers may be data."""
    return distinct(items) if all(isinstance(item, Group) for item in items) else items


def _has_ellipsis(items: Sequence[Value]) -> bool:
    return any("\\ldots" in item.source for item in items)


def _builds(source: str) -> bool:
    return any(mark in source for mark in ("\\cup", "\\cap", "\\setminus", "matrix"))
