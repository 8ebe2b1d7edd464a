"""Listing and executing pending table services."""
