"""Becomes the Copilot CLI: ``python -I -S guard.py PARENT CLI ARGUMENT…``.

Run as a script, between the kernel and the CLI. The SDK starts the CLI in the kernel's process group,
where a kernel interrupt would end it (jupyter-facts Q5); here it gets a session of its own. On Linux it
also gets a signal when the kernel dies. That is the second rope: the first is that the CLI ends when its
stdin closes, but a child that the user's code forked off the kernel would hold that pipe open.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Detach from the kernel's group, then turn into the CLI."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            sys.exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
