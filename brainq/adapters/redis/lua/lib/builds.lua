-- Which build begins a turn, and which ones went on with it. Uses the script's names: turn sid. `declared` has of the worker that
-- claims: `build`, its name; `brains`, by name the digest of each and its pin; `ramp`: build, other build, and which of 10000
-- parts of all sessions begin on the first.
-- @include lib/pass_on
-- @include lib/session_pin

-- Return 'ramp' if a turn that has not begun must begin on another build that is running. The turn then has the digest
-- by which that build is found.
-- @lazy
local function begins_elsewhere(t, declared)
  if t.step ~= '0' or t.pin or t.builds then return end
  local here, passed = cjson.decode(declared), passed_to(t.passed, t.rung_at)
  if passed then return passed ~= here.build and 'ramp' or nil end
  if not here.ramp then return end
  local to, other, share = unpack(here.ramp)
  local chosen = tonumber(redis.sha1hex(sid):sub(1, 8), 16) % 10000 < share and to or other
  if chosen == here.build or not served_by('turns', '@' .. chosen) then return end
  t.ramp = chosen
  return 'ramp'
end

-- Record the builds that advanced the turn in `builds`, as BUILD#DIGEST in order. The build that begins a turn sets its
-- pin, and later ones do not.
-- @lazy
local function note_build(t, refused, declared)
  if STATE_FORMAT > tonumber(t.format or 1) then raise_format(sid, tid) end
  if declared == '' or refused then return end
  local here = cjson.decode(declared)
  local brain = here.brains[t.brain or '']
  if not brain then return end
  local past, name = t.builds or '', here.build .. '#' .. brain.digest
  if past:match('%S*$') ~= name then redis.call('HSET', turn, 'builds', past == '' and name or past .. ' ' .. name) end
  if past ~= '' or t.pin or t.step ~= '0' or brain.pin == '' then return end
  redis.call('HSET', turn, 'pin', brain.digest, 'pin_build', here.build)
  if brain.pin == 'session' then pin_session(sid, t.brain or '', brain.digest, here.build) end
end
