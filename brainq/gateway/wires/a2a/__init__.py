"""A2A 1.0, the protocol between agents: a context is a session, a task is a turn. Needs the extra `a2a`.

The SDK's types are used, but not its server. That server holds tasks and queues in its own process, where brainq has
them in Redis; its streams are outside the gateway's limits and its shutdown; and it logs the content of requests.
"""
