"""What a file looks like, and the command and the Python that read it so."""
