--[[
Pass on a judge's doorbell that came to a worker which may not judge its turn (lib/refusal), into the queue of a build
that may, once in `hold_ms`. UNSERVED means that no worker of such a build is running.

KEYS   rung turn
ARGV   sid tid bell judge brains:words hold_ms:n
REPLY  PASSED | ALREADY | UNSERVED | MINE
]]
-- @include lib/now
-- @include lib/fields
-- @include lib/ring
-- @include lib/refusal
-- @include lib/pass_on
local t = read(turn, {'format', 'brain', 'pin'})
local why = refusal(brains, t, turn)
if not why then return {'MINE'} end
local to = goes_to(why, 'judges', t)
if not to then return {'UNSERVED'} end
if redis.call('GET', rung) == '@' .. to then return {'ALREADY'} end
redis.call('SET', rung, '@' .. to, 'PX', hold_ms)
ring('judges@' .. to, sid, tid, bell .. '.passed-' .. (now), {sid, tid, judge}, tid)
return {'PASSED'}
