"""What messages hold: parts and blocks of text, thoughts, calls and results."""
