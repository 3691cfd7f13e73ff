--[[
Store the size of the capacity and the share of each tenant, remove turns from it that are lost and not live, and admit
waiting turns. `own` has the shares of tenants that have their own, and `caps` how many turns of a brain may be live,
for brains with a cap; both are JSON. A cap is in force until no sweeper has reported it for `cap_ms`, because sweepers
may know different brains. Live turns, and sessions that wait for a brain, are checked `most` at a time, in rotation.

KEYS   capacity
ARGV   size:n share:n own caps cap_ms:n most:n keep_ms:n
REPLY  KEPT live:n asked:words
]]
-- @include lib/admit_turns
redis.call('HSET', capacity, 'all', size, 'tenant', share)
local shares, cap_of, in_force = cjson.decode(own), cjson.decode(caps), {}
for brain, most_live in pairs(cap_of) do redis.call('HSET', capacity, 'brain ' .. brain, most_live, 'until ' .. brain, now + cap_ms) end
for _, name in ipairs(redis.call('HKEYS', capacity)) do
  local brain = name:match('^brain (%S+)$')
  if brain then
    in_force[brain] = cap_of[brain] or tonumber(redis.call('HGET', capacity, 'until ' .. brain) or 0) > now
    if not in_force[brain] then redis.call('HDEL', capacity, name, 'until ' .. brain) end
  elseif not name:find(' ', 1, true) and name:sub(-1) == ':' and not shares[name] then redis.call('HDEL', capacity, name) end
end
for name, most_live in pairs(shares) do redis.call('HSET', capacity, name, most_live) end

-- A session that waits for a brain is queued or deferred. If it is neither, it no longer waits. The brains that
-- sessions wait for are found here if the capacity's size had expired in the meantime.
local met = {}
local function look_who_waits()
  local found = redis.call('HSCAN', WAITED_BRAINS, redis.call('HGET', capacity, 'for_from') or '0', 'COUNT', most)
  if found[1] == '0' then redis.call('HDEL', capacity, 'for_from') else redis.call('HSET', capacity, 'for_from', found[1]) end
  for i = 1, #found[2], 2 do
    local its_sid, brain = found[2][i], found[2][i + 1]
    local tenant = tenant_of(its_sid)
    met[brain] = true
    if not redis.call('ZSCORE', sessions_of(tenant), its_sid) and not redis.call('ZSCORE', deferred_sessions_of(brain, tenant), its_sid) then
      stop_waiting(its_sid)
    end
  end
end
look_who_waits()

-- A brain that has lost its cap is named until no session is deferred for it. The field exists while turns of any brain
-- are counted, or while any session waits for a brain.
local function name_brains()
  local names = {}
  for brain in (redis.call('HGET', capacity, 'caps') or ''):gmatch('%S+') do met[brain] = true end
  for brain, is_capped in pairs(in_force) do if is_capped then met[brain] = true end end
  for brain in pairs(met) do
    if in_force[brain] or redis.call('EXISTS', tenants_deferred_for(brain)) == 1 then names[#names + 1] = brain end
  end
  table.sort(names)
  if #names > 0 or redis.call('EXISTS', WAITED_BRAINS) == 1 or redis.call('ZLEXCOUNT', LIVE_TURNS, '-', '(!') > 0 then
    redis.call('HSET', capacity, 'caps', ' ' .. table.concat(names, ' ') .. ' ')
  else
    redis.call('HDEL', capacity, 'caps')
  end
end
name_brains()

local from = redis.call('HGET', capacity, 'from')
local places = redis.call('ZRANGEBYLEX', LIVE_TURNS, from and '(' .. from or '-', '+', 'LIMIT', 0, most)
if #places == most then redis.call('HSET', capacity, 'from', places[most]) else redis.call('HDEL', capacity, 'from') end
for _, place in ipairs(places) do
  local brain, its_sid, its_tid = place:match('^ (%S+) :?(%S+) (%S+)$')
  if not brain then its_sid, its_tid = place:match('^:?(%S+) (%S+)$') end
  local t = read(OUTBOX_PREFIX .. '{' .. its_sid .. '}:t:' .. its_tid, {'state', 'brain'})
  if t.state ~= 'active' then remove_live(its_sid, its_tid, brain)
  -- The turn began before its brain had a cap.
  elseif not brain and has_cap(caps_now(), t.brain) then add_live(its_sid, its_tid, t.brain) end
end
redis.call('PEXPIRE', capacity, keep_ms)
for _, name in ipairs(redis.call('ZRANGE', CAPPED_TENANTS, 0, most - 1)) do
  if redis.call('EXISTS', sessions_of(name)) == 0 then
    redis.call('ZREM', CAPPED_TENANTS, name)
    redis.call('HDEL', PASSED_OVER, name)
  elseif has_share_left(name) then rotate_in(name) end
end
local asked = admit_turns(nil)
name_brains()
return {'KEPT', count_live(caps_now()), table.concat(asked, ' ')}
