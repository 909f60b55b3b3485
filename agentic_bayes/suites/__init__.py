"""Suites: one YAML file says which agent, which tasks, how many trials and which graders; one command runs it."""
