"""Read what suites hold: their YAML, which is validated, and JSON within answers."""
