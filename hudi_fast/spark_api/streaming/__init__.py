"""Streams: the sink, which commits each batch once, and the source."""
