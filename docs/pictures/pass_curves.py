"""Make pass_curves.png, the picture of the README: `python docs/pictures/pass_curves.py`.

gpt-4o on tau-bench airline (sierra-research/tau-bench, MIT): 50 tasks, 4 trials each.
"""

from pathlib import Path

import pandas as pd

import agentic_bayes as ab

TASKS = (14, 12, 10, 4, 10)  # number of tasks solved in 0, 1, 2, 3 and 4 of the 4 trials

solved = [c for c, tasks in enumerate(TASKS) for _ in range(tasks)]
table = pd.DataFrame({"agent": "gpt-4o", "task": range(len(solved)), "successes": solved, "trials": 4})
est = ab.estimate(ab.outcomes_from_table(table), k=range(1, 9))
axes = ab.plot_pass_curves(est)
axes.figure.savefig(Path(__file__).with_suffix(".png"), dpi=110, bbox_inches="tight")
