-- session.lua: what makes a call that arrives twice one call.
--
-- A session is one client's calls, one after the other and numbered. Of each the
-- field s:SESSION of KEYS[1] has the last: its number and a nonce, 16 bytes; when
-- it was, 8 bytes; and its answer, which is empty if the client has given it up. A
-- call whose number is no higher is a copy that comes late. The nonce tells
-- the calls of two machines apart that were copied with all their memory.

local RECORD = 24

-- answered returns the answer to a call that was carried out before, or 'stale'
-- where there is none to give.
local function answered(record, call16)
  if not record then
    return nil
  end
  local last, number = struct.unpack('>I8', record), struct.unpack('>I8', call16)
  if last < number then
    return nil
  end
  if string.sub(record, 1, 16) == call16 and #record > RECORD then
    return string.sub(record, RECORD + 1)
  end
  return 'stale'
end

local function recordOf(call16, now, reply)
  return call16 .. struct.pack('>I8', now) .. reply
end

-- enroll notes a session that was not known, and forgets some that have ended.
local function enroll(session, now)
  local sessions = base .. ':sessions'
  for _, other in ipairs(call('ZRANGEBYSCORE', sessions, '-inf', text(now - 2 * GONE), 'LIMIT', 0, 4)) do
    local record = call('HGET', base, 's:' .. other)
    local last = record and struct.unpack('>I8', record, 17) or 0
    if last < now - 2 * GONE then
      call('ZREM', sessions, other)
      call('HDEL', base, 's:' .. other)
    else
      call('ZADD', sessions, text(last), other)
    end
  end
  call('ZADD', sessions, text(now), session)
  call('PEXPIRE', sessions, text(DAY / 1000))
end
