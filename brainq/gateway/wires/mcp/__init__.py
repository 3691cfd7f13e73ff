"""brainq as an MCP server: one tool a brain, and the verbs of turns as tools. Needs the extra `mcp`.

The SDK speaks the protocol, over streamable HTTP (`/mcp` of the gateway) and over stdio (`brainq mcp serve`). Its HTTP
runs without sessions, so that any gateway answers any request; what a call began is a turn, which outlives them all.
"""
