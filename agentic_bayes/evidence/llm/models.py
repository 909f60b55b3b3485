"""Makes models from their names, and finds out a model's parameters, own retries and ways to reply in JSON."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from agentic_bayes.errors import InvalidArgument, MissingPackage, did_you_mean
from agentic_bayes.redaction import Secrets, keys_in, secrets_in

StructuredMethod = Literal["auto", "json_schema", "function_calling", "json_mode"]

Ask = Callable[..., Awaitable[Any]]

# provider → its LangChain package, class, our extra that installs it if there is one, environment variable of the key
_PROVIDERS: Mapping[str, tuple[str, str, str, str]] = {
    "openai": ("langchain_openai", "ChatOpenAI", "openai", "OPENAI_API_KEY"),
    "anthropic": ("langchain_anthropic", "ChatAnthropic", "anthropic", "ANTHROPIC_API_KEY"),
    "ollama": ("langchain_ollama", "ChatOllama", "ollama", ""),
    "groq": ("langchain_groq", "ChatGroq", "", "GROQ_API_KEY"),
    "mistralai": ("langchain_mistralai", "ChatMistralAI", "", "MISTRAL_API_KEY"),
    "google_genai": ("langchain_google_genai", "ChatGoogleGenerativeAI", "", "GOOGLE_API_KEY"),
    "deepseek": ("langchain_deepseek", "ChatDeepSeek", "", "DEEPSEEK_API_KEY"),
    "xai": ("langchain_xai", "ChatXAI", "", "XAI_API_KEY"),
    "cohere": ("langchain_cohere", "ChatCohere", "", "COHERE_API_KEY"),
    "fireworks": ("langchain_fireworks", "ChatFireworks", "", "FIREWORKS_API_KEY"),
    "together": ("langchain_together", "ChatTogether", "", "TOGETHER_API_KEY"),
    "bedrock_converse": ("langchain_aws", "ChatBedrockConverse", "", ""),
}
_ALIASES = {"mistral": "mistralai", "google": "google_genai", "gemini": "google_genai", "bedrock": "bedrock_converse"}
# makes models of any provider, if it is installed
_ANY_PROVIDER = ("langchain.chat_models", "init_chat_model")
_RETRYING = ("openai", "anthropic")  # their clients repeat calls on their own
_ENDPOINTS = ("openai_api_base", "anthropic_api_url", "base_url", "azure_endpoint", "deployment_name")


def is_model_name(text: str) -> bool:
    """Whether the text has the form "provider:model", or "provider/model" with a provider that we know."""
    return _split_name(text)[0] != ""


def _split_name(name: str) -> tuple[str, str]:
    """Provider and model; empty texts if it is no name of a model."""
    match = re.fullmatch(r"\s*(\w[\w-]*)\s*([:/])\s*([^\s/].*)", name)
    if match is None:
        return "", ""
    provider = match[1].replace("-", "_")
    provider = _ALIASES.get(provider, provider)
    return (provider, match[3]) if match[2] == ":" or provider in _PROVIDERS else ("", "")


def resolve(name: str, arguments: Mapping[str, Any]) -> Any:
    """The LangChain chat model with a name like "openai:gpt-4o-mini" or "openai/gpt-4o-mini"."""
    provider, model = _split_name(name)
    # we count, space and pay for attempts ourselves
    settings = ({"max_retries": 0} if provider in _RETRYING else {}) | dict(arguments)
    if importlib.util.find_spec(_ANY_PROVIDER[0].partition(".")[0]) is not None:
        make = getattr(importlib.import_module(_ANY_PROVIDER[0]), _ANY_PROVIDER[1])
        settings = {"model_provider": provider} | settings
    elif provider in _PROVIDERS:
        package, kind, extra, _ = _PROVIDERS[provider]
        if importlib.util.find_spec(package) is None:
            distribution = package.replace("_", "-")
            install = f"'agentic-bayes[{extra}]'" if extra else distribution
            raise MissingPackage(f"{name!r} needs the package {distribution}: pip install {install}")
        make = getattr(importlib.import_module(package), kind)
    else:
        raise InvalidArgument(
            f"unknown provider {provider!r} in {name!r}: {did_you_mean(provider, _PROVIDERS)}; "
            "the package langchain adds more providers"
        )
    try:
        return make(model=model.strip(), **settings)
    except ImportError as error:
        raise MissingPackage(f"{name!r} needs a package that is not installed: {_first_line(error)}") from error
    except Exception as error:
        key = _PROVIDERS.get(provider, ("", "", "", ""))[3]
        hint = f" (is {key} set?)" if key else ""
        secrets = Secrets(secrets_in(settings) | keys_in(os.environ))
        reason = secrets.in_text(_first_line(error))
        cause = error if secrets.in_text(str(error)) == str(error) else None
        raise InvalidArgument(f"the model {name!r} cannot be used{hint}: {reason}") from cause


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def for_one_loop(model: Any) -> tuple[Any, Callable[[], Awaitable[object]] | None]:
    """A copy of the model for one event loop, and a function that closes its connections (None if it has none).

    A client that repeats calls itself would multiply the attempts and ignore the pace; and connections left over from
    another event loop fail when they are read, after the call was sent and paid for. So OpenAI's client is made anew
    without retries, unless the caller gave the model an HTTP client or a proxy. Other models are returned as they are.
    """
    client: Any = getattr(model, "root_async_client", None)
    if not hasattr(client, "with_options") or not hasattr(model, "model_copy"):
        return model, None
    options: dict[str, Any] = {"max_retries": 0}
    fresh: Any = None
    package = sys.modules.get(type(client).__module__.partition(".")[0])
    make = getattr(package, "DefaultAsyncHttpxClient", None)
    own_transport = (getattr(model, name, None) for name in ("http_async_client", "openai_proxy"))
    if make is not None and not any(own_transport):
        fresh = options["http_client"] = make(base_url=client.base_url, timeout=client.timeout)
    copy = model.model_copy()
    copy.root_async_client = client.with_options(**options)
    copy.async_client = copy.root_async_client.chat.completions
    return copy, None if fresh is None else fresh.aclose


def model_name(model: Any) -> str:
    """The model's name for itself."""
    names = (getattr(model, attribute, None) for attribute in ("model_name", "model", "model_id"))
    return next((name for name in names if isinstance(name, str) and name), None) or str(model._llm_type)


def parameters(model: Any) -> str:
    """The model's parameters as JSON text, the same in every process; empty if it has none."""
    known = {name: value for name, value in dict(model._identifying_params).items() if value is not None}
    known |= {name: str(value) for name in _ENDPOINTS if (value := getattr(model, name, None))}
    # only the type of an object: its text may contain a memory address or a secret
    return json.dumps(known, sort_keys=True, default=lambda value: type(value).__qualname__) if known else ""


def reply_modes(model: Any, schema: Mapping[str, Any], method: StructuredMethod) -> list[tuple[str, Ask]]:
    """Ways to ask the model for an object, best first."""
    if method != "auto":
        wanted: Sequence[str] = (method,)
    elif profile := getattr(model, "profile", None):
        supports = (("json_schema", "structured_output"), ("function_calling", "tool_calling"))
        wanted = [name for name, key in supports if profile.get(key)]
    else:
        wanted = ("structured",)
    return [(name, ask) for name in wanted if (ask := _structured(model, schema, name)) is not None]


def _structured(model: Any, schema: Mapping[str, Any], method: str) -> Ask | None:
    """The model with structured output, or None if it has none."""
    choice = {} if method == "structured" else {"method": method}
    try:
        chain = model.with_structured_output(dict(schema), include_raw=True, **choice)
    except (NotImplementedError, AttributeError, TypeError, ValueError):
        return None
    # the bound model is enough: LangChain's chain takes ten times as long, to parse what we read ourselves anyway
    steps = getattr(getattr(chain, "first", None), "steps__", None)
    if not isinstance(steps, Mapping) or "raw" not in steps:
        return chain.ainvoke  # type: ignore[no-any-return]
    binding: Any = steps["raw"]
    bare = getattr(binding, "bound", None) is model
    if bare and not binding.config and not binding.config_factories:
        return partial(model.ainvoke, **binding.kwargs)
    return binding.ainvoke  # type: ignore[no-any-return]
