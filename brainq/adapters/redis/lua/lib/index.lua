-- The schedule of the sweeper's checks. A turn is checked at the latest when something can be due in it. The time is
-- set by the script that makes the change, so that no check is lost in between. INDEX_KEY and RERING_MS are inserted by
-- the loader.
-- @include lib/now
-- @include generated/index
local SELDOM_MS, SOON_MS = 1800000, 1000

-- A turn in which nothing is due until somebody changes it is still checked now and then. The interval varies, so that
-- not all are checked at once.
local function seldom_ms() return math.floor(SELDOM_MS / 2 * (1 + clock[2] / 1000000)) end

local function look_within(sid, tid, after_ms)
  redis.call('ZADD', INDEX_KEY, 'LT', now + after_ms, sid .. ' ' .. tid)
end

-- Only for the script that has checked the whole turn, and therefore may also postpone the next check. Others use
-- look_within.
local function look_next(sid, tid, after_ms) redis.call('ZADD', INDEX_KEY, now + after_ms, sid .. ' ' .. tid) end

local function look_no_more(sid, tid) redis.call('ZREM', INDEX_KEY, sid .. ' ' .. tid) end
