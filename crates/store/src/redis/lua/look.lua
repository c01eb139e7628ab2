-- which key, ttl, then fields
if not is_there() then return {'gone'} end
renew(ARGV[2])
local answer = {'ok'}
for i = 3, #ARGV do table.insert(answer, redis.call('HGET', KEYS[tonumber(ARGV[1])], ARGV[i])) end
return answer
