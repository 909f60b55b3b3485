"""Formats that record spans of traces."""
