"""What went wrong with the CLI, and what to type."""

from __future__ import annotations

from typing import Final

INSTALL: Final = (
    "Install it with  npm install -g @github/copilot  (or  brew install copilot-cli , or  winget install "
    "GitHub.Copilot ), or let the SDK download it:  %copilot doctor --download . "
    "If it is installed, say where:  %env COPILOT_CLI_PATH=/path/to/copilot"
)
OWN_KEY: Final = (
    "%%copilot --runtime copilot --model NAME --base-url https://api.openai.com/v1 , "
    "with the key in the environment variable OPENAI_API_KEY"
)
NOT_LOGGED_IN: Final = (
    "The Copilot CLI is not logged in. In a terminal type  copilot login  (it opens a browser or shows a "
    f"code), or set COPILOT_GITHUB_TOKEN. To use a key of your own instead:  {OWN_KEY}."
)
PROTOCOL: Final = "Update both:  copilot update  and  %pip install -U github-copilot-sdk"
DOWNLOAD: Final = (
    "The Copilot CLI is not on this machine. May the Copilot SDK download it from github.com "
    "(some 100 MB, into your cache folder)?"
)
# for the `errorType` of a session.error
ERRORS: Final = {
    "authentication": "Log in again (in a terminal:  copilot login ), or check the key of your provider.",
    "authorization": "Your Copilot plan, or your organisation's policy, does not allow this: "
    f"look at github.com/settings/copilot , or use a key of your own:  {OWN_KEY}.",
    "quota": "Your Copilot quota is used up: look at github.com/settings/copilot , choose another --model, "
    f"or use a key of your own:  {OWN_KEY}.",
    "rate_limit": "Wait a while and send again, or choose another --model.",
}
