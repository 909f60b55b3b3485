"""Trials as pytest tests, and gates as their verdicts."""
