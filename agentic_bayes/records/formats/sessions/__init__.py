"""Sessions and trajectories that coding agents and agent frameworks write."""
