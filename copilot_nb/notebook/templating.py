"""Variables in a prompt: ``{name}`` becomes the value of an existing variable, all else stays as written.

Prompts hold JSON, f-strings and pasted tracebacks, so this is a scanner and not ``str.format``
(jupyter-ai#27, #967: a brace in the prompt raised or was eaten). It knows two forms only::

    {name}      the variable's text, if the notebook has such a variable
    {{name}}    {name}, as it stands

A value is put in literally and never looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FIELD = re.compile(r"\{\{(?P<escaped>[^\W\d]\w*)\}\}|\{(?P<name>[^\W\d]\w*)\}")


def fill(prompt: str, variables: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Put the variables in.

    Parameters
    ----------
    prompt
        As the person wrote it.
    variables
        The user's namespace.

    Returns
    -------
    The prompt to send, and the names that looked like a variable but are none (left as written).
    """
    missing: list[str] = []

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return "{" + match["escaped"] + "}"
        if name in variables:
            return str(variables[name])
        if name not in missing:
            missing.append(name)
        return match[0]

    return _FIELD.sub(replace, prompt), missing
