"""Who may ask the service for something, and what a request's body may be.

Off loopback a token or a known network is asked for. A body must be JSON by its content type (a web
page can't send that unasked), and the Host must be an address or a name that is ours: a page whose
name was pointed at us names itself.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from rstar2cli.sandbox.config import LOOPBACK, ServeConfig
from rstar2cli.sandbox.wire import Refusal

_MIB = 1024 * 1024
T = TypeVar("T")


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        """``status``: of HTTP; ``message``: for the client."""
        super().__init__(message)
        self.status = status
        self.response = json_response(Refusal(error=message), status, headers)


class Gate:
    """The rules of one service."""

    def __init__(self, config: ServeConfig) -> None:
        """Raises ``ValueError`` for a network that is none."""
        self._config = config
        self._networks = [ipaddress.ip_network(text, strict=False) for text in config.allow]
        own = (config.host, socket.gethostname(), socket.getfqdn(), *config.names)
        self._names = frozenset(name.lower() for name in (*LOOPBACK, *own))

    def admit(self, request: Request) -> None:
        """Raise :class:`Refused` for a client without token or from elsewhere, or a Host that is not ours."""
        if self._config.token:
            given = request.headers.get("authorization", "")
            if not hmac.compare_digest(given.encode("latin-1"), f"Bearer {self._config.token}".encode()):
                raise Refused(401, "wrong or missing token", {"WWW-Authenticate": "Bearer"})
            return
        if self._networks and not self._known(request):
            raise Refused(403, "this address is not allowed here (--allow)")
        host = _host(request)
        if host not in self._names and not _is_address(host):
            raise Refused(403, f"unexpected Host {host!r}: name it with --set names={host}")
        if not self._networks and _is_address(host) and host not in self._names:
            raise Refused(403, "unexpected Host")

    async def body(self, request: Request, cls: type[T], *, strict_type: bool = True) -> T:
        """The body of an admitted request. Raises :class:`Refused` for one too large, too slow or not as it must be."""
        self.admit(request)
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json":
            raise Refused(415, "content type must be application/json")
        data = await self._read(request)
        try:
            return msgspec.json.decode(data, type=cls, strict=strict_type)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(400, str(error) or "nested too deep") from error

    async def _read(self, request: Request) -> bytes:
        limit = self._config.body_mib * _MIB
        data = bytearray()
        try:
            async with asyncio.timeout(self._config.read_s):
                async for chunk in request.stream():
                    data += chunk
                    if len(data) > limit:
                        raise Refused(413, f"body over {self._config.body_mib} MiB", {"Connection": "close"})
        except TimeoutError:
            raise Refused(408, f"no body within {self._config.read_s} s", {"Connection": "close"}) from None
        except ClientDisconnect:
            raise Refused(400, "the client left") from None
        return bytes(data)

    def _known(self, request: Request) -> bool:
        peer = request.client.host if request.client else ""
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None) or address
        return mapped.is_loopback or any(mapped in network for network in self._networks)


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as a JSON answer."""
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


def _host(request: Request) -> str:
    try:
        return (request.url.hostname or "").lower()
    except ValueError:  # a Host header that is no address at all
        return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
