"""The file tree that code sees: an interpreter, its library, a named list of packages, and nothing else.

It is built from read-only bind mounts in a mount namespace of the keeper's own, so the host's tree
is untouched and there is nothing to clean up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rstar2cli.sandbox.inside import kernel

PYTHON = "/usr/bin/python3"
PACKAGES = "/usr/packages"
LIBRARIES = "/usr/lib/sandbox"
"""Where shared libraries lie that the host keeps outside of the system's directories."""
_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKER_DIRECTORIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_LINKER_AARCH64 = "/lib/ld-linux-aarch64.so.1"
_NEED_LIBRARIES = ("zlib", "_bz2", "_lzma", "_ctypes", "_hashlib", "_sqlite3", "_decimal", "_uuid")
"""Modules of the standard library that may load a shared library of the host's."""


def build(packages: list[tuple[str, str]]) -> str:
    """Build the tree in a mount namespace that the caller has entered; the place where it stands.

    ``packages``: their names with their places on the host.
    """
    stdlib = os.path.dirname(os.__file__)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    home = f"/usr/{sys.platlibdir}/{version}"
    wanted = [*_libraries(stdlib), (stdlib, home), (os.path.realpath(sys.executable), PYTHON)]
    wanted += [(f"/dev/{name}", f"/dev/{name}") for name in _DEVICES]
    # opened before /tmp is covered: any of them may lie there
    open_ones = [(_path(source), target) for source, target in wanted]
    open_packages = [(_path(source), f"{PACKAGES}/{name}") for name, source in packages]
    root = "/tmp"
    kernel.mount_tmpfs(root, "size=4m,nr_inodes=1024,mode=755")
    for name in ("tmp", "dev"):
        _directory(f"{root}/{name}")
    os.symlink("/tmp", f"{root}/dev/shm")
    for name in ("lib", "lib64"):
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{root}/{name}")
    for fd, target in open_ones:
        _show(fd, root + target, devices=target.startswith("/dev/"))
    for name in ("site-packages", "dist-packages", "test"):
        if os.path.isdir(f"{root}{home}/{name}"):
            kernel.mount_tmpfs(f"{root}{home}/{name}", "size=4k,nr_inodes=1,mode=755")
    _directory(root + PACKAGES)
    for fd, target in open_packages:
        _show(fd, root + target, devices=False)
    kernel.freeze_mount(root, devices=True)
    return root


def keep_only(paths: Sequence[str]) -> None:
    """In a mount namespace of this process's own keep these, read-only and where they are, and nothing else."""
    kernel.own_mounts()
    opened = [(_path(path), path) for path in paths]
    root = "/tmp"
    kernel.mount_tmpfs(root, "size=1m,nr_inodes=512,mode=755")
    for fd, path in opened:
        _show(fd, root + path, devices=False)
    kernel.freeze_mount(root)
    kernel.change_root(root)


def has_own_libraries(root: str) -> bool:
    """Whether the dynamic linker must be told of :data:`LIBRARIES`."""
    return os.path.isdir(root + LIBRARIES)


def _path(source: str) -> int:
    return os.open(source, os.O_PATH | os.O_CLOEXEC)


def _show(fd: int, target: str, *, devices: bool) -> None:
    source = f"/proc/self/fd/{fd}"
    if os.path.isdir(source):
        _directory(target)
    else:
        _directory(target.rpartition("/")[0])
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.bind(source, target)
    os.close(fd)
    kernel.freeze_mount(target, devices=devices)


def _directory(path: str) -> None:
    os.makedirs(path, mode=0o755, exist_ok=True)


def _libraries(stdlib: str) -> list[tuple[str, str]]:
    """The system's directories of shared libraries in use, whole, and the single ones that lie elsewhere."""
    found: dict[str, str] = {}
    for path in _mapped():
        directory, _, name = path.rpartition("/")
        if directory.startswith(_LINKER_DIRECTORIES):
            found[directory] = directory
        elif not path.startswith(stdlib):
            found[path] = f"{LIBRARIES}/{name}"
    if os.path.isdir("/lib64"):  # where programs on x86_64 look for the dynamic linker
        found[os.path.realpath("/lib64")] = os.path.realpath("/lib64")
    if os.path.exists(_LINKER_AARCH64):
        found[os.path.realpath(_LINKER_AARCH64)] = _LINKER_AARCH64
    return sorted(found.items(), key=lambda pair: len(pair[1]))


def _mapped() -> set[str]:
    """Shared libraries that the interpreter and its library use: found in a process that has loaded all of them."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        for name in _NEED_LIBRARIES:
            try:
                __import__(name)
            except ImportError:
                continue  # this interpreter was built without it
        with open("/proc/self/maps") as maps, open(writer, "w") as out:
            out.write("\n".join({line.rstrip("\n").partition("/")[2] for line in maps if ".so" in line}))
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        names = file.read().split("\n")
    os.waitpid(pid, 0)
    return {os.path.realpath(f"/{name}") for name in names if name}
