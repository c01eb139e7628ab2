-- What the scripts of the queue share. A job waits in `ready` by its place in line, or in `hidden` until a time (ms).
local jobs, line, ready, hidden, dead, keys = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local tries, whys, tokens, holders, nonces = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function text(number) return string.format('%.0f', number) end

local function hide(id, pause)
  redis.call('ZREM', ready, id)
  redis.call('ZADD', hidden, text(now() + tonumber(pause)), id)
end

local function show(id)
  redis.call('ZREM', hidden, id)
  redis.call('ZADD', ready, redis.call('ZSCORE', line, id), id)
end

local function is_hidden(id)
  local upto = redis.call('ZSCORE', hidden, id)
  return upto and tonumber(upto) > now()
end

local function is_held(id) return redis.call('HEXISTS', holders, id) == 1 and is_hidden(id) end

local function is_dead(id) return redis.call('HEXISTS', dead, id) == 1 end

-- By which call a job was taken, both ways round.
local function forget_taking(id)
  local nonce = redis.call('HGET', nonces, id .. ' take')
  if nonce then redis.call('HDEL', nonces, id .. ' take', 'take ' .. nonce) end
end

local function forget(id)
  forget_taking(id)
  local key = redis.call('HGET', nonces, id .. ' key')
  if key then redis.call('HDEL', keys, key) end
  redis.call('HDEL', nonces, id, id .. ' key')
  for _, place in ipairs({line, ready, hidden}) do redis.call('ZREM', place, id) end
  for _, what in ipairs({jobs, dead, tries, whys, tokens, holders}) do redis.call('HDEL', what, id) end
end

