"""Events in, facts out: one small function per event type, O(1) each.

`SessionState` (copilot_nb/state.py) is `Fold` plus the ways to look at it. Event shapes and order are the
reference loop's (its sections in brackets); types with ``jupyter.`` are this project's own.
"""

from copilot_nb.fold import marks, messages, tools, turns
from copilot_nb.fold.base import Fold

__all__ = ["Fold", "marks", "messages", "tools", "turns"]
