"""Formats that record lists of chat messages."""
