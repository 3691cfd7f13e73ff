-- When the sweeper looks at a turn next: at the latest when something can be due in it. It is set by the script that changes
-- that, so that no look is lost between the two. INDEX_KEY and RERING_MS are written in by the loader.
-- @include lib/now
-- @include generated/index
local SELDOM_MS, SOON_MS = 1800000, 1000

-- A turn in which nothing can be due, before somebody changes that, is looked at all the same; not all at one time.
local function seldom_ms() return math.floor(SELDOM_MS / 2 * (1 + clock[2] / 1000000)) end

local function look_within(sid, tid, after_ms)
  redis.call('ZADD', INDEX_KEY, 'LT', now + after_ms, sid .. ' ' .. tid)
end

-- For the script that has looked at the whole turn: whatever was asked for before, it knows better. Others use look_within.
local function look_next(sid, tid, after_ms) redis.call('ZADD', INDEX_KEY, now + after_ms, sid .. ' ' .. tid) end

local function look_no_more(sid, tid) redis.call('ZREM', INDEX_KEY, sid .. ' ' .. tid) end
