-- status.lua: tells what the callers of a budget must know beside their bookings.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the worker that asks, which is then counted for a minute; '' for none
-- returns numbers: now, the version, when a log was last found missing or 0, how many
--         workers there are, the highest revision; then for each pause the account's
--         name, and the number when it ends

local now = clock(ARGV[1], offset())
if bad then
  return redis.error_reply(bad)
end
local workers = base .. ':workers'
if ARGV[2] ~= '' then
  call('ZADD', workers, text(now), ARGV[2])
  call('ZREMRANGEBYSCORE', workers, '-inf', '(' .. text(now - GONE))
  call('PEXPIRE', workers, text(2 * GONE / 1000))
end
local reply = {encode(now), encode(version()), encode(call('HGET', base, 'lost') or 0),
  encode(call('ZCARD', workers)), encode(call('HGET', base, 'revision') or 0)}
local pauses = call('ZRANGEBYSCORE', base .. ':pauses', '(' .. text(now), '+inf', 'WITHSCORES')
for i = 1, #pauses, 2 do
  reply[#reply + 1] = struct.pack('>I2', #pauses[i]) .. pauses[i] .. encode(pauses[i + 1])
end
return table.concat(reply)
