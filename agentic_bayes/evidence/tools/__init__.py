"""The tool rubric: which calls were expected, which were made, and how they agree."""
