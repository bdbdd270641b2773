"""The ``rstar2`` application: a lazy group of commands, and errors turned into exit codes."""

from __future__ import annotations

import difflib
import errno
import importlib
import os
import shlex
import sys
import traceback
from typing import Annotated, Any

import typer
from typer._click.exceptions import ClickException  # typer carries its own click
from typer._click.exceptions import UsageError as ClickUsageError
from typer.core import TyperGroup

import rstar2cli
from rstar2cli.cli import help, signals
from rstar2cli.cli.registry import COMMANDS
from rstar2cli.cli.say import occupy_stderr, say
from rstar2cli.core import process
from rstar2cli.core.errors import EnvironmentMissing, InputMissing, OutputConflict, RstarError, Stopped, UsageError

CONTEXT = {"help_option_names": ["-h", "--help"]}
BUG = 70


class LazyGroup(TyperGroup):
    """Commands of the registry, each imported when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the registry's order."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command's module and build it; raises ``UsageError`` with the nearest name."""
        if cmd_name not in COMMANDS:
            close = difflib.get_close_matches(cmd_name, list(COMMANDS), n=1)
            hint = f"did you mean {close[0]!r}?" if close else "list the commands with: rstar2 --help"
            raise UsageError(f"no command {cmd_name!r}", hint=hint)
        return load_command(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by section from their summaries, importing none."""
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            rows = [(name, entry.summary) for name, entry in COMMANDS.items() if entry.section == section]
            with formatter.section(section):
                formatter.write_dl(rows)


def load_command(name: str) -> Any:
    """The built command behind a name of the registry."""
    module = importlib.import_module(f"rstar2cli.cli.{COMMANDS[name].module}")
    group = getattr(module, "app", None)
    if group is None:
        group = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
        group.command(name, epilog=help.epilog(module.main))(module.main)
    command = typer.main.get_command(group)
    command.name = name
    return command


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings=CONTEXT,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rstar2 {rstar2cli.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Agentic reinforcement learning of math reasoners, as commands that chain.

    Every stage reads and writes shards of typed records (Parquet or JSONL).
    Start with: rstar2 smoke --quick
    """


def main(arguments: list[str] | None = None) -> None:
    """Entry point: run a command and exit with its code (see docs/reference/exit-codes.md)."""
    occupy_stderr()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; messages go to stderr."""
    command = typer.main.get_command(app)
    with signals.handlers():
        try:
            if sys.stdout is None:
                raise EnvironmentMissing(
                    "standard output is closed", hint="send it to /dev/null if it isn't wanted, or to a file"
                )
            # not command.main(): it turns a closed pipe into exit code 1 before it can be told from a failure
            with command.make_context("rstar2", list(arguments)) as context:
                command.invoke(context)
            sys.stdout.flush()
            return 0
        except typer.Exit as done:
            return done.exit_code
        except BrokenPipeError:
            return signals.quiet_pipe()
        except (KeyboardInterrupt, typer.Abort):
            return signals.interrupted()
        except ClickException as error:
            return _usage(error)
        except RstarError as error:
            return _expected(error, arguments)
        except OSError as error:
            return _expected(_from_os(error), arguments)
        except Exception as error:  # noqa: BLE001 - the last line: everything else is a bug, and says so
            return _bug(error)


def _usage(error: Any) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())
        return 0
    say(f"error: {error.format_message()}")
    if isinstance(error, ClickUsageError) and context is not None:
        say(f"  hint: see {context.command_path} --help")
    return 2


def _expected(error: RstarError, arguments: list[str]) -> int:
    if process.debug():
        say(traceback.format_exc(), end="")
    say(f"error: {error.message}")
    if error.hint:
        say(f"  hint: {error.hint}")
    if isinstance(error, Stopped) and error.resumable:
        say(f"  hint: resume with: {resuming(arguments)}")
    return error.exit_code


def resuming(arguments: list[str]) -> str:
    """The command line that goes on where this one stopped, ready to paste."""
    kept = [argument for argument in arguments if argument not in ("--resume", "--overwrite")]
    return shlex.join(["rstar2", *kept, "--resume"])


def _from_os(error: OSError) -> RstarError:
    """Failures of the file system that no room has put into better words.

    The system does not say whether it was reading or writing: what is absent or may not be read was an input.
    """
    from rstar2cli.shards.atomic import disk_full, output_error

    if disk_full(error):
        return output_error(error.filename or "output", error)
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.ENOENT or _unreadable(error):
        return InputMissing(f"{where}can't read: {error.strerror}", hint="check the path and its permissions")
    return OutputConflict(f"{where}{error.strerror or error}", hint="check the path and its permissions")


def _unreadable(error: OSError) -> bool:
    """Whether a file may not be read: it is there, or lies in a directory that may not be entered."""
    name = error.filename
    return error.errno == errno.EACCES and isinstance(name, str) and not os.access(name, os.R_OK)


def _bug(error: Exception) -> int:
    if process.debug():
        say(traceback.format_exc(), end="")
    say(f"error: {type(error).__name__}: {error}")
    say("  hint: this is a bug in rstar2; run again with RSTAR2_DEBUG=1 for the traceback")
    return BUG
