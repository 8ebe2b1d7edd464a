"""Runs existing ``format("hudi")`` jobs unchanged."""
