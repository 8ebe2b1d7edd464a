"""The table version changed, one step after the other."""
