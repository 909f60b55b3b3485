"""Decisions on many groups of one table."""
