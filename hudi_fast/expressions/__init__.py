"""Conditions on rows: one tree, which SQL text, Arrow expressions and Spark filters are parsed into."""
