-- version, nonce, ttl, number of fields, then field and value of each, then members of the sheets
if not is_there() then return {'gone'} end
if redis.call('HGET', KEYS[4], 'filled') == ARGV[2] then return {'ok'} end
if (redis.call('HGET', KEYS[4], 'version') or '0') ~= ARGV[1] then return {'again'} end
local fields = tonumber(ARGV[4])
for i = 1, fields do redis.call('HSET', KEYS[4], ARGV[3 + 2 * i], ARGV[4 + 2 * i]) end
for i = 5 + 2 * fields, #ARGV do redis.call('ZADD', KEYS[5], 0, ARGV[i]) end
redis.call('HINCRBY', KEYS[4], 'version', 1)
redis.call('HSET', KEYS[4], 'filled', ARGV[2])
renew(ARGV[3])
return {'ok'}
