"""MCP servers as tools: a server's list is pinned in a file, and a worker starts the server for a call.

    server's list ──discover──► PinnedServer ──pin──► catalogue file ──tools──► Tool(spec, function)
                                     └── drift ◄── list of the running server      │ call
                                                                                   ▼
                              Session (one a server and process) ──► Connection ──► stdio | HTTP

Only connection, sdk, http_transport and stdio_transport import the SDK: a coordinator reads the file and starts
nothing.
"""
