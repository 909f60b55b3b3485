"""Formats that are lists of chat messages."""
