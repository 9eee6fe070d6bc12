"""What can be set for an engine session. The defaults are the reference's."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from copilot_nb.models.base import Model
from copilot_nb.permissions import Policy
from copilot_nb.runtimes.base import Mode
from copilot_nb.tools.base import Tool


class Limits(Struct):
    """What a person allows one run to use; None is no limit.

    Attributes
    ----------
    turns
        Model calls of one run.
    tokens
        Input and output tokens of one run, as the provider counts them.
    seconds
        Wall time of one run.
    stop_queue
        Also pause the queue when a limit is reached; otherwise the next item starts.
    """

    turns: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    stop_queue: bool = False


class EngineConfig(Struct):
    """One session's settings.

    Attributes
    ----------
    model
        Who answers.
    tools
        What it may call.
    policy
        Who allows it.
    system_prompt
        None: the engine's own short prompt.
    available_tools
        Names offered to the model; None: all.
    streaming
        Ask the provider for a stream.
    mode
        Mode of a new session.
    continuation_enabled, max_continues
        Autopilot: whether a run without ``task_complete`` is nudged on, and how often per user message
        (reference §9: 5).
    large_output_bytes
        Tool results above it are replaced by a notice and a file (reference §16: 20,480 bytes); None: never.
    compact_at, truncate_at
        Shares of the model's context window at which a summary is made in the background, and at which old
        tool exchanges are left out of the request until it is there (reference §17).
    retry_scale
        Factor on every back-off; 0 retries at once.
    restore_queue
        Put back what waited when a resumed session was last open, with the queue paused: it never runs by
        itself. The reference forgets it (§13).
    redact
        Replace the values of environment variables that look like keys or passwords in tool results.
    extras
        Also store this project's own events (``jupyter.queue``, ``jupyter.partial``), which the real CLI
        keeps and ignores: queue entries with their sending time, a queue that survives a restart, the text
        of an aborted turn.
    """

    model: Model
    tools: list[Tool] = field(default_factory=list)
    policy: Policy = field(default_factory=Policy)
    system_prompt: str | None = None
    available_tools: list[str] | None = None
    streaming: bool = True
    mode: Mode = "interactive"
    continuation_enabled: bool = True
    max_continues: int = 5
    large_output_bytes: int | None = 20_480
    compact_at: float = 0.80
    truncate_at: float = 0.95
    retry_scale: float = 1.0
    limits: Limits = field(default_factory=Limits)
    working_directory: str = field(default_factory=lambda: str(Path.cwd()))
    restore_queue: bool = False
    redact: bool = True
    extras: bool = True
