-- How many tokens the service counts for one that we estimate: learned from answers, each weighing nine tenths of the one after it.
-- Before the first it is as if one had reported four. Never under one: an estimate that is high is put right by settling.
-- `rule` has the sums, `ratio_of` estimated and `ratio_is` counted, and `ratio_n` answers. Uses the names of the script.
local UNKNOWN_RATIO, FORGETS = 4, 0.9

local function ratio_of(r)
  local of = tonumber(r.ratio_of or 0)
  return of > 0 and math.max(1, tonumber(r.ratio_is) / of) or UNKNOWN_RATIO
end

local function learn_ratio(estimated, counted)
  if estimated == '' or estimated <= 0 or counted == '' then return end
  local r = read(rule, {'ratio_of', 'ratio_is'})
  local of, is = tonumber(r.ratio_of or estimated), tonumber(r.ratio_is or UNKNOWN_RATIO * estimated)
  redis.call('HSET', rule, 'ratio_of', string.format('%.3f', of * FORGETS + estimated),
    'ratio_is', string.format('%.3f', is * FORGETS + counted))
  redis.call('HINCRBY', rule, 'ratio_n', 1)
end

-- What a place has used, where that is another number than it is counted with. Whether it was.
local function count_place(tokens)
  local had = tonumber(redis.call('HGET', rule, 't:' .. place) or 0)
  if had == tokens then return false end
  redis.call('HINCRBY', rule, 'sum', tokens - had)
  redis.call('HSET', rule, 't:' .. place, tokens)
  return true
end
