"""Evidence that the intervals are right: the simulations that the tests and ``benchmarks/calibrate.py`` share.

Every data set has a generator of its own, seeded by its place in the study, so that results depend neither on the
number of processes nor on the order of work.
"""
