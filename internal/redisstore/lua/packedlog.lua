-- packedlog.lua: a run of the exact log in strings, at 8 bytes an entry.
--
-- A chunk is a string of up to 510 records behind a head. Run.key is a sorted set
-- of the chunks, in the order of entry: the score is a chunk's base slot, the
-- member the units booked before it (7 bytes, modulo 2^52), which also name its
-- string, run.key:BEFORE. A record is what has been added to both since: 5 bytes
-- of microseconds, and 3 bytes of units, its own among them. The head is how many
-- records there are (2 bytes) and a copy of the last. All have the most
-- significant byte first. What fits into no record, 2^24 units and more at once,
-- is a member of the sorted set itself, 12 bytes as in slidinglog.lua.
--
-- The search for where Max - cost lies is one over the ranks of the set and one
-- over the records of a chunk, by interpolation: of unit costs both first guesses
-- hit.
--
-- A chunk expires a day after its last slot has left the window, and is removed
-- as one. Its string is made at full length, 4,096 bytes as Redis allocates it:
-- one that grows would have room to spare.

local HEAD, RECORD, RECORDS = 10, 8, 510
local SLOTS, UNITS = 1099511627776, 16777216

-- searchRank returns the last index, counted from 0, of at least that weight.
-- Weights never grow; index 0 has the weight top, and count has bottom, which is
-- too little. weigh returns the weights of an index and of the next.
local function searchRank(count, top, bottom, least, weigh)
  local low, high, looks = 0, count, 0
  while high - low > 1 do
    looks = looks + 1
    local part = looks <= 4 and (top - least) / (top - bottom) or 0.5
    local at = math.min(high - 1, low + math.floor((high - low) * part))
    local weight, following = weigh(at)
    if weight < least then
      high, bottom = at, weight
    elseif following < least then
      return at
    else
      low, top = at + 1, following
    end
  end
  return low
end

-- packedMember reads a member of the set: a chunk, which has a key, or an entry.
local function packedMember(run, name, score)
  local member = {name = name, slot = tonumber(score)}
  if #name == 12 then
    member.before, member.cost = unpackEntry(name)
  else
    member.before = struct.unpack('>I7', name)
    member.key = run.key .. ':' .. text(member.before)
  end
  return member
end

-- packedPair returns the member of a rank, and the next.
local function packedPair(run, rank)
  local pair = call('ZRANGE', run.key, rank, rank + 1, 'WITHSCORES')
  return packedMember(run, pair[1], pair[2]), pair[3] and packedMember(run, pair[3], pair[4])
end

-- The strings of chunks in which a record was looked for, by their keys: who has
-- looked for one looks for others.
local strings = {}

-- readHead reads how full a chunk is, and reports whether it is there.
local function readHead(chunk)
  local head = strings[chunk.key] or call('GETRANGE', chunk.key, 0, HEAD - 1)
  if #head < HEAD then
    return false
  end
  chunk.count, chunk.delta, chunk.units = struct.unpack('>I2I5I3', head)
  return true
end

-- readRecord returns a chunk's record of that index, and first the one before it.
local function readRecord(chunk, index)
  local whole = strings[chunk.key] or call('GETRANGE', chunk.key, 0, -1)
  strings[chunk.key] = whole
  if index == 0 then
    return 0, 0, struct.unpack('>I5I3', whole, HEAD + 1)
  end
  return struct.unpack('>I5I3I5I3', whole, HEAD + RECORD * (index - 1) + 1)
end

-- writeHead makes a chunk end with the record of those values.
local function writeHead(chunk, count, delta, units)
  chunk.count, chunk.delta, chunk.units = count, delta, units
  call('SETRANGE', chunk.key, 0, struct.pack('>I2I5I3', count, delta, units))
  strings[chunk.key] = nil
end

local function writeRecord(chunk, index, delta, units)
  call('SETRANGE', chunk.key, HEAD + RECORD * index, struct.pack('>I5I3', delta, units))
  writeHead(chunk, index + 1, delta, units)
end

-- searchPacked returns the newest entry of at least that weight; weigh(age) never
-- grows from an entry to the next, and is too little where the log ends.
local function searchPacked(run, least, weigh)
  local function weight(before)
    return weigh((run.total - before) % MODULUS)
  end
  local member, following = packedPair(run, 0)
  local top = weight(member.before)
  if top < least then
    return nil
  end
  if following and weight(following.before) >= least then
    local bottom = weight(run.tail.before)
    if bottom >= least then
      member, following = run.tail, nil
    else
      member, following = packedPair(run, searchRank(run.members - 1, top, bottom, least, function(rank)
        local one, other = packedPair(run, rank)
        return weight(one.before), weight(other.before)
      end))
    end
  end
  if member.cost then
    return member
  end
  if not readHead(member) then
    -- It has expired: all of it left long ago.
    local ends = following and following.before or run.total
    return {slot = member.slot, before = member.before, cost = (ends - member.before) % MODULUS}
  end
  local index = searchRank(member.count, weight(member.before), weight(member.before + member.units), least,
    function(at)
      local _, from, _, to = readRecord(member, at)
      return weight(member.before + from), weight(member.before + to)
    end)
  local _, from, delta, to = readRecord(member, index)
  return {slot = member.slot + delta, before = member.before + from, cost = to - from}
end

-- packedUpTo returns the units booked up to the last entry that is not after the
-- slot; nil if all are after it, or what is not has expired.
local function packedUpTo(run, slot)
  local name = call('ZREVRANGEBYSCORE', run.key, text(slot), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local member = name[1] and packedMember(run, name[1], name[2])
  if not member then
    return nil
  elseif member.cost then
    return member.before + member.cost
  elseif not readHead(member) then
    return nil
  elseif member.slot + member.delta <= slot then
    return member.before + member.units
  end
  local least = member.slot - slot
  local index = searchRank(member.count - 1, 0, -member.delta, least, function(at)
    local one, _, other = readRecord(member, at + 1)
    return -one, -other
  end)
  local _, units = readRecord(member, index + 1)
  return member.before + units
end

logs.P = {
  prefix = ':packed:',

  open = function(run)
    run.members, run.size, run.strings = call('ZCARD', run.key), 0, {}
    if run.members == 0 then
      return
    end
    local name = call('ZRANGE', run.key, -1, -1, 'WITHSCORES')
    local tail = packedMember(run, name[1], name[2])
    if tail.key and not readHead(tail) then
      return -- Its string is gone: this log was lost.
    end
    local after = tail.before + (tail.cost or tail.units)
    run.size, run.tail = run.members, tail
    run.total = after % MODULUS
    run.last = tail.slot + (tail.delta or 0)
    if after >= MODULUS then
      run.last = run.last + 1
    end
  end,

  newest = function(run, need)
    local entry = run.size > 0 and searchPacked(run, need + 1, function(age)
      return spent(run, age)
    end)
    return entry and entry.slot or nil
  end,

  after = function(run, slot)
    local before = packedUpTo(run, slot)
    if not before then
      local name = call('ZRANGEBYSCORE', run.key, '(' .. text(slot), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      if not name[1] then
        return nil
      end
      before = packedMember(run, name[1], name[2]).before
    end
    local age = (run.total - before) % MODULUS
    return age > 0 and age or nil
  end,

  append = function(run, slot, cost)
    local tail, before = run.tail, run.total
    if tail and tail.key and tail.count < RECORDS and slot - tail.slot < SLOTS and
      tail.units + cost < UNITS and before + cost < MODULUS then
      return writeRecord(tail, tail.count, slot - tail.slot, tail.units + cost)
    end
    if run.size == 0 then
      call('UNLINK', run.key)
      run.members = 0
    end
    local name = cost < UNITS and struct.pack('>I7', before) or pack(before, cost)
    call('ZADD', run.key, text(slot), name)
    run.tail, run.members = packedMember(run, name, text(slot)), run.members + 1
    if run.tail.key then
      run.strings[#run.strings + 1] = run.tail.key
      call('SETRANGE', run.tail.key, HEAD + RECORD * (RECORDS - 1), string.rep('\0', RECORD))
      writeRecord(run.tail, 0, 0, cost)
    end
  end,

  has = function(run, slot, before, cost)
    local age = (run.total - before) % MODULUS
    local entry = age > 0 and searchPacked(run, age, function(of)
      return of
    end)
    return entry and entry.slot == slot and entry.before <= before and before + cost <= entry.before + entry.cost
  end,

  split = function() end,

  last = function(run)
    logs.P.open(run)
    if run.size == 0 then
      return nil
    end
    local tail = run.tail
    run.final = tail
    if tail.key then
      local _, from = readRecord(tail, tail.count - 1)
      run.final = {slot = tail.slot + tail.delta, before = tail.before + from, cost = tail.units - from}
    end
    local before, cost = lastPart(run, run.final)
    run.cut = before
    return pack(before, cost)
  end,

  cut = function(run)
    local tail, final, before = run.tail, run.final, run.cut
    if tail.key and before > final.before then
      writeRecord(tail, tail.count - 1, tail.delta, before - tail.before)
    elseif tail.key and tail.count > 1 then
      local delta, units = readRecord(tail, tail.count - 1)
      writeHead(tail, tail.count - 1, delta, units)
    else
      if tail.key then
        call('UNLINK', tail.key)
      elseif before > final.before then
        call('ZADD', run.key, text(final.slot), pack(final.before, before - final.before))
      end
      call('ZREM', run.key, tail.name) -- not before: a log without entries loses its expiry
    end
  end,

  expire = function(run, ttl)
    call('PEXPIRE', run.key, ttl)
    for _, key in ipairs(run.strings) do
      call('PEXPIRE', key, ttl)
    end
    if run.tail and run.tail.key then
      call('PEXPIRE', run.tail.key, ttl)
    end
  end,

  -- The rule of slidinglog.lua, for whole members; more than a booking adds.
  trim = function(run, now, window, largest)
    local slot
    for _ = 1, 2 do
      if run.size == 0 or run.members < 2 then
        break
      end
      local first, following = packedPair(run, 0)
      local behind = (run.total - following.before) % MODULUS - run.unspent
      if following.slot >= now - window - DAY and (following.slot >= now - window or behind < largest) then
        break
      end
      if first.key then
        call('UNLINK', first.key)
      end
      call('ZREM', run.key, first.name)
      run.members, slot = run.members - 1, following.slot
    end
    return slot
  end,
}
