-- the headers of all threads, from, count
if not is_there() then return {'gone'} end
local answer = {'ok'}
for i = tonumber(ARGV[1]), tonumber(ARGV[1]) + tonumber(ARGV[2]) - 1 do
  local name = redis.call('HGET', heart, 'threads:' .. i)
  if not name then break end
  table.insert(answer, redis.call('HGET', heart, 'thread:' .. name))
end
return answer
