"""Finding and removing orphan files, dangling instants and leftovers."""
