"""Commands on a store of judgements: cache list, clear, check and repair."""

from __future__ import annotations

from typer import Exit, Option, Typer

from agentic_bayes.cli.options import StoreFile, ToJson
from agentic_bayes.cli.output import say, say_json

cache = Typer(help="List, clear, check or repair the judgements cached by assess --store.", no_args_is_help=True)
commands = Typer()
commands.add_typer(cache, name="cache")


@cache.command("list")
def list_models(file: StoreFile, to: ToJson = None) -> None:
    """List judgements, tokens and cost by model."""
    from agentic_bayes.checks import check_input_file
    from agentic_bayes.evidence.llm.store import Store
    from agentic_bayes.formatting import plural

    check_input_file(file)
    with Store(file) as store:
        models, judgements, size = store.models(), len(store), store.size
    if to == "json":
        by_model = {model: usage.record() for model, usage in models.items()}
        say_json({"models": by_model, "judgements": judgements, "bytes": size})
        return
    for model, usage in models.items():
        tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
        cost = usage.record()["cost"]
        known_cost = "" if cost is None else f", cost {cost:,.6g}"
        say(f"{model}: {plural(usage.judgements, 'judgement')}, {tokens}{known_cost}")
    say(f"{plural(judgements, 'judgement')} in {size:,} bytes")


@cache.command()
def clear(
    file: StoreFile, model: str | None = Option(None, help="Clear only this model's judgements."), to: ToJson = None
) -> None:
    """Clear judgements; a rerun pays for them again."""
    from agentic_bayes.checks import check_input_file
    from agentic_bayes.evidence.llm.store import Store
    from agentic_bayes.formatting import plural

    check_input_file(file)
    with Store(file) as store:
        cleared = store.clear(model)
    if to == "json":
        say_json({"cleared": cleared})
    else:
        say(f"{plural(cleared, 'judgement')} cleared")


@cache.command()
def check(file: StoreFile, to: ToJson = None) -> None:
    """Read the whole store; exit code 1 if it is damaged."""
    from dataclasses import asdict

    from agentic_bayes.checks import check_input_file
    from agentic_bayes.evidence.llm.repair import check_store
    from agentic_bayes.formatting import plural

    check_input_file(file)
    result = check_store(file)
    if to == "json":
        say_json({"damaged": result.damaged, **asdict(result)})
    else:
        for fault in result.faults:
            say(f"damaged: {fault}")
        if result.invalid:
            say(f"damaged: {plural(result.invalid, 'row')} with impossible values")
        readable = f"{plural(result.judgements, 'judgement')} of {plural(result.calls, 'call')} can be read"
        repair = f"; save them with `agentic-bayes cache repair {file}`" if result.damaged else ""
        say(f"{readable}{repair}")
    if result.damaged:
        raise Exit(1)


@cache.command()
def repair(file: StoreFile, to: ToJson = None) -> None:
    """Replace a damaged store by one with what can be read; the old file stays as FILE.damaged."""
    from agentic_bayes.checks import check_input_file
    from agentic_bayes.evidence.llm.repair import repair_store
    from agentic_bayes.formatting import plural

    check_input_file(file)
    result, damaged = repair_store(file)
    if to == "json":
        say_json({"judgements": result.judgements, "calls": result.calls, "kept": damaged})
    else:
        saved = f"{plural(result.judgements, 'judgement')} of {plural(result.calls, 'call')} saved"
        say(f"{saved}; the damaged file is kept as {damaged}")
