-- moments, the oldest first; one that is there stays where it is
local newest = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or 0
for _, moment in ipairs(ARGV) do
  if not redis.call('ZSCORE', KEYS[1], moment) then
    newest = newest + 1
    redis.call('ZADD', KEYS[1], newest, moment)
  end
end
return 1
