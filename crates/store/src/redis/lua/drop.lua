-- which key, then fields
if not is_there() then return {'gone'} end
for i = 2, #ARGV do redis.call('HDEL', KEYS[tonumber(ARGV[1])], ARGV[i]) end
return {'ok'}
