"""``%copilot answer TEXT``: what a person types, as the answer that the agent's question takes."""

from __future__ import annotations

import json

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON
from copilot_nb.fold.items import Request
from copilot_nb.notebook.desk import Desk
from copilot_nb.runtimes.base import Answer

_YES, _NO = ("yes", "y", "ok"), ("no", "n")


async def run(desk: Desk, text: str) -> None:
    """Answer the oldest open question."""
    session = desk.current()
    request = next(iter(session.state.questions.values()), None)
    if request is None:
        also = " A permission is answered by %allow or %deny." if session.state.permissions else ""
        raise UsageError(f"The agent asks nothing now ({session.state.describe()}).{also}")
    if not text:
        raise UsageError(f"%copilot answer TEXT: the text is missing. The question: {question(request)}")
    await session.respond(request.id, Answer(data_for(request, text)))
    print("Answered.")


def question(request: Request) -> str:
    """The question in words, with what may be answered."""
    data = request.data
    text = (
        data.get("question") or data.get("message") or data.get("summary") or request.kind.replace("_", " ")
    )
    if request.kind in ("exit_plan_mode", "auto_mode_switch"):
        return f"{text} (yes, no, or what to do instead)"
    if request.kind == "elicitation":
        fields = (data.get("requestedSchema") or {}).get("properties") or {}
        return f"{text} (a JSON object with {', '.join(fields)}; or: no)" if fields else f"{text} (yes or no)"
    choices = data.get("choices") or ()
    return f"{text} ({', '.join(map(str, choices))})" if choices else str(text)


def data_for(request: Request, text: str) -> JSON:
    """The answer's data (the shapes are the Copilot SDK's)."""
    word = text.strip().lower()
    if request.kind == "exit_plan_mode":
        if word in _YES:
            return {"approved": True}
        return {"approved": False} if word in _NO else {"approved": False, "feedback": text}
    if request.kind == "auto_mode_switch":
        return {"response": "yes" if word in _YES else "no"}
    if request.kind == "elicitation":
        return _form(text, word)
    return {"answer": text}


def _form(text: str, word: str) -> JSON:
    if word in _NO:
        return {"action": "decline"}
    if word in _YES:
        return {"action": "accept", "content": {}}
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise UsageError('A form is answered with a JSON object, such as {"name": "x"}, or with no.')
    return {"action": "accept", "content": content}
