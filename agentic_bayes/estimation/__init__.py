"""Counts become posteriors of pass@k and pass^k."""
