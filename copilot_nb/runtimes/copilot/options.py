"""What a session on the Copilot CLI is opened with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct, field

from copilot_nb.errors import RuntimeUnavailable, UsageError
from copilot_nb.events import JSON
from copilot_nb.permissions import Policy
from copilot_nb.tools.base import Tool

KEY_NAMES: Final = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
ADDRESSES: Final = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}


class Provider(Struct, frozen=True):
    """A model provider of one's own, in place of the Copilot login.

    Attributes
    ----------
    base_url
        For example ``https://api.openai.com/v1`` or ``http://localhost:11434/v1``.
    wire_api
        ``completions`` or ``responses``; for the types ``openai`` and ``azure``.
    key_env
        Name of the environment variable that holds the key; by default the usual one of the type.
        The key itself is read when a session starts, handed to the CLI, and kept nowhere.
    max_prompt_tokens
        Size of the context window in tokens, when the CLI does not know the model.
    """

    base_url: str
    type: Literal["openai", "azure", "anthropic"] = "openai"
    wire_api: Literal["completions", "responses"] | None = None
    key_env: str | None = None
    api_version: str | None = None
    max_prompt_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.type not in KEY_NAMES:
            raise UsageError(f"There is no provider type {self.type!r}: use openai, azure or anthropic.")
        if self.wire_api not in (None, "completions", "responses"):
            raise UsageError(f"There is no wire API {self.wire_api!r}: use completions or responses.")

    @property
    def key_name(self) -> str:
        """The environment variable the key is read from."""
        return self.key_env or KEY_NAMES[self.type]

    @property
    def local(self) -> bool:
        """Whether it runs on this machine, where a key is often not needed."""
        return urlsplit(self.base_url).hostname in ("localhost", "127.0.0.1", "::1")

    def for_sdk(self) -> JSON:
        """The SDK's ``ProviderConfig``, key included.

        Raises
        ------
        RuntimeUnavailable
            No key in the environment, and the provider is not a local one.
        """
        key = os.environ.get(self.key_name)
        if not key and not self.local:
            raise RuntimeUnavailable(
                f"No key for {self.base_url}: the environment variable {self.key_name} is not set. "
                f"Type:  import os, getpass; os.environ[{self.key_name!r}] = getpass.getpass()"
            )
        config: JSON = {"type": self.type, "base_url": self.base_url, "api_key": key or "none"}
        if self.wire_api and self.type != "anthropic":
            config["wire_api"] = self.wire_api
        if self.api_version and self.type == "azure":
            config["azure"] = {"api_version": self.api_version}
        if self.max_prompt_tokens:
            config["max_prompt_tokens"] = self.max_prompt_tokens
        return config


def provider_of(
    model: str | None, base_url: str | None, wire_api: str | None = None, **more: Any
) -> tuple[str | None, Provider | None]:
    """The model's name and the provider that are meant by ``--model``, ``--base-url`` and ``--wire-api``.

    ``openai:NAME`` and ``anthropic:NAME`` mean a key of one's own even without an address; a bare name
    without an address is a model of the Copilot account.
    """
    kind, colon, name = (model or "").partition(":")
    if not colon or kind not in KEY_NAMES:
        kind, name = "", model or ""
    kind = more.pop("type", None) or kind
    if base_url is None and kind in ADDRESSES:
        base_url = ADDRESSES[kind]
    if base_url is None:
        if kind:
            raise UsageError(f"The provider {kind} needs its address: --base-url https://…")
        return name or None, None
    if not name:
        raise UsageError(f"Which model of {base_url}? Say --model NAME.")
    return name, Provider(base_url, kind or "openai", wire_api, **more)  # type: ignore[arg-type]  # checked there


class CopilotOptions(Struct):
    """One session on the CLI.

    Attributes
    ----------
    home
        ``COPILOT_HOME``: the CLI's settings and, below ``session-state``, its sessions.
    policy
        Who may let a tool run; what it leaves open is asked of the person.
    model
        A name the provider or the Copilot account knows; None is the account's default.
    provider
        None: the user's Copilot login answers.
    tools
        Offered to the CLI as custom tools and run in this kernel.
    resume
        Open the existing session of that id instead of making it.
    cli_path
        The executable; by default it is looked for (see `cli.find`).
    sdk
        Further arguments for the SDK's ``create_session`` and ``resume_session``, as it names them:
        ``system_message``, ``available_tools``, ``mcp_servers``, ``autopilot`` …
    """

    session_id: str
    home: Path
    policy: Policy
    model: str | None = None
    provider: Provider | None = None
    tools: Sequence[Tool] = ()
    working_directory: str = field(default_factory=os.getcwd)
    resume: bool = False
    cli_path: str | None = None
    streaming: bool = True
    sdk: JSON = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Who answers, for the panel."""
        model = self.model or "default model"
        if self.provider is None:
            return f"Copilot: {model}"
        return f"{model} at {urlsplit(self.provider.base_url).netloc or self.provider.base_url}"
