--[[
Report what a cell has and uses of a model's limit that it shares with other cells, in parts of WHOLE: its share, the
parts that count within the window, and whether requests wait. `mark` grows with each look, and stays the same for a
repeated `look`; a decision about an earlier look is not stored any more. One process of a cell requests shares of a
model: OTHER means that another `asker` has looked in the last `keep_ms`. FREE means that nothing limits the model.

KEYS   places line rule by
ARGV   look asker keep_ms:n requests_most:n? tokens_most:n?
REPLY  SEEN mark:n share:n used:n waits:b requests:n | OTHER | FREE
]]
-- @include lib/rates
-- @include lib/cell_share
local r = read(rule, {'requests', 'tokens', 'learned_until', 'sum', 'look', 'look_mark', 'asker'})
local most, most_tokens = least(requests_most, r.requests, r), least(tokens_most, r.tokens, r)
if not most and not most_tokens then return {'FREE'} end
local mark = tonumber(r.look_mark or 0)
if r.look ~= look then
  if r.asker and r.asker ~= asker and now - mark < keep_ms and mark <= now then return {'OTHER'} end
  mark = math.max(now, mark + 1)
  redis.call('HSET', rule, 'look', look, 'look_mark', mark, 'asker', asker)
  redis.call('PEXPIRE', rule, KEEP_MS)
end
local sum, used = forget_over(tonumber(r.sum or 0)), 0
if most then used = redis.call('ZCARD', places) / most end
if most_tokens then used = math.max(used, sum / most_tokens) end
local waits = redis.call('ZCARD', line) > 0 and '1' or '0'
return {'SEEN', mark, share_now(), math.ceil(used * WHOLE), waits, most or 0}
