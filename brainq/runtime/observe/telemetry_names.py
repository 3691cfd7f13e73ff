"""All names of telemetry: of spans, attributes, events, and the conventions' metrics. No other file has one, except
brainq's own metrics in `metrics/catalogue.py`.

`gen_ai.*`, `error.type`, `server.*`, `http.*` and `url.*` are those of the OpenTelemetry semantic conventions v1.41.0,
the last version that has GenAI beside the others:
https://github.com/open-telemetry/semantic-conventions/tree/v1.41.0/docs/gen-ai. `brainq.*` are brainq's own.
"""

from __future__ import annotations

SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"
SCOPE = "brainq"

# Resource attributes.
SERVICE = "service.name"
INSTANCE = "service.instance.id"
ROLE = "brainq.role"

# Spans. The names of the conventions are followed by their subject: `chat gpt-5`.
SUBMIT = "brainq.submit"
INVOKE_AGENT = "invoke_agent"
ADVANCE = "brainq.advance"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
FINALIZE = "brainq.finalize"
JUDGE = "brainq.judge"
RESCUE = "brainq.rescue"
WEBHOOK = "brainq.webhook"

# Metrics of the conventions, and names that only they use.
OPERATION_DURATION = "gen_ai.client.operation.duration"
TOKEN_USAGE = "gen_ai.client.token.usage"
TOKEN_TYPE = "gen_ai.token.type"

# Events of spans.
LEASE_LAPSED = "brainq.lease.lapsed"
MODEL_RETRY = "brainq.model.retry"
RESUMED = "brainq.resumed"
CALL_PARKED = "brainq.call.parked"

# Attributes of the conventions.
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
MAX_TOKENS = "gen_ai.request.max_tokens"
OUTPUT_TYPE = "gen_ai.output.type"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK_S = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_CREATION_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
HTTP_METHOD = "http.request.method"

# Attributes of the conventions that hold content: only on request.
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

# brainq's own.
TURN = "brainq.turn.id"
TENANT = "brainq.tenant"
KIND = "brainq.turn.kind"
ENDING = "brainq.turn.ending"
STOP_REASON = "brainq.turn.stop_reason"
STEPS = "brainq.turn.steps"
TOOL_CALLS = "brainq.turn.tool_calls"
WAITED_MS = "brainq.turn.waited_ms"
PARKED_MS = "brainq.turn.parked_ms"
COST_USD = "brainq.cost_usd"
PROMPT = "brainq.prompt.id"
PROMPT_VERSION = "brainq.prompt.version"
PROMPT_TAGS = "brainq.prompt.tags"
PROMPT_HASH = "brainq.prompt.render_hash"
ON_BUSY = "brainq.submit.on_busy"
STEP = "brainq.step"
ATTEMPT = "brainq.attempt"
PURPOSE = "brainq.purpose"
QUEUE_WAIT_MS = "brainq.queue.wait_ms"
LANE_WAIT_MS = "brainq.lane.wait_ms"
FENCE = "brainq.fence"
DID = "brainq.did"
LOST = "brainq.lost_workers"
EFFECT = "brainq.call.effect"
OUTCOME = "brainq.call.outcome"
PARKED_CALL = "brainq.call.id"
RETRY_KIND = "brainq.retry.kind"
RETRY_WAIT_S = "brainq.retry.wait_s"
FINAL_STEP = "brainq.finalize.step"
TRIES = "brainq.tries"
JUDGE_NAME = "brainq.judge.name"
WEBHOOK_KIND = "brainq.webhook.kind"
