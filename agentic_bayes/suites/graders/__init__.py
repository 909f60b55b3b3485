"""Graders that a suite can use: text, JSON, commands, models, and this package's own scores."""
