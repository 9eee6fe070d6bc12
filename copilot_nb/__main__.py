"""The command line: ``python -m copilot_nb COMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from copilot_nb.errors import CopilotNbError
from copilot_nb.frames import cli as tables
from copilot_nb.models import serve


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status."""
    parser = argparse.ArgumentParser(prog="copilot-nb", description="copilot_nb, outside of a notebook.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve.add_parsers(commands)
    tables.add_parsers(commands)
    args = parser.parse_args(argv)
    try:
        status: int = args.run(args)
    except CopilotNbError as error:
        print(f"copilot-nb: {error}", file=sys.stderr)
        return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
