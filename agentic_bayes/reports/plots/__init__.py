"""Pictures, with matplotlib, the same on both ArviZ stacks. Every function takes `ax` (or makes one) and returns it."""
