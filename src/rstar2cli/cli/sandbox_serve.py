"""``rstar2 sandbox-serve``: the code sandbox as an HTTP service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from rstar2cli.cli import options, signals
from rstar2cli.cli.help import examples
from rstar2cli.cli.keys import list_keys
from rstar2cli.cli.say import say
from rstar2cli.core import config as configuration
from rstar2cli.core import process
from rstar2cli.sandbox.config import ServeConfig

if TYPE_CHECKING:
    from rstar2cli.sandbox.local import LocalSandbox

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on [default: 127.0.0.1].")]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on; 0 = any free one [default: 8642].")]
Token = Annotated[
    str | None,
    typer.Option("--token", help="Token that clients must send; better given as RSTAR2_TOKEN, which ps does not show."),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="CIDR", help="Network whose clients need no token (repeatable).", show_default=False
    ),
]
Haproxy = Annotated[
    str | None,
    typer.Option(
        "--haproxy",
        metavar="HOST:PORT,…",
        help="Don't serve: print HAProxy's configuration for these services behind --host and --port.",
        show_default=False,
    ),
]
Check = Annotated[
    bool, typer.Option("--check", help="Don't serve: try every attack on a sandbox here, and say what held.")
]


@examples(
    "rstar2 sandbox-serve --port 8642",
    "rstar2 sandbox-serve --set sandbox.workers=8 --set sandbox.wall_s=10",
    "rstar2 sandbox-serve --check",
    "RSTAR2_TOKEN=$(cat token) rstar2 sandbox-serve --host 0.0.0.0",
    "rstar2 sandbox-serve --host 0.0.0.0 --allow 10.0.0.0/8",
    "rstar2 sandbox-serve --haproxy node1:8642,node2:8642 --host 0.0.0.0 --port 8640 > haproxy.cfg",
    "rstar2 rollout problems -m MODEL -o out --set sandbox.endpoints=http://node1:8642,http://node2:8642",
)
def main(
    host: Host = None,
    port: Port = None,
    token: Token = None,
    allow: Allow = None,
    haproxy: Haproxy = None,
    check: Check = False,
    format: options.FormatOption = "auto",
    config_file: options.ConfigFile = None,
    sets: options.Sets = None,
    dry_run: options.DryRun = False,
    keys: options.Keys = False,
    quiet: options.Quiet = False,
) -> None:
    """Serve the code sandbox over HTTP: calls, batches, sessions; also as a code judge or SandboxFusion.

    Prints its address on stdout once it has run a first call; GET /openapi.json there tells the rest.
    Listens on loopback unless a token is set or networks are allowed. The first Ctrl-C or SIGTERM stops
    accepting, lets running calls finish, and exits with 0. Refuses to start where it can't isolate code.

    With --check it prints a row per attack (held, failed, not applicable) and exits with 1 if any got through.
    """
    if keys:
        print(list_keys(ServeConfig))
        return
    if haproxy is not None:
        _print_haproxy(haproxy, host or "127.0.0.1", 8642 if port is None else port)
        return
    networks = None if allow is None else tuple(allow)
    config = _resolve(config_file, sets, {"host": host, "port": port, "token": token, "allow": networks})
    if dry_run:
        print(f"would serve on {config.host}:{config.port}")
        return
    if check:
        _check(config, format)
        return
    from rstar2cli.sandbox.server import serve

    def started(address: str, sandbox: LocalSandbox) -> None:
        print(address, flush=True)
        if not quiet:
            say(_describe(sandbox))

    with signals.draining():
        serve(config, started)


def _resolve(config_file: str | None, sets: list[str] | None, flags: dict[str, object]) -> ServeConfig:
    layers = [configuration.toml_layer(config_file)] if config_file else []
    layers.append(configuration.environment_layer(process.config_environment()))
    layers.append(configuration.set_layer(sets or []))
    given = {key: value for key, value in flags.items() if value is not None}
    layers.append(configuration.Layer(origin="options", values=given))
    return configuration.resolve(ServeConfig, layers)


def _print_haproxy(servers: str, host: str, port: int) -> None:
    from rstar2cli.core.errors import UsageError
    from rstar2cli.sandbox.haproxy import configuration as haproxy_configuration

    names = [name.strip() for name in servers.split(",")]
    for name in names:
        if not re.fullmatch(r"[\w.\-\[\]:]+:\d{1,5}", name):
            raise UsageError(f"--haproxy: {name!r} is not HOST:PORT", hint="name the services: node1:8642,node2:8642")
    print(haproxy_configuration(names, f"{host}:{port}"), end="")


def _describe(sandbox: LocalSandbox) -> str:
    walls = f"{sandbox.workers} workers; isolation: {', '.join(sandbox.layers) or 'limits only'}"
    missing = "; ".join(f"{name} ({why})" for name, why in sandbox.missing.items())
    return walls + (f"; missing here: {missing}" if missing else "")


def _check(config: ServeConfig, format: str) -> None:
    from rstar2cli.cli.output import emit
    from rstar2cli.core.errors import CheckFailed
    from rstar2cli.sandbox.check import check

    findings = list(check(config.sandbox))
    emit([{"attack": one.attack, "result": one.result, "why": one.why} for one in findings], format)
    failed = sum(one.result == "failed" for one in findings)
    if failed:
        raise CheckFailed(f"{failed} of {len(findings)} attacks got through", hint="see the column why")
