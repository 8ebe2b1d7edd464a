"""The command for compiled kernels: ``warm-up``."""

from __future__ import annotations

import click

__all__ = ["COMMANDS"]


@click.command("warm-up", short_help="Compile all kernels into the cache.")
@click.option(
    "--level",
    "levels",
    type=click.IntRange(2, 4),
    multiple=True,
    help="Compile for this level of x86-64 processors only: 2, 3 or 4. Can be given several times.",
)
def warm_up(levels: tuple[int, ...]) -> None:
    """Compile all kernels into the cache folder, so that later processes load them.

    Run it when an image is built. NUMBA_CACHE_DIR names the folder; set it for the processes that use the cache, too.

    With a C compiler (cc), the kernels become a library for every processor of this kind of machine, and every Python.
    Without one, Numba compiles them for this processor and this Python. If the image then runs on other processors, set
    NUMBA_CPU_NAME to one whose instructions all of them have, and NUMBA_CPU_FEATURES to nothing, here and where the
    cache is used.
    """
    from hudi_fast.errors import ConfigError
    from hudi_fast.kernels import cache_folder, compile_into_cache
    from hudi_fast.kernels import warm_up as load_all

    click.echo("Compiling the kernels takes about a minute, unless they are compiled.", err=True)
    try:
        library = compile_into_cache(levels)
    except RuntimeError as error:
        click.echo(f"{error} Numba compiles the kernels instead.", err=True)
        library = None
    folder = cache_folder() if library is None else library
    if folder is None:
        raise ConfigError("No cache folder for kernels is writable. Set NUMBA_CACHE_DIR to a folder that is.")
    click.echo(f"{load_all()} kernels in {folder}")


COMMANDS = (warm_up,)
"""The commands of this module."""
