--[[
Ring for a judge of an ended turn, not more often than every `hold_ms`: whether it is still wanted, its row in SQL
says. A queue that nobody empties is not filled with copies: what is due is rung when there is a place.

KEYS   rung
ARGV   sid tid judge hold_ms:n
REPLY  RUNG | ALREADY | FULL
]]
-- @include lib/now
-- @include lib/ring
local key = bell_key('judges')
if key ~= '' and redis.call('LLEN', key) >= 100 then return {'FULL'} end
if not redis.call('SET', rung, '1', 'NX', 'PX', hold_ms) then return {'ALREADY'} end
ring('judges', sid, tid, 'judge.' .. judge, {sid, tid, judge}, tid)
return {'RUNG'}
