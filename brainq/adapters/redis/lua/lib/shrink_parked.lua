-- Shrink a parked turn, which may stay for days. Fields that only its last model call needed are removed, and so are
-- empty ones, the units that its step has paid for, and what only running calls need. Its hashes are written again in
-- the compact form of small hashes. Its events are copied, because the last node of a stream is allocated whole, but
-- that of a copy to fit. Uses the script's names, as lib/waves does.
-- @include lib/call
-- @include lib/settled
local OF_REQUESTS = {'under_way', 'asked', 'estimate', 'estimate_usd', 'thinking_step', 'lost_owner', 'thinking', 'aux_open',
  'lease_until', 'rung_at', 'open_calls'}
local OFTEN_EMPTY = {context_full = '0', died_alone = '0', write_epoch = '0', tokens_max = '', cost_max_usd = ''}

local function says_nothing(field, value)
  return OFTEN_EMPTY[field] == value or field:find('^claim:steps:') or field:find('^claim:tool_calls:')
end

-- @lazy
local function make_small(calls, known)
  local ended = {}
  for i, call in ipairs(calls) do
    if SETTLED[known[i].status] then ended[#ended + 1] = call end
  end
  if ended[1] then forget_work(ended, {}) end
  redis.call('HDEL', turn, unpack(OF_REQUESTS))
  for _, key in ipairs({turn, trace, budget}) do
    local found, kept = redis.call('HLEN', key) <= 100 and redis.call('HGETALL', key) or {}, {}
    for i = 1, #found, 2 do
      if not says_nothing(found[i], found[i + 1]) then kept[#kept + 1], kept[#kept + 2] = found[i], found[i + 1] end
    end
    if kept[1] then
      redis.call('DEL', key)
      redis.call('HSET', key, unpack(kept))
    end
  end
  redis.call('COPY', events, events .. ':copy')
  redis.call('RENAME', events .. ':copy', events)
end
