"""The simulations live next to the benchmarks: the tests and ``benchmarks/calibrate.py`` run the same code."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
