"""Dates of the Gregorian calendar."""

from __future__ import annotations

import random
from datetime import date

from rstar2cli.curation.synth.family import Family, Params

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_before(year: int, month: int, day: int) -> int:
    """Days from 1 January of year 1 to the date, by counting leap years and month lengths."""
    lengths = (31, 29 if _leap(year) else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    past = year - 1
    return 365 * past + past // 4 - past // 100 + past // 400 + sum(lengths[: month - 1]) + day - 1


def _between_draw(rng: random.Random) -> Params:
    first = date(rng.randint(1900, 2060), rng.randint(1, 12), rng.randint(1, 28))
    last = date(first.year + rng.randint(0, 30), rng.randint(1, 12), rng.randint(1, 28))
    first, last = min(first, last), max(first, last)
    return {"y": first.year, "m": first.month, "d": first.day, "v": last.year, "n": last.month, "e": last.day}


def _between_words(p: Params) -> dict[str, str]:
    return {"month": _MONTHS[p["m"] - 1], "until": _MONTHS[p["n"] - 1]}


DAYS_BETWEEN = Family(
    name="days_between",
    topic="dates",
    draw=_between_draw,
    answer=lambda p: (date(p["v"], p["n"], p["e"]) - date(p["y"], p["m"], p["d"])).days,
    check=lambda p: _days_before(p["v"], p["n"], p["e"]) - _days_before(p["y"], p["m"], p["d"]),
    words=_between_words,
    phrasings=(
        "How many days are there from $month $d, $y to $until $e, $v?",
        "How many days after $d $month $y is $e $until $v?",
        "A letter was sent on $month $d, $y and opened on $until $e, $v. How many days lie between the two dates?",
        "Find the difference in days between the dates $e $until $v and $d $month $y.",
        "A count starts with 0 on $month $d, $y and grows by 1 each day. What is the count on $until $e, $v?",
    ),
    programs=(
        "from datetime import date\nprint((date($v, $n, $e) - date($y, $m, $d)).days)",
        "from datetime import date\na = date($y, $m, $d)\nb = date($v, $n, $e)\nprint((b - a).days)",
    ),
    reasons=(
        "I subtract the two dates.",
        "$month is month $m and $until is month $n.",
        "datetime gives the difference in days.",
    ),
)


def _starts_draw(rng: random.Random) -> Params:
    first = rng.randint(1900, 2080)
    return {"y": first, "v": first + rng.randint(3, 60), "d": rng.randint(1, 28), "w": rng.randrange(7)}


def _starts_zeller(p: Params) -> int:
    """Months counted by Zeller's congruence (0 = Saturday there, 0 = Monday here)."""
    count = 0
    for year in range(p["y"], p["v"] + 1):
        for month in range(1, 13):
            m, y = (month + 12, year - 1) if month < 3 else (month, year)
            century, short = divmod(y, 100)
            h = (p["d"] + 13 * (m + 1) // 5 + short + short // 4 + century // 4 + 5 * century) % 7
            count += (h + 5) % 7 == p["w"]
    return count


WEEKDAY_COUNT = Family(
    name="weekday_count",
    topic="dates",
    draw=_starts_draw,
    answer=lambda p: sum(
        date(year, month, p["d"]).weekday() == p["w"] for year in range(p["y"], p["v"] + 1) for month in range(1, 13)
    ),
    check=_starts_zeller,
    words=lambda p: {"weekday": _WEEKDAYS[p["w"]]},
    phrasings=(
        "How many times does day $d of a month fall on a $weekday from January $y to December $v?",
        "In the years $y to $v (both included), how many months have a $weekday as day number $d?",
        "Count the months from the start of $y to the end of $v in which day $d is a $weekday.",
        "A club meets whenever day $d of the month is a $weekday. How often does it meet in the years $y through $v?",
    ),
    programs=(
        "from datetime import date\nprint(sum(1 for y in range($y, $v + 1) for m in range(1, 13)"
        " if date(y, m, $d).weekday() == $w))",
        "from datetime import date\ncount = 0\nfor y in range($y, $v + 1):\n    for m in range(1, 13):\n"
        "        if date(y, m, $d).weekday() == $w:\n            count += 1\nprint(count)",
    ),
    reasons=(
        "Monday is 0, so $weekday is $w.",
        "I test day $d of every month for weekday $w.",
        "I count the months; $weekday is number $w.",
    ),
)

DATES = (DAYS_BETWEEN, WEEKDAY_COUNT)
