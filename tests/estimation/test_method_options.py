"""Methods are values: each carries its own options, and an option that would do nothing cannot be written."""

import pickle

import numpy as np
import pytest
from scipy import stats

from agentic_bayes.errors import InvalidArgument, UnknownName
from agentic_bayes.estimation.methods.options import (
    Conjugate,
    Crossed,
    Frequentist,
    Hierarchical,
    method_from_record,
    method_of,
)

EVERY_KIND = [
    Hierarchical(),
    Hierarchical(rho=stats.beta(2, 5), tau=stats.halfnorm(scale=0.5), inflate=True),
    Hierarchical(mu=stats.beta(2, 3), kappa=stats.pareto(b=1.5), pool_agents=False),
    Crossed(),
    Crossed(rho=stats.beta(2, 5), theta=stats.norm(0, 2), sigma=stats.expon()),
    Crossed(pool_agents=True),
    Conjugate(),
    Conjugate(prior=(0.5, 2), pool_tasks=True),
    Frequentist(estimator="plugin"),
]


@pytest.mark.parametrize("name", ["hierarchical", "crossed", "conjugate", "frequentist"])
def test_a_name_means_the_method_with_its_defaults(name):
    """Name, class and value are the same method, and the value knows its name."""
    method = method_of(name)
    assert method.name == name
    assert method == method_of(type(method)) == method_of(method)
    assert repr(method) == f"{name.capitalize()}()"


@pytest.mark.parametrize("method", EVERY_KIND, ids=repr)
def test_a_record_gives_the_method_back(method):
    """What a file keeps restores every option; priors have the same density."""
    again = method_from_record(method.record())
    assert (type(again), repr(again)) == (type(method), repr(method))
    for name in method.given_priors:
        x = np.array([0.2, 0.7, 1.5])
        np.testing.assert_array_equal(again.log_density(name)(x), method.log_density(name)(x))
    assert repr(pickle.loads(pickle.dumps(method))) == repr(method)


def test_the_representation_is_what_one_would_write():
    """Only options that differ from the defaults, priors as SciPy names them."""
    assert repr(EVERY_KIND[1]) == "Hierarchical(rho=beta(2, 5), tau=halfnorm(scale=0.5), inflate=True)"
    assert repr(EVERY_KIND[7]) == "Conjugate(prior=(0.5, 2), pool_tasks=True)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hierarchical(mu=stats.beta(2, 3)), "a prior of mu needs pool_agents=False"),
        (lambda: Hierarchical(m=stats.norm(), pool_agents=False), "a prior of m needs pool_agents=True"),
        (lambda: Hierarchical(tau=stats.norm(), m=stats.norm(), pool_agents=False), "a prior of m and tau needs"),
        (lambda: Hierarchical(rho=stats.beta(1, 2), kappa=stats.gamma(2)), "give a prior of rho or of kappa, not both"),
        (lambda: Crossed(theta=stats.norm(), pool_agents=True), "a prior of theta needs pool_agents=False"),
    ],
)
def test_an_option_without_effect_is_refused_where_it_is_written(make, message):
    """The value itself refuses what it would not use, and says what would use it."""
    with pytest.raises(InvalidArgument, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Crossed(rho=stats.norm(0.3, 0.5)),
            r"between 0 and 1, norm\(0\.3, 0\.5\) has 0\.36 elsewhere .*truncnorm",
        ),
        (lambda: Hierarchical(rho=stats.uniform(0, 2)), r"between 0 and 1, uniform\(0, 2\) has 0\.5 elsewhere"),
        (lambda: Hierarchical(tau=stats.norm(1, 1)), "a prior of tau must have its mass at 0 or more"),
        (lambda: Crossed(theta=stats.norm(0, -1)), "a prior of theta must have its mass at finite numbers"),
        (lambda: Crossed(sigma=stats.gamma([1, 2])), r"sigma must be one distribution, .* shape \(2,\)"),
    ],
)
def test_a_prior_of_what_cannot_be_is_refused(make, message):
    """One engine cut it off, another took the mass of a ρ above 1 for a ρ of 1: two answers to one question."""
    with pytest.raises(InvalidArgument, match=message):
        make()


@pytest.mark.parametrize(
    ("kind", "option"),
    [(Hierarchical, "theta"), (Crossed, "inflate"), (Conjugate, "rho"), (Frequentist, "pool_tasks"), (Conjugate, "mu")],
)
def test_an_option_of_another_method_cannot_be_written(kind, option):
    """A method takes its own options only."""
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
        kind(**{option: True})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hierarchical(pool_agents="yes"), "pool_agents must be True or False, got 'yes'"),
        (lambda: Hierarchical(inflate=1), "inflate must be True or False, got 1"),
        (lambda: Crossed(pool_agents=None), "pool_agents must be True or False, got None"),
        (lambda: Conjugate(pool_tasks="no"), "pool_tasks must be True or False, got 'no'"),
        (lambda: Hierarchical(rho=0.3), "rho must be a frozen scipy.stats distribution or a function"),
        (lambda: Conjugate(prior=(1, 0)), r"prior must be two positive numbers \(a, b\) of a Beta prior, got \(1, 0\)"),
        (lambda: Conjugate(prior=(1, float("inf"))), "prior must be two positive numbers"),
        (lambda: Conjugate(prior=2), "prior must be two positive numbers"),
        (lambda: Conjugate(prior=(True, 1)), "prior must be two positive numbers"),
    ],
)
def test_wrong_options_are_refused(make, message):
    """A message says what is allowed and what came."""
    with pytest.raises(InvalidArgument, match=message):
        make()


def test_unknown_names_are_answered_with_the_nearest():
    """A misspelt method or estimator is an error that names the valid ones."""
    with pytest.raises(UnknownName, match="unknown method 'hierarchicl': did you mean 'hierarchical'"):
        method_of("hierarchicl")
    with pytest.raises(UnknownName, match="unknown estimator 'plug-in': did you mean 'plugin'"):
        Frequentist(estimator="plug-in")
    with pytest.raises(InvalidArgument, match=r"method must be one of 'hierarchical', .*, got 3"):
        method_of(3)


def test_a_prior_that_is_a_function_is_known_to_be_one():
    """A file cannot keep a function, nor a distribution that SciPy does not have."""
    assert Hierarchical(kappa=lambda kappa: -1.5 * np.log(kappa)).has_function_prior
    assert not Hierarchical(kappa=stats.pareto(1.5)).has_function_prior
    with pytest.raises(InvalidArgument, match="the prior of kappa was a function, which is not kept"):
        method_from_record(Hierarchical(kappa=np.negative).record())
