"""One request to a model's service: its time, retries, permits, bill and failures, and several models as one."""
