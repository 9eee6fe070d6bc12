"""The real Copilot CLI as a runtime, through ``github-copilot-sdk``.

The kernel is the application, the SDK the transport (JSON-RPC over stdio), the CLI the orchestrator.
Nothing in this package imports the SDK before a session needs it: that import takes a second
(jupyter-facts Q10).
"""
