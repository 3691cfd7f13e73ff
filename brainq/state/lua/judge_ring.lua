--[[
Ring for a judge of an ended turn, not more often than every `hold_ms`: whether it is still wanted, its row in SQL
says.

KEYS   rung
ARGV   sid tid judge hold_ms:n
REPLY  RUNG | ALREADY
]]
-- @include lib/now
-- @include lib/ring
if not redis.call('SET', rung, '1', 'NX', 'PX', hold_ms) then return {'ALREADY'} end
ring('judges', sid, tid, 'judge.' .. judge, {sid, tid, judge}, tid)
return {'RUNG'}
