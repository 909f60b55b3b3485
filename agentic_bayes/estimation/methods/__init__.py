"""What each method assumes."""
