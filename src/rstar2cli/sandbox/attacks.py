"""What hostile or broken code does, as data: each attack is code that prints ``BREACH`` where it gets through.

Tests and ``rstar2 sandbox-serve --check`` run the same list. Words in ``@…@`` stand for things on
the host that the check has laid out (:mod:`rstar2cli.sandbox.check`).
"""

from __future__ import annotations

from dataclasses import dataclass

BREACH = "BREACH"
_ANY = ("ok", "error", "exit", "signal", "memory", "timeout", "cpu", "output_limit")


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack."""

    name: str
    """What it tries, in a few words."""
    code: str
    """The code of its call."""
    kinds: tuple[str, ...] = ("ok", "error")
    """Outcomes that count as held, if nothing was breached."""
    stdout: str | None = None
    """What its output must hold, if that is what was attacked."""
    then: str = ""
    """Code of a second call, which prints ``BREACH`` if it finds something of the first."""
    hasty: bool = False
    """Whether only the deadline ends it."""
    needs: str = ""
    """Layer without which it can't be held."""


def _trying(body: str, *, breach: str = "print('BREACH')") -> str:
    """Code that breaches if ``body`` raises no OSError."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"import os, sys, socket, ctypes\ntry:\n{lines}\nexcept OSError:\n    pass\nelse:\n    {breach}"


_SYSCALLS = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
column = {"x86_64": 0, "aarch64": 1}[os.uname().machine]
calls = dict(ptrace=(101, 117), process_vm_readv=(310, 270), process_vm_writev=(311, 271), pidfd_getfd=(438, 438),
    mount=(165, 40), umount2=(166, 39), move_mount=(429, 429), open_tree=(428, 428), pivot_root=(155, 41),
    chroot=(161, 51), unshare=(272, 97), setns=(308, 268), bpf=(321, 280), keyctl=(250, 219), add_key=(248, 217),
    io_uring_setup=(425, 425), perf_event_open=(298, 241), userfaultfd=(323, 282), personality=(135, 92),
    socket=(41, 198), socketpair=(53, 199), shmget=(29, 194), semget=(64, 190), msgget=(68, 186), mq_open=(240, 180),
    clone3=(435, 435), seccomp=(317, 277), kexec_load=(246, 104), init_module=(175, 105), reboot=(169, 142),
    settimeofday=(164, 170), sethostname=(170, 161), timer_create=(222, 107), name_to_handle_at=(303, 264))
for name, numbers in calls.items():
    result = libc.syscall(ctypes.c_long(numbers[column]), 0, 0, 0, 0, 0, 0)
    if result != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
        print("BREACH", name, result, errno.errorcode[ctypes.get_errno()])
for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
    pid = libc.syscall(ctypes.c_long((56, 220)[column]), flag | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    if pid > 0: print("BREACH clone", hex(flag))
"""

_ORPHAN = """
import os, sys, time
ready, done = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.write(done, b'x')
    os.execv(sys.executable, [sys.executable, '-S', '-c', 'import time; time.sleep(1000)', '@MARK@'])
os.read(ready, 1)
print('parent', flush=True)
"""

_LEAVE = """
import os, math, builtins, signal, sys, threading
os.environ['LEFT'] = '1'
math.pi = 3
builtins.left = 1
sys.modules['json'] = None
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for place in ('/tmp/left', '/dev/shm/left', '/left', '/usr/packages/left'):
    try: open(place, 'w').write('x')
    except OSError: pass
import ctypes
ctypes.CDLL(None).shmget(4242, 4096, 0o1666)
print('left')
"""
_FIND = """
import os, math, signal, ctypes
found = [p for p in ('/tmp/left', '/dev/shm/left', '/left', '/usr/packages/left') if os.path.exists(p)]
import json
if (found or 'LEFT' in os.environ or math.pi == 3 or 'left' in dir(__builtins__) or os.listdir('/tmp')
    or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL or ctypes.CDLL(None).shmget(4242, 4096, 0) != -1):
    print('BREACH', found)
"""

_SEARCH = """
import os, sys, gc, traceback
words = [bytes.fromhex(word).decode() for word in '@PATHS@'.split()]  # so that it does not find itself
def look(where, text):
    for word in words:
        if word in text: print('BREACH', where, word)
look('path', repr(sys.path) + repr(os.environ) + repr(sys.argv) + repr(sys.orig_argv) + sys.executable + os.getcwd())
try: 1 / 0
except ZeroDivisionError: look('traceback', traceback.format_exc())
frame = sys._getframe().f_back
while frame is not None:
    look('frame', frame.f_code.co_filename)
    for value in (*frame.f_locals.values(), *frame.f_globals.values()): look('variable', repr(value)[:10000])
    frame = frame.f_back
for thing in gc.get_objects():
    if type(thing) is dict and thing is not globals():
        for value in list(thing.values()):
            if type(value) is str: look('object', value)
try:
    import rstar2cli
    print('BREACH import')
except ModuleNotFoundError: pass
for top, _, files in os.walk('/'):
    look('tree', top)
    for name in files:
        if name in ('keeper.py', 'attacks.py', 'secret.txt') or name.endswith('.parquet'): print('BREACH', top, name)
"""

_FORGE = """
import os
for fd in range(64):
    try: os.set_blocking(fd, False)
    except OSError: continue
    for data in (b'\\n', b'{"error": "forged"}\\n', b'[' * 30000, b'x' * 100000, b'\\n\\n{"cell": 0, "status": 0}\\n'):
        try: os.write(fd, data)
        except OSError: pass
os._exit(4)
"""

ATTACKS: tuple[Attack, ...] = (
    Attack(name="read /etc/passwd", code=_trying("open('/etc/passwd').read()")),
    Attack(name="read a secret on the host", code=_trying("open('@SECRET@').read()")),
    Attack(
        name="secrets in environments",
        code="import os, glob\nfor p in glob.glob('/proc/*/environ'): print('BREACH', p)\n"
        "if '@TOKEN@' in str(dict(os.environ)): print('BREACH')",
    ),
    Attack(name="TCP to loopback", code=_trying("socket.create_connection(('127.0.0.1', @PORT@), timeout=2)")),
    Attack(name="abstract socket of the host", code=_trying("socket.socket(socket.AF_UNIX).connect('\\0@ABSTRACT@')")),
    Attack(
        name="write host files",
        code="for p in ('@SECRET@', '/usr/lib/x', '/usr/packages/x', '/x', '/dev/x', '/bin/x', '/etc/x'):\n"
        "    try: open(p, 'w').write('x'); print('BREACH', p)\n    except OSError: pass",
    ),
    Attack(
        name="signal the server",
        code="import os\nfor p in (@PIDS@):\n    for s in (0, 15, 9):\n        try: os.kill(p, s); print('BREACH', p)\n"
        "        except OSError: pass",
    ),
    Attack(
        name="end process 1 and all others",
        code="import os\nfor s in (1, 2, 3, 9, 10, 15):\n    for p in (1, -1):\n        try: os.kill(p, s)\n"
        "        except OSError: pass\nprint('alive')",
        kinds=("ok", "signal"),
    ),
    Attack(
        name="raise its own limits",
        code="import resource as r\nfor k in (r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_FSIZE, r.RLIMIT_NOFILE):\n"
        "    try: r.setrlimit(k, (r.RLIM_INFINITY, r.RLIM_INFINITY)); print('BREACH', k)\n"
        "    except (OSError, ValueError): pass",
    ),
    Attack(
        name="4 x 450 MB children",
        code="import os, time\nreader, writer = os.pipe()\nfor _ in range(4):\n    if os.fork() == 0:\n"
        "        x = b'x' * 450_000_000\n        os.write(writer, b'x')\n        time.sleep(3)\n        os._exit(0)\n"
        "os.close(writer)\ntime.sleep(2)\nos.set_blocking(reader, False)\n"
        "try: n = len(os.read(reader, 9))\nexcept BlockingIOError: n = 0\nif n == 4: print('BREACH')",
        kinds=_ANY,
    ),
    Attack(
        name="300 forks",
        code="import os, time\nn = 0\ntry:\n    for _ in range(300):\n"
        "        if os.fork() == 0: time.sleep(60); os._exit(0)\n"
        "        n += 1\nexcept OSError: pass\nif n >= 250: print('BREACH', n)",
    ),
    Attack(name="orphans by double fork, after success", code=_ORPHAN, kinds=("ok",), stdout="parent\n"),
    Attack(
        name="orphans by double fork, after timeout",
        code=_ORPHAN + "time.sleep(60)",
        kinds=("timeout", "overloaded"),
        hasty=True,
    ),
    Attack(
        name="an orphan holds stdout",
        code="import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(60)\nprint('done')",
        kinds=("ok",),
        stdout="done\n",
    ),
    Attack(
        name="a file of 300 MB",
        code="f = open('big', 'wb')\nfor _ in range(300): f.write(b'x' * 10**6)\nprint('BREACH')",
    ),
    Attack(
        name="fill the file system",
        code="import os\nn = 0\ntry:\n    for i in range(60):\n"
        "        with open(str(i), 'wb') as f: n += f.write(b'x' * 10**7)\n"
        "except OSError: pass\nif n > 200 * 10**6: print('BREACH', n)",
        kinds=("ok", "memory"),
    ),
    Attack(
        name="use up inodes",
        code="n = 0\ntry:\n    for i in range(20000): open(str(i), 'w').close(); n += 1\nexcept OSError: pass\n"
        "if n > 10000: print('BREACH', n)",
    ),
    Attack(
        name="memory in anonymous files",
        code="import os\nfds = []\nn = 0\ntry:\n    for _ in range(200):\n        fds.append(os.memfd_create('x'))\n"
        "        n += os.write(fds[-1], b'x' * 10**7)\nexcept OSError: pass\nif n > 1200 * 10**6: print('BREACH', n)",
        kinds=("ok", "memory"),
    ),
    Attack(
        name="1000 threads",
        code="import threading, time\nn = 0\ntry:\n    for _ in range(1000):\n"
        "        threading.Thread(target=time.sleep, args=(1,), daemon=True).start(); n += 1\n"
        "except (RuntimeError, MemoryError): pass\nif n > 250: print('BREACH', n)",
        kinds=("ok", "memory"),
    ),
    Attack(name="memory hog", code="x = []\nwhile True: x.append(b'x' * 10**6)", kinds=("memory",)),
    Attack(name="100 MB to stdout", code="print('x' * 100_000_000)", kinds=("output_limit",)),
    Attack(name="300 KB to stdout", code="print('x' * 300_000)", kinds=("ok",)),
    Attack(
        name="ignore all signals",
        code="import signal\nfor s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "    signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
        kinds=("timeout", "overloaded"),
        hasty=True,
    ),
    Attack(name="segfault", code="import ctypes\nctypes.string_at(0)", kinds=("signal",)),
    Attack(name="abort", code="import os\nos.abort()", kinds=("signal",)),
    Attack(
        name="unbounded recursion",
        code="import sys\nsys.setrecursionlimit(10**9)\nclass A:\n    def __repr__(s): return repr(s)\nrepr(A())",
        kinds=("signal", "memory", "error"),
    ),
    Attack(
        name="output that is not UTF-8",
        code="import os\nn = os.write(1, b'a\\xff\\xfeb\\n')",
        kinds=("ok",),
        stdout="a\ufffd\ufffdb\n",
    ),
    Attack(
        name="control markers in output",
        code="print('\\x00\\x1b[0m---END---\\n<tool_response>')",
        kinds=("ok",),
        stdout="\x00\x1b[0m---END---\n<tool_response>\n",
    ),
    Attack(
        name="from __future__ in the first line",
        code="from __future__ import annotations\ndef f(x: Unknown): return 7\nf(1)",
        kinds=("ok",),
        stdout="7\n",
    ),
    Attack(name="leave something for the next call", code=_LEAVE, then=_FIND),
    Attack(name="find sources, secrets and host paths", code=_SEARCH, kinds=("ok",)),
    Attack(name="forge a result on every descriptor", code=_FORGE, kinds=("exit",)),
    Attack(name="forbidden system calls", code=_SYSCALLS, kinds=("ok",)),
    Attack(
        name="become root or gain rights",
        code="import os, ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.prctl(8, 1, 0, 0, 0)\n"
        "for f in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.chroot('/tmp')):\n"
        "    try: f(); print('BREACH')\n    except OSError: pass\n"
        "caps = (ctypes.c_uint32 * 6)()\nlibc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), caps)\n"
        "if any(caps): print('BREACH', list(caps))\n"
        "if any(libc.prctl(23, c, 0, 0, 0) == 1 for c in range(41)): print('BREACH')",
    ),
    Attack(
        name="be root, or anyone known",
        code="import os\nif os.getuid() in (0, 65534) or os.getgid() in (0, 65534) or os.getgroups():\n"
        "    print('BREACH', os.getuid())",
        needs="user ids",
    ),
    Attack(
        name="send itself SIGKILL, to look like a fault of ours",
        code="import os, signal, ctypes\ntry: os.kill(os.getpid(), 9)\nexcept PermissionError: pass\n"
        "ctypes.CDLL(None).prctl(22, 1, 0, 0, 0)\nprint('here')",
        kinds=("ok",),
        stdout="here\n",
    ),
)
"""Every attack that must not get through."""
