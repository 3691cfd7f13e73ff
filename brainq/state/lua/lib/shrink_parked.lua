-- A parked turn may stand for days: what only its last model call needed goes, and only the running of its calls that have
-- ended. Its hashes are made anew, in the form that the server keeps small ones in. Uses the script's names, as lib/waves.
-- @include lib/call
-- @include lib/settled
-- @lazy
local function make_small(calls, known)
  local ended = {}
  for i, call in ipairs(calls) do
    if SETTLED[known[i].status] then ended[#ended + 1] = call end
  end
  if ended[1] then forget_work(ended, {}) end
  redis.call('HDEL', turn, 'under_way', 'asked', 'estimate', 'estimate_usd', 'thinking_step', 'lost_owner')
  for _, key in ipairs({turn, trace}) do
    local fields = redis.call('HLEN', key) <= 100 and redis.call('HGETALL', key) or {}
    if fields[1] then
      redis.call('DEL', key)
      redis.call('HSET', key, unpack(fields))
    end
  end
end
