"""Updates of the metadata table: delta commits of actions, builds of partitions, and its own services."""
