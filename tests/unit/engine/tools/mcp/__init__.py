"""MCP servers as tools: what is decided without one."""
