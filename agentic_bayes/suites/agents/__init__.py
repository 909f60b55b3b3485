"""Agents that a suite can run: functions, models, graphs, addresses and commands."""
