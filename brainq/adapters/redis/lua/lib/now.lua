-- Redis TIME in ms: the only clock that decides a deadline or a lease.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
