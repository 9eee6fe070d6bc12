"""Every other provider, through pydantic-ai's model layer (the extra ``providers``).

Where pydantic-ai speaks OpenAI's chat completions itself (Ollama, OpenRouter, DeepSeek, …), only its
client is taken, and `OpenAIModel` does the talking: the same server at a tenth of the cost at 100 turns.
"""

from __future__ import annotations

import base64
from contextlib import AsyncExitStack
from typing import Any

from copilot_nb.errors import ModelError, UsageError
from copilot_nb.events import JSON
from copilot_nb.models.base import Model, ModelKind, Reply, Request, Sink, ToolCall, Usage
from copilot_nb.models.openai import OpenAIModel
from copilot_nb.models.wire import text_of

ALWAYS = "Always there: demo, scripted:FILE.json, openai:MODEL (any OpenAI-compatible server)."


def open_provider(
    provider: str, model: str, *, base_url: str | None = None, api_key: str | None = None
) -> Model:
    """The model ``provider:model``; raises `UsageError` when the provider or its package is missing."""
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider_class
    except ImportError as error:
        raise UsageError(
            f"The model {provider}:{model} needs pydantic-ai: pip install 'copilot-nb[providers]'. {ALWAYS}"
        ) from error
    given = {key: value for key, value in (("base_url", base_url), ("api_key", api_key)) if value}
    try:
        if given:
            found = infer_model(f"{provider}:{model}", lambda name: infer_provider_class(name)(**given))
        else:
            found = infer_model(f"{provider}:{model}")
    except (UserError, ImportError, ValueError) as error:
        why = str(error).rstrip(".")
        said = f"Cannot open the model {provider}:{model}: {why}. {ALWAYS}"
        raise UsageError(_hidden(said, api_key)) from None
    except TypeError as error:  # the provider's constructor does not know an argument
        raise UsageError(f"The provider {provider} takes no {' and '.join(given)}: {error}") from None
    return wrap(found, name=f"{provider}:{model}", key=api_key)


def wrap(model: Any, *, name: str | None = None, key: str | None = None) -> Model:
    """One of pydantic-ai's model objects as ours."""
    name = name or f"{model.system}:{model.model_name}"
    client = getattr(model, "client", None)
    if any(base.__name__ == "OpenAIChatModel" for base in type(model).__mro__):
        return OpenAIModel(model.model_name, api_key=key, client=client, name=name)
    return ProviderModel(model, name=name, key=key)


class ProviderModel:
    """Answers turns through ``pydantic_ai.direct``."""

    kind: ModelKind = "provider"

    def __init__(self, model: Any, *, name: str, key: str | None = None) -> None:
        self.name = self.label = name
        self._model = model
        self._key = key
        window = (getattr(model, "profile", None) or {}).get("context_window")
        self.max_prompt_tokens: int | None = window if isinstance(window, int) else None
        client: Any = getattr(model, "client", None)
        if hasattr(client, "max_retries"):
            client.max_retries = 0  # the engine retries, visibly

    def __repr__(self) -> str:
        return f"ProviderModel({self.name!r})"

    async def reply(self, request: Request, sink: Sink) -> Reply:
        """Answer one request."""
        from pydantic_ai.direct import model_request, model_request_stream
        from pydantic_ai.exceptions import AgentRunError, UserError
        from pydantic_ai.models import ModelRequestParameters

        messages = to_messages(request.messages)
        parameters = ModelRequestParameters(function_tools=[_definition(tool) for tool in request.tools])
        try:
            if not request.stream:
                response = await model_request(self._model, messages, model_request_parameters=parameters)
                return to_reply(response)
            async with AsyncExitStack() as stack:
                stream = await stack.enter_async_context(
                    model_request_stream(self._model, messages, model_request_parameters=parameters)
                )
                names: dict[int, tuple[str, str]] = {}
                async for event in stream:
                    _tell(event, names, sink)
                return to_reply(stream.get())
        except (AgentRunError, UserError) as error:
            status = getattr(error, "status_code", None)
            raise ModelError(
                _hidden(str(error), self._key),
                status=status,
                code=getattr(error, "provider_error_code", None),
                retry_after=getattr(error, "retry_after", None),
            ) from None

    async def close(self) -> None:
        """Close the provider's connections, if it has any of its own."""
        close = getattr(getattr(self._model, "client", None), "close", None)
        if close is not None:
            await close()


def to_messages(messages: list[JSON]) -> list[Any]:
    """Chat messages in the wire form as pydantic-ai's requests and responses."""
    from pydantic_ai import messages as m

    result: list[Any] = []
    parts: list[Any] = []
    tools: dict[str, str] = {}
    for message in messages:
        role, content = message["role"], message.get("content")
        if role == "assistant":
            if parts:
                result.append(m.ModelRequest(parts=parts))
                parts = []
            said: list[Any] = [m.TextPart(text_of(content))] if content else []
            for call in message.get("tool_calls") or ():
                function = call["function"]
                tools[call["id"]] = function["name"]
                said.append(m.ToolCallPart(function["name"], function["arguments"], call["id"]))
            result.append(m.ModelResponse(parts=said))
        elif role == "tool":
            call_id = message["tool_call_id"]
            parts.append(m.ToolReturnPart(tools.get(call_id, "unknown"), text_of(content or ""), call_id))
        elif role == "system":
            parts.append(m.SystemPromptPart(text_of(content or "")))
        else:
            parts.append(m.UserPromptPart(_user_content(content)))
    if parts:
        result.append(m.ModelRequest(parts=parts))
    return result


def _user_content(content: Any) -> Any:
    from pydantic_ai import messages as m

    if not isinstance(content, list):
        return text_of(content or "")
    parts: list[Any] = []
    for part in content:
        url = (part.get("image_url") or {}).get("url") if isinstance(part, dict) else None
        if url and url.startswith("data:"):
            head, _, data = url[5:].partition(",")
            parts.append(m.BinaryContent(base64.b64decode(data), media_type=head.partition(";")[0]))
        else:
            parts.append(m.ImageUrl(url) if url else text_of(part))
    return parts


def _definition(tool: JSON) -> Any:
    from pydantic_ai.tools import ToolDefinition

    function = tool["function"]
    return ToolDefinition(
        name=function["name"],
        description=function.get("description"),
        parameters_json_schema=function.get("parameters") or {"type": "object", "properties": {}},
    )


def _tell(event: Any, names: dict[int, tuple[str, str]], sink: Sink) -> None:
    """One stream event to the sink."""
    kind = getattr(event, "event_kind", "")
    if kind == "part_start":
        part = event.part
        if part.part_kind == "text" and part.content:
            sink.text(part.content)
        elif part.part_kind == "thinking" and part.content:
            sink.reasoning(part.content)
        elif part.part_kind == "tool-call":
            names[event.index] = (part.tool_call_id, part.tool_name)
            if part.args:
                sink.tool_arguments(part.tool_call_id, part.tool_name, _raw_arguments(part))
    elif kind == "part_delta":
        delta = event.delta
        if delta.part_delta_kind == "tool_call":
            call_id, name = names.get(event.index, (delta.tool_call_id or "", delta.tool_name_delta or ""))
            if isinstance(delta.args_delta, str) and delta.args_delta:
                sink.tool_arguments(call_id, name, delta.args_delta)
        elif delta.content_delta:
            (sink.text if delta.part_delta_kind == "text" else sink.reasoning)(delta.content_delta)


def to_reply(response: Any) -> Reply:
    """pydantic-ai's response as ours."""
    texts, thoughts, calls = [], [], []
    for part in response.parts:
        if part.part_kind == "text":
            texts.append(part.content)
        elif part.part_kind == "thinking":
            thoughts.append(part.content)
        elif part.part_kind == "tool-call":
            calls.append(ToolCall(part.tool_call_id, part.tool_name, _raw_arguments(part)))
    finish = response.finish_reason or ("tool_call" if calls else "stop")
    used = response.usage
    usage = Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens or None,
        cache_write_tokens=used.cache_write_tokens or None,
    )
    return Reply(
        "".join(texts), "".join(thoughts), calls, "tool_calls" if finish == "tool_call" else finish, usage
    )


def _raw_arguments(part: Any) -> str:
    return part.args if isinstance(part.args, str) else str(part.args_as_json_str())


def _hidden(message: str, key: str | None) -> str:
    return message.replace(key, "***") if key else message
