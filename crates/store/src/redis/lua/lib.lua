-- What the scripts about one session share. KEYS are all its keys, the heart first: without it there is no session.
local heart = KEYS[1]

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- All keys of a session end at the same instant, or never; '' leaves it as it is.
local function renew(ttl)
  if ttl == '' then return end
  local at = string.format('%.0f', math.floor(now() / 1000) + tonumber(ttl))
  for _, key in ipairs(KEYS) do
    if ttl == '0' then redis.call('PERSIST', key) else redis.call('PEXPIREAT', key, at) end
  end
end

-- Who holds the session, unless it is free or held by the process of this claim.
local function held(claim)
  local upto = tonumber(redis.call('HGET', heart, 'lease:until') or '0')
  if upto <= now() or redis.call('HGET', heart, 'lease:claim') == claim then return false end
  return redis.call('HGET', heart, 'lease:holder')
end

local function is_there() return redis.call('EXISTS', heart) == 1 end

