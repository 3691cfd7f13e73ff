--[[
The messages of a turn, as far as its history still holds them: at most the `most` newest. Some of other turns may be
among them.

KEYS   turn session history
ARGV   most:n
REPLY  SAID messages...
]]
-- @include lib/fields
-- @include lib/own_history
local t = read(turn, {'begin_at', 'end_at', 'isolated', 'trimmed'})
if not t.begin_at then return {'SAID'} end
use_own_history(t.isolated)
local trimmed = tonumber(isolated and t.trimmed or redis.call('HGET', session, 'trimmed') or 0)
local last = (t.end_at and tonumber(t.end_at) - trimmed or redis.call('LLEN', history)) - 1 -- a live turn has the newest
local first = math.max(0, tonumber(t.begin_at) - trimmed, last - most + 1)
if last < 0 then return {'SAID'} end
local said = redis.call('LRANGE', history, first, last)
table.insert(said, 1, 'SAID')
return said
