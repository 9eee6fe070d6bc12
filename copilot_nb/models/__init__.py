"""Who answers a turn: `open_model` finds it by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from copilot_nb.errors import UsageError
from copilot_nb.models.base import Model, ModelKind, Reply, Request, Sink, ToolCall, Usage

__all__ = ["Model", "ModelKind", "Reply", "Request", "Sink", "ToolCall", "Usage", "open_model"]

KNOWN = (
    "demo (no LLM, no account), openai:MODEL (any OpenAI-compatible server, with a base URL), "
    "scripted:FILE.json (replies from data), PROVIDER:MODEL such as anthropic:… or ollama:… "
    "(needs: pip install 'copilot-nb[providers]')"
)


def open_model(
    spec: str | Model | None = None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    wire_api: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Model:
    """The model that a name stands for.

    Parameters
    ----------
    spec
        ``demo``, ``openai:<model>``, ``scripted:<file.json>``, ``<provider>:<model>``, or a model object.
        None takes ``COPILOT_NB_MODEL``, else ``demo``: a key in the environment alone selects nothing.
    base_url, api_key
        Where to ask, and with which key; else ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY`` (or the
        provider's own variables).
    wire_api
        Only ``completions``: the Responses API is for the Copilot runtime and for ``openai-responses:MODEL``.
    environ
        Instead of ``os.environ``.

    Raises
    ------
    UsageError
        No such model; the message says what exists.
    """
    env = os.environ if environ is None else environ
    if spec is None:
        spec = env.get("COPILOT_NB_MODEL") or "demo"
    if wire_api not in (None, "completions"):
        raise UsageError(
            f"The engine speaks wire_api='completions', not {wire_api!r}; use the copilot runtime for it, "
            "or the model openai-responses:MODEL."
        )
    if not isinstance(spec, str):
        return _object(spec)
    name = spec.strip()
    provider, colon, model = name.partition(":")
    if name == "demo":
        from copilot_nb.models.demo import DemoModel

        return DemoModel.from_environment(env)
    if provider == "openai" and colon:
        from copilot_nb.models.openai import from_environment

        return from_environment(model, base_url=base_url, api_key=api_key, environ=env)
    if provider == "scripted" and model:
        from copilot_nb.models.scripted import ScriptedModel

        return ScriptedModel.from_file(model)
    if colon and model and provider:
        from copilot_nb.models.providers import open_provider

        return open_provider(provider, model, base_url=base_url, api_key=api_key)
    raise UsageError(f"There is no model {spec!r}. Known: {KNOWN}.")


def _object(spec: Any) -> Model:
    if hasattr(spec, "reply") and hasattr(spec, "label"):
        model: Model = spec
        return model
    if any(base.__module__.startswith("pydantic_ai.") for base in type(spec).__mro__):
        from copilot_nb.models.providers import wrap

        return wrap(spec)
    raise UsageError(f"{type(spec).__name__} is no model. Known: {KNOWN}.")
