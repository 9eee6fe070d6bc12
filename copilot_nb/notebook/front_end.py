"""Whether anybody watches the notebook."""

from __future__ import annotations

import os


def nobody_there() -> bool:
    """Whether the notebook runs without a person: nbclient, papermill, ``jupyter execute``.

    They tell the kernel that it may not ask for input. ``COPILOT_NB_WAIT`` (1 or 0) overrides.
    """
    told = os.environ.get("COPILOT_NB_WAIT", "")
    if told:
        return told != "0"
    from IPython.core.getipython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return kernel is not None and not getattr(kernel, "_allow_stdin", True)
