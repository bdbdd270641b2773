"""The process that grading's workers are born from: it has sympy and the LaTeX parser loaded, and forks.

``python -m rstar2cli.grading.nursery FD`` serves one parent over a socket, one message at a time:
``b"F"`` with a socket forks a worker that serves that socket and answers with its process id;
``b"W" + pid`` waits for a worker that has died and answers with its exit status. A worker answers
one comparison after another until its socket closes, a limit kills it, or it has grown too much. What
it compares was written by a model, so it confines itself first.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import cast

import msgspec

from rstar2cli.records import AnswerKind
from rstar2cli.sandbox import packages
from rstar2cli.sandbox.inside.confine import confine

CPU_SECONDS = 0.7
"""CPU time of one comparison; SIGPROF ends the worker that takes more."""
MEMORY_BYTES = 1 << 30
"""Address space of a worker."""
MAX_ROWS = 5_000
MAX_RSS_KIB = 400 << 10
_PACKAGES = ("sympy", "mpmath", "latex2sympy2-extended", "antlr4-python3-runtime")
"""Distributions of which a worker may still load a part that nothing needed before."""
_LENGTH = struct.Struct("<I")

_FAMILIAR = (
    r"\frac{1+\sqrt{5}}{2}", r"3\cos(\sqrt{140}t)+\sin^2 x", r"\sqrt[3]{x^2+y_1}-e^{2x}\ln|x|",
    r"2\cdot 3^{n}\times(n-1)!", r"x \sin{\left(x \right)}*e^x", r"\frac{x^2}{4}+\frac{y^2}{3}", r"\log_2 8 + \log x",
    r"\binom{n}{k}", r"\sum_{k=0}^{n-1} F_k F_{n-k-1}", r"\arccos(-1)+\arctan 2", r"f(x+1)", r"(x+y+z)^{300}",
    r"\begin{pmatrix}1 & x \\ 3 & 4\end{pmatrix}", r"\lfloor x\rfloor+\lceil y\rceil", r"\gcd(4,6)+\max(a,b)",
    r"\alpha+\theta_{1}+\pi r^2", r"\int_0^1 x^2 dx", r"\tan\frac{\pi}{8}", r"-x^2y^{-3}", r"ab(c+d)(e-f)", r"\exp(3)",
    r"1/2*x/y", r"\frac{n(n+1)(2n+1)}{6}", r"\frac{x^2}{16}+y^2/12", r"e^{x}\cos x", r"\sqrt{\frac{98}{7}}t",
    r"x^2/4+y^2/3-1", r"2x-3y+7z", r"-\frac{1}{2}*x+\frac{3}{4}", r"\cos(\sqrt{35}t)\sin(2x)", r"e^{2x}*\ln(x+1)",
    r"\frac{a b(a+b)}{2}", r"x-(-1)", r"\arcsin{\sin{\frac{\pi}{3}}}", r"\lvert x-2\rvert+|y|", r"2^{n}n!", r"(2n)!/n",
    r"\frac{\sqrt{6}+\sqrt{2}}{4}", r"\sqrt[4]{x}\sqrt{y+1}", r"\sum_{k=1}^{n} k^2-\prod_{k=1}^{n} k",
    r"\tan^{-1}(x/2)",
    r"3x^2y-4xy^2+5", r"\pi(r+h)^2", r"x_1x_2+x_{n+1}", r"\log_{2}(x+3)", r"i\sqrt{3}+2i", r"(a-b)^{-1}",
    r"k\pi+\frac{\pi}{4}",
)  # fmt: skip
"""Formulas that the parser sees before any worker is forked."""
_LESS_FAMILIAR = (
    r"x[c_{1} \cos (3 \ln x)+c_{2} \sin (3 \ln x)]", r"\frac{x^2 e^{-x}}{16}(1+2x-x^2)+e^{x}(c_{1}+c_{2} x)",
    r"e^{x}(x \sin x+\cos x \ln |\cos x|+c_{1} \cos x+c_{2} \sin x)", r"x^{1/3}(c-\ln|x|)^{2/7}",
    r"-2+\log_{\frac{1}{3}}(x)-\log_3(y-2)", r"\frac{1}{13}(8 \cos 50t-\frac{6}{\sqrt{31}}\sin 5\sqrt{31} t)+C",
    r"(3|y|^{2/3})^{-1}\exp(-|y|^{2/3}/2)", r"\sum_{n=0}^{\infty}\frac{(-1)^{n} x^{2n+1}}{(2n+1)!}",
    r"a_{n+2}+(3n^2-5n+4) a_{n}",
)  # fmt: skip
"""Those that it sees while nobody asks for a worker: they take as long again."""


class Request(msgspec.Struct):
    """One comparison."""

    answer: str
    gold: str
    kind: str | None
    policy: dict[str, object]
    identity: bool


class Reply(msgspec.Struct):
    """Its verdict; ``last``: the worker ends after it."""

    verdict: str
    reason: str | None
    last: bool = False


def send(channel: socket.socket, message: bytes) -> None:
    """Write one message with its length before it."""
    channel.sendall(_LENGTH.pack(len(message)) + message)


def receive(channel: socket.socket) -> bytes | None:
    """Read one message; null at the end of the stream."""
    header = _exactly(channel, _LENGTH.size)
    return None if header is None else _exactly(channel, _LENGTH.unpack(header)[0])


def main() -> None:
    """Serve the parent until its end of the socket closes."""
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes the socket
    _warm()
    readable = [str(Path(os.__file__).parent), *(path for _, path in packages.find(_PACKAGES))]
    gc.freeze()  # shared pages stay shared in the workers
    control.sendall(b"R")
    unseen = list(_LESS_FAMILIAR)
    while True:
        while unseen and not select.select([control], [], [], 0)[0]:
            _show(unseen.pop(0))
        message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not message:
            return
        if message[:1] == b"W":
            _, status = os.waitpid(int(message[1:]), 0)
            control.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            _work(socket.socket(fileno=descriptors[0]), readable)
            os._exit(0)
        os.close(descriptors[0])
        control.sendall(str(pid).encode())


def _warm() -> None:
    """Import all, and let the parser see common formulas: it builds its tables as it meets them."""
    for formula in _FAMILIAR:
        _show(formula)


def _show(formula: str) -> None:
    from rstar2cli.answers.equivalence import compare
    from rstar2cli.grading.algebra import Sympy

    for gold in (f"{formula}+1", formula):
        compare(formula, gold, algebra=Sympy(), identity=False)


def _work(channel: socket.socket, readable: list[str]) -> None:
    """Answer comparisons until the socket closes."""
    from rstar2cli.answers.equivalence import compare
    from rstar2cli.answers.policy import Policy
    from rstar2cli.grading.algebra import Sympy

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # kills, also inside a long multiplication
    confine(readable)
    decoder, algebra = msgspec.json.Decoder(Request), Sympy()
    for row in range(MAX_ROWS):
        message = receive(channel)
        if message is None:
            return
        request = decoder.decode(message)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            result = compare(
                request.answer,
                request.gold,
                cast(AnswerKind | None, request.kind),
                policy=msgspec.convert(request.policy, Policy),
                algebra=algebra,
                identity=request.identity,
            )
            reply = Reply(result.verdict, result.reason)
        except (MemoryError, RecursionError):
            reply = Reply("undecided", "limit", last=True)
        signal.setitimer(signal.ITIMER_PROF, 0)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MAX_RSS_KIB
        reply.last = reply.last or grown or row == MAX_ROWS - 1
        send(channel, msgspec.json.encode(reply))
        if reply.last:
            return


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(size - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


if __name__ == "__main__":
    main()
