"""What runs keep on disk: their trials, where they are, and replies to use again."""
