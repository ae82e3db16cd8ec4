-- session.lua: what makes a call that arrives twice one call.
--
-- A session is one client's calls, one after the other and numbered. Of each the field
-- s:SESSION of KEYS[1] has the last answer: its number and a nonce, 16 bytes; when it was,
-- 8 bytes; and the rest, which is empty if the client has given the call up. A call whose
-- number is no higher is a copy that comes late. The nonce tells the calls of two machines
-- apart that were copied with all their memory.

-- answered returns the answer to a call that was carried out before, or 'stale'
-- where there is none to give.
local function answered(record, call16)
  if not record or struct.unpack('>I8', record) < struct.unpack('>I8', call16) then
    return nil
  end
  return string.sub(record, 1, 16) == call16 and #record > 24 and record or 'stale'
end

-- neededUntil returns until when a field of KEYS[1] that ends is needed.
local function neededUntil(field, value)
  if not value then
    return 0
  elseif string.sub(field, 1, 2) == 's:' then
    return struct.unpack('>I8', value, 17) + 2 * GONE
  elseif string.sub(field, 1, 2) == 'i:' then
    return struct.unpack('>d', value) + DAY
  end
  -- a:ACCOUNT, for as long as the account's keys, and of an empty one while its queues may wait.
  local summary = readSummary(value, {})
  return math.max(summary.ends, summary.edge, summary.last) + DAY
end

-- enroll notes a field of KEYS[1] that is needed until an instant.
local function enroll(field, ends)
  local fields = base .. ':fields'
  call('ZADD', fields, text(ends), field)
  if call('PTTL', fields) < 0 then
    call('PEXPIRE', fields, text(math.max(call('PTTL', base), DAY / 1000)))
  end
end

-- So many fields a script looks at: a fleet that books once in ten minutes forgets 3,000 in an
-- hour, and a script that finds as many takes half a millisecond.
local FORGOTTEN = 500

-- forgetFields forgets fields that have ended. When a field is needed for longer meanwhile that
-- is only found here.
local function forgetFields(now)
  local fields = base .. ':fields'
  local due = call('ZRANGEBYSCORE', fields, '-inf', text(now), 'LIMIT', 0, FORGOTTEN)
  if not due[1] then
    return
  end
  local values, gone, later = call('HMGET', base, unpack(due)), {}, {}
  for i, field in ipairs(due) do
    local needed = neededUntil(field, values[i])
    if needed > now then
      later[#later + 1], later[#later + 2] = text(needed), field
    else
      gone[#gone + 1] = field
    end
  end
  if later[1] then
    call('ZADD', fields, unpack(later))
  end
  if gone[1] then
    call('ZREM', fields, unpack(gone))
    call('HDEL', base, unpack(gone))
  end
  work = work + #due / 20
end
