--[[
Find the processes that are gone: they have listened since this Redis started, and were absent at two looks at least
`apart_ms` apart. A Redis that was restarted or replaced knows nothing about processes that it has not seen. They are
unknown and not gone, and are forgotten after `forget_ms`. At most one look is made in `apart_ms`, whichever process
calls. `gone` has the name of each process and the time of the first look that missed it, until presence_forget.

KEYS   presence
ARGV   channels apart_ms:n forget_ms:n
REPLY  LOOKED gone... | EARLY
]]
-- @include lib/now
-- @include lib/presence
local LOOKED_AT = ' looked_at'  -- no process has a name with a space
local looked_at = tonumber(redis.call('HGET', presence, LOOKED_AT) or 0)
if looked_at <= now and now - looked_at < apart_ms then return {'EARLY'} end
local run, gone, all = redis_run_id(), {}, redis.call('HGETALL', presence)
for i = 1, #all, 2 do
  local process = all[i]
  if process ~= LOOKED_AT then
    local seen_on, absent_at = all[i + 1]:match('^(%x+) (%d+)$')
    absent_at = tonumber(absent_at)
    if listeners(channels .. process) > 0 then
      redis.call('HSET', presence, process, run .. ' 0')
    elseif absent_at == 0 or absent_at > now then  -- or the clock has stepped back
      redis.call('HSET', presence, process, seen_on .. ' ' .. now)
    elseif seen_on ~= run then
      if now - absent_at >= forget_ms then redis.call('HDEL', presence, process) end
    else  -- looks are `apart_ms` apart
      gone[#gone + 1] = process
      gone[#gone + 1] = absent_at
    end
  end
end
if #all > 0 then
  redis.call('HSET', presence, LOOKED_AT, now)
  redis.call('PEXPIRE', presence, forget_ms)
end
return {'LOOKED', unpack(gone)}
