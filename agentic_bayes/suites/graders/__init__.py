"""Graders that a suite can use."""
