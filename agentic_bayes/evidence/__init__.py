"""Graders turn interactions into scores with reasons."""
