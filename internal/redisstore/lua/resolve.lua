-- resolve.lua: asks for the answer to a call that was lost, and keeps the call from
-- being carried out later if it never arrived.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the field of the session
--       3 the call's number and nonce, 16 bytes
-- returns two numbers, now and the version, and the answer as book.lua gave it, or ''

local state = readState()
local now = clock(ARGV[1], state.offset)
local session, number = ARGV[2], ARGV[3]
if #session ~= 18 or #number ~= 16 then
  bad = bad or 'ERR ration: resolve takes a session of 18 bytes and a call of 16'
end
if bad then
  return redis.error_reply(bad)
end

local record = call('HGET', base, session)
local reply = answered(record, number)
if reply == 'stale' then
  reply = ''
elseif not reply then
  if not record then
    enroll(session, now + 2 * GONE)
  end
  call('HSET', base, session, number .. encode(now))
  if call('PTTL', base) < 0 then
    call('PEXPIRE', base, text(DAY / 1000))
  end
end
return encode(now) .. encode(state.version) .. (reply or '')
