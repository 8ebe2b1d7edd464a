"""The oldest instants leave the active timeline for the archived one."""
