"""Table configuration and typed options."""
