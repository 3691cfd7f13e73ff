-- The claim of a turn's ownership. It uses the script's names turn, history, notices, sid and tid.
-- @include lib/now
-- @include lib/builds
-- @include lib/state_format
-- `who` has owner, lease_ms, and what the worker has `declared` (lib/builds); `t` has the turn's isolated, awaits, brain, step, pin,
-- builds and format.
local function own_turn(t, fence, who, refused)
  redis.call('HSET', turn, 'fence', fence, 'owner', who.owner, 'lease_until', now + who.lease_ms, 'thinking', '0', 'aux_open', '')
  if who.declared ~= '' or STATE_FORMAT > 1 then note_build(t, refused, who.declared) end
  while t.awaits == 'coordinator' and t.isolated ~= '1' and redis.call('LMOVE', notices, history, 'LEFT', 'RIGHT') do end
end
