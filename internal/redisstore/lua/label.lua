-- label.lua: notes what people call an account, for those who read the store. An account
-- that is not kept any more stays so.
--
-- ARGV  1 the account
--       2 its label
-- returns ''

local key = base .. ':acct:' .. ARGV[1]
if ARGV[1] == '' or ARGV[2] == '' or #ARGV[2] > 100 then
  return redis.error_reply('ERR ration: label takes an account, and a label of 1 to 100 bytes')
end
local known = call('HMGET', key, 'made', 'label')
if known[1] and known[2] ~= ARGV[2] then
  call('HSET', key, 'label', ARGV[2])
end
return ''
