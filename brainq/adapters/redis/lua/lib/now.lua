-- Redis TIME in ms is the only clock that decides deadlines and leases.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
