-- thread, `@` for lines or `#` for heads, from, count, step, most bytes, ttl: at least one, if it is there
if not is_there() then return {'gone'} end
renew(ARGV[7])
local answer, bytes, seq = {'ok'}, 0, tonumber(ARGV[3])
for _ = 1, tonumber(ARGV[4]) do
  local value = redis.call('HGET', heart, ARGV[1] .. ARGV[2] .. string.format('%.0f', seq))
  if not value then break end
  bytes = bytes + #value
  if #answer > 1 and bytes > tonumber(ARGV[6]) then break end
  table.insert(answer, value)
  seq = seq + tonumber(ARGV[5])
end
return answer
