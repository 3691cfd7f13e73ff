"""MCP servers as tools, over real pipes and sockets."""
