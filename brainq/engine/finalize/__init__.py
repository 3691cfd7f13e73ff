"""The finalizer: what is recorded after a turn has ended.

    citations ► usage ► log ► result ► memory ► learner ► judges ► decision ► end

Each step is a separate task with its own claim and retries. After a crash, the chain continues from the first step that
is not done. A step's SQL writes commit together with the step's own row.
"""
