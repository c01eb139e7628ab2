-- parent
if not is_there() then return {'gone'} end
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 7) == 'parent:' and all[i + 1] == ARGV[1] then
    redis.call('HSET', KEYS[2], 'told:' .. string.sub(all[i], 8), 0)
  end
end
return {'ok'}
