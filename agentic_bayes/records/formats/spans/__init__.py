"""Formats that are spans of a trace."""
