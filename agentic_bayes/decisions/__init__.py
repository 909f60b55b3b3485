"""Posteriors become answers."""
