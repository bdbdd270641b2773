"""A drawing surface of braille dots: two by four in every character cell of the terminal."""

from __future__ import annotations

_BASE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of the dot in row (of 4) and column (of 2)."""


class Canvas:
    """``columns`` × ``rows`` cells, so 2·columns × 4·rows dots; the origin is at the top left."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._dots = [[0] * columns for _ in range(rows)]
        self._owner: list[list[int | None]] = [[None] * columns for _ in range(rows)]
        self._signs: dict[tuple[int, int], str] = {}

    def dot(self, x: int, y: int, owner: int) -> None:
        """Set one dot; a cell has the colour of the last owner that drew in it."""
        row, column = y // 4, x // 2
        self._dots[row][column] |= _DOTS[y % 4][x % 2]
        self._owner[row][column] = owner

    def line(self, start: tuple[int, int], end: tuple[int, int], owner: int) -> None:
        """All dots on the way between two dots, both included."""
        (x0, y0), (x1, y1) = start, end
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for step in range(steps + 1):
            share = step / steps
            self.dot(round(x0 + (x1 - x0) * share), round(y0 + (y1 - y0) * share), owner)

    def sign(self, x: int, y: int, text: str, owner: int) -> None:
        """Put a character into the cell of a dot, over the dots."""
        self._signs[y // 4, x // 2] = text
        self._owner[y // 4][x // 2] = owner

    def lines(self, colors: list[str] | None = None) -> list[str]:
        """The rows as text; ``colors`` are ANSI sequences by owner."""
        return ["".join(self._cell(row, column, colors) for column in range(self.columns)) for row in range(self.rows)]

    def _cell(self, row: int, column: int, colors: list[str] | None) -> str:
        bits = self._dots[row][column]
        text = self._signs.get((row, column)) or (chr(_BASE + bits) if bits else " ")
        owner = self._owner[row][column]
        if colors is None or owner is None:
            return text
        return f"{colors[owner % len(colors)]}{text}\x1b[0m"
