"""Conflict checks between concurrent writers."""
