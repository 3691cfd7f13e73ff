-- Add the messages of a turn to the reply, as far as its history still has them, at most the `most` newest (which may
-- include some of other turns). Uses the script's names: turn session history.
-- @include lib/fields
-- @include lib/own_history
local function add_messages(reply, most)
  local t = read(turn, {'begin_at', 'end_at', 'isolated', 'trimmed'})
  if not t.begin_at then return reply end
  use_own_history(t.isolated)
  local trimmed = tonumber(isolated and t.trimmed or redis.call('HGET', session, 'trimmed') or 0)
  local last = (t.end_at and tonumber(t.end_at) - trimmed or redis.call('LLEN', history)) - 1 -- a live turn has the newest
  local first = math.max(0, tonumber(t.begin_at) - trimmed, last - most + 1)
  if last < 0 then return reply end
  for _, message in ipairs(redis.call('LRANGE', history, first, last)) do reply[#reply + 1] = message end
  return reply
end
