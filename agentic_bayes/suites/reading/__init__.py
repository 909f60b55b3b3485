"""Read the YAML of suites and validate it."""
