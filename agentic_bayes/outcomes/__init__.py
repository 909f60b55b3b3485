"""The waist: counts of successes and trials per agent and task, in one `xarray.Dataset`."""
