"""All families of the built-in generator by name."""

from __future__ import annotations

from rstar2cli.curation.synth.algebra import ALGEBRA
from rstar2cli.curation.synth.counting import COUNTING
from rstar2cli.curation.synth.dates import DATES
from rstar2cli.curation.synth.digits import DIGITS
from rstar2cli.curation.synth.family import Family
from rstar2cli.curation.synth.grid import GRID
from rstar2cli.curation.synth.numbers import NUMBERS
from rstar2cli.curation.synth.sequences import SEQUENCES
from rstar2cli.curation.synth.sums import SUMS

FAMILIES: dict[str, Family] = {
    family.name: family for family in (*NUMBERS, *SUMS, *DIGITS, *COUNTING, *ALGEBRA, *SEQUENCES, *DATES, *GRID)
}
