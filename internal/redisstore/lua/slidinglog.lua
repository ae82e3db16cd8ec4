-- slidinglog.lua: a run of the exact log in a sorted set.
--
-- An entry's score is its slot. Its member is 12 bytes: the units booked
-- before it (7 bytes, modulo 2^52) and its own cost (5 bytes), both most
-- significant byte first. So entries with one score stand in the order in which
-- they were booked, and what was booked since an entry is one subtraction: the
-- search for where Max - cost lies is a search over ranks.

-- Old entries are removed so many at a time: removing a million at once would
-- stop Redis for 363 ms.
local TRIM = 64

-- entryOf returns the name of the entry that those units are, or are a part of: what
-- quick.lua books at one slot is one entry.
local function entryOf(run, slot, before, cost)
  local name, at = pack(before, cost), text(slot)
  local there = call('ZSCORE', run.key, name)
  if there then
    return tonumber(there) == slot and name or nil
  end
  local low = call('ZCOUNT', run.key, '-inf', '(' .. at)
  local high = low + call('ZCOUNT', run.key, at, at) - 1
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local entry = call('ZRANGE', run.key, middle, middle)[1]
    local first, whole = unpackEntry(entry)
    if first > before then
      high = middle - 1
    elseif first + whole <= before then
      low = middle + 1
    else
      return before + cost <= first + whole and entry or nil
    end
  end
  return nil
end

logs.L = {
  prefix = ':log:',

  open = function(run)
    run.size = call('ZCARD', run.key)
    if run.size > 0 then
      local tail = call('ZRANGE', run.key, -1, -1, 'WITHSCORES')
      local before, cost = unpackEntry(tail[1])
      run.total = (before + cost) % MODULUS
      run.last = tonumber(tail[2])
      if before + cost >= MODULUS then
        run.last = run.last + 1
      end
    end
  end,

  newest = function(run, need)
    local low, high = 0, run.size - 1
    -- Every entry is at least one unit, so this rank or a later one is it; for
    -- entries of one unit it is.
    local rank = math.max(0, high - need - run.unspent)
    while low <= high do
      local entry = call('ZRANGE', run.key, rank, rank, 'WITHSCORES')
      local before, cost = unpackEntry(entry[1])
      local age = (run.total - before) % MODULUS
      if spent(run, age) <= need then
        high = rank - 1
      elseif spent(run, age - cost) <= need then
        return tonumber(entry[2])
      else
        low = rank + 1
      end
      rank = math.floor((low + high) / 2)
    end
    return nil
  end,

  after = function(run, slot)
    local entry = call('ZRANGEBYSCORE', run.key, beyond(slot), '+inf', 'LIMIT', 0, 1)[1]
    if not entry then
      return nil
    end
    local before = unpackEntry(entry)
    return (run.total - before) % MODULUS
  end,

  append = function(run, slot, cost)
    call('ZADD', run.key, text(slot), pack(run.total, cost))
  end,

  has = function(run, slot, before, cost)
    return entryOf(run, slot, before, cost) ~= nil
  end,

  split = function(run, slot, before, cost)
    local entry = entryOf(run, slot, before, cost)
    local first, whole = unpackEntry(entry)
    if first == before and whole == cost then
      return
    end
    local ends = before + cost
    for _, part in ipairs({{first, before - first}, {before, cost}, {ends, first + whole - ends}}) do
      if part[2] > 0 then
        call('ZADD', run.key, text(slot), pack(part[1], part[2]))
        run.size = run.size + 1
      end
    end
    call('ZREM', run.key, entry) -- not before: a log without entries loses its expiry
    run.size = run.size - 1
  end,

  last = function(run)
    return call('ZRANGE', run.key, -1, -1)[1]
  end,

  cut = function(run)
    call('ZREMRANGEBYRANK', run.key, -1, -1)
  end,

  -- Older than the longest window and behind more than the largest Max, which
  -- holds even if the clock steps; or, so that a large limit that is little used
  -- does not keep entries for ever, a day older than the window.
  trim = function(run, now, window, largest, count)
    if run.size < TRIM then
      return nil
    end
    local entry = call('ZRANGE', run.key, TRIM - 1, TRIM - 1, 'WITHSCORES')
    local before, cost = unpackEntry(entry[1])
    local slot = tonumber(entry[2])
    local behind = (run.total - before) % MODULUS - cost - run.unspent
    if slot < now - window - DAY or (slot < now - window and behind >= largest) then
      call('ZREMRANGEBYRANK', run.key, 0, TRIM - 1)
      run.size = run.size - TRIM
      return count > TRIM and logs.L.trim(run, now, window, largest, count - TRIM) or slot
    end
    return nil
  end,
}
