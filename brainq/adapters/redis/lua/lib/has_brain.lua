local function has_word(words, word) return (' ' .. words .. ' '):find(' ' .. word .. ' ', 1, true) ~= nil end

-- Return whether a worker with these brains may work on a turn of `brain`. A turn that names no brain uses the default
-- brain, which every worker has.
local function has_brain(brains, brain) return not brain or brain == '' or has_word(brains, brain) end
