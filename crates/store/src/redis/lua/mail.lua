-- 'post', to, from, seq, ttl; or 'take', to, from, upto, ttl: a line `from seq` for each
if not is_there() then return {'gone'} end
local field = 'mail:' .. ARGV[2]
local lines, kept = redis.call('HGET', KEYS[2], field) or '', {}
for from, seq in string.gmatch(lines, '(%S+) (%d+)\n') do
  local same = from == ARGV[3]
  if ARGV[1] == 'post' and same and seq == ARGV[4] then return {'ok'} end
  if not (ARGV[1] == 'take' and same and tonumber(seq) <= tonumber(ARGV[4])) then
    table.insert(kept, from .. ' ' .. seq .. '\n')
  end
end
if ARGV[1] == 'post' then table.insert(kept, ARGV[3] .. ' ' .. ARGV[4] .. '\n') end
redis.call('HSET', KEYS[2], field, table.concat(kept))
renew(ARGV[5])
return {'ok'}
