"""Logs that evaluation frameworks write."""
