"""Formats that evaluation frameworks write."""
