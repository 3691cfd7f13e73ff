--[[
Which request a try is of, where its client says only which try it is (`number`, from 0), and its content alone tells it
from others. What is tried again is taken for a try before it: the last one before a lower one; one that was refused or
cut, the newest first, before one that is open, the oldest first; one that was answered only where no other is there.
Else it is a request of its own, by `older` (what the previous release knows it by) or by `key`. `key` is new for each try, so that
asking twice changes nothing. The `most` newest requests are known.

KEYS   tries
ARGV   key number:n state:open/refused older keep_ms:n most:n
REPLY  KEY key
]]
-- @include lib/now
local known, count, oldest = {}, 0, nil
local found = redis.call('HGETALL', tries)
for i = 1, #found, 2 do
  local at_number, is, at, by = found[i + 1]:match('^(%d+) (%a+) (%d+) (.*)$')
  local try = {key = found[i], number = tonumber(at_number), state = is, at = tonumber(at)}
  if by == key then return {'KEY', try.key} end
  if now - try.at >= keep_ms then
    redis.call('HDEL', tries, try.key)
  else
    known[#known + 1], count = try, count + 1
    if not oldest or try.at < oldest.at then oldest = try end
  end
end

local function goes_before(one, other)
  local sent, theirs = one.state == 'sent', other.state == 'sent'
  if sent ~= theirs then return theirs end
  if one.number ~= other.number then return one.number > other.number end
  local open = one.state == 'open'
  if open ~= (other.state == 'open') then return not open end
  if one.at ~= other.at then return (one.at < other.at) == open end
  return one.key < other.key
end

local taken
for _, try in ipairs(known) do
  if try.number < number and (not taken or goes_before(try, taken)) then taken = try end
end
local mine = taken and taken.key or older ~= '' and older or key
if not taken and count >= most then redis.call('HDEL', tries, oldest.key) end
redis.call('HSET', tries, mine, string.format('%d %s %d %s', number, state, now, key))
redis.call('PEXPIRE', tries, keep_ms)
return {'KEY', mine}
