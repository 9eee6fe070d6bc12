"""The event types of the real CLI (reference §21) and of this project, in a fixed order.

They are the categories of ``events().type``; a type that is not here is a further category, never an error.
"""

from __future__ import annotations

from typing import Final

_NAMES: Final = """
    abort agent.interrupted assistant.idle assistant.message assistant.message_delta assistant.message_start
    assistant.reasoning assistant.reasoning_delta assistant.streaming_delta assistant.tool_call_delta
    assistant.turn_end assistant.turn_retry assistant.turn_start assistant.usage external_tool.completed
    external_tool.requested jupyter.limit jupyter.notice jupyter.partial jupyter.queue jupyter.runtime
    jupyter.tool_display model.call_failure model.call_final_result model.call_finished model.call_start
    model.compaction_completed model.compaction_started model.log model.message model.messages_snapshot
    model.model_call_failure model.model_call_started model.model_call_success model.response model.telemetry
    model.tool_execution model.turn_ended model.turn_failed model.turn_retry model.turn_started
    pending_messages.modified permission.completed permission.requested sandbox.decision
    session.autopilot_stopped session.background_tasks_changed session.binary_asset
    session.compaction_complete session.compaction_start session.error session.idle session.indexed_search
    session.info session.managed_settings_resolved session.mcp_servers_loaded session.mode_changed
    session.mode_notice_delivered session.resume session.shutdown session.skills_loaded
    session.snapshot_rewind session.start session.task_complete session.title_changed session.tools_updated
    session.truncation session.usage_checkpoint session.usage_info session.usage_record session.warning
    system.message system.notification tool.execution_complete tool.execution_partial_result
    tool.execution_start tool.shell_output user.message
"""
KNOWN_TYPES: Final[tuple[str, ...]] = tuple(_NAMES.split())
