"""HAProxy's configuration for several sandboxes as one address."""

from __future__ import annotations

from collections.abc import Sequence

from rstar2cli.sandbox.service import SESSION_HEADER

_TEMPLATE = """\
# Sandboxes of `rstar2 sandbox-serve` as one address: the least busy gets the next call, a dead one
# gets none, and a session stays where it was opened. Connections: as many as `ulimit -n` allows.
defaults
    mode http
    timeout connect 5s
    timeout client 10m
    timeout server 10m
    timeout queue 60s
    timeout http-request 30s
    option redispatch 1

frontend sandbox
    bind {bind}
    acl session path_beg /v1/sessions/
    use_backend sessions if session
    default_backend calls

backend calls
    balance leastconn
    option httpchk GET /health
    http-check expect status 200
    # A call has no effect but its answer, so it may be sent again wherever its server failed.
    retries 3
    retry-on conn-failure empty-response response-timeout 502
    http-request disable-l7-retry if {{ path /v1/sessions }}
    # A new session is remembered by the header of the answer that opens it.
    stick-table type string len 64 size 200k expire 2h
    stick store-response res.hdr({header})
{servers}

backend sessions
    option httpchk GET /health
    http-check expect status 200
    # A cell runs once, where its session is: nothing is sent again, and nowhere else.
    retries 0
    no option redispatch
    stick match path,field(4,/) table calls
{servers}
"""


def configuration(servers: Sequence[str], bind: str) -> str:
    """The configuration for servers (``host:port``) behind ``bind`` (``address:port``)."""
    lines = [
        f"    server sandbox{number} {server} check inter 1s fall 2 rise 2 on-marked-down shutdown-sessions"
        for number, server in enumerate(servers, start=1)
    ]
    return _TEMPLATE.format(bind=bind, header=SESSION_HEADER, servers="\n".join(lines))
