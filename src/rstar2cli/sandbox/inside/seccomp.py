"""The system-call filter, assembled as BPF: an allow-list, for one architecture.

Forbidden calls fail with EPERM; calls newer than the list fail with ENOSYS, so that the C library
falls back to older ones (clone3 above all, whose arguments a filter can't see). A call by another
architecture's numbers kills. SIGKILL can't be sent: when code dies of it and no limit explains it,
someone outside killed it, and that is not the code's fault.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct

from rstar2cli.sandbox.inside import kernel, syscalls

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
_NOT_PERMITTED, _NOT_THERE = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_NEWER = 424
"""First number of the calls that came after the two architectures began to share them."""
_X32 = 0x40000000
_FORBIDDEN_CLONE = 0x02000000 | 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0xA000
"""The namespaces, CLONE_PARENT (a child that its warm process would have to reap) and CLONE_PTRACE."""
_PRCTL_ALLOWED = (3, 15, 16, 23, 0x53564D41)
"""Get dumpable, set and get name, read the bounding set, name a mapping."""
_FCNTL_FORBIDDEN = (8, 10, 15, 1026)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX, F_NOTIFY: ways to have the kernel send a signal of one's choice."""
_CHANNEL = ("sendto", "recvfrom", "sendmsg", "recvmsg")

Instruction = tuple[int, int, int, int]


class Filter:
    """An assembled filter. Built once in a warm process; installing it is one system call."""

    def __init__(self, *, memfd: bool, channel: bool = False) -> None:
        """``memfd``: allow anonymous files; ``channel``: allow use of a socket that is already there."""
        program = _program(memfd, channel)
        packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
        self._code = ctypes.create_string_buffer(packed, len(packed))
        self._program = struct.pack("@HP", len(program), ctypes.addressof(self._code))

    def install(self) -> None:
        """Put it on this process, for good."""
        kernel.install_filter(self._program)


def _program(memfd: bool, channel: bool) -> list[Instruction]:
    load = (_LOAD, 0, 0, _NUMBER)
    start = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, syscalls.AUDIT_ARCH[os.uname().machine]),
        _answer(_KILL),
        load,
        (_JUMP_GREATER_EQUAL, 0, 1, _X32),
        _answer(_KILL),
    ]
    allowed = syscalls.plain()
    if memfd:
        allowed.add(syscalls.special("memfd_create"))
    if channel:
        allowed |= {syscalls.special(name) for name in _CHANNEL}
    return [*start, *_arguments(), *_search(_intervals(allowed))]


def _answer(what: int) -> Instruction:
    return (_RETURN, 0, 0, what)


def _arguments() -> list[Instruction]:
    """The calls whose arguments decide."""
    clone = [
        _argument(0),
        (_JUMP_SET, 4, 0, _FORBIDDEN_CLONE),
        (_AND, 0, 0, 0xFF),  # the signal that the parent gets at the end
        (_JUMP_EQUAL, 1, 0, 0),
        (_JUMP_EQUAL, 0, 1, signal.SIGCHLD),
        _answer(_ALLOW),
        _answer(_NOT_PERMITTED),
    ]
    blocks = [("clone", clone)]
    for name, place in (("kill", 1), ("tkill", 1), ("tgkill", 2)):
        blocks.append((name, _one_of(place, (signal.SIGKILL,), _NOT_PERMITTED, _ALLOW)))
    blocks.append(("prctl", _one_of(0, _PRCTL_ALLOWED, _ALLOW, _NOT_PERMITTED)))
    blocks.append(("fcntl", _one_of(1, _FCNTL_FORBIDDEN, _NOT_PERMITTED, _ALLOW)))
    program: list[Instruction] = []
    for name, block in blocks:
        program += [(_JUMP_EQUAL, 0, len(block), syscalls.special(name)), *block]
    return program


def _argument(place: int) -> Instruction:
    """Load the lower half of an argument; all that are looked at are ints to the kernel."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * place)


def _one_of(place: int, values: tuple[int, ...], then: int, otherwise: int) -> list[Instruction]:
    tests = [(_JUMP_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_argument(place), *tests, _answer(otherwise), _answer(then)]


def _intervals(allowed: set[int]) -> list[tuple[int, int]]:
    """(first number, answer) of each run of numbers that have the same answer."""
    result: list[tuple[int, int]] = []
    for number in range(max(*allowed, _NEWER) + 2):
        answer = _ALLOW if number in allowed else _NOT_THERE if number >= _NEWER else _NOT_PERMITTED
        if not result or result[-1][1] != answer:
            result.append((number, answer))
    return result


def _search(intervals: list[tuple[int, int]]) -> list[Instruction]:
    """A binary search: the kernel walks the filter for every number when it is installed."""
    if len(intervals) == 1:
        return [_answer(intervals[0][1])]
    middle = len(intervals) // 2
    below, above = _search(intervals[:middle]), _search(intervals[middle:])
    return [(_JUMP_GREATER_EQUAL, len(below), 0, intervals[middle][0]), *below, *above]
