"""The metadata table kept up: what an action adds to it, its delta commits, its building, its own services."""
