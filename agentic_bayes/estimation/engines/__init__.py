"""How posteriors are computed."""
