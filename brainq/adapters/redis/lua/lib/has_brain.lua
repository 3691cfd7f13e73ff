local function has_word(words, word) return (' ' .. words .. ' '):find(' ' .. word .. ' ', 1, true) ~= nil end

-- Whether a worker that has these brains may work on a turn of `brain`. One that names none is of the default brain, which
-- every worker has.
local function has_brain(brains, brain) return not brain or brain == '' or has_word(brains, brain) end
