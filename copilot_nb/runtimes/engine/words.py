"""Every sentence the engine says to a model or a person, in one place."""

from __future__ import annotations

from collections.abc import Iterable

SYSTEM_PROMPT = """\
You are a coding agent at work in a person's Jupyter notebook. You act through tools; code you run shares \
the notebook's variables. Look before you change something, keep outputs short, and say what you found in \
plain words with the numbers that support it. A message that arrives while you work is a correction: follow \
it and go on with the task. When nothing is left to do, answer without calling a tool."""

MODE_NOTICE = {
    "autopilot": (
        "Autopilot is on: nobody reads along. Work until the task is done, decide small things yourself, "
        "and call task_complete with a summary at the end."
    ),
    "interactive": "Interactive mode: a person reads along and answers questions.",
    "plan": "Plan mode: look and think, change nothing, and end with a plan.",
}
NUDGE = (
    "The task is not marked as done. If work is left, go on with it without asking. If everything is done, "
    "call task_complete with a summary; if you are blocked, say so in that summary."
)
CONTINUE = "Your answer was cut off by the length limit. Go on exactly where it stopped."
INTERRUPTED = "This call was interrupted before it gave a result."
COMPACT = (
    "The conversation is about to be replaced by a summary that you write now. Keep what is needed to go on: "
    "the goal and every explicit wish of the person, what was done and found (names of variables, files, "
    "numbers), decisions with their reasons, open problems, and the next step."
)
TASK_COMPLETE = "Say that the task is done, with a summary of what was achieved."
EMPTY_REPLY = (
    "The model answered with nothing: no text and no tool call. Send the message again, or rephrase it."
)


def compacted(user_messages: Iterable[str], summary: str) -> str:
    """The one message that stands for all earlier ones (reference §17)."""
    said = "".join(f"<message>\n{text}\n</message>\n" for text in user_messages)
    return (
        "The earlier conversation was replaced by a summary. What the person wrote, word for word:\n"
        f"{said}\nWhat happened so far:\n<summary>\n{summary}\n</summary>\n"
    )


def denied(feedback: str | None) -> str:
    """The result of a call that a person rejected."""
    if feedback:
        return f"The person did not allow this call and says: {feedback}"
    return "The person did not allow this call (reject)."


def unavailable(reason: str | None) -> str:
    """The result of a call that nobody could be asked about."""
    return f"This call needs permission and was denied: {reason or 'nobody could be asked'}."


def unknown_tool(name: str, known: Iterable[str]) -> str:
    """The result of a call to a tool that is not there."""
    return f"There is no tool named {name!r}. Available: {', '.join(known) or 'none'}."


def bad_arguments(raw: str, problem: str) -> str:
    """The result of a call whose arguments are no JSON."""
    return f"The arguments are not valid JSON ({problem}). You wrote: {raw}"


def not_an_object(raw: str) -> str:
    """The result of a call whose arguments are JSON but no object."""
    return f"Expected a JSON object as arguments, got: {raw}"


def raised(name: str, arguments: object, problem: str) -> str:
    """The result of a call whose handler raised."""
    return f"The tool {name} failed with arguments {arguments}: {problem}"


def large_output(size: int, path: str, head: str) -> str:
    """The notice in place of a large result (reference §16)."""
    return (
        f"The output is {size:,} bytes, too large to show. It is saved whole in {path}; "
        f"read the parts you need. It begins:\n{head}"
    )


def limit_reached(limit: str, value: object) -> str:
    """Why a run ended before the model ended it."""
    return f"The run ended because its limit of {value} {limit} was reached. Send a message to go on."
