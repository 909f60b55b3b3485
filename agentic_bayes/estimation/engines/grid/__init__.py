"""Exact posteriors by quadrature on grids."""
