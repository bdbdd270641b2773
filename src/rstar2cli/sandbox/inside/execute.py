"""Run one piece of code as a notebook would, and describe the exception that ended it.

The description is a hint from an untrusted process: the supervisor decides by the wait status.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import sys
import types
from typing import Any

FILE = "<code>"
_MESSAGE_CHARS = 2000
_LINE_CHARS = 200
_FRAMES = 10
_FUTURE = 0
_files: dict[str, None] = {}
"""Names of the pieces of code that have run, in order."""
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


class Program:
    """A ``__main__`` in which pieces of code run, one or, in a session, several."""

    def __init__(self) -> None:
        self._main = types.ModuleType("__main__")
        sys.modules["__main__"] = self._main

    def run(self, code: str, file: str) -> None:
        """Execute a piece; the value of a last bare expression is printed. Raises what the code raises."""
        _files[file] = None
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        tree = compile(code, file, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        assert isinstance(tree, ast.Module)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        program = compile(tree, file, "exec", dont_inherit=True)
        flags = program.co_flags & _FUTURE
        shown = None
        if last is not None:
            shown = compile(ast.Interactive([last]), file, "single", flags, dont_inherit=True)
        exec(program, self._main.__dict__)
        if shown is not None:
            exec(shown, self._main.__dict__)


def exit_status(stop: SystemExit) -> int:
    """The status that Python would exit with; a message goes to standard error."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def report(error: BaseException) -> dict[str, Any]:
    """What is told of an uncaught exception; never raises, whatever the exception's class does."""
    try:
        return _describe(error)
    except BaseException:  # noqa: BLE001 - too little memory to describe it, or code that makes it hard
        return {"error": type(error).__name__, "memory": isinstance(error, MemoryError)}


def _describe(error: BaseException) -> dict[str, Any]:
    """Type, message, line and short traceback, user frames only."""
    frames = _user_frames(error)
    name = type(error).__name__
    message = _message(error)
    line, source = (frames[-1][0], frames[-1][2]) if frames else (None, "")
    current = next(reversed(_files))
    place = f" of {frames[-1][3]}" if frames and frames[-1][3] != current.strip("<>") else ""
    if isinstance(error, SyntaxError) and error.filename == current:
        line, source = error.lineno, (error.text or "").strip()
        message = str(error.msg)
    head = f"{name} at line {line}{place}: {message}" if line is not None else f"{name}: {message}"
    short = f"{head}\n  {source[:_LINE_CHARS]}" if source else head
    return {
        "error": short,
        "traceback": _long(frames, f"{name}: {message}", line, source),
        "memory": isinstance(error, MemoryError),
    }


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the exception's own __str__ is user code
        text = "<no message>"
    return text if len(text) <= _MESSAGE_CHARS else text[:_MESSAGE_CHARS] + "…"


def _user_frames(error: BaseException) -> list[tuple[int, str, str, str]]:
    """(line, function, source line, piece of code) of each frame in the user's code, outermost first."""
    frames = []
    tb = error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename in _files:
            source = linecache.getline(code.co_filename, tb.tb_lineno).strip()
            frames.append((tb.tb_lineno, code.co_name, source, code.co_filename.strip("<>")))
        tb = tb.tb_next
    return frames


def _long(frames: list[tuple[int, str, str, str]], end: str, line: int | None, source: str) -> str:
    rows = ["Traceback (most recent call last):"]
    if len(frames) > 2 * _FRAMES:
        skipped = len(frames) - 2 * _FRAMES
        shown = [*frames[:_FRAMES], (0, f"… {skipped} more frames …", "", ""), *frames[-_FRAMES:]]
    else:
        shown = frames or ([(line, "<module>", source, "")] if line is not None else [])
    for number, name, text, _ in shown:
        rows.append(f"  {name}" if number == 0 else f"  line {number}, in {name}")
        if text:
            rows.append(f"    {text[:_LINE_CHARS]}")
    return "\n".join([*rows, end])
