"""Readers of results, one module per tool."""
