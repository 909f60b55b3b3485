"""What a file looks like, and the commands and Python code that read it."""
