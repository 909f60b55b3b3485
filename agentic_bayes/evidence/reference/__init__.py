"""The offline judge and its language tables."""
