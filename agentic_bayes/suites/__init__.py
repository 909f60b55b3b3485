"""Suites: a YAML file names an agent, tasks and graders, and one command runs every task several times."""
