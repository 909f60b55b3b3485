"""PyMC and nutpie: the beta-binomial model as one would write it by hand, four chains of 1,000 draws."""

from __future__ import annotations

import numpy as np
import nutpie
import pymc as pm
import worker


def intervals(request):
    """Limits of each metric for each data set; the model is compiled once."""
    trials = request["trials"]
    with pm.Model() as model:
        counts = pm.Data("counts", np.asarray(request["sets"][0]))
        mu = pm.Uniform("mu", 0, 1)
        rho = pm.Uniform("rho", 0, 1)
        kappa = 1 / rho - 1
        pm.BetaBinomial("c", n=trials, alpha=mu * kappa, beta=(1 - mu) * kappa, observed=counts)
    compiled = []

    def limits(c):
        if not compiled:
            compiled.append(nutpie.compile_pymc_model(model))
        fitted = compiled[0].with_data(counts=np.asarray(c))
        draws = nutpie.sample(fitted, draws=1000, tune=1000, chains=4, cores=1, seed=1, progress_bar=False)
        mu, rho = (draws.posterior[name].values.ravel() for name in ("mu", "rho"))
        kappa = 1 / rho - 1
        found = []
        for metric in request["metrics"]:
            one = mu * kappa if metric[4] == "^" else (1 - mu) * kappa
            steps = np.arange(int(metric[5:]))[:, None]
            power = np.prod((one + steps) / (kappa + steps), axis=0)  # mean of p^k, or of (1 - p)^k
            found.append(np.quantile(power if metric[4] == "^" else 1 - power, [0.025, 0.975]).tolist())
        return {"population": found}

    return worker.each(limits, request["sets"])


worker.main("pymc nutpie", {"intervals": intervals})
