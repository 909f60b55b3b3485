"""`python -m agentic_bayes`: the command line."""

from agentic_bayes.cli.app import main

main()
