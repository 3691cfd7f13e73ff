-- The ratio of the tokens that the service counts to those that were estimated. It is learned from answers; each answer
-- weighs nine tenths of the next one. Before the first answer the ratio is 4. It is never below 1, because settling
-- corrects an estimate that was too high. `rule` has the sums `ratio_of` (estimated) and `ratio_is` (counted), and the
-- number of answers, `ratio_n`. Uses the names of the script.
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

-- Set the tokens of a place to what it has used. Returns whether that changed the count.
local function count_place(tokens)
  local had = tonumber(redis.call('HGET', rule, 't:' .. place) or 0)
  if had == tokens then return false end
  redis.call('HINCRBY', rule, 'sum', tokens - had)
  redis.call('HSET', rule, 't:' .. place, tokens)
  return true
end
