"""What people and other programs do to a turn that runs: input, approvals, results from outside, child turns.

The machines behind the client's verbs. They state the ports they need, and reach no service themselves.
"""
