--[[
Add the usage of a model call. A repeated `id` adds nothing.

KEYS   budget
ARGV   id input:n output:n cache_read:n cache_creation:n cost:f?
REPLY  ADDED | ALREADY | GONE
]]
-- @include lib/budget
if redis.call('EXISTS', budget) == 0 then return {'GONE'} end
if id ~= '' and redis.call('HSETNX', budget, 'spent:' .. id, 1) == 0 then return {'ALREADY'} end
add_usage(budget, input, output, cache_read, cache_creation, cost)
return {'ADDED'}
