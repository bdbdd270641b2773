"""Where equality is not mathematics but custom: each custom has a name and a default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What counts as the same answer where the two are written as different things."""

    names: Literal["optional", "required"] = "optional"
    """`x = 5` for `5`, and `5` for `x = 5`: accepted (`optional`) or not. `y = 5` for `x = 5` never is."""
    units: Literal["optional", "required"] = "optional"
    """`5` for `5 cm`, and `5 cm` for `5`. Two different units never match, unless one converts to the other."""
    percent: Literal["either", "value"] = "either"
    """Whether `50` stands for `50%` besides `0.5`, and `50%` for `50` (`either`; not for golds up to 1), or only the
    value 0.5 (`value`)."""
    list_order: Literal["any", "given"] = "any"
    """Whether a bare list `1, 2` may be answered in any order. Tuples always keep theirs, sets never do."""
    list_as_tuple: bool = True
    """Whether a bare list in the same order answers a tuple (`2, 3` for `(2, 3)`), and the reverse."""
    set_as_list: bool = True
    """Whether a set answers a bare list (`{1, 2}` for `1, 2`), and the reverse. A set never answers a tuple."""
    interval_as_inequality: bool = True
    """Whether `(-\\infty, 3)` answers `x < 3`, and the reverse."""
    decimal_digits: int = 6
    """Significant digits from which a correctly rounded decimal answers an exact gold that is no integer."""

    def __post_init__(self) -> None:
        if self.decimal_digits < 1:
            raise ValueError("decimal_digits must be 1 or more")


DEFAULT = Policy()
