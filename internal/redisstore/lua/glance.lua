-- glance.lua: answers most questions for the usage of one account, before all else of
-- usage.lua is even read: for an account that quick.lua knows, of which nothing was
-- handed back. ARGV and what is returned are those of usage.lua.

local function glance()
  local sets = tonumber(ARGV[4])
  if ARGV[2] ~= '1' or ARGV[3] ~= '0' or not sets or #ARGV ~= sets + 5 then
    return nil
  end
  local number, account = string.match(ARGV[#ARGV], '^(%d+):(.+)$')
  local set = ARGV[4 + tonumber(number or 0)]
  if not account or not set then
    return nil
  end
  local call, base = redis.call, KEYS[1]
  local state = call('HMGET', base, 'offset', 'silent', 'has:' .. account)
  local has = state[3]
  if not has or #has < 33 or string.match(has, '^%d+ (.*)$', 33) ~= set then
    return nil
  end
  local _, _, _, hole = struct.unpack('>I8I8I8I8', has)
  local now
  if ARGV[1] == '' then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  else
    now = #ARGV[1] <= 16 and string.find(ARGV[1], '^%d+$') and tonumber(ARGV[1]) or 0
  end
  if now < 1 or now > 4503599627370496 then
    return nil
  end
  now = now + (state[1] or 0)
  local key = base .. ':log:' .. account
  local tail = call('ZRANGE', key, -1, -1)[1]
  if hole > 0 or now < tonumber(state[2] or 0) or not tail then
    return nil
  end
  local before, cost = struct.unpack('>I7I5', tail)
  local total = before + cost
  local reply = {struct.pack('>I8I8', now, 0)}
  for most, window, margin in string.gmatch(set, '(%d+) (%d+) (%d+) L 0 %- %-') do
    window = window + margin
    local opens = '(' .. string.format('%.0f', now - window)
    local first = call('ZRANGEBYSCORE', key, opens, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    local units, free = 0, 0
    if first[1] then
      units = (total - struct.unpack('>I7', first[1])) % 4503599627370496
      free = first[2] + window
    end
    most = tonumber(most)
    if units > most then
      -- Callers wait: the entry that must leave is where it stands if all are of one
      -- unit.
      local at = call('ZCARD', key) - most
      local entry = call('ZRANGE', key, at, at, 'WITHSCORES')
      local age = entry[1] and (total - struct.unpack('>I7', entry[1])) % 4503599627370496 or 0
      if age < most or age - struct.unpack('>I5', entry[1], 8) >= most then
        return nil
      end
      free = entry[2] + window
    end
    reply[#reply + 1] = struct.pack('>I8I8', units, free)
  end
  return reply[2] and table.concat(reply) or nil
end

do
  local reply = glance()
  if reply then
    return reply
  end
end
