-- ttl
if not is_there() then return {'gone'} end
local version = (redis.call('HGET', KEYS[4], 'version') or 0) + 1
local clearings = (redis.call('HGET', KEYS[4], 'clearings') or 0) + 1
redis.call('DEL', KEYS[4], KEYS[5])
redis.call('HSET', KEYS[4], 'version', version, 'clearings', clearings)
renew(ARGV[1])
return {'ok', tostring(clearings)}
