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
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


def run(code: str) -> int:
    """Execute as ``__main__``; the value of a last bare expression is printed. Returns the exit status."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    tree = compile(code, FILE, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    program = compile(tree, FILE, "exec", dont_inherit=True)
    flags = program.co_flags & _FUTURE
    shown = None
    if last is not None:
        shown = compile(ast.Interactive([last]), FILE, "single", flags, dont_inherit=True)
    exec(program, main.__dict__)
    if shown is not None:
        exec(shown, main.__dict__)
    return 0


def exit_status(stop: SystemExit) -> int:
    """The status that Python would exit with; a message goes to standard error."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def describe(error: BaseException) -> dict[str, Any]:
    """Type, message, line and short traceback of an uncaught exception, user frames only."""
    frames = _user_frames(error)
    name = type(error).__name__
    message = _message(error)
    line, source = (frames[-1][0], frames[-1][2]) if frames else (None, "")
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line, source = error.lineno, (error.text or "").strip()
        message = str(error.msg)
    head = f"{name} at line {line}: {message}" if line is not None else f"{name}: {message}"
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


def _user_frames(error: BaseException) -> list[tuple[int, str, str]]:
    """(line, function, source line) of each frame in the user's code, outermost first."""
    frames = []
    tb = error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename == FILE:
            frames.append((tb.tb_lineno, code.co_name, linecache.getline(FILE, tb.tb_lineno).strip()))
        tb = tb.tb_next
    return frames


def _long(frames: list[tuple[int, str, str]], end: str, line: int | None, source: str) -> str:
    rows = ["Traceback (most recent call last):"]
    if len(frames) > 2 * _FRAMES:
        skipped = len(frames) - 2 * _FRAMES
        shown = [*frames[:_FRAMES], (0, f"… {skipped} more frames …", ""), *frames[-_FRAMES:]]
    else:
        shown = frames or ([(line, "<module>", source)] if line is not None else [])
    for number, name, text in shown:
        rows.append(f"  {name}" if number == 0 else f"  line {number}, in {name}")
        if text:
            rows.append(f"    {text[:_LINE_CHARS]}")
    return "\n".join([*rows, end])
