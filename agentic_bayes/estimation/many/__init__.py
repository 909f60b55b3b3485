"""Estimates of many groups of one table."""
