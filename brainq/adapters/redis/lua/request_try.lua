--[[
Find the request that a try belongs to, if its client only says which try it is (`number`, from 0), so that only the
content distinguishes requests. A repeated try is matched with an earlier try: one with a higher number first; of these,
one that was refused or cut (the newest first) before one that is open (the oldest first); and one that was answered
only if there is no other. Otherwise the try is a new request, named `older` (its name in the previous release) or
`key`. `key` is new for each try, so that a repeated call changes nothing. The `most` newest requests are known.

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
  local sent, other_sent = one.state == 'sent', other.state == 'sent'
  if sent ~= other_sent then return other_sent end
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
