-- Taking the ownership of a turn. Uses the script's names: turn history notices, and sid tid.
-- @include lib/now
-- @include lib/builds
-- @include lib/state_format
-- `who`: owner, lease_ms, and what of its worker is `declared`; `t`: the turn's isolated, awaits, brain, step, pin, builds and format.
local function own_turn(t, fence, who, refused)
  redis.call('HSET', turn, 'fence', fence, 'owner', who.owner, 'lease_until', now + who.lease_ms, 'thinking', '0', 'aux_open', '')
  if who.declared ~= '' or STATE_FORMAT > 1 then note_build(t, refused, who.declared) end
  while t.awaits == 'coordinator' and t.isolated ~= '1' and redis.call('LMOVE', notices, history, 'LEFT', 'RIGHT') do end
end
