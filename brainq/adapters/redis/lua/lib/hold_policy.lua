-- The effect of a hold after its timeout, by its policy:
--   deny      the calls that wait for it are denied, and so are later ones until it is released
--   release   it no longer counts, and the calls continue
--   cancel    it stays in force until the caller of waits_expire.lua has cancelled the turn
-- `holds` is the turn's field. A call that only reads is never held.

-- Return the effect of the holds on a write: nil, 'hold' and when to check again, or 'deny'.
local function hold_word(holds)
  if not holds or holds == '' then return nil end
  local word, until_ms
  for _, hold in pairs(cjson.decode(holds)) do
    if now < hold.ends or hold.policy == 'cancel' then
      if not word then word = 'hold' end
      if not until_ms or hold.ends < until_ms then until_ms = hold.ends end
    elseif hold.policy == 'deny' then
      word = 'deny'
    end
  end
  return word, until_ms
end

-- Return the status and the text of a call that a hold denies. `c` has its started_at and again.
local function hold_denial(c)
  if c.started_at and c.again == '1' then
    -- The tool is idempotent, and a lost attempt may have taken effect, so the message must not claim that the call was
    -- not run.
    return 'unknown', 'Its worker was lost, and it was not tried again because changes are on hold. It may or may '
      .. 'not have taken effect.'
  end
  return 'denied', 'Not run: changes were on hold in this turn, and nobody released them in time.'
end

-- Return why a hold requires the turn to be cancelled, or nil.
local function cancelling_hold(holds)
  if not holds or holds == '' then return nil end
  for _, hold in pairs(cjson.decode(holds)) do
    if hold.policy == 'cancel' and now >= hold.ends then
      return 'a hold was not released in time' .. (hold.reason ~= '' and ': ' .. hold.reason or '')
    end
  end
  return nil
end
