"""Listeners of events: metrics, spans, progress bars, and callbacks over HTTP."""
