"""Agents that a suite can call."""
