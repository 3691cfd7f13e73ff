"""A2A 1.0, the protocol between agents: a context is a session, a task is a turn. Needs the extra `a2a`.

The SDK's types are used, and none of its server. That one keeps tasks and their queues in its process, which here are
Redis' and outlive every gateway; its streams have no place in the gateway's count, and are not told when it stops; and
it writes what it was sent to its log.
"""
