"""Draws as labelled groups, log densities, netCDF files, and the two ArviZ stacks."""
