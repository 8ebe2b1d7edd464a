"""Moving the oldest instants from the active timeline to the archived one."""
