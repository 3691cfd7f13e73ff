-- Check the calls of a turn's step. Calls whose doorbell was lost are rung for again, calls that wait for their
-- tenant's turn move up, and calls whose worker is gone are rescued. Uses the names of turn_sweep.
-- @include lib/call_queue
local function sweep_calls()
  for i = 0, tonumber(t.n_calls) - 1 do
    local call = 'c' .. t.step .. '-' .. i
    local c = read_mended_call(call)
    if c.status == 'dispatched' then
      local waits = call_waits(sid, tid, call, c)
      if waits == 'queued' then
        fill_calls(c.effect)
      elseif nobody_serves(c.effect, t) then soon(now + rering_ms)
      elseif waits or bell_is_gone(c.effect, c.passed, c.rung_at, rering_ms) then
        redis.call('HSET', trace, call .. ':rung_at', now, call .. ':bell', '')
        ring_call(trace, sid, tid, call, c, 'again')
      end
    elseif c.status == 'running' then
      soon(c.lease + 1)
      if c.lease <= now then actions[#actions + 1] = 'rescue ' .. call .. ' ' .. c.attempt end
    end
  end
end
