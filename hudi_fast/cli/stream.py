"""The command that feeds a table from a source: ``stream``."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from hudi_fast.cli.shared import allow_pandas, json_option, options_of, show_answer, storage_options
from hudi_fast.streamer.arguments import ARGUMENTS, OTHER_FLAGS, REFUSED, WITHOUT_EFFECT

if TYPE_CHECKING:
    from hudi_fast.streamer.streamer import Streamer, Turn

__all__ = ["COMMANDS"]


def _arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """HoodieStreamer's arguments, as options of the command; ``--help`` leaves out those that do nothing here."""
    for name in sorted({*WITHOUT_EFFECT, *REFUSED}):
        hidden: dict[str, Any] = {"is_flag": True, "default": None} if name in OTHER_FLAGS else {}
        command = click.option(f"--{name}", name.replace("-", "_"), hidden=True, **hidden)(command)
    for one in reversed(ARGUMENTS):
        names = [f"--{name}" for name in (one.name, *one.others)]
        kind: dict[str, Any] = {"is_flag": True, "default": None} if one.is_flag else {"metavar": "VALUE"}
        command = click.option(*names, one.name.replace("-", "_"), help=one.text, **kind)(command)
    return command


@click.command(short_help="Feed a table from Kafka, a folder or another table.")
@click.argument("config", required=False)
@click.option("--props", help="The same as CONFIG, as HoodieStreamer takes it.")
@click.option("--hoodie-conf", "pairs", multiple=True, metavar="KEY=VALUE", help="A further property; repeatable.")
@click.option("--conf", "confs", multiple=True, metavar="KEY=VALUE", help="A setting of the Spark session; repeatable.")
@_arguments
@click.option(
    "--check", is_flag=True, help="Tell what the settings do and where the stream begins. Nothing is written."
)
@click.option("--health-port", type=int, metavar="PORT", help="Serve /health, /ready and /metrics at this port.")
@click.option("--base-path-prefix", metavar="PATH", help="Folder of several tables: PATH/DATABASE/TABLE.")
@click.option("--config-folder", metavar="PATH", help="Folder of the property files of several tables.")
@json_option
def stream(
    config: str | None,
    props: str | None,
    pairs: tuple[str, ...],
    confs: tuple[str, ...],
    check: bool,
    health_port: int | None,
    base_path_prefix: str | None,
    config_folder: str | None,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Feed a table with the new rows of a source: once, or with --continuous until the process is stopped.

    CONFIG is a property file of Apache Hudi's HoodieStreamer. Its arguments may stand in the file, too, as
    hudi_fast.streamer.NAME. SIGTERM and Ctrl-C end the command after the turn that is under way; a second Ctrl-C ends
    it at once, and the next start repeats that turn.

    With --base-path-prefix or --config-folder, CONFIG lists several tables as that of HoodieMultiTableStreamer does,
    and they have their turns one after the other.

    With --engine spark, tasks of a Spark session do the work of each turn. --master, --conf and the keys of CONFIG that
    begin with spark. describe the session.
    """
    from hudi_fast.streamer.on_spark.engine import names_spark, session_of_command
    from hudi_fast.streamer.streamer import Streamer, properties_of

    if config and props:
        raise click.UsageError("Give the property file once: CONFIG or --props.")
    file = config or props
    given = {**(properties_of(file) if file else {}), **options_of(pairs, "--hoodie-conf")}
    is_of_tables = base_path_prefix is not None or config_folder is not None
    if is_of_tables and health_port is not None:
        raise click.UsageError("--health-port is for one table: start a process for each.")
    if names_spark(given, arguments):
        allow_pandas()
    with session_of_command(given, arguments, options_of(confs, "--conf")) as spark:
        if is_of_tables:
            from hudi_fast.streamer.tables import table_streams

            tables = table_streams(given, base_path_prefix, config_folder, storage_options(), spark=spark, **arguments)
            _run_tables([one.streamer for one in tables], check, as_json)
            return
        streamer = Streamer(given, storage_options=storage_options(), spark=spark, **arguments)
        if check:
            with closing(streamer):
                show_answer("Checked", "Checked", "", streamer.check(), as_json)
            return
        with _stopping(streamer.stop), closing(streamer), _health(streamer.path, health_port) as turned:
            for turn in streamer.run():
                turned(turn)
                _show(turn, streamer, as_json, {})


def _run_tables(streamers: Sequence[Streamer], check: bool, as_json: bool) -> None:
    """Run the streams of several tables: each in turn, and all of them again with --continuous."""

    def stop() -> None:
        for one in streamers:
            one.stop()

    with ExitStack() as ends:
        for one in streamers:
            ends.enter_context(closing(one))
        if check:
            for one in streamers:
                show_answer("Checked", "Checked", "", one.check(), as_json)
            return
        ends.enter_context(_stopping(stop))
        from hudi_fast.streamer.tables import in_turn

        for one, turn in in_turn(streamers):
            _show(turn, one, as_json, {"table": one.path})


def _show(turn: Turn, streamer: Streamer, as_json: bool, more: Mapping[str, Any]) -> None:
    """Print a turn; one without rows only if the stream is not continuous."""
    if turn.instant or not streamer.is_continuous:
        names = ("inserts", "updates", "deletes", "position", "lag", "seconds")
        values = {name: getattr(turn, name) for name in names}
        if not as_json:
            values["lag"] = sum(turn.lag.values())
        show_answer("Committed", "Nothing is new", turn.instant, {**more, **values}, as_json)


@contextmanager
def _health(path: str, port: int | None) -> Iterator[Callable[[Any], None]]:
    """What notes turns; their state is served during the block if there is a port."""
    if port is None:
        yield lambda turn: None
        return
    from hudi_fast.streamer.tables import Health

    health = Health(path)
    with health.served(port):
        yield health.turned


@contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Call a function at the first SIGTERM or SIGINT during the block; the second one ends the process."""

    def first(number: int, _frame: Any) -> None:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        stop()

    before = {number: signal.signal(number, first) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


COMMANDS = (stream,)
"""The commands of this module."""
