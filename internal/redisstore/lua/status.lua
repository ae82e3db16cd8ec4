-- status.lua: tells what the callers of a budget must know beside their bookings.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the worker that asks, which is then counted for a minute; '' for none
--       3 the version that the worker knows; 0 for none
-- returns numbers: now, the version, when a log was last found missing or 0, how many
--         workers there are, the highest revision, and since which version pauses are
--         told, or 0 for all; then for each pause the account's name, and the number when
--         it ends

local now = clock(ARGV[1], offset())
local known = string.match(ARGV[3], '^%d+$') and tonumber(ARGV[3])
if not known then
  bad = bad or 'ERR ration: the known version is no number'
end
if bad then
  return redis.error_reply(bad)
end
local workers = base .. ':workers'
if ARGV[2] ~= '' then
  call('ZADD', workers, text(now), ARGV[2])
  call('ZREMRANGEBYSCORE', workers, '-inf', '(' .. text(now - GONE))
  call('PEXPIRE', workers, text(2 * GONE / 1000))
end
local state = call('HMGET', base, 'version', 'lost', 'revision', 'began')
-- A version that the list of changes does not reach back to, or that never was.
if known < tonumber(state[4] or 0) or known > tonumber(state[1] or 0) then
  known = 0
end
local reply = {encode(now), encode(state[1] or 0), encode(state[2] or 0), encode(call('ZCARD', workers)),
  encode(state[3] or 0), encode(known)}
local function tell(name, ends)
  reply[#reply + 1] = struct.pack('>I2', #name) .. name .. encode(ends)
end
if known == 0 then
  local pauses = call('ZRANGEBYSCORE', base .. ':pauses', '(' .. text(now), '+inf', 'WITHSCORES')
  for i = 1, #pauses, 2 do
    tell(pauses[i], pauses[i + 1])
  end
elseif known < tonumber(state[1]) then
  for _, name in ipairs(call('ZRANGEBYSCORE', base .. ':changes', '(' .. text(known), '+inf')) do
    local ends = pausedUntil(name)
    if ends > now then
      tell(name, ends)
    end
  end
end
return table.concat(reply)
