"""Token estimates, for budgets and for attempts whose usage was lost.

About 4 characters of English are one token (OpenAI, "What are tokens and how to count them?"; Anthropic
names 3.5). Other scripts are denser: 3 bytes of UTF-8 a token is about one token a CJK character. Each
message costs some tokens of framing (OpenAI's cookbook counts 3, and 3 for the reply).

JSON (tool results, arguments) is denser, 2.8 characters a token, due to its quotes, digits and ids. Over recorded
sessions the estimate is within 10 % for English prose and Python code, one text with another within 25 %; see
docs/guides/token-estimates.md. It is low for base64. Where a service reports usage, that is used instead.

Images and files are counted by type and size alone. An image counts as the largest one that is not scaled down:
Anthropic counts width * height / 750, and 1,568 * 1,568 pixels are scaled to about 1,600 tokens ("Vision");
OpenAI's 85 + 170 a tile of 512 pixels stays below that ("Images and vision"). A page of a PDF is 1,500 to 3,000 tokens
(Anthropic, "PDF support"), and counts as 50 kB.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brainq.contracts.conversation import EMPTY_CONVERSATION, Conversation
from brainq.contracts.message import Attachment, Message, Reasoning, ToolCall
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.tool import ToolSpec
from brainq.contracts.usage import MAX_REPLY_TOKENS

CHARS_PER_TOKEN = 4
JSON_CHARS_PER_TOKEN = 2.8
MAX_CHARS_PER_TOKEN = 128  # of the longest token of o200k_base, which is spaces (tiktoken)
BYTES_PER_TOKEN_ELSEWHERE = 3
TOKENS_PER_MESSAGE = 4
TOKENS_PER_IMAGE = 1_600
TOKENS_PER_PAGE = 2_250
BYTES_PER_PAGE = 50_000
TOKENS_OF_NAME = 30  # the note for a file that is not shown
_ENCODE = json.JSONEncoder(default=str).encode
_JSON = re.compile(r"\{\s*\"|\[\s*[\[{\"]")
_TEXTS = frozenset(
    {
        "application/json",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
        "application/javascript",
        "application/x-sh",
        "application/x-ndjson",
        "image/svg+xml",
    }
)


def estimate_text(text: str) -> int:
    """Return the tokens of `text`, rounded up. Text that begins like JSON counts as JSON."""
    if _JSON.match(text):
        return math.ceil(len(text.encode("utf-8", "replace")) / JSON_CHARS_PER_TOKEN)
    if text.isascii():
        return -(-len(text) // CHARS_PER_TOKEN)
    plain = len(text.encode("ascii", "ignore"))
    other = len(text.encode("utf-8", "replace")) - plain
    return -(-(plain * BYTES_PER_TOKEN_ELSEWHERE + other * CHARS_PER_TOKEN) // 12)


def estimate_calls(calls: Iterable[ToolCall]) -> int:
    """Return the tokens of tool calls as the model writes them."""
    return sum(estimate_text(call.name) + estimate_text(_json(call.arguments)) for call in calls)


def estimate_messages(messages: Iterable[Message]) -> int:
    """Return the tokens of a conversation as a model reads it."""
    return sum(map(estimate_message, messages))


def estimate_message(message: Message) -> int:
    size = TOKENS_PER_MESSAGE + estimate_text(message.content)
    if message.reasoning:
        size += estimate_reasoning(message.reasoning)
    if message.attachments:
        size += sum(map(estimate_attachment, message.attachments))
    return size + estimate_calls(message.calls) if message.calls else size


def estimate_attachment(attachment: Attachment) -> int:
    """Return the tokens of an image or a file as a model sees it."""
    if is_text(attachment.media_type):
        return TOKENS_OF_NAME + attachment.size // CHARS_PER_TOKEN
    if attachment.is_image:
        return TOKENS_PER_IMAGE
    if attachment.media_type == "application/pdf":
        return TOKENS_PER_PAGE * -(-attachment.size // BYTES_PER_PAGE)
    return TOKENS_OF_NAME


def estimate_reasoning(reasoning: Iterable[Reasoning]) -> int:
    """Return the tokens of reasoning. The length of encrypted reasoning is a fair measure, too."""
    return sum(
        max(estimate_text(one.text), -(-len(_json(one.block)) // CHARS_PER_TOKEN) if one.block else 0)
        for one in reasoning
    )


def with_sizes(messages: Sequence[Message], behind: Conversation = EMPTY_CONVERSATION) -> Conversation:
    """Return the messages as a conversation after `behind`. Only the new messages are estimated."""
    return behind.plus(messages, [estimate_message(message) for message in messages])


def estimate_tools(tools: Iterable[ToolSpec]) -> int:
    """Return the tokens of the offered tools."""
    return sum(
        TOKENS_PER_MESSAGE
        + estimate_text(tool.name)
        + estimate_text(tool.description)
        + estimate_text(_json(tool.parameters))
        for tool in tools
    )


def estimate_request(request: ModelRequest) -> int:
    """Return the input tokens of a request: messages, tools and output schema."""
    schema = 0 if request.output_schema is None else estimate_text(_json(request.output_schema))
    known = request.estimate
    return (estimate_messages(request.messages) + estimate_tools(request.tools) if known is None else known) + schema


def estimate_usage(request: ModelRequest, text: str = "", calls: Iterable[ToolCall] = ()) -> TokenUsage:
    """Return the usage of a request whose reply so far is `text` and `calls`."""
    return TokenUsage(
        input_tokens=estimate_request(request),
        output_tokens=estimate_text(text) + estimate_calls(calls),
        estimated=True,
    )


def usage_of(reply: ModelReply, request: ModelRequest) -> TokenUsage:
    """Return the service's counts, with an estimate in place of each count that is missing or impossible.

    An impossible output count becomes the longest output that the request allows. The replies of all providers pass
    here, including those of a user's own.
    """
    usage = reply.usage
    shown = len(reply.text) + sum(len(one.text) for one in reply.reasoning) + len(reply.calls)
    if _is_possible(usage, shown):
        return usage
    usage = TokenUsage(**dict(usage))  # a copy with changed fields was never checked
    if _is_possible(usage, shown):
        return usage
    text = reply.text + "".join(one.text for one in reply.reasoning)
    estimate = estimate_usage(request, text, reply.calls)
    if not usage.total and not usage.estimated:
        return estimate
    sent, written, cached = usage.input_tokens, usage.output_tokens, usage.cache_read_tokens
    if not 0 < sent <= MAX_REPLY_TOKENS:
        sent, cached = estimate.input_tokens, 0
    if not _is_possible_output(usage, shown):
        written = max(estimate.output_tokens, request.max_output_tokens or 0)
    created = min(usage.cache_creation_tokens, sent - cached)
    return TokenUsage(
        input_tokens=sent,
        output_tokens=written,
        cache_read_tokens=cached,
        cache_creation_tokens=created,
        estimated=True,
    )


def _is_possible(usage: TokenUsage, shown: int) -> bool:
    """Return whether the counts are possible for a reply with `shown` characters."""
    are_counts = all(
        type(count) is int and count >= 0 for count in (usage.cache_read_tokens, usage.cache_creation_tokens)
    )
    is_input = type(usage.input_tokens) is int and 0 < usage.input_tokens <= MAX_REPLY_TOKENS
    if not (are_counts and is_input and _is_possible_output(usage, shown)):
        return False
    return usage.cache_read_tokens + usage.cache_creation_tokens <= usage.input_tokens


def _is_possible_output(usage: TokenUsage, shown: int) -> bool:
    written = usage.output_tokens
    if type(written) is not int or not 0 <= written <= MAX_REPLY_TOKENS:
        return False
    return written * MAX_CHARS_PER_TOKEN >= shown and not (usage.estimated and written == 0)


def with_usage(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """Return `reply` with possible counts."""
    usage = usage_of(reply, request)
    return reply if usage is reply.usage else reply.model_copy(update={"usage": usage})


def _json(value: object) -> str:
    return value if isinstance(value, str) else _ENCODE(value)


def is_text(media_type: str) -> bool:
    """Return whether the bytes are text that a model may read unchanged."""
    return media_type.startswith("text/") or media_type in _TEXTS or media_type.endswith(("+json", "+xml"))


@dataclass(slots=True)
class StreamedTokens:
    """Counts a text piece by piece with the result of `estimate_text` for the whole: each piece alone would be rounded
    up."""

    _plain: int = 0
    _elsewhere: int = 0
    _json: int = 0

    def add_text(self, text: str) -> None:
        """Add prose, of the answer or of reasoning."""
        if text.isascii():
            self._plain += len(text)
            return
        plain = len(text.encode("ascii", "ignore"))
        self._plain += plain
        self._elsewhere += len(text.encode("utf-8", "replace")) - plain

    def add_arguments(self, text: str) -> None:
        """Add a call's name, or a part of its arguments."""
        self._json += len(text.encode("utf-8", "replace"))

    def add_up_to(self, size: int) -> None:
        """Add unread bytes, up to `size` in all."""
        self._plain += max(0, size - self.size)

    @property
    def size(self) -> int:
        """The bytes in UTF-8."""
        return self._plain + self._elsewhere + self._json

    @property
    def tokens(self) -> int:
        """The estimated tokens, rounded up."""
        return math.ceil(
            self._plain / CHARS_PER_TOKEN
            + self._elsewhere / BYTES_PER_TOKEN_ELSEWHERE
            + self._json / JSON_CHARS_PER_TOKEN
        )
