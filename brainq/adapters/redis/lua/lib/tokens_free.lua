-- Return when the window has tokens for a request. Uses the names of the script, lib/rates, and lib/permit_queue.
local KNOWN_AFTER, LOOK_AGAIN_MS = 10, 3000

local function tokens_free_at(sum, ahead, most_tokens, ratio, r)
  -- A request that is larger than the limit itself goes when no other request counts.
  local all = sum + (ahead > 0 and tokens_ahead(ahead) or 0) + math.min(tokens, most_tokens)
  if all <= most_tokens then return now end
  -- While the ratio is being learned, the tokens that answers give back may be enough. The request checks again soon.
  if tonumber(r.ratio_n or 0) < KNOWN_AFTER and all <= most_tokens * ratio then
    local expected = tonumber(redis.call('ZSCORE', due, ticket) or 0)
    return expected > now and math.min(expected, now + LOOK_AGAIN_MS) or now + LOOK_AGAIN_MS
  end
  local last, left = place_that_frees(all - most_tokens)
  return last and score_at(last) or rounds_later(left / most_tokens)
end
