"""The command for compiled kernels: ``warm-up``."""

from __future__ import annotations

import click

__all__ = ["COMMANDS"]


@click.command("warm-up", short_help="Compile all kernels into the cache.")
def warm_up() -> None:
    """Compile all kernels into the cache folder, so that later processes load them.

    Run it when an image is built. NUMBA_CACHE_DIR names the folder. If the image runs on other processors, set
    NUMBA_CPU_NAME to one whose instructions all of them have, and NUMBA_CPU_FEATURES to nothing. Set the same variables
    for the processes that use the cache.
    """
    from hudi_fast.errors import ConfigError
    from hudi_fast.kernels import cache_folder
    from hudi_fast.kernels import warm_up as load_all

    folder = cache_folder()
    if folder is None:
        raise ConfigError("No cache folder for kernels is writable. Set NUMBA_CACHE_DIR to a folder that is.")
    click.echo(f"{load_all()} kernels in {folder}")


COMMANDS = (warm_up,)
"""The commands of this module."""
