"""Serving a session's cells, one after another, in the process that keeps their state."""

from __future__ import annotations

import json
import signal
import struct
from collections.abc import Callable
from typing import IO, Any

from rstar2cli.sandbox.inside import execute

_LENGTH = struct.Struct("<I")
_LINE_BYTES = 30000

_busy = False


def serve(
    incoming: IO[bytes],
    send: Callable[[dict[str, Any]], None],
    *,
    seed: Callable[[int], None],
    flush: Callable[[], None],
) -> None:
    """Run each cell that comes and send a report of it, until there are no more."""
    program = execute.Program()
    signal.signal(signal.SIGINT, _interrupt)
    while (message := _receive(incoming)) is not None:
        if "seed" in message:
            seed(message["seed"])
        report = _run(program, message["code"], f"<cell {message['cell']}>")
        flush()
        send({"cell": message["cell"], **report})


def line(report: dict[str, Any]) -> bytes:
    """A report as one line, not longer than is read."""
    text = json.dumps(report)
    if len(text) > _LINE_BYTES:
        text = json.dumps({**report, "error": str(report.get("error"))[:1000], "traceback": None})
    return text.encode() + b"\n"


def _interrupt(number: int, frame: object) -> None:
    """The deadline of a cell: it may come just after the cell's end, when there is nothing to interrupt."""
    if _busy:
        raise KeyboardInterrupt


def _run(program: execute.Program, code: str, file: str) -> dict[str, Any]:
    global _busy
    try:
        _busy = True
        program.run(code, file)
    except SystemExit as stop:
        return {"status": execute.exit_status(stop)}
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its result
        return {"status": 1, **execute.report(error)}
    finally:
        _busy = False
    return {"status": 0}


def _receive(incoming: IO[bytes]) -> dict[str, Any] | None:
    header = incoming.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    message: dict[str, Any] = json.loads(incoming.read(*_LENGTH.unpack(header)))
    return message
