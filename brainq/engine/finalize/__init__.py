"""The finalizer: what is recorded after a turn has ended.

    citations ► usage ► log ► result ► memory ► learner ► judges ► decision ► end

Each step is a task of its own, claimed, retried by itself and followed by the next; the chain goes on after a
crash from the first step that is not done. What a step writes to SQL commits with the step's own row.
"""
