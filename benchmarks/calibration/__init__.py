"""Simulations that check the intervals and decisions, shared by the tests and ``benchmarks/calibrate.py``.

Every data set has its own generator, seeded by its position in the study, so results depend neither on the number of
processes nor on the order of work.
"""
