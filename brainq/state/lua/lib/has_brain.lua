-- Whether a worker that has these brains may work on a turn of `brain`. One that names none is of the default brain, which
-- every worker has.
local function has_brain(brains, brain)
  return not brain or brain == '' or (' ' .. brains .. ' '):find(' ' .. brain .. ' ', 1, true) ~= nil
end
