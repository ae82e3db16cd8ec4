-- slidinglog.lua: the exact log of one account, in a sorted set.
--
-- An entry's score is its slot. Its member is 12 bytes: the units booked
-- before it (7 bytes, modulo 2^52) and its own cost (5 bytes), both most
-- significant byte first. So entries with one score stand in the order in which
-- they were booked, and what was booked since an entry is one subtraction: the
-- search for where Max - cost lies is a search over ranks.
--
-- An entry that was handed back stays where it is and is also in the set of
-- free entries, a hole. While its slot has not come it counts, and the next
-- booker takes it; once its slot has passed unused it counts for nothing.
-- slidinglog.go is the same in Go, step by step.

local MODULUS = 4503599627370496
-- More holes than this are not kept: the oldest counts as spent.
local HOLES = 512
-- Old entries are removed so many at a time: removing a million at once would
-- stop Redis for 363 ms.
local TRIM = 64

local function pack(before, cost)
  return struct.pack('>I7I5', before, cost)
end

local function unpackEntry(member)
  return struct.unpack('>I7I5', member)
end

-- open reads what is known of an account's log at now.
local function open(account, now)
  local log = {
    key = base .. ':log:' .. account,
    free = base .. ':free:' .. account,
    -- Units booked up to now, modulo MODULUS. A log does not begin at 0: after
    -- a loss its entries would bear the names of those that were lost, and be
    -- handed back in their stead.
    total = now % MODULUS,
    last = 0,  -- no slot before this one: order is kept
    holes = {}, -- those that have passed, the newest first
    unspent = 0, -- their cost
    handedBack = false, -- whether there are any holes, passed or not
  }
  log.size = call('ZCARD', log.key)
  if log.size == 0 then
    return log
  end
  local tail = call('ZRANGE', log.key, -1, -1, 'WITHSCORES')
  local before, cost = unpackEntry(tail[1])
  log.total = (before + cost) % MODULUS
  log.last = tonumber(tail[2])
  if before + cost >= MODULUS then
    -- The members begin again from 0: only a later slot keeps the order.
    log.last = log.last + 1
  end
  if call('EXISTS', log.free) == 1 then
    log.handedBack = true
    for _, member in ipairs(call('ZREVRANGEBYSCORE', log.free, '(' .. text(now), '-inf')) do
      before, cost = unpackEntry(member)
      log.unspent = log.unspent + cost
      log.holes[#log.holes + 1] = {age = (log.total - before) % MODULUS, cost = cost, sum = log.unspent}
    end
  end
  return log
end

-- An entry's age is in units: all that was booked since it, itself included.
-- spent returns how many of them count, and how many of the entry's own do.
local function spent(log, age, cost)
  local low, high, passed = 1, #log.holes, 0
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local hole = log.holes[middle]
    if hole.age > age then
      high = middle - 1
    else
      passed = hole.sum
      if hole.age == age then
        cost = 0
      end
      low = middle + 1
    end
  end
  return age - passed, cost
end

-- blocker returns the slot of the newest entry that, with all that counts since
-- it, is more than need units: a window that is to hold need units and a new
-- booking must begin after it. It returns nil if there is none.
local function blocker(log, need)
  local low, high = 0, log.size - 1
  -- Every entry is at least one unit, so this rank or a later one is it; for
  -- entries of one unit it is.
  local rank = math.max(0, high - need - log.unspent)
  while low <= high do
    local entry = call('ZRANGE', log.key, rank, rank, 'WITHSCORES')
    local before, cost = unpackEntry(entry[1])
    local units, own = spent(log, (log.total - before) % MODULUS, cost)
    if units <= need then
      high = rank - 1
    elseif units - own <= need then
      return tonumber(entry[2])
    else
      low = rank + 1
    end
    rank = math.floor((low + high) / 2)
  end
  return nil
end

-- since returns the units that count with slots after the given one.
local function since(log, slot)
  local oldest = call('ZRANGEBYSCORE', log.key, '(' .. text(slot), '+inf', 'LIMIT', 0, 1)[1]
  if not oldest then
    return 0
  end
  local before, cost = unpackEntry(oldest)
  return (spent(log, (log.total - before) % MODULUS, cost))
end

-- earliest returns the smallest slot that keeps the order and every limit.
local function earliest(log, set, cost)
  local slot = log.last
  for _, limit in ipairs(set) do
    local from = blocker(log, limit.max - cost)
    if from and from + limit.window > slot then
      slot = from + limit.window
    end
  end
  return slot
end

-- handedBack returns the first hole of at least cost units that has not come
-- before from, and its slot.
local function handedBack(log, cost, from)
  if not log.handedBack then
    return nil
  end
  local holes = call('ZRANGEBYSCORE', log.free, text(from), '+inf', 'WITHSCORES')
  for i = 1, #holes, 2 do
    local before, size = unpackEntry(holes[i])
    if size >= cost and before + size <= MODULUS then
      return holes[i], tonumber(holes[i + 1])
    end
  end
  return nil
end

-- take books a hole, or as much of it as cost is, and returns the entry.
local function take(log, hole, slot, cost)
  local before, size = unpackEntry(hole)
  call('ZREM', log.free, hole)
  if size == cost then
    return hole
  end
  local mine, rest = pack(before, cost), pack(before + cost, size - cost)
  call('ZREM', log.key, hole)
  call('ZADD', log.key, text(slot), mine, text(slot), rest)
  call('ZADD', log.free, text(slot), rest)
  log.size = log.size + 1
  return mine
end

-- enter books a new entry behind all others and returns it.
local function enter(log, slot, cost)
  local member = pack(log.total, cost)
  call('ZADD', log.key, text(slot), member)
  log.last = slot
  if log.total + cost >= MODULUS then
    log.last = slot + 1
  end
  log.total = (log.total + cost) % MODULUS
  log.size = log.size + 1
  -- The holes' ages are counted from the end of the log.
  for _, hole in ipairs(log.holes) do
    hole.age = hole.age + cost
  end
  return member
end

-- trim removes entries that can matter no more: older than the longest window
-- and behind more than the largest Max, which holds even if the clock steps;
-- or, so that a large limit that is little used does not keep them for ever, a
-- day older than the window.
local function trim(log, set, now)
  if log.handedBack then
    call('ZREMRANGEBYSCORE', log.free, '-inf', '(' .. text(now - set.window - DAY))
  end
  if log.size < TRIM then
    return
  end
  local entry = call('ZRANGE', log.key, TRIM - 1, TRIM - 1, 'WITHSCORES')
  local before, cost = unpackEntry(entry[1])
  local slot = tonumber(entry[2])
  local behind = (log.total - before) % MODULUS - cost - log.unspent
  if slot < now - set.window - DAY or (slot < now - set.window and behind >= set.largest) then
    if log.handedBack then
      -- A hole that is no longer in the log could be booked, and would not count.
      call('ZREM', log.free, unpack(call('ZRANGE', log.key, 0, TRIM - 1)))
    end
    call('ZREMRANGEBYRANK', log.key, 0, TRIM - 1)
    log.size = log.size - TRIM
  end
end

-- keep sets when the account's keys expire: never before the last slot has left
-- its window, and a day late, for clocks that step.
local function keep(log, set, now)
  local ttl = text(math.ceil((math.max(log.last - now, 0) + set.window + DAY) / 1000))
  call('PEXPIRE', log.key, ttl)
  if call('PTTL', base) < tonumber(ttl) then
    call('PEXPIRE', base, ttl)
  end
  if log.handedBack then
    call('PEXPIRE', log.free, ttl)
  end
end

-- giveBack makes the entry with that slot a hole: another may bear its name if the
-- log was lost, or has been handed back down to it. Holes at the end of the log are removed
-- instead: nothing was booked behind them.
local function giveBack(log, entry, slot)
  local there = call('ZSCORE', log.key, entry)
  if not there or tonumber(there) ~= slot or call('ZSCORE', log.free, entry) then
    return
  end
  call('ZADD', log.free, text(slot), entry)
  local ttl = call('PTTL', log.key)
  if ttl > 0 then
    call('PEXPIRE', log.free, ttl)
  end
  for _ = 1, HOLES + 1 do
    local tail = call('ZRANGE', log.key, -1, -1)[1]
    if not tail or call('ZREM', log.free, tail) == 0 then
      break
    end
    call('ZREM', log.key, tail)
  end
  if call('ZCARD', log.free) > HOLES then
    call('ZREMRANGEBYRANK', log.free, 0, 0)
  end
end
