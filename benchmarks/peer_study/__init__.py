"""What other packages for the same questions give on the same data, each in its own environment."""
